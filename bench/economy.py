"""What economy saves, and how far it agrees with full judging.

    python -m bench.economy [--sources 60] [--questions 10] [--noise 0 0.01 0.05] [--votes 1 3] [--medquad 300]

Planted: invented answers of many sources, each worded at random from one of a few sets of claims; the true label of a
pair follows from the claims. The word lists that economy reads by were edited after its first runs: its savings here
are fitted.
`noise` is the share of pairs a judge labels one step off, always the same ones: full judging and economy are given the
same judge. Handbooks: the teaching handbooks' answers with their planted relations. MedQuAD: real answers of real
institutions, with a stand-in for a judge that only reads numbers and words: what it shows is how often real texts form
groups, not how far a real judge would agree.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from operator import eq
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat import teaching
from hoofbeat.audit.answer_facts import facts_conflict, facts_of, shared_words
from hoofbeat.audit.economy.economy_check import check_agreement, check_sample
from hoofbeat.audit.economy.economy_plan import EconomyPlan, EconomySettings, Encode, economy_compare, plan_economy
from hoofbeat.findings.intervals import wilson
from hoofbeat.models import load_encoder
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Comparison, Question

PACK = load_pack("transplant")
LABELS = [label.name for label in PACK.judged]
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
Truth = Callable[[str, Answer, Answer], str]

THINGS = [
    ("swimming", "go swimming"), ("driving", "drive a car"), ("gardening", "work in the garden"),
    ("heavy lifting", "lift heavy things"), ("air travel", "travel by plane"), ("cycling", "ride a bicycle"),
    ("sauna bathing", "go to the sauna"), ("running", "go running"),
]  # fmt: skip
FORBID = [
    "Do not {do} for {time} after the operation.", "{Thing} is not allowed for {time} after surgery.",
    "Avoid {thing} for {time} after your operation.", "No {thing} for {time} once you have been operated on.",
    "Steer clear of {thing} for {time} following the operation.", "{Thing} is a no-go for {time} after surgery.",
    "You must not {do} for {time} after the operation.", "For {time} after surgery, {thing} is forbidden.",
    "Hold off on {thing} until {time} have gone by since the operation.",
]  # fmt: skip
ALLOW = [
    "You may {do} right after the operation.", "{Thing} is fine from the day you leave hospital.",
    "{Thing} is allowed as soon as you are home.", "Feel free to {do} once you are out of hospital.",
    "There is nothing wrong with {thing} from the first day at home.", "You can {do} from the day of discharge.",
]  # fmt: skip
EXTRAS = [
    ["Call the team if the wound hurts.", "Should the wound hurt, ring the team.",
     "Pain at the wound: phone the team."],
    ["Wear a face mask outdoors.", "Outdoors, put a face mask on.", "A face mask is needed outside."],
    ["Drink plenty of water.", "Plenty of water should be drunk.", "Make sure that you drink a lot of water."],
    ["Take somebody with you.", "Go with another person.", "It is best to have company."],
    ["Ask the physiotherapist for exercises.", "The physiotherapist shows you exercises.",
     "Exercises are taught by the physiotherapist."],
]  # fmt: skip
PADDING = ["", "", "As a rule: ", "Our advice is simple. ", "This is what we tell everybody. ", "In short: "]
WEEKS = {2: ["2 weeks", "two weeks", "14 days"], 4: ["4 weeks", "four weeks"], 6: ["6 weeks", "six weeks"],
         8: ["8 weeks", "eight weeks"], 12: ["12 weeks", "twelve weeks"]}  # fmt: skip


class Claims(NamedTuple):
    """One set of claims: weeks to wait (0: allowed at once), and further advice by number."""

    weeks: int
    extras: frozenset[int]


class Audit(NamedTuple):
    """Questions with their answers and the true label of a pair."""

    name: str
    questions: list[Question]
    answers: dict[str, list[Answer]]
    truth: Truth


def relation(a: Claims, b: Claims) -> str:
    """How two sets of claims relate."""
    if a == b:
        return "Consistent"
    if bool(a.weeks) != bool(b.weeks):
        return "Contradictory"
    return "Divergent" if a.weeks != b.weeks else "Complementary"


def worded(claims: Claims, thing: tuple[str, str], rng: random.Random) -> str:
    """The claims in words drawn at random."""
    noun, verb = thing
    frame = rng.choice(FORBID if claims.weeks else ALLOW)
    time = rng.choice(WEEKS[claims.weeks]) if claims.weeks else ""
    first = frame.format(do=verb, thing=noun, Thing=noun.capitalize(), time=time)
    extras = [rng.choice(EXTRAS[number]) for number in sorted(claims.extras)]
    rng.shuffle(extras)
    return rng.choice(PADDING) + " ".join([first, *extras])


def planted(sources: int, questions: int, sets: int, seed: int) -> Audit:
    """Sources that each make one of `sets` sets of claims to each question, in words of their own."""
    rng = random.Random(f"{sources} {questions} {sets} {seed}")
    every = [
        Claims(weeks, frozenset(extra))
        for weeks in (0, *WEEKS)
        for size in range(4)
        for extra in combinations(range(5), size)
    ]
    asked, answers, claims = [], {}, {}
    for number in range(questions):
        thing = THINGS[number % len(THINGS)]
        question = Question(id=f"q{number:02}", text=f"When may I {thing[1]} again?")
        chosen = rng.sample(every, sets)
        mine = []
        for source in range(sources):
            held = chosen[source] if source < sets else rng.choice(chosen)
            name = f"s{source:03}"
            claims[question.id, name] = held
            text = worded(held, thing, rng)
            mine.append(
                Answer(question=question.id, model="m", condition="source", source=name, text=text, absent=False)
            )
        asked.append(question)
        answers[question.id] = mine
    return Audit(
        f"planted, {sets} sets of claims",
        asked,
        answers,
        lambda q, a, b: relation(claims[q, a.source], claims[q, b.source]),
    )


def handbooks() -> Audit:
    """The teaching handbooks' answers."""
    known = {(each.question, each.a, each.b): each.label for each in teaching.relations()}
    asked = [Question(id=each.id, text=each.text) for each in teaching.patient_questions()]
    answers: dict[str, list[Answer]] = {question.id: [] for question in asked}
    for gold in teaching.patient_gold():
        said = Answer(question=gold.question, model="m", condition="source", source=gold.source, text=gold.answer)
        answers[gold.question].append(replace(said, absent=gold.absent))
    return Audit("teaching handbooks", asked, answers, lambda q, a, b: known[q, a.source, b.source])


