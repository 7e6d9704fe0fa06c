"""Small charts as SVG, of our own: data in, text out, and nothing else needed to draw or to see them."""

from __future__ import annotations

from hoofbeat.reports.charts.bars import Bar, grouped_bars, interval_bars, stacked_bars
from hoofbeat.reports.charts.counts import Stage, Tally, count_bars, funnel_bars, year_columns
from hoofbeat.reports.charts.dots import difference_bars, interval_dots
from hoofbeat.reports.charts.fits import FitPoint, fitted_scatter
from hoofbeat.reports.charts.grids import number_matrix
from hoofbeat.reports.charts.heat import Shade, heatmap
from hoofbeat.reports.charts.plots import Curve, Dots, curves, scatter
from hoofbeat.reports.charts.sources import pair_matrix, shade_rows
from hoofbeat.reports.charts.strips import Strip, label_strips
from hoofbeat.reports.charts.svg import NARROW, WIDE, chart_css, sheet, standalone

__all__ = [
    "NARROW",
    "WIDE",
    "Bar",
    "Curve",
    "Dots",
    "FitPoint",
    "Shade",
    "Stage",
    "Strip",
    "Tally",
    "chart_css",
    "count_bars",
    "curves",
    "difference_bars",
    "fitted_scatter",
    "funnel_bars",
    "grouped_bars",
    "heatmap",
    "interval_bars",
    "interval_dots",
    "label_strips",
    "number_matrix",
    "pair_matrix",
    "scatter",
    "shade_rows",
    "sheet",
    "stacked_bars",
    "standalone",
    "year_columns",
]
