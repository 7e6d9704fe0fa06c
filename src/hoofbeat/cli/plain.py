"""Text that is safe on a terminal."""

from __future__ import annotations

import unicodedata

__all__ = ["plain"]


def plain(text: str) -> str:
    """Text without control characters: what a document or a model wrote must not steer the terminal."""
    return "".join(sign for sign in text if sign in "\n\t" or unicodedata.category(sign) not in {"Cc", "Cf"})
