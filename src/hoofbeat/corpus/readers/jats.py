"""JATS and NLM XML, the format of PubMed Central: one file with one or more articles, each a document.

The text is the abstracts, the body and the back matter; title and references are not part of it. Sub-articles and
responses (reviews, replies, translations) are documents of their own whose ids begin with their article's. What an
article says about itself becomes facets, a licence and notices (`jats_meta`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from hoofbeat.corpus.readers.building import safe_id
from hoofbeat.corpus.readers.jats_meta import (
    article_facets,
    article_ids,
    article_title,
    identifier,
    licence_name,
    notices,
)
from hoofbeat.corpus.readers.jats_text import ArticleText
from hoofbeat.corpus.readers.xml import parse_xml
from hoofbeat.errors import InputError
from hoofbeat.records import Document

__all__ = ["READER", "read_jats"]

READER = "jats/2"

_CASE = re.compile(r"\bcase[- ](report|series|stud(y|ies))", re.IGNORECASE)
_PARTS = ("sub-article", "response")


def read_jats(data: bytes, stem: str) -> Iterator[Document]:
    """The articles of one file, in order; `stem` names those that state no identifier."""
    root, how_read = parse_xml(data)
    articles = [root] if root.tag == "article" else _outer(root)
    if not articles:
        raise InputError(
            f"no article in this XML: its root element is <{root.tag}>", fix="name a JATS or NLM article file"
        )
    for number, article in enumerate(articles, start=1):
        ids = article_ids(_meta(article))
        name = identifier(ids, stem if number == 1 else f"{stem}-{number}")
        yield _document(article, name, ids, how_read)
        yield from _parts(article, name, how_read)


def _outer(root: etree._Element) -> list[etree._Element]:
    return [node for node in root.iter("article") if next(node.iterancestors("article"), None) is None]


def _parts(article: etree._Element, name: str, how_read: tuple[str, ...]) -> Iterator[Document]:
    """Sub-articles and responses, each followed by its own."""
    used: set[str] = set()
    for number, part in enumerate(article.iterchildren(*_PARTS), start=1):
        own = safe_id(f"{name}-{part.get('id') or f'{part.tag}-{number}'}")
        own = own if own not in used else safe_id(f"{own}-{number}")
        used.add(own)
        document = _document(part, own, article_ids(_meta(part)), how_read, whole=name)
        if document.text:
            yield document
        yield from _parts(part, own, how_read)


def _meta(article: etree._Element) -> etree._Element:
    for path in ("./front/article-meta", "./front-stub"):
        found = article.find(path)
        if found is not None:
            return found
    return etree.Element("article-meta")


def _document(
    article: etree._Element, name: str, ids: dict[str, str], how_read: tuple[str, ...], *, whole: str = ""
) -> Document:
    meta = _meta(article)
    title = article_title(meta)
    content = ArticleText(article, meta)
    builder = content.builder
    facets = article_facets(article, meta, ids)
    if whole:
        facets["part-of"] = whole
    if content.supplements:
        facets["supplements"] = list(dict.fromkeys(content.supplements))
    facets["has_figures"] = "yes" if builder.figures else "no"
    subjects = facets.get("subjects", [])
    kind = str(facets.get("article-type", "")).replace("-", " ")
    is_case = any(_CASE.search(words) for words in (kind, *subjects))
    return Document(
        id=name,
        title=title,
        text=builder.text,
        kind="case-report" if is_case else "article",
        sections=builder.sections(),
        figures=tuple(builder.figures),
        tables=tuple(builder.tables),
        facets=facets,
        licence=licence_name(meta),
        notices=(*notices(meta, title, kind), *how_read),
    )
