"""How a question and an answer are shown, in reports and on pages alike: with options, evidence, choices and judgments.

A report's viewer has the questions with all their answers, to be read one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from hoofbeat.audit.citations import cites_heading
from hoofbeat.corpus import Corpus
from hoofbeat.facets import facet_names, facet_values
from hoofbeat.findings.outcomes import AnswerKey, Outcome
from hoofbeat.records import Answer, Failure, Judgment, OptionLikelihood, Passage, Question, Span, TraceStep, Vote
from hoofbeat.reports.lookup import Lookup, System
from hoofbeat.reports.model import (
    AnswerView,
    Entry,
    JudgmentView,
    OptionView,
    PassageView,
    QuestionView,
    TraceView,
    Verdict,
    Viewer,
    VoteView,
)
from hoofbeat.reports.tables import count_of, written
from hoofbeat.reports.viewers import PLAIN_CHARACTERS, PLAIN_ENTRIES, viewer_of
from hoofbeat.text import cut, one_line

VERDICTS: dict[Verdict, str] = {"right": "✓ right", "wrong": "✗ wrong", "unscored": "– unscored", "plain": "answered"}
"""How a verdict is written, so that colour never stands alone."""

_TONES: dict[str, Verdict] = {
    "correct": "right", "equivalent": "right", "incorrect": "wrong", "mismatch": "wrong"
}  # fmt: skip
_LONG = 6000
_PASSAGE = 900
_AROUND = 220


def system_name(model: str, condition: str, models: int) -> str:
    """A model under a condition; the model goes without saying where there is only one."""
    return f"{model} · {condition}" if models > 1 else condition


def failure_text(failure: Failure) -> str:
    """A failure in one line."""
    return f"{failure.kind}: {failure.message}"


def question_view(
    question: Question, answers: Sequence[Answer] = (), corpus: Corpus | None = None, *, facets: bool = True
) -> QuestionView:
    """A question with everything the benchmark knows of it.

    Its evidence is marked in a passage that some answer was shown, where one holds it, else in the document of the
    corpus, else it is given as it is.
    """
    shown = {passage.id: passage for answer in answers for passage in answer.evidence}.values()
    facts = [f"{name}: {', '.join(facet_values(question.facets, name))}" for name in question.facets] if facets else []
    return QuestionView(
        text=question.text,
        context=question.context,
        options=question.options,
        gold=question.reference,
        evidence=tuple(_in_passage(span, shown) or _in_document(span, corpus) for span in question.evidence),
        facts=tuple(cut(fact, 120) for fact in facts),
    )


def answer_view(
    question: Question,
    answer: Answer,
    system: str,
    outcome: Outcome | None,
    judgments: Sequence[Judgment] = (),
    *,
    places: tuple[int, ...] = (),
    folded: bool = False,
) -> AnswerView:
    """One answer with everything that is known of it."""
    verdict: Verdict = "unscored" if answer.failure else "plain"
    if outcome is not None:
        verdict = "unscored" if outcome.correct is None else "right" if outcome.correct else "wrong"
    failure = answer.failure or next((judgment.failure for judgment in judgments if judgment.failure), None)
    why = failure.kind if failure else outcome.unscored.replace(":", ": ") if outcome else ""
    grades = {each.passage: f"{each.aspect} {_label(each)}" for each in judgments if each.passage}
    return AnswerView(
        system=f"{system}, sample {answer.sample + 1}" if answer.sample else system,
        verdict=verdict,
        verdict_text=VERDICTS[verdict] + (f" ({why})" if why and verdict == "unscored" else ""),
        text=_kept(answer.text),
        places=places,
        folded=folded,
        reasoning=_kept(answer.reasoning),
        options=_options(question, answer),
        reading=_reading(answer),
        judgments=tuple(_judgment_view(judgment) for judgment in judgments if not judgment.passage),
        passages=tuple(
            _cited(_passage_view(each, question.evidence, grades.get(each.id, "")), each, answer)
            for each in answer.evidence
        ),
        dropped=answer.dropped,
        trace=tuple(map(_trace_view, answer.trace)),
        warnings=answer.warnings,
        failure=failure_text(answer.failure) if answer.failure else "",
    )


def _options(question: Question, answer: Answer) -> tuple[OptionView, ...]:
    """The options in the order shown; with likelihoods, each one's part of their probability under the protocol."""
    if not answer.protocol:
        return ()
    shown = answer.options or question.options
    measured = {each.option: each for each in answer.likelihoods}
    scores = {option: _score(each, answer.protocol) for option, each in measured.items()}
    best = max(scores.values(), default=0.0)
    total = math.fsum(math.exp(score - best) for score in scores.values())
    return tuple(
        OptionView(
            text=option,
            chosen=option == answer.choice,
            gold=option in question.right_answers,
            share=math.exp(scores[option] - best) / total if option in scores else None,
            figure=_figure(measured[option]) if option in measured else "",
        )
        for option in shown
    )


