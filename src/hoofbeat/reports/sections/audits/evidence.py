"""What stands behind an answer: the passages it cites, the words it quotes from them, and others that were shown."""

from __future__ import annotations

from hoofbeat.audit.answers.citations import cites
from hoofbeat.benchmarks.quote_search import find_quote
from hoofbeat.records import Answer, Document, Passage
from hoofbeat.reports.item_views import failure_text
from hoofbeat.reports.model import PassageView, SideView

__all__ = ["side_view", "silent_text"]

_ANSWER = 3000
_CITED, _CITED_TEXT = 3, 1600
_OTHERS, _OTHER_TEXT = 5, 420


def side_view(answer: Answer, title: str) -> SideView:
    """One source's side of a pair: what it says, and what it says it by."""
    name = f"{answer.source} · {title}" if title and title != answer.source else answer.source
    told = silent_text(answer)
    named = () if told else answer.citations
    cited = [each for each in answer.evidence if any(cites(citation, each.heading) for citation in named)]
    others = [passage for passage in answer.evidence if passage not in cited]
    quotes = {
        (place, step.text)
        for step in answer.trace
        if step.what in ("quoted", "quote elsewhere")
        for place in step.found
    }
    return SideView(
        name=name,
        text=told or _kept(answer.text),
        cited=tuple(_view(passage, quotes, _CITED_TEXT, cited=True) for passage in cited[:_CITED]),
        others=tuple(_view(passage, quotes, _OTHER_TEXT) for passage in others[:_OTHERS]),
        unshown=max(0, len(others) - _OTHERS) + max(0, len(cited) - _CITED),
        warnings=answer.warnings,
    )


def silent_text(answer: Answer) -> str:
    """What is said of a source that gives no answer; empty for one that does."""
    if answer.failure:
        return f"No answer. {failure_text(answer.failure)}"
    if answer.absent is None:
        return "Whether the source addresses the question is not known."
    return "Silent: the source does not address the question." if answer.absent else ""


def _kept(text: str) -> str:
    return text if len(text) <= _ANSWER else f"{text[:_ANSWER]}… (the first {_ANSWER:,} of {len(text):,} characters)"


def _view(passage: Passage, quotes: set[tuple[str, str]], most: int, *, cited: bool = False) -> PassageView:
    """A passage, cut, with the words that the answer quotes from it marked."""
    found = _quoted(passage, sorted(words for place, words in quotes if place == passage.id))
    first = max(0, found[0][0] - most // 4) if found and found[0][1] > most else 0
    first = passage.text.find(" ", first) + 1 if first else 0
    text = passage.text[first : first + most].rstrip()
    lead = "… " if first else ""
    shown = f"{lead}{text}{' …' if first + len(text) < len(passage.text.rstrip()) else ''}"
    marks, reached = [], 0
    for start, end in found:
        low, high = max(reached, start - first + len(lead)), min(len(lead) + len(text), end - first + len(lead))
        if low < high:
            marks.append((low, high))
            reached = high
    page = f"page {passage.page}" if passage.page is not None else ""
    cut = f"{len(text):,} of {len(passage.text):,} characters" if len(text) < len(passage.text.rstrip()) else ""
    source = " · ".join(part for part in (passage.heading or passage.document, page, cut) if part)
    return PassageView(source=source, text=shown, marks=tuple(marks), cited=cited)


def _quoted(passage: Passage, quotes: list[str]) -> list[tuple[int, int]]:
    """Where the quotes stand in the passage, in order."""
    document = Document(id=passage.document, title="", text=passage.text)
    found = (find_quote(document, quote) for quote in quotes)
    return sorted((span.start, span.end) for each in found if each is not None for span in each.spans)