def medquad(limit: int) -> Audit:
    """Real answers to one question type on one condition."""
    groups: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    with gzip.open(DATA / "medquad_multisource.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            groups.setdefault((json.dumps(row["cui"]), row["qtype"]), {}).setdefault(row["source"], row)
    asked: list[Question] = []
    answers: dict[str, list[Answer]] = {}
    for number, ((_, kind), rows) in enumerate(sorted(groups.items())):
        if len(rows) < 2 or len(asked) >= limit:
            continue
        question = Question(id=f"m{number:04}", text=f"{kind}: {next(iter(rows.values()))['question']}")
        asked.append(question)
        answers[question.id] = [
            Answer(question=question.id, model="m", condition="source", source=name, text=row["answer"])
            for name, row in sorted(rows.items())
        ]
    return Audit("MedQuAD, stand-in for a judge", asked, answers, by_words)


def by_words(_: str, a: Answer, b: Answer) -> str:
    """A stand-in for a judge that reads numbers and words only."""
    one, two = facts_of(a.text), facts_of(b.text)
    if shared_words(one, two) >= 0.5:
        return "Divergent" if facts_conflict(one, two) else "Consistent"
    return "Complementary"


def noisy(truth: Truth, noise: float) -> Truth:
    """A judge that is one label off on a share of the texts' pairs, always the same ones."""

    def judge(question: str, a: Answer, b: Answer) -> str:
        label = truth(question, a, b)
        drawn = hashlib.blake2b("\x1f".join((question, *sorted((a.text, b.text)))).encode(), digest_size=8).digest()
        if label not in LABELS or int.from_bytes(drawn, "big") / 2**64 >= noise:
            return label
        place = LABELS.index(label)
        return LABELS[place - 1 if drawn[-1] % 2 and place else min(place + 1, len(LABELS) - 1)]

    return judge


def remembering(encode: Encode) -> Encode:
    """The encoder, each text encoded once."""
    known: dict[str, NDArray[np.float32]] = {}

    def encoded(texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, encode(new), strict=True) if new else ())
        return np.array([known[text] for text in texts], np.float32)

    return encoded


class Row(NamedTuple):
    """One line of the table."""

    name: str
    pairs: int
    calls: int
    agree: int
    right: tuple[int, int]
    sampled: tuple[int, int]


