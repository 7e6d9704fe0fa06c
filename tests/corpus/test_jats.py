"""The JATS reader over real articles and over the corners of the format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from hoofbeat.corpus import read_file
from hoofbeat.corpus.parsers.jats_article import read_jats
from hoofbeat.errors import InputError
from hoofbeat.records import Document
from tests.corpus.checks import check_offsets
from tests.helpers import shared_data

FLOATS = {"fig", "table-wrap", "supplementary-material", "fn-group", "def-item"}
DEFAULT_HEADINGS = {
    "Abstract",
    "Acknowledgements",
    "Appendix",
    "Conflict of interest",
    "Footnotes",
    "Glossary",
    "Notes",
}
INNER = {*FLOATS, "list", "disp-quote", "boxed-text", "p", "media"}
SILENT = {"alt-text", "object-id", "graphic", "inline-graphic"}


def plain(text: str) -> str:
    """Letters and digits only, superscripts as digits: what must agree whatever the spacing."""
    table = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    return re.sub(r"\W+", "", text.translate(table))


def runs(paragraph: etree._Element) -> Iterator[str]:
    """The texts of a paragraph between the blocks in it, worked out apart from the reader."""
    run = [""]

    def walk(node: etree._Element) -> None:
        run[-1] += node.text or ""
        for child in node:
            if child.tag in INNER:
                run.append("")
            elif child.tag not in SILENT:
                walk(child)
            run[-1] += child.tail or ""

    walk(paragraph)
    yield from (text for text in map(plain, run) if text)


def parts(article: etree._Element) -> list[etree._Element]:
    """The parts of an article that its document's text is made of: all but references."""
    paths = ("./front/article-meta/abstract", "./front/article-meta/trans-abstract", "./body", "./floats-group")
    found = [part for path in paths for part in article.iterfind(path)]
    notes = (
        note
        for note in article.iterfind("./front/article-meta/author-notes/fn")
        if str(note.get("fn-type")).lower() in {"conflict", "coi-statement"}
    )
    return [*found, *notes, *(part for part in article.iterfind("./back/*") if part.tag != "ref-list")]


def expected(article: etree._Element) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in parts(article):
        for paragraph in part.iter("p"):
            if not any(parent.tag in FLOATS for parent in paragraph.iterancestors()):
                found.update(runs(paragraph))
    return found


def figures(article: etree._Element) -> list[etree._Element]:
    """Figures, and graphics that stand for themselves."""
    inside = ("fig", "table-wrap", "disp-formula", "inline-formula", "chem-struct")
    found = [node for part in parts(article) for node in part.iter("fig", "graphic")]
    return [node for node in found if node.tag == "fig" or next(node.iterancestors(*inside), None) is None]


def captions(article: etree._Element, tag: str) -> list[str]:
    """The captions of an article's floats of one kind, letters and digits only."""
    floats = [node for part in parts(article) for node in part.iter(tag)]
    return sorted(plain("".join(map(str, each.itertext()))) for node in floats for each in node.iterfind("caption"))


def cells(article: etree._Element) -> Counter[str]:
    """The texts of all cells of an article's tables."""
    tables = [node for part in parts(article) for node in part.iter("table")]
    texts = (plain("".join(map(str, cell.itertext()))) for table in tables for cell in table.iter("td", "th"))
    return Counter(text for text in texts if text)


def blocks(document: Document) -> Counter[str]:
    """The lines of a document; those that begin with a list mark count without it too."""
    lines = [line for block in document.text.split("\n\n") for line in block.split("\n")]
    bare = [re.sub(r"^\s*\(?\d{1,2}[.)]{0,2}\s", "", line) for line in lines]
    found = Counter(map(plain, lines))
    found.update(plain(short) for short, line in zip(bare, lines, strict=True) if plain(short) != plain(line))
    return found


def one(xml: str, **front: str) -> Document:
    meta = "".join(front.values())
    article = f'<article xmlns:xlink="http://www.w3.org/1999/xlink"><front><article-meta>{meta}</article-meta></front>'
    return next(read_jats(f"{article}{xml}</article>".encode(), "stem"))


