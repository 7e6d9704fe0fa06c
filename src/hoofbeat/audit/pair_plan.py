"""The pairs of one question, planned without a call: which are silent, which are the same text, which go to a judge.

Pairs grow with the square of the sources and most of them need no judge, so they are arrays, not records. Answers whose
texts are the same but for white space, typography and a sentence's first capital are one text: two such sources agree,
and their relation to a third is asked for once. Which of two texts the judge sees first hangs on the texts alone, so
that another source with a text that is known already asks nothing and changes no label.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.answer_lines import MAX_STRENGTH
from hoofbeat.audit.pair_table import BASES, TableEnums
from hoofbeat.prompts import Pack
from hoofbeat.records import Answer, Failure, Question
from hoofbeat.text import cut, one_line

if TYPE_CHECKING:
    import polars

Numbers = NDArray[np.int64]

_SPACE = re.compile(r"\s+")
_SIGNS: dict[int, str | None] = {
    **dict.fromkeys(map(ord, "‘’‚‛‹›"), "'"),
    **dict.fromkeys(map(ord, "“”„‟«»"), '"'),
    **dict.fromkeys(map(ord, "‐‑‒–—―−"), "-"),
    **dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"), None),  # seen by nobody
    **{ord(sign): plain for sign, plain in zip("…ﬀﬁﬂﬃﬄμ", ("...", "ff", "fi", "fl", "ffi", "ffl", "µ"), strict=True)},
}
_FIRST = re.compile(r"[A-Z][a-z]+[,;]?")
_ENDING = re.compile(r"[.!?:][\"')\]]*\Z")
_JUDGED, _ABSENT, _SAME, _SHARED, GROUP = range(5)
_NONE = len(BASES)
assert BASES == ("judged", "absent", "same", "shared", "group")


class Claim(Struct, frozen=True):
    """What is kept of an answer to compare it: the source, what it says, and whether it is silent or failed.

    Where the pack compares strengths, the strength is part of the text: another strength makes another answer. The date
    is only shown below the text, so that a source that repeats another one years later asks for no call.
    """

    source: str
    text: str = ""
    absent: bool = False
    failure: Failure | None = None
    date_line: str = ""

    @staticmethod
    def of(answer: Answer, pack: Pack, dates: Mapping[str, str] | None = None) -> Claim:
        """What is compared of an answer; `dates` are those of the sources, by their ids."""
        if answer.absent or answer.failure is not None:
            text = "" if answer.absent else answer.text
            return Claim(answer.source, text, bool(answer.absent), answer.failure)
        text, dated = answer.text, ""
        if "strength" in pack.answer_details:  # audits made before answers had a strength know none
            strength = cut(one_line(answer.strength), MAX_STRENGTH) or "not recorded"
            text = f"{text.rstrip()}\nStrength of the recommendation: {strength}"
        if "date" in pack.answer_details:
            dated = f"Date of the {pack.source_word}: {one_line((dates or {}).get(answer.source, '')) or 'not known'}"
        return Claim(answer.source, text, date_line=dated)

    def shown(self, text: str = "") -> str:
        """What a judge is shown of it: its text, or another of the same form, and its date."""
        return "\n".join(filter(None, (text or self.text, self.date_line)))


class PairVerdict(Struct, frozen=True):
    """What a judge said of one pair, or why nothing; `scanned` where only the label could be read.

    Where several judges were asked, `votes` are their labels in the judges' order, empty for one that failed. `check`
    is what became of the check code, where the call had one (`judging.canary`).
    """

    label: str = ""
    reasoning: str = ""
    topic: str | None = None
    significance: str | None = None
    failure: Failure | None = None
    calls: tuple[str, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    scanned: bool = False
    votes: tuple[str, ...] = ()
    check: str = ""


def typography(text: str) -> str:
    """A text with one kind of quotes, dashes and dots and no ligatures; fractions and raised digits stay."""
    return unicodedata.normalize("NFC", text).translate(_SIGNS)


def same_answer_form(text: str) -> str:
    """An answer without what never matters: white space, typography, a sentence's first capital, a last stop.

    Answers of the same form are judged once, so it is the most cautious of the normal forms.
    All other capitals count (5 MU is not 5 mU), and so does every word that stands next to a number.
    """
    words = _SPACE.sub(" ", typography(text)).strip().rstrip(" .").split(" ")
    numbers = [not (word.isascii() and word.isalpha()) and any(map(str.isnumeric, word)) for word in words]
    found = [
        word.lower()
        if (place == 0 or _ENDING.search(words[place - 1]))
        and _FIRST.fullmatch(word)
        and not any(numbers[max(0, place - 1) : place + 2])
        else word
        for place, word in enumerate(words)
    ]
    return " ".join(found)


def asked_order(a: str, b: str) -> tuple[str, str]:
    """Two texts in the order in which a judge is shown them, by a hash: no kind of answer comes first more often."""
    one, two = asked_ranks((a, b))
    return (a, b) if one <= two else (b, a)


def asked_ranks(texts: Sequence[str]) -> list[int]:
    """For each text its place in the order in which a judge is shown them."""

    def key(place: int) -> tuple[bytes, str]:
        plain = same_answer_form(texts[place])
        return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest(), plain

    ranks = [0] * len(texts)
    for rank, place in enumerate(sorted(range(len(texts)), key=key)):
        ranks[place] = rank
    return ranks


def spoken_texts(claims: Sequence[Claim]) -> list[str]:
    """For each claim the text that a judge is shown, without the date: the least of the same form, whoever has it."""
    least: dict[str, str] = {}
    forms = [same_answer_form(claim.text) if claim.text else "" for claim in claims]
    for form, claim in zip(forms, claims, strict=True):
        if claim.failure is None:
            least[form] = min(least.get(form, claim.text), claim.text)
    return [least.get(form, claim.text) for form, claim in zip(forms, claims, strict=True)]


def shown_texts(claims: Sequence[Claim]) -> list[str]:
    """For each claim what a judge is shown of it, with the date."""
    return [claim.shown(text) for claim, text in zip(claims, spoken_texts(claims), strict=True)]


def claims_by_question(
    answers: Iterable[Answer], pack: Pack, dates: Mapping[str, str] | None = None
) -> dict[str, list[Claim]]:
    """What is compared of these answers, question by question, sources in alphabetical order."""
    found: dict[str, list[Claim]] = {}
    for answer in answers:
        found.setdefault(answer.question, []).append(Claim.of(answer, pack, dates))
    for claims in found.values():
        claims.sort(key=lambda claim: claim.source)
    return found


class PairPlan(NamedTuple):
    """All pairs of one question: sides by their place among the claims, how each gets its label, and what is asked.

    `asked` are the pairs that go to a judge, as places of two claims in the order the judge is shown them; `texts` are
    what it is shown of each claim; `by` says for each pair which of those asked decides it (-1: none), and `exchanged`
    whether the judge saw the text of its second side first. A pair of which a side has no answer has no basis, and
    `failed` is the place of that side (-1: none). In economy a pair may have the label of another pair that was asked
    (its basis is `GROUP`), or, where `by` is -1, be consistent because a model sorted its sides into one position:
    `lines` are then the positions by row.
    """

    question: Question
    claims: Sequence[Claim]
    a: Numbers
    b: Numbers
    basis: Numbers
    failed: Numbers
    asked: list[tuple[int, int]]
    by: Numbers
    texts: list[str]
    exchanged: NDArray[np.bool_]
    lines: Mapping[int, str] = MappingProxyType({})


def plan_pairs(question: Question, claims: Sequence[Claim]) -> PairPlan:
    """Plan the pairs of one question; claims must be in the order of their sources.

    Of several pairs of the same two texts the first one is asked, always in the same words and the same order.
    """
    classes = text_classes(claims)
    texts = spoken_texts(claims)
    a, b = (side.astype(np.int64) for side in np.triu_indices(len(claims), 1))
    silent = np.array([claim.absent for claim in claims], bool)
    broken = np.array([claim.failure is not None for claim in claims], bool)
    absent = silent[a] | silent[b]
    failing = ~absent & (broken[a] | broken[b])
    spoken = ~absent & ~failing
    same = spoken & (classes[a] == classes[b])
    basis = np.select([absent, failing, same], [_ABSENT, _NONE, _SAME], _JUDGED)
    failed = np.where(failing, np.where(broken[a], a, b), -1)
    by = np.full(len(a), -1, np.int64)
    asked: list[tuple[int, int]] = []
    ranks = np.array(asked_ranks(texts), np.int64)
    exchanged = spoken & ~same & (ranks[a] > ranks[b])
    left = np.flatnonzero(spoken & ~same)
    if len(left):
        low, high = np.minimum(classes[a[left]], classes[b[left]]), np.maximum(classes[a[left]], classes[b[left]])
        _, first, number = np.unique(low * len(claims) + high, return_index=True, return_inverse=True)
        order = np.argsort(first)  # asked in the order of the pairs
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        chosen = left[first[order]]
        turned = exchanged[chosen]
        first_shown, second_shown = np.where(turned, b[chosen], a[chosen]), np.where(turned, a[chosen], b[chosen])
        asked = list(zip(first_shown.tolist(), second_shown.tolist(), strict=True))
        by[left] = place[number]
        basis[left[chosen[by[left]] != left]] = _SHARED
    return PairPlan(question, claims, a, b, basis, failed, asked, by, shown_texts(claims), exchanged)


def text_classes(claims: Sequence[Claim]) -> Numbers:
    """For each claim the number of its text; -1 where it has none."""
    numbers: dict[str, int] = {}
    found = [
        -1
        if claim.absent or claim.failure is not None
        else numbers.setdefault(same_answer_form(claim.text), len(numbers))
        for claim in claims
    ]
    return np.array(found, np.int64)


def pair_frame(
    plan: PairPlan, verdicts: Sequence[PairVerdict], pack: Pack, kinds: TableEnums, judge: str
) -> polars.DataFrame:
    """The rows of one question's pairs, in the order of the table."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    schema = kinds.schema()
    size = len(plan.a)
    places = {source: place for place, source in enumerate(kinds.sources)}
    sides = np.array([places[claim.source] for claim in plan.claims], np.int64)
    said = _said(verdicts, schema, judge)
    nothing = len(verdicts)  # the row of nulls at the end of what was said
    rows = np.where(plan.by >= 0, plan.by, nothing)
    frame = said[rows] if size else said.clear()
    labels = polars.Series("fixed", [None, pack.absent, pack.consistent], dtype=schema["label"])
    group = plan.basis == GROUP
    code = np.select([plan.basis == _ABSENT, (plan.basis == _SAME) | (group & (plan.by < 0))], [1, 2], 0)
    names = polars.Series("a", kinds.sources, dtype=schema["a"])
    frame = frame.with_columns(
        polars.Series("question", [plan.question.id], dtype=schema["question"]).new_from_index(0, size),
        names.gather(sides[plan.a]),
        names.gather(sides[plan.b]).alias("b"),
        polars.coalesce("label", labels.gather(code)).alias("label"),
        polars.Series("basis", [*BASES, None], dtype=schema["basis"]).gather(plan.basis),
    )
    turned = plan.exchanged & ~group
    if turned.any():
        column = polars.col("reasoning")
        told = polars.format("(A is {}, B is {}.) {}", polars.col("b"), polars.col("a"), column)
        chosen = polars.Series("exchanged", turned) & column.is_not_null()
        frame = frame.with_columns(polars.when(chosen).then(told).otherwise(column).alias("reasoning"))
    if group.any():
        frame = frame.with_columns(_carried_reasoning(plan, frame["reasoning"]))
    uncalled = group | (plan.basis == _SHARED)
    if uncalled.any():
        own = ~polars.Series("shared", uncalled)
        frame = frame.with_columns(polars.when(own).then(polars.col("tokens_in", "tokens_out")))  # a call counts once
    return _with_failures(plan, frame, schema).select(list(schema))


