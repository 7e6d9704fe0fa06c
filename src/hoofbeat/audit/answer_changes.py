"""What the sources say now and said before: answers, quotes and texts that changed, also under an unchanged label."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.case_records import SideWords
from hoofbeat.audit.disagreement_cases import same_quotes, words_of
from hoofbeat.audit.pair_plan import same_answer_form
from hoofbeat.records import Answer

if TYPE_CHECKING:
    import polars

ANSWER, QUOTE, SPOKE, SILENT = "answer", "quote", "answers now", "silent now"
"""What can change of an answer."""

_WORD = re.compile(r"\w+(?:[.,]\d+)*|[^\w\s]")


class AnswerChange(Struct, frozen=True, kw_only=True):
    """An answer that is another than before: what changed of it, and the words before and after.

    `moved` of its pairs have another label now, `kept` have the same.
    """

    question: str
    source: str
    what: tuple[str, ...]
    before: SideWords
    after: SideWords
    moved: int = 0
    kept: int = 0


class PairChange(Struct, frozen=True, kw_only=True):
    """A pair that both audits label alike though an answer under it changed; `changed` are the sources whose did."""

    question: str
    a: str
    b: str
    label: str
    changed: tuple[str, ...]


class WordChanges(Struct, frozen=True, kw_only=True):
    """Every answer that changed, the pairs that keep their label over it, and the sources whose text changed.

    `unknown_texts` are sources of which an audit does not say what text they had.
    """

    answers: tuple[AnswerChange, ...]
    same_label: tuple[PairChange, ...]
    texts: tuple[str, ...]
    unknown_texts: tuple[str, ...]


def word_changes(before: Audit, after: Audit) -> WordChanges:
    """What changed between two audits in the words of the sources; a question or source of one audit only is not."""
    asked = {question.id for question in before.questions} & {question.id for question in after.questions}
    old = {
        (answer.question, answer.source): (words_of(answer, answer.source), _known(answer))
        for answer in before.each_answer()
        if answer.question in asked
    }
    found: dict[tuple[str, str], AnswerChange] = {}
    for answer in after.each_answer():
        key = answer.question, answer.source
        if key in old and old[key][1] and _known(answer):
            words = words_of(answer, answer.source)
            if what := _what(old[key][0], words):
                found[key] = AnswerChange(
                    question=key[0], source=key[1], what=what, before=old[key][0], after=words
                )  # fmt: skip
    moved, kept, same = _labels(before, after, found.keys())
    hashes = [{source.id: source.text_sha256 for source in audit.sources} for audit in (before, after)]
    both = sorted(hashes[0].keys() & hashes[1].keys())
    return WordChanges(
        answers=tuple(replace(each, moved=moved[key], kept=kept[key]) for key, each in sorted(found.items())),
        same_label=tuple(same),
        texts=tuple(name for name in both if hashes[0][name] and hashes[1][name] and _differ(hashes, name)),
        unknown_texts=tuple(name for name in both if not (hashes[0][name] and hashes[1][name])),
    )


def _differ(hashes: list[dict[str, str]], name: str) -> bool:
    return hashes[0][name] != hashes[1][name]


def _known(answer: Answer) -> bool:
    """Whether it is known what the source says: nothing failed."""
    return answer.failure is None and answer.absent is not None


def _what(old: SideWords, new: SideWords) -> tuple[str, ...]:
    if not old.answer and not new.answer:
        return ()
    if not old.answer or not new.answer:
        return (SPOKE if new.answer else SILENT,)
    told = []
    if same_answer_form(old.answer) != same_answer_form(new.answer):
        told.append(ANSWER)
    if not same_quotes(old, new):
        told.append(QUOTE)
    return tuple(told)


def _labels(
    before: Audit, after: Audit, changed: Collection[tuple[str, str]]
) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]], list[PairChange]]:
    """Of the answers that changed, how many pairs have another label and how many the same, and the latter pairs."""
    moved: Counter[tuple[str, str]] = Counter()
    kept: Counter[tuple[str, str]] = Counter()
    same: list[PairChange] = []
    if not changed:
        return moved, kept, same
    table = labels_before_and_after(before, after, {question for question, _ in changed})
    for question, a, b, first, second in table.iter_rows():
        sides = tuple(source for source in (a, b) if (question, source) in changed)
        for source in sides:
            (kept if first == second else moved)[question, source] += 1
        if sides and first == second and first is not None:
            same.append(PairChange(question=question, a=a, b=b, label=first, changed=sides))
    return moved, kept, same


def labels_before_and_after(before: Audit, after: Audit, questions: Collection[str] | None = None) -> polars.DataFrame:
    """Every pair that both audits planned, with its two labels (null where it has none), in order."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    keys = ("question", "a", "b")
    frames = []
    for audit in (before, after):
        frame = audit.frame((*keys, "label")).with_columns(
            polars.col(name).cast(polars.String) for name in (*keys, "label")
        )
        if questions is not None:
            frame = frame.filter(polars.col("question").is_in(sorted(questions)))
        frames.append(frame)
    return frames[0].join(frames[1], on=keys, how="inner", suffix="_after").sort(keys).collect()


def changed_words(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Where the words stand that are only in the old text, and those only in the new one."""
    ours, theirs = _words(old), _words(new)
    same = SequenceMatcher(None, [old[a:b] for a, b in ours], [new[a:b] for a, b in theirs], autojunk=False)
    gone, come = [], []
    for kind, first, last, start, end in same.get_opcodes():
        if kind != "equal":
            gone += [(ours[first][0], ours[last - 1][1])] if last > first else []
            come += [(theirs[start][0], theirs[end - 1][1])] if end > start else []
    return gone, come


def _words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _WORD.finditer(text)]


def count_changes(changes: Iterable[AnswerChange]) -> Counter[str]:
    """How many answers changed in each way."""
    return Counter(what for change in changes for what in change.what)