def _score(each: OptionLikelihood, protocol: str) -> float:
    _, _, unit = protocol.partition("/")
    return each.total / max(1, {"token": each.tokens, "byte": each.bytes}.get(unit, 1))


def _figure(each: OptionLikelihood) -> str:
    return f"log p {written(each.total, 'number')}, {count_of(each.tokens, 'token')}, {count_of(each.bytes, 'byte')}"


def _reading(answer: Answer) -> str:
    """How the choice was read from the answer, and what it cites."""
    parts = []
    if answer.protocol and not answer.likelihoods:
        how = f" ({answer.reading})" if answer.reading else ""
        read = f"Option read: {answer.choice}" if answer.choice is not None else "No option could be read"
        parts.append(f"{read}{how}")
    if answer.citations:
        parts.append(f"Cites: {'; '.join(answer.citations)}")
    return "; ".join(parts)


def _cited(view: PassageView, passage: Passage, answer: Answer) -> PassageView:
    """The passage, marked where the answer cites it."""
    is_cited = any(cites_heading(citation, passage.heading) for citation in answer.citations)
    return replace(view, cited=True) if is_cited else view


def _judgment_view(judgment: Judgment) -> JudgmentView:
    return JudgmentView(
        aspect=judgment.aspect,
        label=_label(judgment),
        judge=judgment.judge,
        tone="unscored" if judgment.failure else _TONES.get(judgment.label, "plain"),
        reasoning=_why(judgment),
        votes=tuple(VoteView(judge=vote.judge, label=_label(vote), reasoning=_why(vote)) for vote in judgment.votes),
    )


def _label(said: Judgment | Vote) -> str:
    label = " and ".join(part for part in (said.label, said.secondary) if part)
    if said.score is None:
        return label or "no label"
    score = written(said.score, "number")
    return f"{label} ({score})" if label else score


def _why(said: Judgment | Vote) -> str:
    return failure_text(said.failure) if said.failure else _kept(said.reasoning)


def _trace_view(step: TraceStep) -> TraceView:
    what = f"{step.stage}: {step.what}" if step.stage else step.what
    return TraceView(what=what, text=_kept(step.text), reasoning=_kept(step.reasoning), found=step.found)


@lru_cache(maxsize=4096)
def _passage_view(passage: Passage, evidence: tuple[Span, ...], grade: str) -> PassageView:
    """A passage as it was shown, with the evidence in it marked; of a long one, a part with the first evidence.

    Many models are shown the same passages, so what was made lately is kept.
    """
    marks = sorted({mark for span in evidence if (mark := _within(span, passage))})
    text, first = passage.text, 0
    if len(text) > _PASSAGE:
        first = max(0, marks[0][0] - _AROUND) if marks else 0
        first = text.find(" ", first) + 1 if first else 0
        text = text[first : first + _PASSAGE]
    shown = f"{'… ' if first else ''}{text}{' …' if first + len(text) < len(passage.text) else ''}"
    shift = shown.index(text) - first
    kept, reached = [], 0
    for start, end in marks:
        low, high = max(reached, start + shift), min(len(text) + 2, end + shift)
        if low < high:
            kept.append((low, high))
            reached = high
    facts = [passage.document, passage.heading]
    if len(text) < len(passage.text):
        facts.append(f"{len(text)} of {len(passage.text):,} characters, from {first:,}")
    facts.append(grade)
    return PassageView(source=" · ".join(fact for fact in facts if fact), text=shown, marks=tuple(kept))


def _within(span: Span, passage: Passage) -> tuple[int, int] | None:
    """Where the evidence stands in the passage, if all of it does: by its characters, else by its words."""
    if span.document != passage.document or not span.quote:
        return None
    start = span.start - passage.start
    if start < 0 or passage.text[start : start + len(span.quote)] != span.quote:
        start = passage.text.find(span.quote)
    return (start, start + len(span.quote)) if start >= 0 else None


def _in_passage(span: Span, passages: Iterable[Passage]) -> PassageView | None:
    """The evidence with the words around it, from a passage that holds it."""
    for passage in passages:
        found = _within(span, passage)
        if found and len(one_line(passage.text)) > len(one_line(span.quote)):
            return _surrounded(span, passage.text, *found)
    return None


def _in_document(span: Span, corpus: Corpus | None) -> PassageView:
    """The evidence with the words around it, from its document where that is at hand and still reads so."""
    if corpus is None or span.document not in corpus:
        return PassageView(source=_place(span), text=span.quote)
    text = corpus.get(span.document).text
    if text[span.start : span.end] != span.quote:
        return PassageView(source=f"{_place(span)}; the source has changed since", text=span.quote)
    return _surrounded(span, text, span.start, span.end)


