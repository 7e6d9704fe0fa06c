"""A query writer in one file: abbreviations are spelled out before anything is searched for."""

from __future__ import annotations

from hoofbeat.retrieval.stages import QueryWriter

WORDS = {"TAC": "tacrolimus", "Ktx": "kidney transplant"}


class Abbreviations(QueryWriter):
    """Replaces words by a list; it asks no model."""

    name = "abbreviations"
    summary = "spells abbreviations out"

    def rewrite(self, text: str) -> str:
        """The text with every known abbreviation in full."""
        return " ".join(WORDS.get(word, word) for word in text.split())


STAGE = Abbreviations()
