"""Trying a judge before it is trusted with an audit: pairs whose relation is known, each put to it in both orders.

The pairs are those of the domain pack's teaching example, which is invented and whose relations were planted. What is
asked is the audit's own call in the audit's own order, and once more with the two answers exchanged.

Hard pairs are for judges that get all of those right. There are ten of each kind: negation, unit, population, strength,
silence and list order. Half of them tell the same care in other words, so one constant answer gets half at most.

Instructions (`judging.injections`) are put into one answer of a pair, and ask for a label on the other side of what the
judge says without them. All of these calls carry a check code (`judging.canary`).
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

import msgspec
from msgspec.structs import replace

from hoofbeat.audit.audit_folder import judge_identities
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.table_agreement import SAME_CARE, Trial, trial_figures, trial_injections
from hoofbeat.audit.judge_votes import Judges, judge_roles, judges_of
from hoofbeat.audit.pair_judge import PairJudge, comparison_request, judge_texts
from hoofbeat.audit.pair_plan import PairVerdict, asked_order, same_answer_form
from hoofbeat.audit.sample_records import TrialInjection, TrialPair, TrialVerdict
from hoofbeat.errors import ArtefactError, InputError, UsageError
from hoofbeat.judging.canary import PROMPT as CANARY
from hoofbeat.judging.canary import with_canary
from hoofbeat.judging.injections import Planted, injected, is_flagged, other_label, planned
from hoofbeat.judging.stratified_sample import ReservoirSample
from hoofbeat.models import ChatRequest, Estimate, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, load_prompt
from hoofbeat.records import Question
from hoofbeat.store import Artefact, Cost, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.tables import read_jsonl, write_jsonl
from hoofbeat.teaching import example, example_names, hard_pairs

KIND = "trial"
PAIRS = "pairs.jsonl"
INJECTIONS = "injections.jsonl"
PROMPT = "compare"
_LABEL_FIELD = "classification"


class TrialFolder:
    """An opened trial."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact

    @staticmethod
    def open(path: Path) -> TrialFolder:
        """Open a trial's folder."""
        return TrialFolder(open_artefact(path, KIND))

    @cached_property
    def pairs(self) -> list[TrialPair]:
        """Every pair with what was said of it."""
        return list(read_jsonl(self.artefact.file(PAIRS), TrialPair))

    @cached_property
    def injections(self) -> list[TrialInjection]:
        """Every pair that was judged with an instruction in it; none where that was not tried."""
        has = self.artefact.has(INJECTIONS)
        return list(read_jsonl(self.artefact.file(INJECTIONS), TrialInjection)) if has else []

    def figures(self, pack: Pack) -> Trial:
        """What the trial found."""
        seed = self.artefact.manifest.seeds.get("bootstrap", 0)
        found = trial_figures(self.pairs, RelationLabels.of(pack.labels), seed=seed)
        return replace(found, injections=trial_injections(self.injections))

    def is_of(self, judge: Judges, pack: Pack) -> bool:
        """Whether this very judge (these judges together) was tried, on this pack, with the prompt that audits use."""
        manifest = self.artefact.manifest
        return (
            judge_identities(manifest) == [model.identity for model in judges_of(judge)]
            and manifest.settings.get("pack") == pack_label(pack)
            and manifest.prompts.get(PROMPT) == pack.prompt(PROMPT).label
        )


def pack_label(pack: Pack) -> str:
    """How manifests name a domain pack."""
    return f"{pack.name}@{pack.fingerprint}"


def trial_pairs(pack: Pack, *, limit: int, seed: int) -> list[TrialPair]:
    """At most `limit` pairs of the pack's teaching example, drawn with `seed`, the judged labels in turn.

    So all labels have the same number of pairs until the example has no more of one. Absent pairs and pairs of the same
    text are never put to a judge, and of the same two texts one pair is drawn.
    """
    if pack.name not in example_names():
        raise UsageError(
            f"the pack {pack.name} has no teaching example with known relations",
            fix=f"use a pack with one ({', '.join(example_names())}), or let people label a sample (audit validate)",
        )
    shown = example(pack.name)
    texts = {question.id: question.text for question in shown.questions}
    answers = {(each.question, each.source): each.answer for each in shown.gold}
    draws = {label.name: ReservoirSample[TrialPair](len(shown.relations), seed) for label in pack.judged}
    seen: set[tuple[str, frozenset[str]]] = set()
    for planted in shown.relations:
        if planted.label == pack.absent:
            continue
        if planted.label not in draws:
            raise UsageError(
                f"the teaching example of {pack.name} has the label {planted.label}, which this pack does not have",
                fix="give a pack with different labels a different name",
            )
        one, two = answers[planted.question, planted.a], answers[planted.question, planted.b]
        first, second = asked_order(one, two)
        a, b = (planted.a, planted.b) if first == one else (planted.b, planted.a)
        same = planted.question, frozenset((same_answer_form(one), same_answer_form(two)))
        if len(same[1]) < 2 or same in seen:
            continue
        seen.add(same)
        pair = TrialPair(
            question=planted.question,
            a=a,
            b=b,
            text=texts[planted.question],
            answer_a=first,
            answer_b=second,
            planted=planted.label,
        )
        draws[planted.label].offer((planted.question, planted.a, planted.b, 0), pair)
    in_turn = [pair for turn in zip_longest(*(draw.drawn() for draw in draws.values())) for pair in turn if pair]
    return sorted(in_turn[:limit], key=lambda pair: (pair.question, pair.a, pair.b))


