"""JATS beyond paragraphs: back matter, sub-articles, supplements, formulas, figure groups, references to figures."""

from __future__ import annotations

from collections import Counter

import pytest

from hoofbeat.corpus import read_file
from hoofbeat.corpus.figures import figure_references
from hoofbeat.corpus.parsers.jats_article import read_jats
from hoofbeat.records import Document
from tests.corpus.checks import check_offsets
from tests.helpers import shared_data

XMLNS = 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:mml="http://www.w3.org/1998/Math/MathML"'


def read(xml: str, meta: str = "", attributes: str = "") -> list[Document]:
    front = f"<front><article-meta>{meta}</article-meta></front>"
    documents = list(read_jats(f"<article {XMLNS} {attributes}>{front}{xml}</article>".encode(), "stem"))
    for document in documents:
        check_offsets(document)
    return documents


def test_back_matter_becomes_sections_with_role_back() -> None:
    (document,) = read(
        "<body><sec><title>Case</title><p>A man.</p><fn-group><fn><label>a</label><p>In the body.</p></fn></fn-group>"
        "</sec></body><back><ack><p>Thanks.</p></ack><app-group><app><title>Appendix A</title><p>More.</p><sec>"
        "<title>Discussion</title><p>Deep.</p></sec></app></app-group><fn-group><title>Statements</title>"
        "<fn fn-type='other'><label>1</label><p>First.</p><p>Second.</p></fn></fn-group><notes><title>Funding</title>"
        "<p>None.</p></notes><glossary><def-list><def-item><term>CT</term><def><p>tomography</p></def></def-item>"
        "</def-list></glossary><sec><title>Data</title><p>On request.</p></sec>"
        "<ref-list><ref><mixed-citation>Left out.</mixed-citation></ref></ref-list></back>",
        "<author-notes><fn fn-type='conflict'><p>No conflict.</p></fn><fn><p>Not this.</p></fn></author-notes>",
    )
    assert [(s.heading, s.level, document.section_text(s)) for s in document.sections if s.role == "back"] == [
        ("Conflict of interest", 1, "No conflict."),
        ("Acknowledgements", 1, "Thanks."),
        ("Appendix A", 1, "More."),
        ("Discussion", 2, "Deep."),
        ("Statements", 1, "1 First. Second."),
        ("Funding", 1, "None."),
        ("Glossary", 1, "- CT: tomography"),
        ("Data", 1, "On request."),
    ]
    assert "a In the body." in document.text
    assert "Left out" not in document.text
    assert "Not this" not in document.text


def test_all_abstracts_are_kept_with_their_kind_and_language() -> None:
    (document,) = read(
        "<body><p>Text.</p></body>",
        "<abstract><sec><title>Case</title><p>One.</p></sec></abstract><abstract abstract-type='graphical'><p>Two."
        "<fig id='g'><graphic xlink:href='g.png'/></fig></p></abstract>"
        "<trans-abstract xml:lang='fr'><title>Résumé</title><p>Trois.</p></trans-abstract>",
        "xml:lang='en'",
    )
    assert [(s.heading, s.level) for s in document.sections if s.role == "abstract"] == [
        ("Abstract", 1),
        ("Case", 2),
        ("Graphical abstract", 1),
        ("Résumé (fr)", 1),
    ]
    assert document.figures[0].files == ("g.png",)
    assert document.facets["language"] == "en"


def test_sub_articles_and_responses_are_documents_of_their_own() -> None:
    documents = read(
        "<body><p>Main.</p></body><sub-article article-type='reply' id='sa1'><front-stub><article-id "
        "pub-id-type='doi'>10.1/r</article-id><title-group><article-title>Reply</article-title></title-group>"
        "</front-stub><body><p>Answer.</p></body><response><body><p>Again.</p></body></response></sub-article>"
        "<response response-type='addendum'><body><p>Added.</p></body></response>",
        "<article-id pub-id-type='pmc'>12</article-id>",
    )
    assert [(d.id, d.text, d.facets.get("part-of")) for d in documents] == [
        ("PMC12", "Main.", None),
        ("PMC12-sa1", "Answer.", "PMC12"),
        ("PMC12-sa1-response-1", "Again.", "PMC12-sa1"),
        ("PMC12-response-2", "Added.", "PMC12"),
    ]
    assert documents[1].title == "Reply"
    assert (documents[1].facets["doi"], documents[3].facets["article-type"]) == ("10.1/r", "addendum")


