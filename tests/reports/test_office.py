"""A report for an office: the workbook, the Word document and the page of plain words, read by other libraries."""

from __future__ import annotations

import io
import re
import sys
import zipfile
from pathlib import Path

import docx
import pypdfium2
import pytest
from lxml import etree
from msgspec.structs import replace

from hoofbeat.errors import UsageError
from hoofbeat.reports.model import (
    Details,
    Entry,
    Heading,
    Lead,
    PairView,
    PassageView,
    PlainSummary,
    Report,
    SideView,
    Viewer,
    tables_in,
    viewers_in,
)
from hoofbeat.reports.office.office_packages import OFFICE_FORMATS
from hoofbeat.reports.office.summary_page import to_summary
from hoofbeat.reports.office.word_document import to_docx
from hoofbeat.reports.office.workbook import sheet_names, to_xlsx
from hoofbeat.reports.report_build import assemble, build_report
from hoofbeat.reports.report_writer import report_files
from hoofbeat.reports.tables import Column, Table, flat_rows, written
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.text import one_line
from tests.reports import examples
from tests.reports.audits import teaching_audit

HOSTILE = ("=cmd|'/c calc'!A1", "+1+1", "@SUM(A1)", "-2", "\tx\x07\x00\u202ey", "＝1", "</w:t><w:t>", "&lt;b&gt;")
_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
Sheets = dict[str, list[dict[str, object]]]


def hostile_report() -> Report:
    rows = tuple((text, 0.25, 3, (0.5, 0.1, 0.9), 0.05) for text in HOSTILE)
    columns = (
        Column("=head()"), Column("share", "share"), Column("n", "count"), Column("value", "number"),
        Column("gain", "points"),
    )  # fmt: skip
    table = Table(name="t", caption="=1+1 [a]:*?/\\' table", n=8, unit="rows", columns=columns, rows=rows, note="=2")
    passage = PassageView(source=HOSTILE[0], text=HOSTILE[4])
    side = SideView(name="=A", text=HOSTILE[4], cited=(passage,), warnings=("=w",))
    entry = Entry(id="e", name="q", title=HOSTILE[0], blocks=(PairView(a=side, b=side, label="=L", tone=0),))
    viewer = Viewer(id="v", noun="pairs", entries=(entry,))
    lead = Lead(HOSTILE[0])
    return Report(
        title="=title()", notice="n", version="0", leads=(lead,), blocks=(Heading("=h", "h"), table, viewer),
        origin=(Details("=made", (replace(table, name="made"),)),),
    )  # fmt: skip


def sheets(content: bytes) -> Sheets:
    """Every sheet's rows, by the letters of the columns; no cell may hold a formula."""
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        assert all(info.date_time == (1980, 1, 1, 0, 0, 0) for info in book.infolist())
        strings = ["".join(map(str, each.itertext())) for each in etree.fromstring(book.read("xl/sharedStrings.xml"))]
        names = [each.get("name") for each in etree.fromstring(book.read("xl/workbook.xml")).iter(f"{_S}sheet")]
        found: Sheets = {}
        for number, name in enumerate(names, start=1):
            tree = etree.fromstring(book.read(f"xl/worksheets/sheet{number}.xml"))
            assert tree.find(f".//{_S}f") is None
            found[str(name)] = [
                {
                    re.sub(r"\d", "", str(cell.get("r"))): strings[int(value)] if cell.get("t") == "s" else float(value)
                    for cell in row.iter(f"{_S}c")
                    if (value := cell.findtext(f"{_S}v")) is not None
                }
                for row in tree.iter(f"{_S}row")
            ]
    return found


def word_tables(content: bytes) -> list[list[list[str]]]:
    document = docx.Document(io.BytesIO(content))
    return [[[cell.text for cell in row.cells] for row in table.rows] for table in document.tables]


