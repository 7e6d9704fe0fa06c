"""Reading a report's HTML in tests."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from lxml import etree


def parsed(page: str) -> Any:
    return etree.fromstring(page.encode(), etree.HTMLParser(encoding="utf-8"))


def words(node: Any) -> str:
    return "".join(str(text) for text in node.itertext())


def packed_ids(tree: Any) -> list[str]:
    """The ids of the items that lie packed in the page."""
    found: list[str] = []
    for viewer in dict.fromkeys(tree.xpath("//script/@data-for")):
        first = tree.xpath("//script[@data-for=$name]", name=viewer)[0]
        _, heads = json.loads(zlib.decompress(base64.b64decode(first.text)))
        found += [head[0] for head in heads]
    return found
