"""A report as one HTML file that needs nothing else: no server, no network, no font, no library.

Everything foreign is escaped by the templates and cleaned of hidden characters on the way in. The page's policy allows
its one style and its one script by their hashes; whatever else a text might smuggle in does not run.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hoofbeat.reports.charts import chart_css
from hoofbeat.reports.model import Cell, Column, Report
from hoofbeat.reports.words import clean, slug, written

__all__ = ["content_policy", "to_html"]

_TEMPLATES = resources.files("hoofbeat.reports") / "templates"


def to_html(report: Report) -> str:
    """The whole page."""
    style, script = _style(), _asset("viewer.js")
    page = _environment().get_template("report.html.j2")
    return page.render(
        report=report,
        policy=content_policy(style, script),
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
    )


def content_policy(style: str, script: str) -> str:
    """The page's Content-Security-Policy: this style, this script, and nothing from anywhere else."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def _style() -> str:
    return f"{chart_css()}{_asset('page.css')}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hoofbeat.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(drawing=_drawing, cell=_cell, numeric=_numeric, slug=slug, href=_href)
    return environment


def _finalize(value: object) -> object:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _drawing(svg: str) -> Markup:
    return Markup(svg)  # noqa: S704 - charts escape their text


def _cell(value: Cell, column: Column) -> list[str]:
    """A cell's lines: an interval stands below its value."""
    if isinstance(value, tuple) and len(value) == 3:
        return [written(value[0], column.form), written(value[1:], column.form)]
    return [written(value, column.form)]


def _numeric(column: Column) -> bool:
    return column.form != "text"


def _href(link: str) -> str:
    """Links lead within the page only."""
    return link if link.startswith("#") else ""
