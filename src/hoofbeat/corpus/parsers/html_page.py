"""HTML: what institutions publish on the web. The words of the page, without the page around them.

Navigation, scripts, forms and what is hidden are left out; where a page marks its main part, that is read. Headings,
lists, tables and figures keep their structure. The parser loads nothing, runs nothing and resolves nothing.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from lxml import etree

from hoofbeat.corpus.parsers.prose import TextBuilder
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document, Facets
from hoofbeat.text import raised, safe_id, squeeze

MAX_DEPTH = 200
MAX_CELLS = 100_000

_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
_HEADING = re.compile(r"h([1-6])")
_LABEL = re.compile(r"((?:Figure|Fig\.?|Table)\s*\w{1,6})\s*[.:–—-]\s+", re.IGNORECASE)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)\b")
_DROPPED = frozenset({
    "script", "style", "noscript", "template", "nav", "form", "button", "select", "input", "textarea", "option",
    "svg", "canvas", "iframe", "object", "embed", "video", "audio", "map", "dialog", "menu", "head", "link", "meta",
})  # fmt: skip
_PAGE_PARTS = frozenset({"header", "footer", "aside"})
_DROPPED_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "dialog", "alert", "menu", "toolbar"})
_DROPPED_CLASSES = frozenset(
    {"breadcrumb", "breadcrumbs", "skip-link", "skip-to-content", "cookie-banner", "sr-only", "visually-hidden"}
)
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figure", "figcaption", "footer", "header", "hgroup", "html", "li", "main", "ol", "p", "pre", "section",
    "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "caption", "hr", "h1", "h2", "h3", "h4",
    "h5", "h6",
})  # fmt: skip
_META = {
    name: field
    for field, names in {
        "title": "citation_title og:title",
        "journal": "citation_journal_title",
        "doi": "citation_doi",
        "pmid": "citation_pmid",
        "date": "citation_publication_date citation_date article:published_time dc.date dcterms.issued",
        "institution": "og:site_name citation_publisher dc.publisher",
    }.items()
    for name in names.split()
}


def read_html(data: bytes, stem: str) -> Iterator[Document]:
    """The one document of a page."""
    encoding, notices = _encoding(data)
    root = _parse(data, encoding)
    _drop(root)
    page = _Page()
    page.read(_main(root))
    about = _about(root)
    sections = page.builder.sections()
    first = next((section.heading for section in sections if section.heading), "")
    title = squeeze(_words(root.find(".//title")))
    links = (node for node in root.iter("a", "link") if "license" in (node.get("rel") or "").lower().split())
    licence = next((node.get("href") or "" for node in links), "")
    facets: Facets = {name: value for name, value in about.items() if name != "title"}
    yield Document(
        id=safe_id(stem),
        title=about.get("title") or page.first_h1 or title or first or stem,
        text=page.builder.text,
        sections=sections,
        figures=tuple(page.builder.figures),
        tables=tuple(page.builder.tables),
        facets=facets,
        licence=squeeze(licence)[:200],
        notices=notices,
    )


def _encoding(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The page's encoding: byte order mark, then what it states if that holds, then UTF-8, then Windows-1252."""
    for mark, name in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if data.startswith(mark):
            return name, ()
    stated = _CHARSET.search(data[:4096])
    names = [stated.group(1).decode()] if stated else []
    for name in [*names, "utf-8"]:
        try:
            # what is labelled Latin-1 on the web is Windows-1252
            known = "cp1252" if codecs.lookup(name).name in {"iso8859-1", "ascii"} else name
            data.decode(known)
        except (LookupError, UnicodeError):
            continue
        return known, ()
    return "cp1252", ("read as Windows-1252: the file is not valid in the encoding it states",)


def _parse(data: bytes, encoding: str) -> etree._Element:
    text = data.decode(encoding, errors="replace").lstrip("\ufeff")
    if "\0" in text:
        raise InputError("NUL bytes in a text file: it is binary, damaged, or not UTF-8", fix="convert it to UTF-8")
    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, huge_tree=False, remove_comments=True, remove_pis=True, recover=True
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, etree.ParserError) as err:
        raise InputError(f"not readable HTML: {str(err).partition(' (<string>')[0]}", fix="check the file") from err
    if root is None:
        raise InputError("no text in this page", fix="leave it out")
    for entry in parser.error_log:
        if re.search(r"depth|huge|too (long|big)", entry.message, re.IGNORECASE):
            raise HostileInputError(f"HTML refused as hostile: {entry.message.strip()}", fix="leave this file out")
    depth = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > MAX_DEPTH:
            raise HostileInputError(
                f"HTML refused as hostile: elements nested more than {MAX_DEPTH} deep", fix="leave this file out"
            )
    return root


def _drop(root: etree._Element) -> None:
    """Take out what a reader of the page does not see or does not come for."""
    for node in list(root.iter(etree.Element)):
        parent = node.getparent()
        if parent is None or (node.tag in {"head", "title", "meta", "link"} and parent.tag in {"html", "head"}):
            continue
        if _is_dropped(node):
            before = node.getprevious()
            tail = node.tail or ""
            if before is None:
                parent.text = _storable((parent.text or "") + tail)
            else:
                before.tail = _storable((before.tail or "") + tail)
            parent.remove(node)


def _storable(text: str) -> str:
    """Text as lxml takes it. It reads control characters, also written as references, but does not take them back."""
    return _NOT_XML.sub(" ", text)


def _is_dropped(node: etree._Element) -> bool:
    if node.tag in _DROPPED or node.get("hidden") is not None or node.get("aria-hidden") == "true":
        return True
    if node.get("role") in _DROPPED_ROLES or _HIDDEN.search(node.get("style") or ""):
        return True
    if _DROPPED_CLASSES.intersection((node.get("class") or "").lower().split()):
        return True
    return node.tag in _PAGE_PARTS and not any(up.tag in {"article", "main"} for up in node.iterancestors())