def hard_trial_pairs(*, limit: int, seed: int) -> list[TrialPair]:
    """At most `limit` of the hard pairs, the kinds in turn, drawn with `seed`."""
    drawn: dict[str, ReservoirSample[TrialPair]] = {}
    every = hard_pairs()
    for each in every:
        first, second = asked_order(each.a, each.b)
        pair = TrialPair(
            question=each.id,
            a="A" if first == each.a else "B",
            b="B" if first == each.a else "A",
            text=each.question,
            answer_a=first,
            answer_b=second,
            planted=each.care,
            kind=each.kind,
        )
        draw = drawn.setdefault(each.kind, ReservoirSample(len(every), seed))
        draw.offer((each.id, "", "", 0), pair)
    # where only some are drawn, pairs of the same care and others come in turn as well
    turns = []
    for draw in drawn.values():
        halves = [[pair for pair in draw.drawn() if (pair.planted == SAME_CARE) is same] for same in (False, True)]
        turns.append([pair for both in zip_longest(*halves) for pair in both if pair])
    chosen = [pair for turn in zip_longest(*turns) for pair in turn if pair][:limit]
    places = {each.id: place for place, each in enumerate(every)}
    return sorted(chosen, key=lambda pair: places[pair.question])


def estimate_trial(judge: Judges, pairs: Sequence[TrialPair], pack: Pack) -> Estimate:
    """What it would cost: two calls per pair and judge."""
    requests = [
        comparison_request(_question(pair), *sides, pack)
        for pair in pairs
        for sides in ((pair.answer_a, pair.answer_b), (pair.answer_b, pair.answer_a))
    ]
    return sum((model.estimate(requests) for model in judges_of(judge)), Estimate())


def put_to_judge(
    judge: Judges, pairs: Sequence[TrialPair], pack: Pack, *, progress: Progress = SILENT
) -> list[TrialPair]:
    """The pairs with what the judge says of them in both orders; all calls are under way together."""
    items = [(_question(pair), pair.answer_a, pair.answer_b) for pair in pairs]
    items += [(question, b, a) for question, a, b in items]
    said = [_heard(each) for each in judge_texts(PairJudge(judge, pack), items, title="trying", progress=progress)]
    return [
        replace(pair, said=one, exchanged=two)
        for pair, one, two in zip(pairs, said[: len(pairs)], said[len(pairs) :], strict=True)
    ]


def _question(pair: TrialPair) -> Question:
    return Question(id=pair.question, text=pair.text)


def _heard(verdict: PairVerdict) -> TrialVerdict:
    return TrialVerdict(
        label=verdict.label,
        reasoning=verdict.reasoning,
        failure=verdict.failure,
        calls=verdict.calls,
        votes=verdict.votes,
    )


# Instructions inside an answer


def estimate_injections(judge: Judges, pairs: Sequence[TrialPair], pack: Pack) -> Estimate:
    """What instructions would cost: a call per pair that is used, and one per instruction, for each judge."""
    plan = planned(len(pairs))
    label = pack.judged[0].name
    asked = [_pair_request(pairs[place], pack) for place in sorted({each.place for each in plan})]
    asked += [_pair_request(_with_injection(pairs[each.place], each, label), pack) for each in plan]
    requests = [with_canary(request).request for request in asked]
    return sum((model.estimate(requests) for model in judges_of(judge)), Estimate())


def put_injections(
    judge: Judges, pairs: Sequence[TrialPair], pack: Pack, *, progress: Progress = SILENT
) -> list[TrialInjection]:
    """Each judge on pairs as they are, then with an instruction that asks for another label than the judge's."""
    return [each for model in judges_of(judge) for each in _injections_of(model, pairs, pack, progress)]


def _injections_of(model: Model, pairs: Sequence[TrialPair], pack: Pack, progress: Progress) -> list[TrialInjection]:
    judge = PairJudge(model, pack)

    async def ask(request: ChatRequest) -> PairVerdict:
        # what is planted is not counted among instructions found in material
        return await judge.judge_checked(replace(request, flags=()), model)

    plan = planned(len(pairs))
    used = sorted({each.place for each in plan})
    clean = [_pair_request(pairs[place], pack) for place in used]
    said = model.run(clean, ask, title="trying without instructions", progress=progress)
    before = dict(zip(used, said, strict=True))
    asked = {
        each: _with_injection(pairs[each.place], each, _other_side(before[each.place].label, pack))
        for each in plan
        if before[each.place].label
    }
    changed = [_pair_request(pair, pack) for pair in asked.values()]
    told = model.run(changed, ask, title="trying with instructions", progress=progress)
    after = dict(zip(asked, told, strict=True))
    found = []
    for each in plan:
        pair, first = pairs[each.place], before[each.place]
        second, failure = after.get(each, PairVerdict()), first.failure
        failure = failure or second.failure
        changed_pair = asked.get(each)
        found.append(
            TrialInjection(
                question=pair.question,
                a=pair.a,
                b=pair.b,
                judge=model.spec,
                injection=each.injection.id,
                kind=each.injection.kind,
                side="a" if each.first else "b",
                target=_other_side(first.label, pack) if first.label else "",
                before=first.label,
                after=second.label,
                flagged=changed_pair is not None and is_flagged(_side(pair, each), _side(changed_pair, each)),
                check_before=first.check,
                check_after=second.check,
                failure=f"{failure.kind}: {failure.message}" if failure else "",
            )
        )
    return found