def _surrounded(span: Span, text: str, start: int, end: int) -> PassageView:
    low, high = max(0, start - _AROUND), min(len(text), end + _AROUND)
    before, after = text[low:start], text[end:high]
    return PassageView(
        source=_place(span),
        text=span.quote,
        before=("… " + before.partition(" ")[2]) if low else before,
        after=(after.rpartition(" ")[0] + " …") if high < len(text) else after,
    )


def _place(span: Span) -> str:
    return f"{span.document}, characters {span.start:,}–{span.end:,}"


def _kept(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}… (the first {_LONG:,} of {len(text):,} characters)"


STATES = ("right", "wrong", "unscored")
"""What an answer can be, as the viewer's filter names it."""

_SINGLE = 6
_UNFOLDED = 4
_FACETS = 4


def answer_key(item: Answer | Judgment | Outcome) -> AnswerKey:
    """What identifies the answer that a record belongs to."""
    return item.question, item.model, item.condition, item.sample


def answers_viewer(
    prefix: str,
    questions: Sequence[Question],
    answers: Iterable[Answer] | Lookup[Answer],
    outcomes: Mapping[AnswerKey, Outcome],
    judgments: Mapping[AnswerKey, Judgment] | Iterable[Judgment] | Lookup[Judgment],
    *,
    budget: int = PLAIN_CHARACTERS,
    most: int = PLAIN_ENTRIES,
) -> Viewer:
    """Every question with all its answers and all their judgments; many are packed, none is left out.

    Give `answers` and `judgments` as `Lookup`s where there are very many: they are then read question by question.
    """
    said = answers if isinstance(answers, Lookup) else Lookup.held(answers)
    if isinstance(judgments, Mapping):
        judgments = judgments.values()
    judged = judgments if isinstance(judgments, Lookup) else Lookup.held(judgments)
    facets = _facets(questions)
    models = len({model for model, _ in said.systems})
    systems = {system: place for place, system in enumerate(said.systems)}
    scored = {(row.model, row.condition) for row in outcomes.values()}
    states: tuple[str, ...] = STATES if scored else ("answered", "unscored")
    if scored and not scored.issuperset(systems):
        states = (*STATES, "answered")
    return viewer_of(
        _entries(prefix, questions, said, outcomes, judged, systems, [name for name, _ in facets]),
        id=f"{prefix}-viewer",
        noun="questions",
        states=states,
        systems=[system_name(*system, models) for system in systems],
        facets=facets,
        characters=budget,
        most=most,
    )


def _facets(questions: Sequence[Question]) -> list[tuple[str, tuple[str, ...]]]:
    """The facets to filter by, with their values in order."""
    names = facet_names([question.facets for question in questions])[:_FACETS]
    return [
        (name, tuple(sorted({value for question in questions for value in facet_values(question.facets, name)})))
        for name in names
    ]


def _entries(
    prefix: str,
    questions: Sequence[Question],
    answers: Lookup[Answer],
    outcomes: Mapping[AnswerKey, Outcome],
    judgments: Lookup[Judgment],
    systems: Mapping[System, int],
    facets: Sequence[str],
) -> Iterator[Entry]:
    models = len({model for model, _ in systems})
    for number, question in enumerate(questions, start=1):
        mine = answers.of(question.id)
        judged: dict[AnswerKey, list[Judgment]] = {}
        for judgment in judgments.of(question.id):
            judged.setdefault(answer_key(judgment), []).append(judgment)
        views = [
            answer_view(
                question,
                answer,
                system_name(answer.model, answer.condition, models),
                outcomes.get(answer_key(answer)),
                judged.get(answer_key(answer), ()),
                places=(systems[answer.model, answer.condition],),
                folded=len(mine) > _UNFOLDED,
            )
            for answer in mine
        ]
        states: list[list[str]] = [[] for _ in systems]
        for view in views:
            states[view.places[0]].append("answered" if view.verdict == "plain" else view.verdict)
        yield Entry(
            id=f"{prefix}-q{number}",
            name=question.id,
            title=cut(question.text, 160),
            marks=_marks(views),
            outcomes=tuple(tuple(dict.fromkeys(each)) for each in states),
            values=tuple(tuple(facet_values(question.facets, name)) for name in facets),
            blocks=(question_view(question, mine), *views),
        )


def _marks(views: Sequence[AnswerView]) -> tuple[tuple[str, str], ...]:
    """The verdict on each answer, or how many there are of each where a line could not hold them."""
    if len(views) <= _SINGLE:
        return tuple((f"{view.system}: {view.verdict_text}", view.verdict) for view in views)
    tally = Counter(view.verdict for view in views)
    return tuple((f"{VERDICTS[verdict]} {tally[verdict]:,}", verdict) for verdict in VERDICTS if tally[verdict])