def test_every_real_article_is_read_whole() -> None:
    articles = paragraphs = 0
    for path in sorted(shared_data("jats").iterdir()):
        trees = list(etree.parse(str(path)).iter("article"))
        documents = list(read_file(path))
        assert len(documents) == len(trees)
        for tree, document in zip(trees, documents, strict=True):
            wanted, found = expected(tree), blocks(document)
            for text, times in wanted.items():
                assert found[text] == times, (path.name, text[:200])
            assert len(document.figures) == len(figures(tree)), path.name
            assert len(document.tables) == sum(len(list(part.iter("table-wrap"))) for part in parts(tree))
            assert sorted(plain(f.caption) for f in document.figures if f.caption) == captions(tree, "fig")
            assert sorted(plain(t.caption) for t in document.tables if t.caption) == captions(tree, "table-wrap")
            found_cells = Counter(plain(c) for t in document.tables for row in t.rows for c in row if plain(c))
            assert found_cells == cells(tree), path.name
            files = [file for figure in document.figures for file in figure.files]
            assert len(files) == sum(len(list(node.iter("graphic"))) for node in figures(tree))
            assert document.title
            assert document.facets["journal"]
            assert re.fullmatch(r"PMC\d+", document.id)
            check_offsets(document)
            articles += 1
            paragraphs += sum(wanted.values())
    assert articles == 36
    assert paragraphs > 1000


def test_no_letter_of_a_real_article_is_lost() -> None:
    letters = 0
    for path in sorted(shared_data("jats").iterdir()):
        for tree, document in zip(etree.parse(str(path)).iter("article"), read_file(path), strict=True):
            for silent in tree.iter(*SILENT):
                silent.text = ""
            for name in ("ref-list", "tex-math"):
                for hidden in [node for part in parts(tree) for node in part.iter(name)]:
                    for node in hidden.iter():
                        node.text = ""
                        node.tail = node.tail if node is hidden else ""
            wanted = Counter(plain("".join("".join(map(str, part.itertext())) for part in parts(tree))))
            found = Counter(plain(document.text))
            assert wanted - found == Counter(), path.name
            given = Counter(plain("".join(s.heading for s in document.sections if s.heading in DEFAULT_HEADINGS)))
            added = {character for character in (found - wanted - given) if not character.isdigit()}
            assert added == set(), (path.name, found - wanted - given)
            letters += found.total()
    assert letters > 700_000


def test_real_case_reports_are_told_apart() -> None:
    kinds = Counter(d.kind for path in shared_data("jats").iterdir() for d in read_file(path))
    assert kinds == {"case-report": 6, "article": 30}


def test_structure_of_a_small_article() -> None:
    document = one(
        "<body><p>Before <italic>any</italic> section.</p>"
        "<sec><label>1</label><title>Case presentation</title><p>Count 9 × 10<sup>9</sup>/L<xref>3</xref>, "
        "area 2 m<sup>2</sup>.<fig id='f1'><label>Figure 1</label><caption><p>A film.</p></caption>"
        "<graphic xlink:href='f1'/></fig> After the figure.</p>"
        "<sec><title>Course</title><list list-type='order'><list-item><p>One</p></list-item><list-item><p>Two</p>"
        "<list><list-item><p>Deep</p></list-item></list></list-item></list></sec><p>Back in the case.</p></sec>"
        "<sec><title>Discussion</title><disp-quote><p>Quoted.</p></disp-quote><boxed-text><label>Box 1</label>"
        "<caption><title>Key points</title></caption><sec><title>Inner</title><p>Point.</p></sec></boxed-text></sec>"
        "</body>",
        abstract="<abstract><p>Short.</p></abstract>",
    )
    assert document.text.split("\n\n") == [
        "Abstract",
        "Short.",
        "Before any section.",
        "1 Case presentation",
        "Count 9 × 10⁹/L3, area 2 m².",
        "Figure 1. A film.",
        "After the figure.",
        "Course",
        "1. One\n2. Two\n  - Deep",
        "Back in the case.",
        "Discussion",
        "Quoted.",
        "Box 1. Key points",
        "Inner",
        "Point.",
    ]
    assert [(s.heading, s.level, s.role) for s in document.sections] == [
        ("Abstract", 1, "abstract"),
        ("", 1, ""),
        ("1 Case presentation", 1, "case"),
        ("Course", 2, "case"),
        ("", 1, "case"),
        ("Discussion", 1, "discussion"),
    ]
    figure = document.figures[0]
    assert (figure.files, document.text[figure.start : figure.end]) == (("f1",), "Figure 1. A film.")
    check_offsets(document)