def _main(root: etree._Element) -> etree._Element:
    """The part of the page that is the document."""
    mains = [node for node in root.iter("main") if _words(node).strip()]
    if not mains:
        mains = [node for node in root.iter(etree.Element) if node.get("role") == "main"]
    if len(mains) == 1:
        return mains[0]
    body = root.find("body")
    return root if body is None else body


def _about(root: etree._Element) -> dict[str, str]:
    """What the page says about itself in its head."""
    found: dict[str, str] = {}
    for node in root.iter("meta"):
        name = _META.get((node.get("name") or node.get("property") or "").lower())
        if name and (value := squeeze(node.get("content") or "")[:300]):
            found.setdefault(name, value)
    if year := _YEAR.search(found.get("date", "")):
        found["year"] = year.group(1)
    if language := squeeze(root.get("lang") or ""):
        found["language"] = language[:20]
    return found


class _Page:
    """Reads elements into blocks."""

    def __init__(self) -> None:
        self.builder = TextBuilder()
        self.first_h1 = ""
        self._inline: list[str] = []

    def read(self, node: etree._Element) -> None:
        """Read an element's content and what follows inside it; recursion is bounded by `MAX_DEPTH`."""
        self._inline.append(node.text or "")
        for child in node.iterchildren(etree.Element):
            self._element(child)
            self._inline.append(child.tail or "")
        if node.tag in _BLOCKS:
            self._flush()

    def _element(self, node: etree._Element) -> None:
        heading = _HEADING.fullmatch(str(node.tag))
        if node.tag in _BLOCKS:
            self._flush()
        if heading:
            self._heading(squeeze(_words(node)), int(heading.group(1)))
        elif node.tag in {"ul", "ol"}:
            self.builder.paragraph("\n".join(_items(node, 0)))
        elif node.tag == "table" and _is_data(node):
            self._table(node)
        elif node.tag == "figure" and node.find(".//img") is not None:
            self._figure(node)
        elif node.tag == "br":
            self._inline.append("\n")
        elif node.tag == "sup":
            self._inline.append(raised("".join(self._inline[-3:]), _words(node)))
        elif node.tag != "img":
            self.read(node)

    def _heading(self, text: str, level: int) -> None:
        if not text:
            return
        if level == 1 and not self.first_h1:
            self.first_h1 = text
        self.builder.nested_heading(text, level)

    def _table(self, node: etree._Element) -> None:
        rows = []
        for row in node.iter("tr"):
            cells = tuple(squeeze(_words(cell)) for cell in row.iterchildren("td", "th"))
            if any(cells):
                rows.append(cells)
        label, caption = _labelled(squeeze(_words(node.find("./caption"))))
        self.builder.table(rows, label=label, caption=caption, id=squeeze(node.get("id") or ""))

    def _figure(self, node: etree._Element) -> None:
        words = squeeze(" ".join(map(_words, node.iter("figcaption"))))
        images = [source for image in node.iter("img") if (source := image.get("src") or image.get("data-src"))]
        label, caption = _labelled(words)
        files = [source.partition("?")[0].partition("#")[0] for source in images if not source.startswith("data:")]
        self.builder.figure(label=label, caption=caption, files=files, id=squeeze(node.get("id") or ""))

    def _flush(self) -> None:
        text, self._inline = "".join(self._inline), []
        self.builder.paragraph(squeeze(text))


def _is_data(node: etree._Element) -> bool:
    """Whether a table is one, not a layout: it holds no headings or tables, and not too many cells."""
    if node.find(".//table") is not None or node.get("role") == "presentation":
        return False
    if any(_HEADING.fullmatch(str(inner.tag)) for inner in node.iter(etree.Element)):
        return False
    return sum(1 for _ in node.iter("td", "th")) <= MAX_CELLS


def _items(node: etree._Element, depth: int) -> Iterator[str]:
    """A list's items, a line each; lists in them are indented."""
    number = 0
    for item in node.iterchildren(etree.Element):
        if item.tag in {"ul", "ol"}:
            yield from _items(item, depth + 1)
            continue
        number += 1
        mark = f"{number}." if node.tag == "ol" else "-"
        if text := squeeze("".join(_own_text(item))):
            yield f"{'  ' * depth}{mark} {text}"
        for child in _lists_in(item):
            yield from _items(child, depth + 1)


def _lists_in(node: etree._Element) -> Iterator[etree._Element]:
    """The lists in an item, not those in them."""
    for child in node.iterchildren(etree.Element):
        if child.tag in {"ul", "ol"}:
            yield child
        else:
            yield from _lists_in(child)


def _own_text(node: etree._Element, *, lists: bool = False) -> Iterator[str]:
    """The text of an element, without that of the lists in it unless asked for."""
    before = node.text or ""
    yield before
    for child in node.iterchildren(etree.Element):
        if child.tag == "sup":
            yield raised(before, _words(child))
        elif lists or child.tag not in {"ul", "ol"}:
            yield " " if child.tag in _BLOCKS or child.tag == "br" else ""
            yield from _own_text(child, lists=lists)
        before = child.tail or ""
        yield " " + (child.tail or "") if child.tag in _BLOCKS else child.tail or ""


def _words(node: etree._Element | None) -> str:
    """All text in an element; blocks in it are parted by a space."""
    return "" if node is None else "".join(_own_text(node, lists=True))


def _labelled(caption: str) -> tuple[str, str]:
    match = _LABEL.match(caption)
    return (match.group(1), caption[match.end() :]) if match else ("", caption)
