"""Which questions belong together because they share a source document: what intervals resample as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from hoofbeat.records import Question

__all__ = ["clusters_of"]


def clusters_of(questions: Iterable[Question]) -> dict[str, str]:
    """Question to the name of its cluster: questions are in one cluster if a chain of shared documents links them.

    Every document of a question counts, not only the first. A cluster is named by the first of its documents in
    alphabetical order; a question without documents is in no cluster and stands for itself.
    """
    above: dict[str, str] = {}

    def top(document: str) -> str:
        while above[document] != document:
            above[document] = above[above[document]]
            document = above[document]
        return document

    first: dict[str, str] = {}
    for question in questions:
        for document in question.documents:
            above.setdefault(document, document)
            one, other = top(first.setdefault(question.id, document)), top(document)
            above[max(one, other)] = min(one, other)
    return {name: top(document) for name, document in first.items()}
