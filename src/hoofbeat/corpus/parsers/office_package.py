"""The package that Word and PowerPoint files are: a zip file of XML parts that refer to each other.

Files come from strangers. Names that climb, links, bombs, ciphers and document type declarations are refused before
anything is used; a part is read only when it is asked for, within limits; what lies outside the file is never fetched,
and macros are neither read nor run. Names of parts do not depend on case, and the strict edition of the standard has
other namespaces for the same elements: both are made one here, so that parsers need not know.
"""

from __future__ import annotations

import io
import posixpath
import re
import struct
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import unquote

from lxml import etree
from msgspec import Struct

from hoofbeat.corpus.figures import IMAGE_SUFFIXES, MAX_IMAGE
from hoofbeat.corpus.parsers.archive_members import bounded_content, name_problem, zip_problem
from hoofbeat.corpus.parsers.foreign_xml import check_depth, parse_foreign, xml_refusal
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Facets
from hoofbeat.text import squeeze

MAX_PARTS = 20_000
MAX_XML = 64_000_000
MAX_READ = 500_000_000

_OFFICE = "http://schemas.openxmlformats.org"
NAMES = {
    "w": f"{_OFFICE}/wordprocessingml/2006/main",
    "m": f"{_OFFICE}/officeDocument/2006/math",
    "a": f"{_OFFICE}/drawingml/2006/main",
    "wp": f"{_OFFICE}/drawingml/2006/wordprocessingDrawing",
    "p": f"{_OFFICE}/presentationml/2006/main",
    "c": f"{_OFFICE}/drawingml/2006/chart",
    "dgm": f"{_OFFICE}/drawingml/2006/diagram",
    "r": f"{_OFFICE}/officeDocument/2006/relationships",
    "rel": f"{_OFFICE}/package/2006/relationships",
    "cp": f"{_OFFICE}/package/2006/metadata/core-properties",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "v": "urn:schemas-microsoft-com:vml",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "adec": "http://schemas.microsoft.com/office/drawing/2017/decorative",
}
"""The namespaces of Office files, by the prefixes that Office itself writes."""

_STRICT = {
    b"http://purl.oclc.org/ooxml/wordprocessingml/main": NAMES["w"].encode(),
    b"http://purl.oclc.org/ooxml/officeDocument/math": NAMES["m"].encode(),
    b"http://purl.oclc.org/ooxml/drawingml/main": NAMES["a"].encode(),
    b"http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing": NAMES["wp"].encode(),
    b"http://purl.oclc.org/ooxml/presentationml/main": NAMES["p"].encode(),
    b"http://purl.oclc.org/ooxml/drawingml/chart": NAMES["c"].encode(),
    b"http://purl.oclc.org/ooxml/drawingml/diagram": NAMES["dgm"].encode(),
    b"http://purl.oclc.org/ooxml/officeDocument/relationships": NAMES["r"].encode(),
}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_DATE = re.compile(r"(19[89]\d|20\d\d)-\d\d-\d\d")
_NO_AUTHOR = re.compile(
    r"python-(docx|pptx)|.*\b(user|admin|administrator|benutzer|utilisateur|usuario)\b.*|unknown|author|owner|hp|dell",
    re.IGNORECASE,
)
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError, ValueError, EOFError, OSError
)  # fmt: skip
_PRIVATE = re.compile("[\uf020-\uf0ff]")
_UNREADABLE = "\ufffd"


@cache
def qualified(name: str) -> str:
    """A name with its prefix (`w:p`) as lxml writes it."""
    prefix, _, plain = name.partition(":")
    return f"{{{NAMES[prefix]}}}{plain}"


class PartLink(Struct, frozen=True):
    """A relationship of a part: its kind (the last word of its type) and the part it leads to; empty if outside."""

    kind: str
    part: str


