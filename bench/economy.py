"""What economy saves, and how far its labels agree with judging all pairs.

    python -m bench.economy [--sources 4 10 35 500] [--positions 2 4 8] [--noise 0 0.02] [--errors 0 0.05]

Planted: each source holds one of so many positions on each question (the first twice as often as the second, and so
on), all labels follow from the positions. `errors` is the share of answers that the model sorts into a wrong position,
`noise` the share of pairs on which the judge takes the other side, always the same ones: both ways of judging are given
the same judge. No model is called; this is the arithmetic of calls and of the guarantee, not a measurement of models.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from hoofbeat.audit.economy.economy_audit import CarriedLabels, usual_sample
from hoofbeat.audit.economy.positions import Position, SortedAnswers, sorting_calls
from hoofbeat.audit.pair_plan import Claim, PairVerdict
from hoofbeat.prompts import load_pack
from hoofbeat.records import Question
from hoofbeat.store.tables import seeded_number

PACK = load_pack("clinicians")
WORD = "position"


class Planted(NamedTuple):
    """Answers with planted positions, a model that sorts them with errors, and a judge with noise."""

    questions: list[Question]
    claims: dict[str, list[Claim]]
    positions: int
    errors: float
    noise: float
    seed: int

    def sort(self, asked: Sequence[tuple[Question, Sequence[str]]]) -> list[SortedAnswers]:
        """Sort by the planted positions, but for some answers."""
        found = []
        for question, texts in asked:
            rng = random.Random(f"{self.seed} {question.id}")
            groups: dict[int, list[int]] = {}
            for place, text in enumerate(texts):
                right = int(text.rsplit(" ", 1)[1])
                sorted_as = rng.randrange(self.positions) if rng.random() < self.errors else right
                groups.setdefault(sorted_as, []).append(place)
            parts = tuple(Position(tuple(each)) for each in groups.values())
            found.append(SortedAnswers(parts, sorting_calls(len(texts))))
        return found

    def judge(self, items: Sequence[tuple[Question, str, str]], title: str = "") -> list[PairVerdict]:  # noqa: ARG002
        """Judge by the planted positions, but for some pairs."""
        return [PairVerdict(label=self.label(question.id, a, b)) for question, a, b in items]

    def label(self, question: str, a: str, b: str) -> str:
        """What the judge says of two answers, whenever it is asked."""
        one, two = (text.rsplit(" ", 1)[1] for text in (a, b))
        other = seeded_number("noise", self.seed, question, *sorted((a, b))) / 2**64 < self.noise
        return "Consistent" if (one == two) != other else "Divergent"


def planted(sources: int, questions: int, positions: int, *, errors: float, noise: float, seed: int) -> Planted:
    """Answers whose positions are drawn at random, the first ones more often."""
    rng = random.Random(seed)
    weights = [0.5**place for place in range(positions)]
    asked = [Question(id=f"q{number:03}", text="?") for number in range(questions)]
    claims = {}
    for each in asked:
        held = rng.choices(range(positions), weights, k=sources)
        claims[each.id] = [Claim(f"s{place:03}", f"s{place} {WORD} {number}") for place, number in enumerate(held)]
    return Planted(asked, claims, positions, errors, noise, seed)


def measure(case: Planted, risk: float) -> tuple[int, int, float, float, int]:
    """Calls without and with economy, agreement over all pairs, the bound, and questions that were judged whole."""
    found = CarriedLabels(case.questions, case.claims, PACK, risk=risk, seed=case.seed)
    sample = usual_sample(found.sortable_pairs, risk)
    if found.sortable_pairs > sample:
        found.sort(case.sort)
        found.judge_positions(case.judge)
        found.check(sample, case.judge)
    told = found.metrics(1)
    agree = pairs = 0
    for question in case.questions:
        plan = found.plan(question)
        own = [case.label(question.id, plan.texts[a], plan.texts[b]) for a, b in plan.asked]
        for a, b, by in zip(plan.a.tolist(), plan.b.tolist(), plan.by.tolist(), strict=True):
            label = own[by] if by >= 0 else PACK.consistent
            agree += label == case.label(question.id, plan.texts[a], plan.texts[b])
            pairs += 1
    counts = (int(str(told[name])) for name in ("calls_without", "calls", "judged_whole"))
    without, calls, whole = counts
    return without, calls, agree / pairs, float(str(told["bound"])), whole


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sources", type=int, nargs="*", default=[4, 10, 35, 500])
    parser.add_argument("--positions", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.02])
    parser.add_argument("--errors", type=float, nargs="*", default=[0.0, 0.05])
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--risk", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{given.questions} questions, risk {given.risk}\n")
    print("| sources | positions | sorted wrongly | judge's noise | all pairs | calls | fewer | agreement | bound | "
          "questions judged whole |")  # fmt: skip
    print("|" + "---|" * 10)
    for sources, positions, errors, noise in product(given.sources, given.positions, given.errors, given.noise):
        case = planted(sources, given.questions, positions, errors=errors, noise=noise, seed=given.seed)
        without, calls, agreement, bound, whole = measure(case, given.risk)
        print(
            f"| {sources} | {positions} | {errors:.0%} | {noise:.0%} | {without:,} | {calls:,} "
            f"| × {without / calls:.1f} | {agreement:.4f} | {bound:.1%} | {whole} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
