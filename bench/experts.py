"""The audit beside nine syntheses in which experts compared guidelines by hand.

    python -m bench.experts make OUT [--data FOLDER]
    hoofbeat audit OUT/corpus OUT/questions --pack guidelines --model ... -o AUDIT
    python -m bench.experts score AUDIT

`make` builds a corpus of the 19 guidelines and the 123 questions from the data beside the project. What the experts say
is in `bench/experts`, in our own words and in short: whether the guidelines agree, differ, only one speaks or none does
(`truth.tsv`), and by which pattern an answer is known to carry a guideline's side (`keys.tsv`).

A difference is found if two institutions on different sides of it have a diverging label and both answers carry their
side. A difference is invented if any pair of an agreement diverges. A pattern is a weaker reader than a person.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hoofbeat.audit import Audit
from hoofbeat.benchmarks import write_benchmark
from hoofbeat.corpus import import_corpus
from hoofbeat.findings.intervals import wilson
from hoofbeat.records import Answer, Comparison, Question
from hoofbeat.store import Counts

HERE = Path(__file__).with_name("experts")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GUIDELINES = "guidelines.jsonl.gz"
MAPPING = "id=id,title=title,sections=sections,facets.institution=institution,facets.specialty=specialty"
KINDS = ("differ", "agree", "one-sided", "silent")


class Truth(NamedTuple):
    """What the experts say on one question: `silent` names the institution that does not address it, if one does."""

    expected: str
    silent: str
    short: str


class Outcome(NamedTuple):
    """One question of the audit: whether it came out as the experts have it, and if not, how it went wrong.

    `unlabelled` of its pairs have no label.
    """

    question: str
    expected: str
    right: bool
    why: str
    unlabelled: int


def rows(name: str) -> list[dict[str, str]]:
    """A table of `bench/experts`."""
    with (HERE / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def questions() -> list[Question]:
    """The questions; `group` is the topic, so that each goes to the guidelines of its topic."""
    lines = (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        Question(id=each["id"], text=each["text"], facets={"group": each["topic"]}) for each in map(json.loads, lines)
    ]


def truths() -> dict[str, Truth]:
    """What the experts say, by question."""
    return {row["question"]: Truth(row["expected"], row["silent"], row["in short"]) for row in rows("truth.tsv")}


def keys() -> dict[tuple[str, str], str]:
    """By question and guideline, the pattern by which an answer is known to carry what the guideline says."""
    guidelines = {(row["topic"], row["institution"]): row["guideline"] for row in rows("sources.tsv")}
    topics = {question.id: str(question.facets["group"]) for question in questions()}
    return {
        (row["question"], guidelines[topics[row["question"]], row["institution"]]): row["pattern"]
        for row in rows("keys.tsv")
    }


def make(out: Path, data: Path) -> bool:
    """Build corpus and questions in `out`; False where the data is not there."""
    path = data / GUIDELINES
    if not path.is_file():
        print(f"skipped: needs {GUIDELINES}, which is not in {data} (name its folder with --data)")
        return False
    wanted = {row["guideline"]: row for row in rows("sources.tsv")}
    out.mkdir(parents=True, exist_ok=True)
    chosen = out / "guidelines.jsonl"
    found = set()
    with gzip.open(path, "rt", encoding="utf-8") as stream, chosen.open("w", encoding="utf-8") as kept:
        for line in stream:
            guideline = json.loads(line)
            if (row := wanted.get(guideline["id"])) is not None:
                found.add(guideline["id"])
                guideline |= {"institution": row["institution"], "specialty": row["topic"]}
                kept.write(json.dumps(guideline, ensure_ascii=False) + "\n")
    if missing := sorted(set(wanted) - found):
        raise SystemExit(f"{path} lacks {', '.join(missing)}")
    import_corpus([chosen], out / "corpus", title="Guidelines of nine syntheses", mapping=MAPPING, workers=1)
    asked = questions()
    write_benchmark(
        out / "questions", asked, title="Areas of nine syntheses", inputs=[], counts=Counts(kept=len(asked))
    )
    print(f"{len(found)} guidelines in {out / 'corpus'}, {len(asked)} questions in {out / 'questions'}")
    return True


def carries(answer: Answer | None, pattern: str) -> bool:
    """Whether an answer carries what its guideline says."""
    if answer is None or answer.absent or answer.failure is not None:
        return False
    return re.search(pattern, answer.text, re.IGNORECASE | re.DOTALL) is not None


def outcomes(audit: Audit) -> list[Outcome]:
    """How each question of the audit that the experts speak of came out."""
    expected, patterns = truths(), keys()
    answers = {(answer.question, answer.source): answer for answer in audit.each_answer()}
    pairs: dict[str, list[Comparison]] = {}
    for pair in audit.each_comparison():
        pairs.setdefault(pair.question, []).append(pair)
    diverging = {label.name for label in audit.pack.labels if label.diverges}
    found = []
    for question in audit.questions:
        truth, mine = expected.get(question.id), pairs.get(question.id, [])
        if truth is None or not mine:
            continue
        apart = [pair for pair in mine if pair.label in diverging]
        if truth.expected == "differ":
            right, why = _difference(mine, apart, answers, patterns)
        elif truth.expected == "agree":
            right, why = not apart, _invented(apart, answers, patterns) if apart else ""
        else:
            right = all(pair.label == audit.pack.absent for pair in mine)
            labelled = any(pair.label and pair.label != audit.pack.absent for pair in mine)
            why = "a silent guideline was answered" if labelled else "" if right else "no label"
        found.append(Outcome(question.id, truth.expected, right, why, sum(not pair.label for pair in mine)))
    return found


def _difference(
    pairs: Sequence[Comparison],
    apart: Sequence[Comparison],
    answers: Mapping[tuple[str, str], Answer],
    patterns: Mapping[tuple[str, str], str],
) -> tuple[bool, str]:
    """Whether a difference was found, and if not, why."""

    def sides(pair: Comparison) -> bool:
        one, two = ((pair.question, source) for source in (pair.a, pair.b))
        if one not in patterns or two not in patterns or patterns[one] == patterns[two]:
            return False
        return carries(answers.get(one), patterns[one]) and carries(answers.get(two), patterns[two])

    if any(sides(pair) for pair in apart):
        return True, ""
    if any(sides(pair) for pair in pairs):
        return False, "both sides in the answers, no diverging label"
    return False, "an answer lacks its side" if apart else "an answer lacks its side, and no diverging label"


def _invented(
    apart: Sequence[Comparison], answers: Mapping[tuple[str, str], Answer], patterns: Mapping[tuple[str, str], str]
) -> str:
    """Why an agreement was taken for a difference, as far as patterns tell."""
    sides = [(pair.question, source) for pair in apart for source in (pair.a, pair.b)]
    if any(side not in patterns for side in sides):
        return "no pattern to tell by"
    whole = all(carries(answers.get(side), patterns[side]) for side in sides)
    return "both answers carry the fact: the judge" if whole else "an answer lacks the fact"


def share(count: int, of: int) -> str:
    """A share with Wilson's interval."""
    span = wilson(count, of)
    return f"{count} of {of} ({span.low:.2f} to {span.high:.2f})" if of else "none"


