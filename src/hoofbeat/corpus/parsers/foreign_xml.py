"""XML from strangers, parsed without network, external files or entity expansion, and refused where it is a trap.

JATS articles and Office files are parsed here. Entity references stay in the tree as they are; a format decides itself
what becomes of them (`jats_article` puts in those that name a character, `office_package` takes none).
"""

from __future__ import annotations

import re

from lxml import etree

from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.text import cut

MAX_DEPTH = 120
_MAX_MESSAGE = 200
_HOSTILE = re.compile(r"amplification|entity loop|excessive depth|HUGE|huge|too (long|big|many)|depth", re.IGNORECASE)
_TOO_DEEP = etree.XPath(f"boolean({'/*' * (MAX_DEPTH + 1)})")


def parse_foreign(data: bytes, encoding: str | None = None) -> etree._Element:
    """The root of an XML file; lxml's errors pass through, and `xml_refusal` gives them words."""
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


def xml_refusal(err: Exception) -> InputError:
    """The parser's error as ours: hostile or only broken."""
    message = cut(str(err).partition(" (<string>")[0], _MAX_MESSAGE)
    if _HOSTILE.search(message):
        return HostileInputError(f"XML refused as hostile: {message}", fix="leave this file out")
    return InputError(f"not well-formed XML: {message}", fix="check that the file is complete")


def check_depth(root: etree._Element) -> None:
    """Refuse a tree that is deeper than any document: readers walk it by recursion."""
    if _TOO_DEEP(root):
        raise HostileInputError(
            f"XML refused as hostile: elements nested more than {MAX_DEPTH} deep", fix="leave this file out"
        )
