"""JATS and NLM XML, the format of PubMed Central: one file with one or more articles, each a document.

The text is the abstracts, the body and the back matter; title and references are not part of it. Sub-articles and
responses (reviews, replies, translations) are documents of their own whose ids begin with their article's. What an
article says about itself (identifiers, journal, dates, licence, notices) becomes facets, the licence's short name and
notices, so that filters can ask for it without knowing the format.

XML from strangers is parsed without network, external files or entity expansion. The parser leaves entity references
as they are. Those that name a character (`&nbsp;`, from a DTD that is never loaded) or a short string declared in the
file are put in afterwards, within a budget; anything that nests, reads a file or grows the text is refused.
"""

from __future__ import annotations

import html.entities
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree

from hoofbeat.corpus.parsers.foreign_xml import check_depth, parse_foreign, xml_refusal
from hoofbeat.corpus.parsers.jats_text import LANGUAGE, ArticleText, child_text, grandchild, href, inline_text
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document
from hoofbeat.text import safe_id, whole_number

MAX_ENTITY = 256
ENTITY_BUDGET = 1_000_000
_UNDECLARED_ENTITY = 26
_BAD_ENCODING = {9, 32, 81}
_REFERENCE = re.compile(  # what never ends goes to the end: looking for the end of each again and again is slow
    rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|&([A-Za-z][A-Za-z0-9]{1,31});", re.DOTALL
)
_CHARACTER = re.compile(r"&#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}));")
_DECLARATION = re.compile(rb"xmlns(?::([^\s=]+))?\s*=\s*[\"']([^\"'<]*)[\"']")
_ENTITY = re.compile(rb"&(?!#|(?:amp|lt|gt|quot|apos);)")
_ASCII_COMPATIBLE = {"UTF-8", "US-ASCII", "ASCII", "ISO-8859-1", "WINDOWS-1252", "CP1252"}
_ATTRIBUTE_NAMESPACES = {"http://www.w3.org/1999/xlink", "http://www.w3.org/2001/XMLSchema-instance"}
_XML_NAMES = {"amp", "lt", "gt", "quot", "apos"}


def parse_xml(data: bytes) -> tuple[etree._Element, tuple[str, ...]]:
    """The root of an XML file, names without namespaces and entities resolved, and notices about how it was read."""
    notices: tuple[str, ...] = ()
    try:
        root = parse_foreign(data)
    except etree.XMLSyntaxError as err:
        code = int(getattr(err, "code", 0))
        if code == _UNDECLARED_ENTITY:
            root = _second_try(_REFERENCE.sub(_numeric, data), None)
        elif code in _BAD_ENCODING:
            root = _second_try(_REFERENCE.sub(_numeric, data), "cp1252")
            notices = ("read as Windows-1252: the file is not valid in the encoding it states",)
        else:
            raise xml_refusal(err) from err
    check_depth(root)
    if _ENTITY.search(data) or not _is_ascii_compatible(root):
        _fill_entities(root)
    _strip_namespaces(root, data)
    return root, notices


def _second_try(data: bytes, encoding: str | None) -> etree._Element:
    try:
        return parse_foreign(data, encoding)
    except (etree.XMLSyntaxError, LookupError) as err:
        raise xml_refusal(err) from err


def _numeric(match: re.Match[bytes]) -> bytes:
    name = match.group(1)
    if name is None or name.decode() in _XML_NAMES:
        return match.group(0)
    characters = html.entities.html5.get(name.decode() + ";")
    if characters is None:
        return b"&amp;" + name + b";"
    return b"".join(b"&#%d;" % ord(character) for character in characters)


def _is_ascii_compatible(root: etree._Element) -> bool:
    """Whether marks such as `&` and `<` are single bytes of the file."""
    return str(root.getroottree().docinfo.encoding or "UTF-8").upper() in _ASCII_COMPATIBLE