class OfficePackage:
    """The parts of one file. `what` says what the file should be, for messages: `Word document`."""

    def __init__(self, data: bytes, what: str) -> None:
        self._what = what
        self._left = MAX_READ
        self._links: dict[str, dict[str, PartLink]] = {}
        _check_kind(data, what)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _ZIP_ERRORS as err:
            raise self._broken(err) from err
        self._members = self._checked()

    def _broken(self, err: Exception) -> InputError:
        return InputError(
            f"the file is broken or cut off, or not a {self._what}: {err}", fix="open it in Office and save it again"
        )

    def _checked(self) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        infos = self._zip.infolist()
        if len(infos) > MAX_PARTS:
            raise HostileInputError(f"file refused as hostile: more than {MAX_PARTS:,} parts", fix="leave it out")
        for info in infos:
            name = info.filename.replace("\\", "/")
            problem = zip_problem(info) or name_problem(info.filename)
            if not problem and info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                problem = "a member is compressed in a way that Office does not use"
            if not problem and name.lower() in members:
                problem = "two members have the same name"
            if problem:
                raise HostileInputError(f"file refused as hostile: {problem}", fix="leave it out")
            if not info.is_dir():
                members[name.lower()] = info
        return members

    def __contains__(self, part: str) -> bool:
        return part.lower() in self._members

    @property
    def parts(self) -> Iterator[str]:
        """The names of all parts, in small letters."""
        return iter(self._members)

    def read(self, part: str, max_bytes: int) -> bytes:
        """The bytes of a part; all parts together have a limit as well."""
        info = self._members[part.lower()]
        try:
            with self._zip.open(info) as stream:
                data = bounded_content(stream, min(max_bytes, self._left))
        except _ZIP_ERRORS as err:
            raise self._broken(err) from err
        self._left -= len(data)
        return data

    def xml(self, part: str) -> etree._Element:
        """The root of a part, with the namespaces of the common edition."""
        data = self.read(part, MAX_XML)
        if b"purl.oclc.org/ooxml" in data:
            for strict, common in _STRICT.items():
                data = data.replace(strict, common)
        try:
            root = parse_foreign(data)
        except (etree.XMLSyntaxError, LookupError) as err:
            refusal = xml_refusal(err)
            raise type(refusal)(f"{refusal.what} in its part {part}", fix=refusal.fix) from err
        about: Any = root.getroottree().docinfo
        if about.doctype or next(root.iter(etree.Entity), None) is not None:
            raise HostileInputError(
                f"XML refused as hostile: a document type declaration in its part {part}", fix="leave this file out"
            )
        check_depth(root)
        return root

    def links(self, part: str) -> dict[str, PartLink]:
        """The relationships of a part by id; of the whole package for the empty name."""
        if part not in self._links:
            folder, name = posixpath.split(part)
            place = posixpath.join(folder, "_rels", f"{name}.rels")
            self._links[part] = dict(self._read_links(place, folder)) if place in self else {}
        return self._links[part]

    def _read_links(self, place: str, folder: str) -> Iterator[tuple[str, PartLink]]:
        for node in self.xml(place).iter(qualified("rel:Relationship")):
            kind = (node.get("Type") or "").rpartition("/")[2]
            target = unquote((node.get("Target") or "").replace("\\", "/")).partition("#")[0]
            path = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
            path = posixpath.normpath(path)
            inside = (node.get("TargetMode") or "").lower() != "external" and path in self
            yield node.get("Id") or "", PartLink(kind, path if inside else "")

    def linked(self, part: str, kind: str) -> str:
        """The first part that a part leads to by a relationship of this kind; empty where there is none."""
        return next((each.part for each in self.links(part).values() if each.kind == kind and each.part), "")

    def linked_xml(self, part: str, kind: str) -> etree._Element | None:
        """The root of that part, if there is one."""
        name = self.linked(part, kind)
        return self.xml(name) if name else None

    def main_part(self, root_name: str) -> tuple[str, etree._Element]:
        """The document itself: its name and its root, which must have this name."""
        part = self.linked("", "officeDocument")
        root = self.xml(part) if part else None
        if root is None or root.tag != qualified(root_name):
            raise InputError(f"not a {self._what}: its main part is missing", fix="open it in Office and save it again")
        return part, root

    @property
    def has_macros(self) -> bool:
        """Whether the file brings program code, whatever its name ends in."""
        return any(part.endswith(("vbaproject.bin", "vbadata.xml")) for part in self._members)


