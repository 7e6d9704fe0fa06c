"""XML from strangers: parsed without network, external files or entity expansion, and refused where it is a bomb.

The parser leaves entity references standing. Those that name a character (`&nbsp;`, from a DTD that is never loaded)
or a short string declared in the file are put in afterwards, within a budget; anything that nests, reads a file or
grows the text is refused.
"""

from __future__ import annotations

import html.entities
import re
from collections.abc import Mapping
from typing import Any

from lxml import etree

from hoofbeat.errors import HostileInputError, InputError

MAX_DEPTH = 120
MAX_ENTITY = 256
ENTITY_BUDGET = 1_000_000

_UNDECLARED_ENTITY = 26
_BAD_ENCODING = {9, 32, 81}
_HOSTILE = re.compile(r"amplification|entity loop|excessive depth|HUGE|huge|too (long|big|many)|depth", re.IGNORECASE)
_REFERENCE = re.compile(rb"<!\[CDATA\[.*?\]\]>|<!--.*?-->|&([A-Za-z][A-Za-z0-9]{1,31});", re.DOTALL)
_CHARACTER = re.compile(r"&#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}));")
_TOO_DEEP = etree.XPath(f"boolean({'/*' * (MAX_DEPTH + 1)})")
_DECLARATION = re.compile(rb"xmlns(?::[^\s=]+)?\s*=\s*[\"']([^\"'<]*)[\"']")
_ATTRIBUTE_NAMESPACES = {"http://www.w3.org/1999/xlink", "http://www.w3.org/2001/XMLSchema-instance"}
_XML_NAMES = {"amp", "lt", "gt", "quot", "apos"}


def parse_xml(data: bytes) -> tuple[etree._Element, tuple[str, ...]]:
    """The root of an XML file, names without namespaces and entities resolved, and notices about how it was read."""
    notices: tuple[str, ...] = ()
    try:
        root = _parse(data)
    except etree.XMLSyntaxError as err:
        code = int(getattr(err, "code", 0))
        if code == _UNDECLARED_ENTITY:
            root = _second_try(_REFERENCE.sub(_numeric, data), None)
        elif code in _BAD_ENCODING:
            root = _second_try(_REFERENCE.sub(_numeric, data), "cp1252")
            notices = ("read as Windows-1252: the file is not valid in the encoding it states",)
        else:
            raise _refusal(err) from err
    _check_depth(root)
    _fill_entities(root)
    _strip_namespaces(root, data)
    return root, notices


def _parse(data: bytes, encoding: str | None = None) -> etree._Element:
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        strip_cdata=True,
        encoding=encoding,
    )
    return etree.fromstring(data, parser)


def _second_try(data: bytes, encoding: str | None) -> etree._Element:
    try:
        return _parse(data, encoding)
    except (etree.XMLSyntaxError, LookupError) as err:
        raise _refusal(err) from err


def _refusal(err: Exception) -> InputError:
    message = str(err).partition(" (<string>")[0]
    if _HOSTILE.search(message):
        return HostileInputError(f"XML refused as hostile: {message}", fix="leave this file out")
    return InputError(f"not well-formed XML: {message}", fix="check that the file is complete")


def _numeric(match: re.Match[bytes]) -> bytes:
    name = match.group(1)
    if name is None or name.decode() in _XML_NAMES:
        return match.group(0)
    characters = html.entities.html5.get(name.decode() + ";")
    if characters is None:
        return b"&amp;" + name + b";"
    return b"".join(b"&#%d;" % ord(character) for character in characters)


def _check_depth(root: etree._Element) -> None:
    if _TOO_DEEP(root):
        raise HostileInputError(
            f"XML refused as hostile: elements nested more than {MAX_DEPTH} deep", fix="leave this file out"
        )


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
    """The file's own entities: their text, or None for those that stand for another file."""
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
    """Give elements in a namespace their plain names; only those namespaces are looked for that the file declares."""
    declared = {_declared_name(match) for match in _DECLARATION.finditer(data)}
    wide = data[:2] in {b"\xff\xfe", b"\xfe\xff"} or None in declared
    names = sorted(name for name in declared if name and name not in _ATTRIBUTE_NAMESPACES)
    if wide:
        names = sorted(
            {str(element.tag).partition("}")[0][1:] for element in root.iter("{*}*") if "}" in str(element.tag)}
        )
    for element in list(root.iter(*(f"{{{name}}}*" for name in names))) if names else []:
        element.tag = str(element.tag).rpartition("}")[2]


def _declared_name(match: re.Match[bytes]) -> str | None:
    """A declared namespace; None where it is written in a way that has to be resolved first."""
    name = match.group(1)
    return name.decode("ascii") if name.isascii() and not set(b"&{}\n\t") & set(name) else None