def _fill_entities(root: etree._Element) -> None:
    """Put the text of each entity reference in the reference's place."""
    parents = dict.fromkeys(node.getparent() for node in root.iter(etree.Entity))
    declared = _declared(root) if parents else {}
    spent = 0
    for parent in parents:
        assert parent is not None
        anchor: etree._Element | None = None
        pieces = [parent.text or ""]
        for child in list(parent):
            if child.tag is etree.Entity:
                meaning = _meaning(str(getattr(child, "name", "")), declared)
                spent += len(meaning)
                pieces += [meaning, child.tail or ""]
                parent.remove(child)
            else:
                _set_text(parent, anchor, pieces)
                anchor, pieces = child, [child.tail or ""]
            if spent > ENTITY_BUDGET:
                raise HostileInputError("XML refused as hostile: its entities grow the text", fix="leave this file out")
        _set_text(parent, anchor, pieces)


def _set_text(parent: etree._Element, anchor: etree._Element | None, pieces: list[str]) -> None:
    if len(pieces) == 1:
        return
    if anchor is None:
        parent.text = "".join(pieces)
    else:
        anchor.tail = "".join(pieces)


def _declared(root: etree._Element) -> dict[str, str | None]:
    """The file's own entities: their text, or None for those that name another file."""
    dtd: Any = root.getroottree().docinfo.internalDTD
    if dtd is None:
        return {}
    found: dict[str, str | None] = {}
    for entity in dtd.entities():
        external = entity.system_url is not None or entity.content is None
        found[str(entity.name)] = None if external else str(entity.content)
    return found


def _meaning(name: str, declared: Mapping[str, str | None]) -> str:
    if name not in declared:
        return html.entities.html5.get(name + ";", f"&{name};")
    content = declared[name]
    if content is None:
        raise HostileInputError(
            f"XML refused as hostile: the entity {name} would read another file", fix="leave this file out"
        )
    text = _CHARACTER.sub(_character, content)
    if len(text) > MAX_ENTITY or "<" in text or re.search(r"[&%]\w+;", text):
        raise HostileInputError(
            f"XML refused as hostile: the entity {name} nests or grows the text", fix="leave this file out"
        )
    return text


def _character(match: re.Match[str]) -> str:
    code = int(match.group(1), 16) if match.group(1) else int(match.group(2))
    return chr(code) if code <= 0x10FFFF else ""


def _strip_namespaces(root: etree._Element, data: bytes) -> None:
    """Give elements in a namespace their plain names; only those are looked for that the file declares and uses."""
    pairs = {(prefix, _declared_name(name)) for prefix, name in set(_declarations(data))}
    declared = {name for prefix, name in pairs if name not in _ATTRIBUTE_NAMESPACES and _is_used(prefix, data)}
    wide = data[:2] in {b"\xff\xfe", b"\xfe\xff"} or None in declared
    names = sorted(filter(None, declared))
    if wide:
        names = sorted(
            {str(element.tag).partition("}")[0][1:] for element in root.iter("{*}*") if "}" in str(element.tag)}
        )
    for element in list(root.iter(*(f"{{{name}}}*" for name in names))) if names else []:
        element.tag = str(element.tag).rpartition("}")[2]