def _check_kind(data: bytes, what: str) -> None:
    """Say what a file really is that only has the name of an Office file."""
    if data.startswith(_OLE):
        locked = _ENCRYPTED in data
        raise InputError(
            f"the {what} is encrypted with a password"
            if locked
            else f"this is a file of old Office (before 2007), not a {what} of today",
            fix="save a copy without the password" if locked else "open it in Office and save it in the new format",
        )
    if not data.startswith(b"PK"):
        start = data.lstrip()[:5]
        kind = "RTF text" if start.startswith(b"{\\rtf") else "HTML or XML" if start.startswith(b"<") else ""
        raise InputError(
            f"the file is not a {what}" + (f" but {kind}" if kind else ": it is broken, or another format"),
            fix="open it in Office and save it again",
        )


def core_facets(package: OfficePackage) -> tuple[str, Facets]:
    """Title and facets from a file's core properties: `author`, `date`, `year`, `version`, `language`."""
    root = package.linked_xml("", "core-properties")
    if root is None:
        return "", {}

    def value(name: str) -> str:
        return squeeze(root.findtext(name, "", NAMES) or "")[:300]

    facets: Facets = {}
    if (author := value("dc:creator")) and not _NO_AUTHOR.fullmatch(author):
        facets["author"] = author
    if date := _DATE.match(value("dcterms:modified")) or _DATE.match(value("dcterms:created")):
        facets["date"], facets["year"] = date.group(), date.group(1)
    if version := value("cp:version"):
        facets["version"] = version
    if language := value("dc:language"):
        facets["language"] = language[:20]
    return value("dc:title"), facets


class OfficeImages:
    """The pictures of a file on their way out: named after it, each part once."""

    def __init__(self, package: OfficePackage, stem: str) -> None:
        self.taken: list[tuple[str, bytes]] = []
        self.outside = 0
        self._package = package
        self._stem = stem
        self._names: dict[str, str] = {}

    def name(self, link: PartLink | None) -> str:
        """The file name of a linked picture; empty where it lies outside the file or is missing."""
        if link is None or not link.part:
            self.outside += 1
            return ""
        if link.part not in self._names:
            suffix = posixpath.splitext(link.part)[1].lower()
            self._names[link.part] = f"{self._stem}-{len(self._names) + 1}{suffix}"
            if suffix in IMAGE_SUFFIXES:
                with suppress(HostileInputError):  # too large: the picture is missing, the text is not
                    self.taken.append((self._names[link.part], self._package.read(link.part, MAX_IMAGE)))
        return self._names[link.part]


def package_notices(package: OfficePackage, pictures: OfficeImages, text: str) -> Iterator[str]:
    """What is to be said about any Office file: pictures outside it, macros inside it, signs that nobody can read."""
    if count := text.count(_UNREADABLE):
        yield f"signs of unknown symbol fonts: {count}, shown as {_UNREADABLE}"
    if pictures.outside:
        yield f"pictures that are not in the file: {pictures.outside}; Hoofbeat fetches nothing"
    if package.has_macros:
        yield "the file has macros: Hoofbeat neither reads nor runs them"


def main_language(counts: Counter[str]) -> str:
    """The language of most of the text, by counts of characters; empty where most of it names none."""
    named = [(count, tag) for tag, count in counts.items() if tag]
    if not named or 2 * sum(count for count, _ in named) < counts.total():
        return ""
    return max(named)[1]


