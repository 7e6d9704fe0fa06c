"""Grids of labels: how every two sources relate on a question, as a table or packed for the page's script."""

from __future__ import annotations

from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.charts.heatmaps import abbreviations
from hoofbeat.reports.model import GridView
from hoofbeat.reports.nodes import Element, Node, element
from hoofbeat.text import clean

WIDEST = 25
"""A grid of more sources is drawn by the page's script only: as elements it would outweigh the page."""

NO_LABEL, NO_PAIR = "-", "."


def grid_table(view: GridView) -> Element:
    """The grid as a table, or where it is too large for one a sentence that says so."""
    if len(view.names) > WIDEST:
        return element("p.notice", f"A grid of {len(view.names)} sources is drawn by a browser that runs scripts.")
    short, links, marks = abbreviations(view.labels), dict(view.links), dict(view.marks)
    numbers = [element("th", str(place + 1), scope="col", title=name) for place, name in enumerate(view.names)]
    rows = [element("tr", element("td"), *numbers)]
    for row, name in enumerate(view.names):
        cells: list[Node] = [element("th", element("span.no", str(row + 1)), " ", name, scope="row", dir="auto")]
        for column, other in enumerate(view.names):
            if row == column:
                cells.append(element("td.self"))
                continue
            place = grid_place(row, column, len(view.names))
            label = grid_label(view, place)
            said = f"{name} and {other}: {label or 'no label'}"
            said += f"; planted: {marks[place]}" if place in marks else ""
            tone = f".tone{tone_of(view.labels.index(label), len(view.labels))}" if label else ".blank"
            off = ".off" if place in marks else ""
            words = short.get(label, "?" if view.cells[place] == NO_LABEL else "")
            linked = (
                element(f"a.cell{tone}{off}", words, href=f"#{links[place]}", title=said) if place in links else None
            )
            cells.append(element("td", linked or element(f"span.cell{tone}{off}", words, title=said)))
        rows.append(element("tr", *cells))
    return element("div.grid", element("table", *rows, aria_label=view.title), role="group", tabindex="-1")


def grid_place(row: int, column: int, count: int) -> int:
    """Where the letter of two sources stands in the cells of a grid of so many."""
    low, high = sorted((row, column))
    return low * count - low * (low + 1) // 2 + high - low - 1


def grid_label(view: GridView, place: int) -> str:
    """The label of one pair, empty where it has none."""
    letter = view.cells[place]
    return "" if letter in (NO_LABEL, NO_PAIR) else view.labels[ord(letter) - ord("a")]


def packed_grid(view: GridView) -> list[object]:
    """The grid as plain data for the page's script: a few bytes a pair."""
    short = abbreviations(view.labels)
    labels = [
        [clean(label), clean(short[label]), tone_of(place, len(view.labels))] for place, label in enumerate(view.labels)
    ]
    links = [part for place, anchor in view.links for part in (place, anchor)]
    marks = [part for place, planted in view.marks for part in (place, clean(planted))]
    names = [clean(name) for name in view.names]
    return ["grid", 0, clean(view.title), names, labels, view.cells, links, marks]