def test_supplements_are_listed_with_label_caption_and_address() -> None:
    (document,) = read(
        "<body><sec><title>S</title><supplementary-material xlink:href='a.doc'><label>File 1</label><caption><p>Data."
        "</p></caption></supplementary-material><p>See <supplementary-material><media xlink:href='v.mp4'><caption><p>"
        "Film</p></caption></media></supplementary-material></p><media xlink:href='m.avi'><label>Video 1</label>"
        "</media></sec></body>"
    )
    assert document.facets["supplements"] == [
        "File 1 | Data. | a.doc",
        " |  | v.mp4",
        "Video 1 |  | m.avi",
    ]
    assert document.text.split("\n\n") == ["S", "File 1. Data.", "See", "Film", "Video 1"]


def test_figure_groups_keep_every_figure_and_graphic() -> None:
    (document,) = read(
        "<body><fig-group><label>Figure 2</label><caption><p>Two films.</p></caption><fig id='a'><caption><p>Left."
        "</p></caption><graphic xlink:href='a1'/><graphic xlink:href='a2'/></fig><fig id='b'><label>B</label>"
        "<alternatives><graphic xlink:href='b.tif'/><graphic xlink:href='b.jpg'/></alternatives></fig>"
        "</fig-group></body>"
    )
    assert [(f.id, f.label, f.caption, f.files) for f in document.figures] == [
        ("a", "Figure 2", "Left.", ("a1", "a2")),
        ("b", "B", "", ("b.tif", "b.jpg")),
    ]
    assert document.text.startswith("Figure 2. Two films.")


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("<mml:math><mml:msup><mml:mn>10</mml:mn><mml:mn>9</mml:mn></mml:msup></mml:math>", "10⁹"),
        ("<mml:math><mml:msup><mml:mi>e</mml:mi><mml:mrow><mml:mi>x</mml:mi><mml:mo>+</mml:mo><mml:mn>1</mml:mn>"
         "</mml:mrow></mml:msup></mml:math>", "e^(x+1)"),
        ("<mml:math><mml:mfrac><mml:mi>a</mml:mi><mml:mrow><mml:mi>b</mml:mi><mml:mo>+</mml:mo><mml:mi>c</mml:mi>"
         "</mml:mrow></mml:mfrac></mml:math>", "a/(b+c)"),
        ("<mml:math><mml:semantics><mml:mi>k</mml:mi><mml:annotation>k again</mml:annotation></mml:semantics>"
         "</mml:math>", "k"),
        ("<alternatives><mml:math><mml:mi>y</mml:mi></mml:math><tex-math>$y$</tex-math><graphic/></alternatives>", "y"),
        ("<tex-math>\\begin{document}$$z_1$$\\end{document}</tex-math>", "z_1"),
    ],
)  # fmt: skip
def test_formulas_keep_their_meaning_and_stand_once(formula: str, text: str) -> None:
    (document,) = read(f"<body><p>is <inline-formula>{formula}</inline-formula> so</p></body>")
    assert document.text == f"is {text} so"


def test_references_to_figures_and_tables_are_found() -> None:
    (document,) = read(
        "<body><p>As Fig. 1A and <xref rid='f3'>Figures 2, 3</xref> show (Figs. 1–3; table 1).</p>"
        "<fig id='f1'><label>Figure 1</label><caption><p>One, see Fig. 2.</p></caption></fig>"
        "<fig id='f2'><label>Figure 2.</label></fig><fig id='f3'><label>Fig 3</label></fig>"
        "<table-wrap id='t'><label>Table 1</label><table><tr><td>x</td></tr></table></table-wrap>"
        "<p>Figure 4 is nowhere; 5 Fig trees.</p></body>"
    )
    found = figure_references(document)
    assert [(document.text[a:b], name) for a, b, name in found] == [
        ("1", "f1"), ("2", "f2"), ("3", "f3"), ("1", "f1"), ("3", "f2"), ("3", "f3"), ("2", "f2"),
    ]  # fmt: skip


def test_real_figures_are_referred_to() -> None:
    counts: Counter[str] = Counter()
    for path in sorted(shared_data("jats").iterdir()):
        for document in read_file(path):
            named = {id for _, _, id in figure_references(document)}
            labelled = {figure.id for figure in document.figures if any(c.isdigit() for c in figure.label)}
            counts["labelled"] += len(labelled)
            counts["referred to"] += len(named & labelled)
    assert counts["labelled"] > 100
    assert counts["referred to"] / counts["labelled"] > 0.9, counts