def _declarations(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Prefixes and names of declared namespaces. A search for the plain word is quicker than one for the pattern."""
    place = data.find(b"xmlns")
    while place >= 0:
        found = _DECLARATION.match(data, place)
        if found:
            yield found[1] or b"", found[2]
        place = data.find(b"xmlns", found.end() if found else place + 1)


def _is_used(prefix: bytes, data: bytes) -> bool:
    """Whether an element of the file has a prefix; none at all is used by all elements."""
    return not prefix or b"<" + prefix + b":" in data


def _declared_name(name: bytes) -> str | None:
    """A declared namespace; None where it is written in a way that has to be resolved first."""
    return name.decode("ascii") if name.isascii() and not set(b"&{}\n\t") & set(name) else None


_CASE = re.compile(r"\bcase[- ](report|series|stud(y|ies))", re.IGNORECASE)
_PARTS = ("sub-article", "response")


def read_jats(data: bytes, stem: str) -> Iterator[Document]:
    """The articles of one file, in order; `stem` names those that state no identifier."""
    root, how_read = parse_xml(data)
    articles = [root] if root.tag == "article" else _outer(root)
    if not articles:
        raise InputError(
            f"this XML has no article: its root element is <{root.tag}>", fix="name a JATS or NLM article file"
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
    found = grandchild(article, "front", "article-meta")
    if found is None:
        found = next(article.iterchildren("front-stub"), None)
    return etree.Element("article-meta") if found is None else found


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


MAX_LICENCE = 200
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
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CC = re.compile(
    r"creativecommons\.org/(licenses/(?P<kind>[a-z-]+)|publicdomain/(?P<public>zero|mark))(/(?P<version>\d\.\d))?"
)
_WORDS = re.compile(r"CC[ -](?P<kind>BY(?:-N[CD]|-SA)*)\b(?:[ -]?(?P<version>\d\.\d))?", re.IGNORECASE)
_SPOKEN = re.compile(
    r"creative commons attribution(?P<kind>[a-z -]*?) licen[cs]e(?:,? version)?\s*(?P<version>\d\.\d)?", re.I
)
_SPOKEN_PARTS = (("non ?-?commercial", "NC"), ("no ?-?deriv", "ND"), ("share ?-?alike", "SA"))


def article_title(meta: etree._Element) -> str:
    """Title and subtitle."""
    title = inline_text(grandchild(meta, "title-group", "article-title"))
    subtitle = inline_text(grandchild(meta, "title-group", "subtitle"))
    return f"{title}: {subtitle}" if subtitle else title


def article_ids(meta: etree._Element) -> dict[str, str]:
    """The article's identifiers by kind."""
    found: dict[str, str] = {}
    for node in meta.iterchildren("article-id"):
        found.setdefault(str(node.get("pub-id-type") or ""), inline_text(node))
    return found


def identifier(ids: dict[str, str], fallback: str) -> str:
    """The document's id: of PubMed Central where there is one, else the publisher's, DOI or PubMed's."""
    kind = next((kind for kind in _ID_ORDER if ids.get(kind)), None)
    return safe_id(_pmc(ids[kind]) if kind in {"pmc", "pmcid"} else ids[kind]) if kind else safe_id(fallback)


def _pmc(value: str) -> str:
    return f"PMC{value}" if value.isdecimal() else value


def article_facets(article: etree._Element, meta: etree._Element, ids: dict[str, str]) -> dict[str, str | list[str]]:
    """Facets of one article; what it does not state is left out."""
    journal = grandchild(article, "front", "journal-meta")
    dates = _dates(meta)
    licence = _licence(meta)
    facets: dict[str, str | list[str]] = {
        "journal": _journal(journal),
        "publisher": "" if journal is None else inline_text(grandchild(journal, "publisher", "publisher-name")),
        "year": min((date[:4] for date in dates.values()), default=""),
        "date": min((date for date in dates.values() if len(date) == 10), default=""),
        **{f"date-{kind}": date for kind, date in dates.items() if kind},
        "pmc": _pmc(ids.get("pmc") or ids.get("pmcid", "")),
        "doi": ids.get("doi", ""),
        "pmid": ids.get("pmid", ""),
        "publisher-id": ids.get("publisher-id", ""),
        "article-type": str(article.get("article-type") or article.get("response-type") or ""),
        "keywords": _distinct(meta, "./kwd-group//kwd"),
        "subjects": _distinct(meta, "./article-categories//subject"),
        "language": str(article.get(LANGUAGE) or "").lower(),
        "authors": str(_authors(meta) or ""),
        "licence-url": "" if licence is None else _address(licence),
        "licence-type": "" if licence is None else str(licence.get("license-type") or ""),
        "related": _related(meta),
    }
    return {name: value for name, value in facets.items() if value}


def _journal(journal: etree._Element | None) -> str:
    if journal is None:
        return ""
    title = next(journal.iterdescendants("journal-title"), None)
    return inline_text(next(journal.iterchildren("journal-id"), None) if title is None else title)


def _distinct(meta: etree._Element, path: str) -> list[str]:
    return list(dict.fromkeys(filter(None, map(inline_text, meta.iterfind(path)))))


def _authors(meta: etree._Element) -> int:
    """How many authors, groups counted as one; contributors of another kind (editors, ...) are none."""
    return sum(
        1
        for group in meta.iterchildren("contrib-group")
        for contributor in group.iterchildren("contrib")
        if str(contributor.get("contrib-type") or "author") == "author"
    )


def _dates(meta: etree._Element) -> dict[str, str]:
    """When the article was published, by kind (epub, ppub, collection, ...): year, year and month, or a full date."""
    found: dict[str, str] = {}
    for date in meta.iterchildren("pub-date"):
        kind = str(date.get("pub-type") or date.get("publication-format") or date.get("date-type") or "")
        if {kind, str(date.get("date-type") or "")} & _NOT_PUBLISHED:
            continue
        year = child_text(date, "year")
        if re.fullmatch(r"[12]\d{3}", year):
            kept = "-".join([year, *_month_and_day(child_text(date, "month"), child_text(date, "day"))])
            found[kind] = max(found.get(kind, ""), kept, key=len)
    return found


def _month_and_day(month: str, day: str) -> list[str]:
    number = whole_number(month)
    if number is None:
        number = 1 + next((place for place, name in enumerate(_MONTHS) if month.lower().startswith(name)), -1)
    if not 1 <= number <= 12:
        return []
    day_number = whole_number(day) or 0
    return [f"{number:02}", f"{day_number:02}"] if 1 <= day_number <= 31 else [f"{number:02}"]


def _licence(meta: etree._Element) -> etree._Element | None:
    licence = grandchild(meta, "permissions", "license")
    if licence is None:
        licence = next(meta.iterchildren("license"), None)
    return grandchild(meta, "permissions", "license_ref") if licence is None else licence


def _address(licence: etree._Element) -> str:
    own = inline_text(licence) if licence.tag == "license_ref" else child_text(licence, "license_ref")
    links = [href(licence), own, *map(href, licence.iter("ext-link", "uri"))]
    return next((link.strip() for link in links if link.strip().startswith("http")), "")


def licence_name(meta: etree._Element) -> str:
    """The licence's short name (CC BY 4.0) where it is a known one, else its address or its words, cut short."""
    licence = _licence(meta)
    if licence is None:
        return ""
    address, words = _address(licence), inline_text(licence)
    kind = str(licence.get("license-type") or "")
    text = _short_name(f"{address} {kind} {words}") or address or words
    return text if len(text) <= MAX_LICENCE else text[: MAX_LICENCE - 1].rstrip() + "…"


def _short_name(text: str) -> str:
    if found := _CC.search(text.lower()):
        if found["public"]:
            return "CC0 1.0" if found["public"] == "zero" else "Public Domain Mark 1.0"
        return f"CC {found['kind'].upper()} {found['version'] or ''}".strip()
    if found := _WORDS.search(text):
        return f"CC {found['kind'].upper()} {found['version'] or ''}".strip()
    if re.search(r"\bCC ?0\b", text):
        return "CC0 1.0"
    if found := _SPOKEN.search(text):
        parts = [name for pattern, name in _SPOKEN_PARTS if re.search(pattern, found["kind"], re.IGNORECASE)]
        return f"CC {'-'.join(['BY', *parts])} {found['version'] or ''}".strip()
    return ""


def _related(meta: etree._Element) -> list[str]:
    """Articles this one is tied to (the retraction, the corrected article, ...): kind and address."""
    related = (
        f"{node.get('related-article-type') or ''} {href(node) or inline_text(node)}".strip()
        for node in meta.iterchildren("related-article")
    )
    return list(dict.fromkeys(filter(None, related)))


def notices(meta: etree._Element, title: str, kind: str) -> list[str]:
    """What was said about the article later, or what it says about another: each kind once."""
    related = [str(node.get("related-article-type") or "") for node in meta.iterchildren("related-article")]
    found = [name for words in (*related, kind) for name, pattern in _NOTICES if pattern.search(words)]
    found += [name for name, pattern in _TITLE_NOTICES if pattern.match(title)]
    return list(dict.fromkeys(found))