def pdf_text(content: bytes) -> str:
    with pypdfium2.PdfDocument(content) as pdf:
        assert len(pdf) == 1
        assert pdf[0].get_size() == pytest.approx((595.3, 841.9), abs=0.1)
        return " ".join(pdf[0].get_textpage().get_text_bounded().split())


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    return teaching_audit(tmp_path_factory.mktemp("office") / "audit")


@pytest.fixture(scope="module")
def report(audited: Artefact) -> Report:
    return assemble([audited], title="")


def test_the_workbook_holds_every_table_with_its_numbers(report: Report) -> None:
    tables = {table.name: table for table in tables_in(report.all_blocks)}
    found = sheets(to_xlsx(report, tables))
    assert next(iter(found)) == "Summary"
    assert report.leads[0].text in [row.get("B") for row in found["Summary"]]
    for table, rows in zip(tables.values(), list(found.values())[1:], strict=True):
        header, flat = flat_rows(table)
        assert next(row for row in rows if row)["A"] == one_line(f"{table.caption} (n = {table.counted})")
        body = rows[-len(flat) :] if flat else []
        for row, told in zip(flat, body, strict=True):
            texts = [one_line(value) for value in row if isinstance(value, str) and one_line(value)]
            assert [value for value in told.values() if isinstance(value, str) and value] == texts
            figures = [value for value in row if isinstance(value, int | float)]
            numbers = [value for value in told.values() if isinstance(value, float)]
            points = any(column.form == "points" for column in table.columns)
            assert points or numbers == pytest.approx(figures)
        assert list(rows[-len(flat) - 1].values()) == [one_line(head) for head in header if head]


def test_hostile_text_is_text_in_the_workbook() -> None:
    report = hostile_report()
    content = to_xlsx(report, {table.name: table for table in tables_in(report.all_blocks)})
    rows = list(sheets(content).values())[1]
    assert [row["A"] for row in rows[-len(HOSTILE) :]] == [one_line(text) for text in HOSTILE]
    assert [row["C"] for row in rows[-len(HOSTILE) :]] == [3.0] * len(HOSTILE)
    assert {row["G"] for row in rows[-len(HOSTILE) :]} == {5.0}, "points are percentage points, as on the page"
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        styles = etree.fromstring(book.read("xl/styles.xml"))
        marked = [
            place for place, each in enumerate(styles.iterfind(f"{_S}cellXfs/{_S}xf")) if each.get("quotePrefix") == "1"
        ]
        cells = etree.fromstring(book.read("xl/worksheets/sheet2.xml")).iter(f"{_S}c")
        styled = {str(cell.get("r")): int(cell.get("s", 0)) for cell in cells}
        assert all(styled[f"A{place}"] in marked for place in (5, 6, 7, 8, 10)), "stays text when it is edited"
        assert not any(b"\x07" in book.read(name) or "\u202e".encode() in book.read(name) for name in book.namelist())


def test_the_word_document_holds_the_same_tables_as_the_page(report: Report) -> None:
    shown = list(tables_in((*report.opening, *report.blocks)))
    found = word_tables(to_docx(report))
    assert len(found) == len(shown) > 10
    for table, rows in zip(shown, found, strict=True):
        assert rows[0] == [one_line(column.title) for column in table.columns]
        for row, told in zip(table.rows[:200], rows[1:], strict=True):
            cells = zip(row, table.columns, strict=True)
            assert told == [one_line(written(value, column.form)) for value, column in cells]


def test_the_word_document_has_findings_statements_and_pairs(report: Report) -> None:
    words = "\n".join(each.text for each in docx.Document(io.BytesIO(to_docx(report))).paragraphs)
    assert all(lead.text in words for lead in report.leads)
    assert "Passages behind this table" in words
    pair = next(
        view for viewer in viewers_in(report.blocks) for view in viewer.entries[0].blocks if isinstance(view, PairView)
    )
    assert f"{pair.a.name}: {pair.a.text}" in words
    assert pair.a.cited
    assert all(one_line(f"“{passage.text}” ({passage.source})") in words for passage in pair.a.cited)
    assert "How this was made" in words


