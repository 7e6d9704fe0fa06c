"""Did a model read its question's source in disguise?

A question made from a report is no test where the report itself is at hand under another name: a copy with nearly the
same title, or an article that quotes the report by its title. Both are noted beside the answer, never removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rapidfuzz import fuzz

from hoofbeat.records import Answer, Document, Passage, Question
from hoofbeat.text import for_title_matching

_SAME = 90.0
_MIN_WORDS = 4

_OWN = "read its own source report"
_TITLE = "its source's title"

DocumentLookup = Callable[[str], Document | None]


def source_warnings(
    question: Question, read: Iterable[Passage], lookup: DocumentLookup, *, own: bool = False
) -> tuple[str, ...]:
    """What is doubtful about the passages that were read: the source's title elsewhere; with `own`, the source, too.

    `lookup` brings a document by its id. A title of fewer than four words says too little to be looked for.
    """
    documents = dict.fromkeys(passage.document for passage in read)
    warnings = [f"{_OWN}: {name}" for name in documents if own and name in question.documents]
    sources = [found for name in question.documents if (found := lookup(name)) is not None]
    titles = [title for source in sources if len((title := for_title_matching(source.title)).split()) >= _MIN_WORDS]
    if not titles:
        return tuple(warnings)
    for name in documents:
        document = lookup(name) if name not in question.documents else None
        if document is None:
            continue
        if any(same_title(title, document.title) for title in titles):
            warnings.append(f"read {name}, which has {_TITLE}")
        elif _quotes(document, titles):
            warnings.append(f"read {name}, which quotes {_TITLE}")
    return tuple(warnings)


def read_source(answer: Answer) -> bool:
    """Whether an answer's warnings say that its own source was read."""
    return any(warning.startswith(_OWN) for warning in answer.warnings)


def read_title(answer: Answer) -> bool:
    """Whether an answer's warnings say that another document with its source's title was read."""
    return any(warning.endswith(_TITLE) for warning in answer.warnings)


def same_title(one: str, other: str) -> bool:
    """Whether two titles are the same but for case, punctuation and a letter here and there."""
    a, b = for_title_matching(one), for_title_matching(other)
    return bool(a and b) and fuzz.ratio(a, b) >= _SAME


def _quotes(document: Document, titles: Sequence[str]) -> bool:
    text = f" {for_title_matching(document.title)} {for_title_matching(document.text)} "
    return any(f" {title} " in text for title in titles)
