"""Reports: what the artefacts of a study found, as one page that can be read, printed, diffed and checked."""

from __future__ import annotations

from hoofbeat.reports.build import KINDS, Choices, assemble, build_report
from hoofbeat.reports.latex import to_latex
from hoofbeat.reports.markdown import to_markdown
from hoofbeat.reports.model import Report
from hoofbeat.reports.page import to_html
from hoofbeat.reports.sections.published import papers
from hoofbeat.reports.sheets import to_csv
from hoofbeat.reports.writing import FORMATS

__all__ = [
    "FORMATS",
    "KINDS",
    "Choices",
    "Report",
    "assemble",
    "build_report",
    "papers",
    "to_csv",
    "to_html",
    "to_latex",
    "to_markdown",
]
