"""JATS and NLM XML, the format of PubMed Central: one file with one or more articles, each a document.

The text is the abstracts and the body; the title, references, acknowledgements and translated abstracts are not part
of it. What the article says about itself becomes facets, a licence and notices (retraction, correction, expression of
concern).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from hoofbeat.corpus.readers.building import safe_id
from hoofbeat.corpus.readers.jats_text import ArticleText, child_text, href, inline_text
from hoofbeat.corpus.readers.xml import parse_xml
from hoofbeat.errors import InputError
from hoofbeat.records import Document

__all__ = ["READER", "read_jats"]

READER = "jats/1"
LONGEST_LICENCE = 200

_CASE = re.compile(r"\bcase[- ](report|series|stud(y|ies))", re.IGNORECASE)
_NOTICES = (
    ("retraction", re.compile(r"retract|withdraw", re.IGNORECASE)),
    ("correction", re.compile(r"correct|errat|corrig", re.IGNORECASE)),
    ("expression-of-concern", re.compile(r"concern", re.IGNORECASE)),
)
_TITLE_NOTICES = (
    ("retraction", re.compile(r"\W*(retracted( article)?|retraction|withdrawn)(\s*[:\]]| (notice|note)\b)", re.I)),
    ("correction", re.compile(r"\W*((author |publisher )?correction(:| to\b)|erratum\b|errata\b|corrigendum\b)", re.I)),
    ("expression-of-concern", re.compile(r"\W*(editorial )?expression of concern\b", re.I)),
)
_ID_ORDER = ("pmc", "pmcid", "publisher-id", "doi", "pmid")
_NOT_PUBLISHED = {"nihms-submitted", "pmc-release", "received", "accepted", "retracted", "corrected"}


def read_jats(data: bytes, stem: str) -> Iterator[Document]:
    """The articles of one file, in order; `stem` names those that state no identifier."""
    root, notices = parse_xml(data)
    articles = [node for node in root.iter("article") if next(node.iterancestors("article"), None) is None]
    if not articles:
        raise InputError(
            f"no article in this XML: its root element is <{root.tag}>", fix="name a JATS or NLM article file"
        )
    for number, article in enumerate(articles, start=1):
        yield _document(article, stem if number == 1 else f"{stem}-{number}", notices)


def _document(article: etree._Element, fallback: str, notices: tuple[str, ...]) -> Document:
    meta = article.find("./front/article-meta")
    if meta is None:
        meta = etree.Element("article-meta")
    title = child_text(meta, "title-group/article-title")
    if subtitle := child_text(meta, "title-group/subtitle"):
        title = f"{title}: {subtitle}"
    content = ArticleText(article)
    builder = content.builder
    facets = _facets(article, meta)
    facets["has_figures"] = "yes" if builder.figures else "no"
    subjects = facets.get("subjects", [])
    kind = str(facets.get("article-type", "")).replace("-", " ")
    is_case = any(_CASE.search(words) for words in (kind, *subjects))
    return Document(
        id=_identifier(meta, fallback),
        title=title,
        text=builder.text,
        kind="case-report" if is_case else "article",
        sections=builder.sections(),
        figures=tuple(builder.figures),
        tables=tuple(builder.tables),
        facets=facets,
        licence=_licence(meta),
        notices=(*_notices(meta, title, kind), *notices),
    )


def _article_ids(meta: etree._Element) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in meta.iterchildren("article-id"):
        found.setdefault(str(node.get("pub-id-type") or ""), inline_text(node))
    return found


def _identifier(meta: etree._Element, fallback: str) -> str:
    ids = _article_ids(meta)
    kind = next((kind for kind in _ID_ORDER if ids.get(kind)), None)
    if kind is None:
        return safe_id(fallback)
    value = ids[kind]
    if kind in {"pmc", "pmcid"} and value.isdecimal():
        value = f"PMC{value}"
    return safe_id(value)


def _facets(article: etree._Element, meta: etree._Element) -> dict[str, str | list[str]]:
    ids = _article_ids(meta)
    journal = article.find("./front/journal-meta//journal-title")
    if journal is None:
        journal = article.find("./front/journal-meta/journal-id")
    facets: dict[str, str | list[str]] = {
        "journal": inline_text(journal),
        "year": _year(meta),
        "doi": ids.get("doi", ""),
        "pmid": ids.get("pmid", ""),
        "article-type": str(article.get("article-type") or ""),
        "keywords": _distinct(meta, "./kwd-group//kwd"),
        "subjects": _distinct(meta, "./article-categories//subject"),
    }
    return {name: value for name, value in facets.items() if value}


def _distinct(meta: etree._Element, path: str) -> list[str]:
    return list(dict.fromkeys(filter(None, map(inline_text, meta.iterfind(path)))))


def _year(meta: etree._Element) -> str:
    """The year of first publication."""
    years = [
        year
        for date in meta.iterchildren("pub-date")
        if str(date.get("pub-type") or date.get("date-type") or "") not in _NOT_PUBLISHED
        if re.fullmatch(r"\d{4}", year := child_text(date, "year"))
    ]
    return min(years, default="")


def _licence(meta: etree._Element) -> str:
    """The licence's address, or else its words, cut short."""
    licence = meta.find("./permissions/license")
    if licence is None:
        licence = meta.find("./license")
    if licence is None:
        return child_text(meta, "permissions/license_ref")
    links = [href(licence), child_text(licence, "license_ref"), *map(href, licence.iter("ext-link", "uri"))]
    address = next((link.strip() for link in links if link.strip().startswith("http")), "")
    text = address or inline_text(licence)
    return text if len(text) <= LONGEST_LICENCE else text[: LONGEST_LICENCE - 1].rstrip() + "…"


def _notices(meta: etree._Element, title: str, kind: str) -> list[str]:
    """What was said about the article later, or what it says about another: each kind once."""
    related = [str(node.get("related-article-type") or "") for node in meta.iterchildren("related-article")]
    found = [name for words in (*related, kind) for name, pattern in _NOTICES if pattern.search(words)]
    found += [name for name, pattern in _TITLE_NOTICES if pattern.match(title)]
    return list(dict.fromkeys(found))
