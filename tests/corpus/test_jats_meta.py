"""What JATS articles say about themselves."""

from __future__ import annotations

from collections import Counter

import pytest

from hoofbeat.corpus import read_file
from hoofbeat.corpus.parsers.jats_article import read_jats
from hoofbeat.records import Document
from tests.helpers import shared_data

XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'


def read(meta: str, journal: str = "", attributes: str = "") -> Document:
    front = f"<front><journal-meta>{journal}</journal-meta><article-meta>{meta}</article-meta></front>"
    return next(read_jats(f"<article {XLINK} {attributes}>{front}<body><p>x</p></body></article>".encode(), "stem"))


def test_identifiers_journal_authors_and_dates() -> None:
    document = read(
        "<article-id pub-id-type='pmc'>PMC9</article-id><article-id pub-id-type='publisher-id'>p-9</article-id>"
        "<article-id pub-id-type='doi'>10.1/x</article-id><article-id pub-id-type='pmid'>77</article-id>"
        "<contrib-group><contrib contrib-type='author'/><contrib contrib-type='author'/>"
        "<contrib contrib-type='editor'/></contrib-group>"
        "<pub-date pub-type='collection'><year>2020</year></pub-date>"
        "<pub-date pub-type='ppub'><month>Mar</month><year>2020</year></pub-date>"
        "<pub-date pub-type='epub'><day>3</day><month>12</month><year>2019</year></pub-date>"
        "<pub-date pub-type='pmc-release'><day>1</day><month>1</month><year>2018</year></pub-date>",
        "<journal-title-group><journal-title>J of X</journal-title></journal-title-group>"
        "<publisher><publisher-name>P</publisher-name></publisher>",
        "article-type='case-report' xml:lang='EN'",
    )
    assert document.id == "PMC9"
    assert document.facets == {
        "journal": "J of X",
        "publisher": "P",
        "year": "2019",
        "date": "2019-12-03",
        "date-collection": "2020",
        "date-ppub": "2020-03",
        "date-epub": "2019-12-03",
        "pmc": "PMC9",
        "doi": "10.1/x",
        "pmid": "77",
        "publisher-id": "p-9",
        "article-type": "case-report",
        "language": "en",
        "authors": "2",
        "has_figures": "no",
    }


@pytest.mark.parametrize(
    ("licence", "name"),
    [
        ("<license xlink:href='http://creativecommons.org/licenses/by/4.0/'/>", "CC BY 4.0"),
        ("<license xlink:href='https://creativecommons.org/licenses/by-nc-nd/4.0/legalcode'/>", "CC BY-NC-ND 4.0"),
        ("<license xlink:href='http://creativecommons.org/publicdomain/zero/1.0/'/>", "CC0 1.0"),
        ("<license license-type='CC BY-NC'><license-p>Free.</license-p></license>", "CC BY-NC"),
        ("<license><license-p>the Creative Commons Attribution Non-Commercial License 3.0</license-p></license>",
         "CC BY-NC 3.0"),
        ("<license><license-p>the Creative Commons Attribution License, which permits</license-p></license>", "CC BY"),
        ("<license><license-p>see <ext-link xlink:href='http://creativecommons.org/licenses/by-sa/2.0'>it</ext-link>"
         "</license-p></license>", "CC BY-SA 2.0"),
        ("<license><license-p>All rights reserved.</license-p></license>", "All rights reserved."),
    ],
)  # fmt: skip
def test_licences_have_short_names(licence: str, name: str) -> None:
    assert read(f"<permissions>{licence}</permissions>").licence == name


@pytest.mark.parametrize(
    ("kind", "notice"),
    [
        ("retracted-article", "retraction"),
        ("retraction-forward", "retraction"),
        ("corrected-article", "correction"),
        ("expression-of-concern", "expression-of-concern"),
        ("companion", ""),
    ],
)
def test_related_articles_give_notices(kind: str, notice: str) -> None:
    document = read(f"<related-article related-article-type='{kind}' xlink:href='10.1/y'/>")
    assert document.notices == ((notice,) if notice else ())
    assert document.facets["related"] == [f"{kind} 10.1/y"]


def test_real_metadata_is_complete() -> None:
    documents = [document for path in sorted(shared_data("jats").iterdir()) for document in read_file(path)]
    present = Counter(name for document in documents for name in document.facets)
    for name in ("journal", "publisher", "year", "pmc", "article-type", "authors"):
        assert present[name] == len(documents), name
    assert present["pmid"] >= 26
    assert present["date"] >= 30
    licences = Counter(document.licence for document in documents)
    assert sum(count for name, count in licences.items() if name.startswith("CC ")) >= 18, licences
    assert sum(len(document.facets.get("supplements", [])) for document in documents) >= 18
