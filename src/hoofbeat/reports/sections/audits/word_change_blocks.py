"""Answers and quotes that changed between two audits, old and new words side by side, and whose text changed."""

from __future__ import annotations

from collections.abc import Iterator

from hoofbeat.audit import Audit
from hoofbeat.audit.answer_changes import AnswerChange, WordChanges, changed_words, count_changes
from hoofbeat.audit.case_records import SideWords
from hoofbeat.audit.source_names import SourceName
from hoofbeat.reports.model import Block, Details, Heading, Notice, PairView, PassageView, SideView, Text
from hoofbeat.reports.tables import count_of
from hoofbeat.text import cut

SHOWN = 40
_QUESTION = 200
_SILENT = "Silent: the source does not address the question."
_SOURCES = 12


def word_change_blocks(found: WordChanges, before: Audit, after: Audit, prefix: str = "words") -> list[Block]:
    """What changed in words: a sentence, the sources whose text changed, then the answers, `SHOWN` at most."""
    names = after.names
    blocks: list[Block] = [Heading("What the sources say now", prefix), Text(_summary(found))]
    if found.texts:
        named = [names.full(source) for source in found.texts]
        more = f", and {len(named) - _SOURCES:,} more" if len(named) > _SOURCES else ""
        blocks.append(Text(f"{'; '.join(named[:_SOURCES])}{more}.", label="Sources whose text changed"))
    if found.unknown_texts:
        blocks.append(
            Notice(
                f"Whether the text of {count_of(len(found.unknown_texts), 'source')} changed is unknown: an audit of "
                f"an earlier version, or of imported answers, does not record it."
            )
        )
    asked = {question.id: question for question in after.questions}
    folders = before.artefact.path.resolve().name, after.artefact.path.resolve().name
    shown = sorted(found.answers, key=lambda each: (-each.moved, each.question, each.source))[:SHOWN]
    for question in dict.fromkeys(each.question for each in shown):
        mine = [each for each in shown if each.question == question]
        views = tuple(_view(each, names.full(each.source), folders) for each in mine)
        title = f"{question}: {cut(asked[question].text, _QUESTION)} ({count_of(len(mine), 'answer')})"
        blocks.append(Details(title, views))
    if left := len(found.answers) - len(shown):
        blocks.append(Notice(f"{left:,} more changed answers are only in the folder's tables."))
    return blocks


def _summary(found: WordChanges) -> str:
    if not found.answers:
        return "No answer and no quote changed."
    counts = count_changes(found.answers)
    told = ", ".join(f"{count:,} {_WORDS[what]}" for what, count in sorted(counts.items()))
    same = len({(each.question, each.a, each.b) for each in found.same_label})
    return (
        f"{count_of(len(found.answers), 'answer')} changed ({told}). {count_of(same, 'pair')} of sources keep "
        f"{'its' if same == 1 else 'their'} label although an answer changed."
    )


_WORDS = {
    "answer": "in other words",
    "quote": "with another quote",
    "answers now": "where a silent source answers now",
    "silent now": "where a source is silent now",
}


def _view(change: AnswerChange, name: str, folders: tuple[str, str]) -> PairView:
    moved = [f"{count_of(change.moved, 'pair')} got another label"] if change.moved else []
    kept = [f"{count_of(change.kept, 'pair')} kept the label"] if change.kept else []
    label = " and ".join(f"{what} changed" if what in ("answer", "quote") else what for what in change.what)
    return change_view(change.before, change.after, name, folders, label, (*moved, *kept))


def change_view(
    old: SideWords,
    new: SideWords,
    name: str,
    folders: tuple[str, str],
    label: str = "changed",
    facts: tuple[str, ...] = (),
) -> PairView:
    """What one source said and says now, side by side, with the words marked that are on one side only."""
    gone, come = changed_words(old.answer, new.answer)
    return PairView(
        a=_side("Before", folders[0], old, gone, new),
        b=_side("After", folders[1], new, come, old),
        label=label,
        tone=0,
        facts=(name, *facts),
    )


def words_view(words: SideWords, name: SourceName) -> SideView:
    """What a source says, with what it quotes."""
    return SideView(name=name.full, id=name.id, text=words.answer or _SILENT, cited=tuple(_quotes(words, words)))


def _side(when: str, folder: str, words: SideWords, marks: list[tuple[int, int]], other: SideWords) -> SideView:
    if not words.answer:
        return SideView(name=f"{when} ({folder})", text=_SILENT)
    return SideView(
        name=f"{when} ({folder})",
        text=words.answer,
        marks=tuple(marks) if other.answer else (),
        cited=tuple(_quotes(words, other)),
    )


def _quotes(words: SideWords, other: SideWords) -> Iterator[PassageView]:
    for what, quotes, others in (
        ("quoted from the source", words.quotes, other.quotes),
        ("not found in the source, though the model gave it as a quote", words.not_found, other.not_found),
    ):
        for place, quote in enumerate(quotes):
            beside = others[place] if place < len(others) else ""
            yield PassageView(source=what, text=quote, marks=tuple(changed_words(quote, beside)[0]))