def score(audit: Audit) -> None:
    """Print what was found, missed and invented."""
    results = outcomes(audit)
    if not results:
        raise SystemExit("this audit has none of the questions: make them with `python -m bench.experts make`")
    topics = {question.id: str(question.facets["group"]) for question in questions()}
    asked = {each.question for each in results}
    print("| topic | differences found | missed | agreements invented | one-sided seen | silence seen |")
    print("|---|---|---|---|---|---|")
    for topic in [*dict.fromkeys(topics.values()), "all"]:
        mine = [each for each in results if topic in ("all", topics[each.question])]
        right = Counter(each.expected for each in mine if each.right)
        n = Counter(each.expected for each in mine)
        if mine:
            cells = [share(right["differ"], n["differ"]), f"{n['differ'] - right['differ']}",
                     share(n["agree"] - right["agree"], n["agree"]),
                     share(right["one-sided"], n["one-sided"]), share(right["silent"], n["silent"])]  # fmt: skip
            print(f"| {topic} | {' | '.join(cells)} |")
    for kind in KINDS:
        reasons = Counter(each.why for each in results if each.expected == kind and not each.right)
        for why, count in reasons.most_common():
            print(f"{kind}, not as the experts have it: {count} × {why}")
        if unlabelled := sum(each.unlabelled for each in results if each.expected == kind):
            print(f"{kind}: {unlabelled} pairs have no label, and count neither as diverging nor as absent")
    patterns = {side: pattern for side, pattern in keys().items() if side[0] in asked}
    answers = {(answer.question, answer.source): answer for answer in audit.each_answer()}
    carried = sum(carries(answers.get(side), pattern) for side, pattern in patterns.items())
    print(f"answers that carry their guideline's fact: {share(carried, len(patterns))}")
    left = [name for name in topics if name not in asked]
    if left:
        print(f"not in this audit: {len(left)} of {len(topics)} questions")


def main(words: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    making = verbs.add_parser("make", help="build the corpus and the questions")
    making.add_argument("out", type=Path)
    making.add_argument("--data", type=Path, default=DATA, help="folder of the data beside the project")
    scoring = verbs.add_parser("score", help="print what an audit found, missed and invented")
    scoring.add_argument("audit", type=Path)
    given = parser.parse_args(words)
    if given.verb == "make":
        make(given.out, given.data)
    else:
        score(Audit.open(given.audit))


if __name__ == "__main__":
    main()