def _carried_reasoning(plan: PairPlan, told: polars.Series) -> polars.Series:
    """What was said of each pair; where the label is carried, after the pair it is from, or the shared position."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    found = told.to_list()
    for row in np.flatnonzero(plan.basis == GROUP).tolist():
        if plan.by[row] < 0:
            line = plan.lines.get(row, "")
            found[row] = f"Sorted into one position: {line}" if line else "Sorted into one position."
        elif found[row]:
            first, second = (plan.claims[place].source for place in plan.asked[plan.by[row]])
            found[row] = f"Carried from {first} (A) and {second} (B): {found[row]}"
    return polars.Series("reasoning", found, dtype=told.dtype)


def _said(verdicts: Sequence[PairVerdict], schema: dict[str, polars.DataType], judge: str) -> polars.DataFrame:
    """What was said, a row each, and a last row of nulls for the pairs that nobody was asked about."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    columns: dict[str, list[object]] = {
        "label": [each.label or None for each in verdicts],
        "topic": [each.topic for each in verdicts],
        "significance": [each.significance for each in verdicts],
        "judge": [judge for _ in verdicts],
        "reasoning": [each.reasoning or None for each in verdicts],
        "failure": [each.failure.kind if each.failure else None for each in verdicts],
        "failure_message": [each.failure.message if each.failure else None for each in verdicts],
        "failure_attempts": [each.failure.attempts if each.failure else None for each in verdicts],
        "tokens_in": [each.tokens_in or None for each in verdicts],
        "tokens_out": [each.tokens_out or None for each in verdicts],
    }
    frame = polars.DataFrame(
        {name: polars.Series(name, [*values, None], dtype=schema[name]) for name, values in columns.items()}
    )
    # lists of strings one by one are slow to build: column by column, the first calls, the second calls
    most = max((len(each.calls) for each in verdicts), default=0)
    turns = [
        polars.Series(
            f"call {turn}",
            [*(each.calls[turn] if turn < len(each.calls) else None for each in verdicts), None],
            dtype=polars.String,
        )
        for turn in range(max(1, most))
    ]
    lists = polars.concat_list(turns).list.drop_nulls()
    votes = polars.Series("votes", [*(list(each.votes) or None for each in verdicts), None], dtype=schema["votes"])
    return frame.with_columns(polars.when(turns[0].is_not_null()).then(lists).alias("calls"), votes)


def _with_failures(plan: PairPlan, frame: polars.DataFrame, schema: dict[str, polars.DataType]) -> polars.DataFrame:
    """Pairs of which a side has no answer carry that side's failure."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    sides = [place for place, claim in enumerate(plan.claims) if claim.failure is not None]
    if not sides or not (plan.failed >= 0).any():
        return frame
    table: dict[str, list[object]] = {"failure": [None], "failure_message": [None], "failure_attempts": [None]}
    row = np.zeros(len(plan.claims) + 1, np.int64)  # the last place, -1, is that of no failure
    for number, place in enumerate(sides, start=1):
        claim = plan.claims[place]
        assert claim.failure is not None
        row[place] = number
        table["failure"].append(claim.failure.kind)
        table["failure_message"].append(f"no answer of {claim.source}: {claim.failure.message}")
        table["failure_attempts"].append(0)
    why = polars.DataFrame({name: polars.Series(name, values, dtype=schema[name]) for name, values in table.items()})
    found = why[row[plan.failed]]
    return frame.with_columns(polars.coalesce(name, found[name]).alias(name) for name in table)
