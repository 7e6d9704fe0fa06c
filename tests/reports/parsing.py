"""Reading a report's HTML in tests."""

from __future__ import annotations

from typing import Any

from lxml import etree


def parsed(page: str) -> Any:
    return etree.fromstring(page.encode(), etree.HTMLParser(encoding="utf-8"))


def words(node: Any) -> str:
    return "".join(str(text) for text in node.itertext())