def measure(
    audit: Audit, judge: Truth, settings: EconomySettings, encode: Encode | None, *, sample: int, seed: int
) -> Row:
    """Economy with this judge against all pairs with this judge; and what a sample alone would say."""
    plans = [plan_economy(q, audit.answers[q.id], PACK, encode=encode, settings=settings) for q in audit.questions]
    by_source = {q: {each.source: each for each in mine} for q, mine in audit.answers.items()}
    calls = 0

    def ask(question: str, a: str, b: str) -> Comparison:
        label = judge(question, by_source[question][a], by_source[question][b])
        return Comparison(question=question, a=a, b=b, label=label, basis="judged", judge="rule")

    def judged(wanted: Sequence[tuple[EconomyPlan, tuple[str, str]]]) -> list[Comparison]:
        nonlocal calls
        calls += len(wanted)
        return [ask(plan.question, a, b) for plan, (a, b) in wanted]

    rows = [each for found in economy_compare(plans, judged) for each in found if each.basis != "absent"]
    told = [each for each in rows if each.basis != "same"]
    true = [
        audit.truth(each.question, by_source[each.question][each.a], by_source[each.question][each.b]) for each in told
    ]
    full = [ask(each.question, each.a, each.b).label for each in told]
    right = (sum(map(eq, full, true)), sum(each.label == label for each, label in zip(told, true, strict=True)))
    agree = sum(each.label == label for each, label in zip(told, full, strict=True))
    drawn = check_sample(rows, sample, seed)
    check = check_agreement(rows, [ask(each.question, each.a, each.b) for each in drawn], PACK.absent)
    return Row(audit.name, len(told), calls, agree, right, (check.agree, check.n))


def line(row: Row, told: str) -> str:
    """One line of the Markdown table."""
    got, of = row.sampled
    span = wilson(got, of)
    said = f"{got} of {of} ({span.low:.3f} to {span.high:.3f})" if of else "nothing spread"
    ratio = row.pairs / row.calls if row.calls else 0
    share = f"{row.right[0] / row.pairs:.3f} / {row.right[1] / row.pairs:.3f}"
    return (
        f"| {told} | {row.pairs:,} | {row.calls:,} | × {ratio:.1f} | {row.agree / row.pairs:.4f} | {share} | {said} |"
    )


def table(title: str, rows: Iterable[str], first: str) -> None:
    """Print one table."""
    head = [first, "pairs", "calls", "fewer", "agreement", "right: full / economy", "of the spread pairs sampled"]
    print(f"\n**{title}**\n\n| {' | '.join(head)} |")
    print("|" + "---|" * (7 + first.count("|")))
    for each in rows:
        print(each, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sources", type=int, default=60)
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--sets", type=int, nargs="*", default=[5, 10, 20, 30, 60])
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.01, 0.05])
    parser.add_argument("--votes", type=int, nargs="*", default=[1, 3])
    parser.add_argument("--encoder", default="minilm", help="an encoder's name, or none")
    parser.add_argument("--medquad", type=int, default=300)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    encode = None if given.encoder == "none" else remembering(load_encoder(given.encoder).encode)
    plain = EconomySettings()

    def measured(audit: Audit, judge: Truth, settings: EconomySettings, told: str) -> str:
        return line(measure(audit, judge, settings, encode, sample=given.sample, seed=given.seed), told)

    audits = {sets: planted(given.sources, given.questions, sets, given.seed) for sets in given.sets}
    for noise, votes in product(given.noise, given.votes):
        chosen = EconomySettings(votes=votes)
        table(
            f"{given.sources} sources, {given.questions} questions, a judge with noise {noise}, votes: {votes}",
            (measured(audit, noisy(audit.truth, noise), chosen, str(sets)) for sets, audit in audits.items()),
            "sets of claims",
        )
    middle = audits[given.sets[min(1, len(given.sets) - 1)]]
    levels = [
        (low, sure) for sure in (None, 0.95, 0.9, 0.85) for low in (0.9, 0.75, 0.6) if sure is None or low <= sure
    ]
    for audit in (middle, handbooks()):
        table(
            f"{audit.name}: the trade-off",
            (
                measured(audit, audit.truth, EconomySettings(likeness=low, sure=sure), f"{low} | {sure or 'none'}")
                for low, sure in levels
            ),
            "likeness | sure",
        )
    if (DATA / "medquad_multisource.jsonl.gz").exists() and given.medquad:
        real = medquad(given.medquad)
        table("Real texts", [measured(real, real.truth, plain, real.name)], "data")


if __name__ == "__main__":
    main()