def test_tables_keep_their_columns_and_notes() -> None:
    document = one(
        "<body><sec><title>T</title><table-wrap id='t1'><label>Table 1</label><caption><p>Values</p></caption>"
        "<table><thead><tr><th rowspan='2'>Test</th><th colspan='2'>Day</th></tr><tr><th>1</th><th>2</th></tr></thead>"
        "<tbody><tr><td>Hb</td><td>78</td><td>80</td></tr></tbody></table>"
        "<table-wrap-foot><p>Hb in g/L</p></table-wrap-foot></table-wrap></sec></body>"
    )
    table = document.tables[0]
    assert table.rows == (("Test", "Day", ""), ("", "1", "2"), ("Hb", "78", "80"))
    assert document.text[table.start : table.end] == ("Table 1. Values\nTest | Day |\n| 1 | 2\nHb | 78 | 80\nHb in g/L")


def test_floats_stand_after_the_paragraph_that_cites_them() -> None:
    document = one(
        "<body><p>See <xref rid='f2'>Figure 2</xref>.</p><p>End.</p></body><floats-group>"
        "<fig id='f1'><label>Figure 1</label></fig><fig id='f2'><label>Figure 2</label></fig></floats-group>"
    )
    assert document.text.split("\n\n") == ["See Figure 2.", "Figure 2", "End.", "Figure 1"]


def test_metadata() -> None:
    document = one(
        "<body><p>Text.</p></body>",
        ids="<article-id pub-id-type='doi'>10.1/a b/../c</article-id><article-id pub-id-type='pmid'>7</article-id>",
        subjects="<article-categories><subj-group><subject>Case Reports</subject></subj-group></article-categories>",
        title="<title-group><article-title>RETRACTED: A <sub>x</sub> case</article-title></title-group>",
        dates="<pub-date pub-type='ppub'><year>2020</year></pub-date><pub-date><year>2019</year></pub-date>",
        licence="<permissions><license xlink:href='https://example.org/by'><license-p>Free</license-p></license>"
        "</permissions>",
        related="<related-article related-article-type='correction-forward'/>",
        keywords="<kwd-group><kwd>a</kwd><kwd>b</kwd><kwd>a</kwd></kwd-group>",
    )
    assert document.id == "10.1_a_b_.._c"
    assert document.kind == "case-report"
    assert document.title == "RETRACTED: A x case"
    assert document.notices == ("correction", "retraction")
    assert document.licence == "https://example.org/by"
    assert document.facets == {
        "year": "2019",
        "date-ppub": "2020",
        "licence-url": "https://example.org/by",
        "related": ["correction-forward"],
        "doi": "10.1/a b/../c",
        "pmid": "7",
        "keywords": ["a", "b"],
        "subjects": ["Case Reports"],
        "has_figures": "no",
    }


@pytest.mark.parametrize(
    ("title", "notices"),
    [
        ("Retraction of the gallbladder in surgery", ()),
        ("[Retracted] Something", ("retraction",)),
        ("Retraction notice to Something", ("retraction",)),
        ("Correction to: Something", ("correction",)),
        ("Correction of hyponatraemia", ()),
        ("Erratum: Something", ("correction",)),
        ("Expression of Concern: Something", ("expression-of-concern",)),
    ],
)
def test_title_notices(title: str, notices: tuple[str, ...]) -> None:
    front = f"<title-group><article-title>{title}</article-title></title-group>"
    assert one("<body><p>x</p></body>", title=front).notices == notices


def test_article_sets_namespaces_and_missing_ids(tmp_path: Path) -> None:
    path = tmp_path / "set.xml"
    article = "<article xmlns='https://jats.nlm.nih.gov/ns/archiving/1.3/'><body><p>{}</p></body></article>"
    path.write_text(f"<pmc-articleset>{article.format('One')}{article.format('Two')}</pmc-articleset>")
    documents = list(read_file(path))
    assert [(d.id, d.text) for d in documents] == [("set", "One"), ("set-2", "Two")]
    assert [d.provenance.member for d in documents if d.provenance] == ["1", "2"]
    assert documents[0].provenance
    assert documents[0].provenance.reader == "jats/2"


def test_xml_without_an_article_is_refused() -> None:
    with pytest.raises(InputError, match="no article"):
        list(read_jats(b"<html><body/></html>", "x"))


def test_formulas_stand_once() -> None:
    document = one(
        "<body><p>So <inline-formula><alternatives><tex-math>\\begin{document}$x$\\end{document}</tex-math>"
        "<math><mi>x</mi><mo>=</mo><mn>1</mn></math></alternatives></inline-formula> holds and "
        "<inline-formula><tex-math>\\documentclass{a}\\begin{document}$$y^2$$\\end{document}</tex-math>"
        "</inline-formula> too.</p></body>"
    )
    assert document.text == "So x=1 holds and y^2 too."
