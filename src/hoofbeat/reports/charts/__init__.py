"""Small charts as SVG, of our own: data in, text out, and nothing else needed to draw or to see them."""

from __future__ import annotations

from hoofbeat.reports.charts.bars import (
    Bar,
    CountBar,
    FunnelBar,
    count_bars,
    difference_bars,
    funnel_bars,
    grouped_bars,
    interval_bar,
    interval_bars,
    interval_dots,
    stacked_bars,
    year_columns,
)
from hoofbeat.reports.charts.heatmaps import Shade, Strip, heatmap, label_strips, number_matrix, pair_matrix, shade_rows
from hoofbeat.reports.charts.line_plots import Curve, Dots, FitPoint, curves, fitted_scatter, scatter
from hoofbeat.reports.charts.svg import NARROW, WIDE, chart_css, sheet, standalone

__all__ = [
    "NARROW",
    "WIDE",
    "Bar",
    "CountBar",
    "Curve",
    "Dots",
    "FitPoint",
    "FunnelBar",
    "Shade",
    "Strip",
    "chart_css",
    "count_bars",
    "curves",
    "difference_bars",
    "fitted_scatter",
    "funnel_bars",
    "grouped_bars",
    "heatmap",
    "interval_bar",
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