@cache
def _symbol_tables() -> dict[str, dict[str, str]]:
    raw = resources.files("hoofbeat.corpus").joinpath("data/symbols.toml").read_text(encoding="utf-8")
    return {
        font: {chr(int(code, 16)): character for code, character in table.items()}
        for font, table in tomllib.loads(raw).items()
    }


def symbol_text(text: str, font: str) -> str:
    """Text as its font shows it: symbol fonts give letters other pictures (`m` in Symbol is µ)."""
    table = _symbol_tables().get(font.strip().lower())
    if table is not None:
        return "".join(_shown(character, table, known=font.strip().lower() == "symbol") for character in text)
    if _PRIVATE.search(text):
        table = _symbol_tables()["symbol"]
        return _PRIVATE.sub(lambda match: _shown(match[0], table, known=False), text)
    return text


def _shown(character: str, table: dict[str, str], *, known: bool) -> str:
    code = ord(character)
    private = 0xF020 <= code <= 0xF0FF
    plain = chr(code - 0xF000) if private else character
    if plain in table:
        return table[plain]
    if plain.isspace() or (known and plain.isascii()) or not (private or plain.isascii()):
        return plain
    return _UNREADABLE


def marked_by(number: int, form: str) -> str:
    """A number of a list as its format writes it: 3, c, C, iii, III, 03."""
    if form.startswith(("lowerLetter", "upperLetter")):
        letter = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 10)
        return letter if form.startswith("lower") else letter.upper()
    if form.startswith(("lowerRoman", "upperRoman")) and 0 < number < 4000:
        roman = _roman(number)
        return roman.lower() if form.startswith("lower") else roman
    return f"{number:02d}" if form == "decimalZero" else str(number)


def _roman(number: int) -> str:
    pieces = []
    for value, sign in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"),
        strict=True,
    ):
        count, number = divmod(number, value)
        pieces.append(sign * count)
    return "".join(pieces)


def diagram_lines(package: OfficePackage, part: str) -> list[str]:
    """The texts of a SmartArt drawing, in the order of its data."""
    if not part:
        return []
    paragraphs = (
        each for point in package.xml(part).iter(qualified("dgm:pt")) for each in point.iter(qualified("a:p"))
    )
    texts = (squeeze("".join(text.text or "" for text in each.iter(qualified("a:t")))) for each in paragraphs)
    return list(filter(None, texts))


def chart_title(package: OfficePackage, part: str) -> str:
    """The title that is written in a chart."""
    title = package.xml(part).find(".//c:chart/c:title", NAMES) if part else None
    return "" if title is None else squeeze("".join(text.text or "" for text in title.iter(qualified("a:t"))))


def chosen_content(node: etree._Element) -> etree._Element | None:
    """The edition of `mc:AlternateContent` that is read: the first, which is the newest; else the fallback."""
    chosen = node.find("mc:Choice", NAMES)
    return chosen if chosen is not None else node.find("mc:Fallback", NAMES)


_AUTOMATIC_TEXT = re.compile(
    r"(?:picture|image|graphic|grafik|bild|imagen|immagine|afbeelding|diagram|chart|diagramm|shape|object|objekt)"
    r"\s*\d*|.*\.(?:png|jpe?g|gif|tiff?|bmp|emf|wmf|svg)",
    re.IGNORECASE,
)
_GENERATED = re.compile(
    r"\s*(?:Description automatically generated.*|Automatisch generierte Beschreibung.*"
    r"|AI-generated content may be incorrect\.?|Description générée automatiquement.*)",
    re.IGNORECASE | re.DOTALL,
)


def alternative_text(node: etree._Element | None) -> str:
    """What an author wrote for people who do not see a picture; nothing where a program wrote it."""
    if node is None:
        return ""
    for name in ("descr", "alt", "title"):
        words = squeeze(_GENERATED.sub("", node.get(name) or ""))
        if words and not _AUTOMATIC_TEXT.fullmatch(words):
            return words[:2000]
    return ""