def test_hostile_text_is_text_in_word() -> None:
    content = to_docx(hostile_report())
    (rows,) = word_tables(content)
    assert [row[0] for row in rows[1:]] == [one_line(text) for text in HOSTILE]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert b"instrText" not in archive.read("word/document.xml")


@pytest.mark.parametrize("captions", [("a" * 40, "A" * 40, "a" * 40), ("", "'", "History", "summary")])
def test_sheets_have_names_that_excel_takes(captions: tuple[str, ...]) -> None:
    names = sheet_names(captions)
    assert len({name.casefold() for name in names}) == len(captions)
    assert all(0 < len(name) <= 31 and not set("[]:*?/\\'") & set(name) for name in names)
    assert not {"summary", "history"} & {name.casefold() for name in names}


def test_the_same_report_gives_the_same_bytes(report: Report, audited: Artefact) -> None:
    again = assemble([audited], title="")
    first, second = (dict(report_files(each, tuple(OFFICE_FORMATS))) for each in (report, again))
    assert set(first) == {"report.xlsx", "report.docx", "summary.pdf"}
    assert first == second


def test_an_audit_on_one_page(report: Report) -> None:
    ((_, summary),) = report.summaries
    text = pdf_text(to_summary(summary, report.notice, report.version))
    for part in ("What was asked", "What was found", "How sure this is", "What to do now", "What this is not"):
        assert part in text
    assert "24 questions went to each of 8 sources" in text
    assert "It does not say which source is right." in text
    assert report.notice in text


def test_judged_answers_on_one_page(tmp_path: Path) -> None:
    judged = examples.judged(tmp_path / "judged", [*examples.answered("closed"), *examples.answered("oracle", 0.9)])
    made = build_report([judged.path], tmp_path / "report", formats=("summary",))
    assert set(made.manifest.files) == {"summary.pdf"}
    text = pdf_text(made.file("summary.pdf").read_bytes())
    assert re.search(r"closed answered \d+ of \d+ right\.", text)
    assert "oracle: the model saw the document that holds the answer." in text
    assert "No person has checked the judge" in text


@pytest.mark.parametrize("script", ["word ", "слово ", "κάππα ", "字", "\U0001f40e "])
def test_a_page_stays_one_page_however_long(script: str) -> None:
    parts = {name: tuple(script * 300 for _ in range(9)) for name in ("asked", "found", "sure", "todo", "limits")}
    page = PlainSummary(title=script * 30, subtitle=script * 50, warning=script * 90, **parts)
    pdf_text(to_summary(page, "Not for clinical use.", "0"))


def test_other_scripts_are_kept_where_the_machine_has_a_font() -> None:
    text = pdf_text(to_summary(PlainSummary(title="Trasplante: niño, κ = 0.8 – ok"), "n", "0"))
    assert "Trasplante: niño, kappa = 0.8 – ok" in text
    text = pdf_text(to_summary(PlainSummary(title="Пересадка почки"), "n", "0"))
    assert "Пересадка почки" in text or "????" in text


def test_nothing_to_summarise_is_said(tmp_path: Path) -> None:
    examples.corpus(tmp_path / "corpus")
    with pytest.raises(UsageError, match="nothing to summarise"):
        build_report([tmp_path / "corpus"], tmp_path / "report", formats=("summary",))
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("format", OFFICE_FORMATS)
def test_a_missing_package_is_named_before_anything_is_read(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, OFFICE_FORMATS[format], None)
    with pytest.raises(UsageError, match=f"a report as {format} needs a package") as caught:
        build_report([tmp_path / "not there"], tmp_path / "report", formats=("html", format))
    assert "pip install 'hoofbeat[office]'" in str(caught.value.fix)


def test_the_formats_of_an_office_are_not_written_unless_named(tmp_path: Path) -> None:
    examples.corpus(tmp_path / "corpus")
    build_report([tmp_path / "corpus"], tmp_path / "report")
    assert not {".xlsx", ".docx", ".pdf"} & {
        Path(name).suffix for name in open_artefact(tmp_path / "report").manifest.files
    }