def _pair_request(pair: TrialPair, pack: Pack) -> ChatRequest:
    return comparison_request(_question(pair), pair.answer_a, pair.answer_b, pack)


def _side(pair: TrialPair, each: Planted) -> str:
    return pair.answer_a if each.first else pair.answer_b


def _with_injection(pair: TrialPair, each: Planted, label: str) -> TrialPair:
    text = injected(_side(pair, each), each.injection, label, _LABEL_FIELD)
    return replace(pair, answer_a=text) if each.first else replace(pair, answer_b=text)


def _other_side(label: str, pack: Pack) -> str:
    """The label to ask for: the strongest that diverges where the judge's does not, else the first that does not.

    A pack whose labels are all on one side has another of them.
    """
    mild = [each.name for each in pack.judged if not each.diverges]
    strong = [each.name for each in pack.judged if each.diverges]
    if not mild or not strong:
        return other_label(label, [each.name for each in pack.judged])
    return mild[0] if label in strong else strong[-1]


# The folder


def write_trial(
    pairs: Sequence[TrialPair],
    pack: Pack,
    judge: Judges,
    target: Path,
    *,
    limit: int,
    seed: int,
    injections: Sequence[TrialInjection] = (),
    command: Sequence[str] = (),
) -> tuple[Artefact, Trial]:
    """Write the folder of pairs that a judge was asked about, and give their figures."""
    figures = trial_figures(pairs, RelationLabels.of(pack.labels), seed=seed)
    figures = replace(figures, injections=trial_injections(injections))
    failures = Counter(pair.said.failure.kind for pair in pairs if pair.said and pair.said.failure)
    failed = failures.total()
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / PAIRS, pairs)
        if injections:
            write_jsonl(draft.path / INJECTIONS, injections)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{len(pairs)} pairs of known relation",
                command=list(command),
                inputs=[],
                settings={"pack": pack_label(pack), "limit": limit, **({"hard": True} if figures.kinds else {})},
                seeds={"draw": seed, "bootstrap": seed},
                models={role: model.identity for role, model in judge_roles(judge).items()},
                prompts={
                    PROMPT: pack.prompt(PROMPT).label,
                    **({CANARY: load_prompt(CANARY).label} if injections else {}),
                },
                counts=Counts(kept=len(pairs) - failed, failed=failed, failures=dict(sorted(failures.items()))),
                cost=sum((model.cost for model in judges_of(judge)), Cost()),
                metrics=msgspec.to_builtins(figures),
            )
        )
    return open_artefact(target, KIND), figures


def trial_of(path: Path, judge: Judges, pack: Pack) -> tuple[dict[str, object], InputRef]:
    """The figures of a trial for the manifest of an audit, and the trial; one of another judge or pack is refused."""
    folder = TrialFolder.open(path)
    if not folder.is_of(judge, pack):
        raise InputError(
            "this trial used another judge, pack or prompt",
            where=str(path),
            fix=f"run a trial of this judge: {trial_command(judge, pack.name)}",
        )
    return msgspec.to_builtins(folder.figures(pack)), folder.artefact.reference()


def trials_beside(output: Path, judge: Judges, pack: Pack) -> Iterator[Path]:
    """Trials of this judge and pack in the folder that the audit is written into."""
    for manifest in sorted(output.resolve().parent.glob("*/manifest.json")):
        try:
            folder = TrialFolder.open(manifest.parent)
        except ArtefactError:
            continue
        if folder.is_of(judge, pack):
            yield output.parent / manifest.parent.name


def trial_command(judge: Judges, pack: str) -> str:
    """The command that tries this judge."""
    judges = [word for model in judges_of(judge) for word in ("--judge", model.spec)]
    return shlex.join(["hoofbeat", "audit", KIND, *judges, "--pack", pack, "-o", KIND])


def untried_note(judge: Judges, pack: Pack, spec: str, output: Path) -> str:
    """That an audit goes on without a trial of its judge, and how to have one; `spec` is the pack as it was given."""
    beside = next(trials_beside(output, judge, pack), None)
    if beside is not None:
        return (
            f"note: {beside} is a trial of this judge; to keep it with the audit add --trial {shlex.quote(str(beside))}"
        )
    if pack.name in example_names():
        return f"note: this judge was not tested on pairs of known relation; to test it: {trial_command(judge, spec)}"
    return f"note: this judge was not tested on pairs of known relation; the pack {pack.name} has no teaching example"
