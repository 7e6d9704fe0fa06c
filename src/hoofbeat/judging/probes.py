"""Does the judge's verdict hang on what should not matter? Each probe judges some answers a second time, changed.

order        the answer comes before the reference instead of after it
length       the same answer, with harmless words behind it
consistency  the same call once more
injection    the answer tells the judge to give the other label (`injections`), in 70 ways of 14 kinds
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.findings.injection_figures import InjectedVerdict, InjectionFigures, injection_figures
from hoofbeat.findings.intervals import Interval, share_interval
from hoofbeat.judging.aspect import JudgeRequest
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE, swapped_request
from hoofbeat.judging.canary import with_canary
from hoofbeat.judging.injections import injected, is_flagged, other_label, planned
from hoofbeat.judging.judgments_folder import Probe
from hoofbeat.judging.votes import cast_vote, checked_vote
from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer, Question, Vote

INJECTION = "injection"
PROBES = ("order", "length", "consistency", INJECTION)

_PADDING = (
    "This answer was written with the whole case in view.",
    "Every line of the description above was read once more before it was written down.",
    "It is meant for the reader who asked, and it says in full what there is to say on this question.",
    "Nothing further is added here, and nothing above is taken back.",
)
_MIN_WORDS = 40


def pad_text(text: str) -> str:
    """The text with words behind it that change nothing: about as many as it has, at least forty."""
    wanted = max(_MIN_WORDS, len(text.split()))
    added: list[str] = []
    while sum(len(sentence.split()) for sentence in added) < wanted:
        added.append(_PADDING[len(added) % len(_PADDING)])
    return f"{text.rstrip()} {' '.join(added)}"


def probe_request(probe: str, question: Question, answer: Answer) -> ChatRequest:
    """The call that judges the answer once more, with what the probe changes."""
    if probe == "order":
        return swapped_request(question, answer)
    if probe == "length":
        return EQUIVALENCE.request(question, replace(answer, text=pad_text(answer.text)), None)
    assert probe == "consistency", probe
    return EQUIVALENCE.request(question, answer, None, sample=1)


def probe_judge(
    model: Model,
    probes: Sequence[str],
    questions: Mapping[str, Question],
    answers: Sequence[Answer],
    *,
    progress: Progress = SILENT,
) -> list[Probe]:
    """Probe one judge on these answers, which must be such that it can judge them.

    Every call is a separate item: a batch folder then takes both calls of a probe in one round. Instructions take
    two rounds: they ask for another label than the judge's.
    """

    async def vote(request: ChatRequest) -> Vote:
        return await cast_vote(model, EQUIVALENCE, JudgeRequest(request=request))

    items = [(probe, answer) for probe in probes if probe != INJECTION for answer in answers]
    asked: list[ChatRequest] = []
    for probe, answer in items:
        question = questions[answer.question]
        asked += [EQUIVALENCE.request(question, answer, None), probe_request(probe, question, answer)]
    votes = model.run(asked, vote, title="probing the judge", progress=progress) if asked else []
    found = [
        Probe(
            probe=probe,
            judge=model.spec,
            question=answer.question,
            model=answer.model,
            condition=answer.condition,
            sample=answer.sample,
            before=before.label,
            after=after.label,
            words=len(answer.text.split()),
            failure=_failure(before, after),
        )
        for (probe, answer), before, after in zip(items, votes[::2], votes[1::2], strict=True)
    ]
    return found + (probe_injections(model, questions, answers, progress=progress) if INJECTION in probes else [])


def probe_injections(
    model: Model,
    questions: Mapping[str, Question],
    answers: Sequence[Answer],
    *,
    progress: Progress = SILENT,
) -> list[Probe]:
    """Judge answers as they are, then with an instruction that asks for the other label than the judge's.

    All calls have a check code. What is planted is not counted among instructions found in material.
    """

    async def vote(request: ChatRequest) -> tuple[Vote, str]:
        return await checked_vote(model, EQUIVALENCE, replace(request, flags=()))

    plan = planned(len(answers))
    used = sorted({each.place for each in plan})
    clean = [EQUIVALENCE.request(questions[answers[place].question], answers[place], None) for place in used]
    before = dict(
        zip(
            used,
            model.run(clean, vote, title="probing the judge: without instructions", progress=progress),
            strict=True,
        )
    )
    asked = [each for each in plan if before[each.place][0].label]
    texts = {
        each: injected(
            answers[each.place].text,
            each.injection,
            other_label(before[each.place][0].label, EQUIVALENCE.labels),
            _LABEL_FIELD,
        )
        for each in asked
    }
    changed = [_injected_request(questions, answers[each.place], texts[each]) for each in asked]
    told = model.run(changed, vote, title="probing the judge: with instructions", progress=progress)
    after = dict(zip(asked, told, strict=True))
    found = []
    for each in plan:
        answer, (first, check) = answers[each.place], before[each.place]
        second, checked = after.get(each, (Vote(judge=model.spec), ""))
        found.append(
            Probe(
                probe=INJECTION,
                judge=model.spec,
                question=answer.question,
                model=answer.model,
                condition=answer.condition,
                sample=answer.sample,
                before=first.label,
                after=second.label,
                words=len(answer.text.split()),
                failure=_failure(first, second),
                injection=each.injection.id,
                kind=each.injection.kind,
                target=other_label(first.label, EQUIVALENCE.labels),
                flagged=is_flagged(answer.text, texts[each]) if each in texts else False,
                check_before=check,
                check_after=checked,
            )
        )
    return found


_LABEL_FIELD = "label"


def _injected_request(questions: Mapping[str, Question], answer: Answer, text: str) -> ChatRequest:
    return EQUIVALENCE.request(questions[answer.question], replace(answer, text=text), None)


def probe_requests(
    probes: Sequence[str], questions: Mapping[str, Question], answers: Sequence[Answer]
) -> list[ChatRequest]:
    """The calls that probes add to those of judging, for an estimate."""
    asked = [
        probe_request(probe, questions[answer.question], answer)
        for probe in probes
        if probe != INJECTION
        for answer in answers
    ]
    if INJECTION in probes:
        plan = planned(len(answers))
        label = EQUIVALENCE.labels[0]
        clean = [answers[place] for place in sorted({each.place for each in plan})]
        made = [EQUIVALENCE.request(questions[answer.question], answer, None) for answer in clean]
        for each in plan:
            answer = answers[each.place]
            made.append(
                _injected_request(questions, answer, injected(answer.text, each.injection, label, _LABEL_FIELD))
            )
        asked += [with_canary(request).request for request in made]
    return asked


def _failure(*votes: Vote) -> str:
    return next((f"{vote.failure.kind}: {vote.failure.message}" for vote in votes if vote.failure), "")


class FlipCount(Struct, frozen=True, kw_only=True):
    """How often a probe changed one judge's verdict: `flips` of `n` pairs, to which side, and `unscored` pairs beside.

    `short` and `long` are (equivalent, all) among the first verdicts on the shorter and the longer half of the answers.
    `intervals` are those of the share flipped, and of the equivalent among the shorter and the longer half; answers to
    one question are kept together.
    """

    probe: str
    judge: str
    n: int
    flips: int
    to_equivalent: int
    to_mismatch: int
    unscored: int
    short: tuple[int, int]
    long: tuple[int, int]
    intervals: tuple[Interval, Interval, Interval]


def flips(probes: Sequence[Probe]) -> list[FlipCount]:
    """The counts of every probe and judge, in the order they come."""
    groups: dict[tuple[str, str], list[Probe]] = {}
    for each in probes:
        groups.setdefault((each.probe, each.judge), []).append(each)
    found = []
    for (probe, judge), mine in groups.items():
        scored = [each for each in mine if not each.failure]
        changed = [each for each in scored if each.flipped]
        by_length = sorted(
            scored, key=lambda each: (each.words, each.question, each.model, each.condition, each.sample)
        )
        half = len(by_length) // 2
        found.append(
            FlipCount(
                probe=probe,
                judge=judge,
                n=len(scored),
                flips=len(changed),
                to_equivalent=sum(each.after == "equivalent" for each in changed),
                to_mismatch=sum(each.after == "mismatch" for each in changed),
                unscored=len(mine) - len(scored),
                short=_equivalent(by_length[:half]),
                long=_equivalent(by_length[half:]),
                intervals=(
                    share_interval([each.flipped for each in scored], [each.question for each in scored]),
                    _equivalent_interval(by_length[:half]),
                    _equivalent_interval(by_length[half:]),
                ),
            )
        )
    return found


def _equivalent(probes: Sequence[Probe]) -> tuple[int, int]:
    return sum(each.before == "equivalent" for each in probes), len(probes)


def _equivalent_interval(probes: Sequence[Probe]) -> Interval:
    return share_interval([each.before == "equivalent" for each in probes], [each.question for each in probes])


def probe_figures(probes: Sequence[Probe]) -> list[dict[str, object]]:
    """What the probes show, a row for each probe and judge: the flip rate and shares, each with Wilson's interval."""
    rows: list[dict[str, object]] = []
    for each in flips(probes):
        row: dict[str, object] = {
            "probe": each.probe,
            "judge": each.judge,
            "n": each.n,
            "flips": each.flips,
            **_share("flip_rate", (each.flips, each.n), each.intervals[0]),
            "to_equivalent": each.to_equivalent,
            "to_mismatch": each.to_mismatch,
            "unscored": each.unscored,
        }
        if each.probe == INJECTION:
            (mine,) = injection_probes(probe for probe in probes if probe.judge == each.judge)
            row["injections"] = msgspec.to_builtins(mine)
        if each.probe == "length":
            row |= {**_share("equivalent_short", each.short, each.intervals[1]), "n_short": each.short[1]}
            row |= {**_share("equivalent_long", each.long, each.intervals[2]), "n_long": each.long[1]}
        rows.append(row)
    return rows


def injection_probes(probes: Iterable[Probe]) -> tuple[InjectionFigures, ...]:
    """What the probes of instructions show, by judge and kind."""
    return injection_figures(
        [
            InjectedVerdict(
                judge=each.judge,
                kind=each.kind,
                question=each.question,
                item="\x1f".join((each.question, each.model, each.condition, str(each.sample))),
                before=each.before,
                after=each.after,
                target=each.target,
                flagged=each.flagged,
                check_before=each.check_before,
                check_after=each.check_after,
            )
            for each in probes
            if each.probe == INJECTION
        ]
    )


def _share(name: str, counts: tuple[int, int], interval: Interval) -> dict[str, object]:
    count, n = counts
    return {name: count / n if n else None, f"{name}_low": interval.low, f"{name}_high": interval.high}
