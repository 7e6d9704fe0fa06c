"""Reports: what the artefacts of a study found, as one page that can be read, printed, diffed and checked."""

from __future__ import annotations

from hoofbeat.reports.build import KINDS, assemble, build_report
from hoofbeat.reports.markdown import to_markdown
from hoofbeat.reports.model import Report
from hoofbeat.reports.page import to_html
from hoofbeat.reports.sheets import to_csv

__all__ = ["KINDS", "Report", "assemble", "build_report", "to_csv", "to_html", "to_markdown"]
