"""Does any line that ships offline find cases of the same diagnosis better than BM25 does?

    python -m bench.case_to_case [--only-development]

No collection at hand has relations between patients, so two are made, both without a model:
- reports: published case reports. The diagnosis is the term of ICD-10-CM or of the rare-disease names that a report has
  most often (5 times or more; symptoms, unspecified codes and procedures are left out). Documents are the first
  320 words of the case presentations, as they are. A question is such a text without any word of its diagnosis's names.
- patients: published patients as lists of HPO findings, with the diagnosis that their publication gives. Documents and
  questions are the lists. Patients of the question's own publication are not ranked: families are alike.

A question's own report is not ranked. Relevant is what has the same diagnosis. Diagnoses are parted into a development
and a test half by `SEED` (decided before the first run), so no diagnosis is in both. The line and the form of the
question are chosen on each development half; both choices are then measured on both test halves, once. Intervals
resample whole diagnoses, because questions of one diagnosis are not independent.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.lines import DATA, rows
from hoofbeat.cli.console import Screen
from hoofbeat.corpus.readers.text import read_text
from hoofbeat.corpus.roles import assign_roles, case_spans
from hoofbeat.corpus.terms import content_forms, find_abbreviations, tokens
from hoofbeat.corpus.vocabulary import Vocabulary, load_vocabulary
from hoofbeat.findings.intervals import paired_difference
from hoofbeat.findings.ranking_measures import evaluate
from hoofbeat.models import load_encoder
from hoofbeat.models.encoders.vector_cache import cached_encoder, vectors_folder
from hoofbeat.records import Document
from hoofbeat.retrieval import IndexSet, Retriever
from hoofbeat.retrieval.index.chunking import sentence_spans

SEED = 21
MENTIONS = 5
WORDS = 320
KEY_WORDS = 100
PER_DIAGNOSIS = 4
QUESTIONS = 150
DEPTH = 200
MEASURES = ("nDCG@10", "R@100")
BASELINE = "bm25[chunk=whole]"
SHOWN = (
    BASELINE,
    "dense[chunk=whole]",
    "bm25[chunk=whole] + dense[chunk=whole]",
    "bm25[chunk=whole] + dense[chunk=whole,truncate=yes]",
)
FOR_ALL_FORMS = (
    *SHOWN,
    "bm25[chunk=whole,query=weighted]",
    "bm25[chunk=whole,query=weighted] + dense[chunk=whole]",
)
CANDIDATES = (
    *FOR_ALL_FORMS,
    "bm25[chunk=whole,k1=1.2,b=0.75]",
    "bm25[chunk=whole,query=weighted,k1=1.2,b=0.75]",
    "dense[chunk=whole,qchunk=sentences:128]",
    "bm25[chunk=whole] + 0.5*dense[chunk=whole]",
    "bm25[chunk=whole] + 2*dense[chunk=whole]",
    "bm25[chunk=whole] +[k=10] dense[chunk=whole]",
    "bm25[chunk=whole,query=weighted] + 0.5*dense[chunk=whole]",
    "bm25[chunk=whole,query=weighted] + dense[chunk=whole,truncate=yes]",
)
_NOT_A_DIAGNOSIS = re.compile(r"^[RZTVWXY]|\.90?$")
_VAGUE = re.compile(r"unspecified|not elsewhere|\bother\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


class Cases(NamedTuple):
    """Cases to find and to ask with: texts, the diagnosis of each question, and which cases are not ranked for it."""

    name: str
    documents: dict[str, str]
    questions: dict[str, str]
    diagnosis: dict[str, str]
    apart: dict[str, frozenset[str]]
    relevant: dict[str, frozenset[str]]

    def half(self, which: str) -> Cases:
        """The questions of one half of the diagnoses."""
        codes = sorted(set(self.diagnosis.values()))
        random.Random(SEED).shuffle(codes)
        middle = len(codes) // 2
        kept = set(codes[:middle] if which == "development" else codes[middle:])
        return self._replace(
            questions={name: text for name, text in self.questions.items() if self.diagnosis[name] in kept}
        )


def reports() -> Cases:
    """Case reports, their most frequent condition taken for the diagnosis."""
    vocabularies = [load_vocabulary("rare-diseases"), load_vocabulary("icd10cm")]
    texts: dict[str, str] = {}
    found: dict[str, str] = {}
    masked: dict[str, str] = {}
    for row in rows(DATA / "case_reports.jsonl.gz"):
        document = assign_roles(read_text(row["text"], row["pmcid"]))
        presentation = " ".join(document.text[start:end] for start, end in case_spans(document))
        shown = " ".join(presentation.split()[:WORDS])
        if len(shown.split()) < WORDS // 4:
            continue
        texts[document.id] = shown
        if labelled := _main_condition(document.text, vocabularies):
            found[document.id], names = labelled
            masked[document.id] = _without(shown, names)
    return _grouped("reports", texts, masked, found, {name: frozenset({name}) for name in texts})


def _main_condition(text: str, vocabularies: Sequence[Vocabulary]) -> tuple[str, set[str]] | None:
    """The condition that a report has most often, and how the report words it."""
    counts: Counter[str] = Counter()
    wordings: defaultdict[str, set[str]] = defaultdict(set)
    for vocabulary in vocabularies:
        for match in vocabulary.find_in(text):
            if not _NOT_A_DIAGNOSIS.search(match.code) and not _VAGUE.search(match.name):
                counts[match.code] += 1
                wordings[match.code] |= {match.text, match.name}
    code, count = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    if count < MENTIONS:
        return None
    short = {short for short, long in find_abbreviations(text).items() if long in wordings[code]}
    return code, wordings[code] | short


def _without(text: str, names: set[str]) -> str:
    """The text without any word of these names."""
    forms = {form for name in names for form in (*content_forms(name), *tokens(name).forms) if len(form) > 2}
    return " ".join(word for word in text.split() if not forms & set(tokens(word).forms))


def patients() -> Cases:
    """Patients as lists of findings."""
    texts: dict[str, str] = {}
    found: dict[str, str] = {}
    published: defaultdict[str, set[str]] = defaultdict(set)
    sources: dict[str, list[str]] = {}
    for row in rows(DATA / "phenopackets.jsonl.gz"):
        if len(row["present"]) >= 3:
            texts[row["id"]] = "; ".join(label for _, label in row["present"])
            found[row["id"]] = row["disease"]["id"]
            sources[row["id"]] = row["refs"] or [row["id"]]
            for source in sources[row["id"]]:
                published[source].add(row["id"])
    apart = {name: frozenset({name}.union(*(published[source] for source in sources[name]))) for name in texts}
    return _grouped("patients", texts, texts, found, apart)


def _grouped(
    name: str, texts: dict[str, str], asking: dict[str, str], found: dict[str, str], apart: dict[str, frozenset[str]]
) -> Cases:
    """The questions: cases for which another has the same diagnosis, a few of each diagnosis."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for case, code in found.items():
        groups[code].append(case)
    relevant = {case: frozenset(groups[code]) - apart[case] for case, code in found.items()}
    drawn = random.Random(SEED)
    chosen = [
        case
        for code in sorted(groups)
        for case in drawn.sample(sorted(groups[code]), min(PER_DIAGNOSIS, len(groups[code])))
        if relevant[case]
    ]
    chosen = sorted(drawn.sample(chosen, min(len(chosen), 2 * QUESTIONS)))
    return Cases(
        name,
        texts,
        {case: asking[case] for case in chosen},
        {case: found[case] for case in chosen},
        {case: apart[case] for case in chosen},
        {case: relevant[case] for case in chosen},
    )


def forms(documents: Sequence[str]) -> dict[str, Callable[[str], str]]:
    """How a question may be made of a case: all of it, its beginning, or the sentences with the rarest words."""
    counts = Counter(word for text in documents for word in set(_WORD.findall(text.lower())))

    def rare(text: str) -> float:
        words = set(_WORD.findall(text.lower()))
        return sum(math.log(len(documents) / (1 + counts[word])) for word in words) / max(len(words), 4)

    def key(text: str) -> str:
        pieces = [text[start:end] for start, end in sentence_spans(text)]
        kept: set[int] = set()
        for place in sorted(range(len(pieces)), key=lambda place: -rare(pieces[place])):
            if sum(len(pieces[each].split()) for each in kept) < KEY_WORDS:
                kept.add(place)
        return " ".join(pieces[place] for place in sorted(kept))

    return {"whole": str, "beginning": lambda text: " ".join(text.split()[:KEY_WORDS]), "key sentences": key}


Scores = dict[str, dict[str, float]]


class Collection:
    """Cases with their index; one index serves both halves and all forms of the question."""

    def __init__(self, cases: Cases) -> None:
        self.cases = cases
        self.forms = forms(list(cases.documents.values()))
        self._indexes = IndexSet(
            [Document(id=name, title="", text=text) for name, text in cases.documents.items()],
            encoder=lambda spec: cached_encoder(load_encoder(spec), vectors_folder()),
            progress=Screen(as_json=False),
        )

    def scores(self, half: Cases, form: str, line: str) -> Scores:
        """Every measure of a line for every question."""
        asked = [(name, self.forms[form](text)) for name, text in half.questions.items()]
        found = Retriever(self._indexes, line).search(asked, DEPTH)
        hits = (hit for each in found for hit in each if hit.document not in half.apart[hit.question])
        qrels = {name: dict.fromkeys(half.relevant[name], 1) for name in half.questions}
        return evaluate(hits, qrels, MEASURES).per_question


def told(half: Cases, scores: Scores, baseline: Scores) -> str:
    """Means, and the difference to BM25 with its interval."""
    names = list(half.questions)
    parts = []
    for measure in MEASURES:
        values, first = ([each[name][measure] for name in names] for each in (scores, baseline))
        gain = paired_difference(values, first, clusters=[half.diagnosis[name] for name in names], seed=SEED)
        mean = sum(values) / len(values)
        parts.append(
            f"{measure} {mean:.3f} ({gain.difference:+.3f} [{gain.interval.low:+.3f}, {gain.interval.high:+.3f}])"
        )
    return "  ".join(parts)


Choice = tuple[str, str]


def develop(collection: Collection) -> Choice:
    """The form of the question and the line with the best nDCG@10 on the development half, ties to the shorter line."""
    for which in ("development", "test"):
        half = collection.cases.half(which)
        count = len({half.diagnosis[name] for name in half.questions})
        relevant = sum(len(half.relevant[name]) for name in half.questions) / len(half.questions)
        shape = f"{len(half.questions)} questions of {count} diagnoses, {relevant:.1f} relevant each"
        print(f"{half.name}, {which}: {shape}; {len(half.documents)} documents")
    half = collection.cases.half("development")
    means: dict[Choice, float] = {}
    baseline = collection.scores(half, "whole", BASELINE)
    for form in collection.forms:
        for line in CANDIDATES if form == "whole" else FOR_ALL_FORMS:
            scores = collection.scores(half, form, line)
            means[form, line] = sum(each["nDCG@10"] for each in scores.values()) / len(scores)
            print(f"  development  {told(half, scores, baseline)}  {form}: {line}", flush=True)
    best = max(means, key=lambda each: (round(means[each], 4), -len(each[1])))
    print(f"  chosen: {best[0]}: {best[1]}")
    return best


def show_test(collection: Collection, chosen: Sequence[Choice]) -> None:
    """The usual lines and those that were chosen, on the test half."""
    half = collection.cases.half("test")
    baseline = collection.scores(half, "whole", BASELINE)
    for form, line in dict.fromkeys([*(("whole", line) for line in SHOWN), *chosen]):
        result = told(half, collection.scores(half, form, line), baseline)
        print(f"{half.name}, test  {result}  {form}: {line}", flush=True)


def main() -> int:
    """Both collections, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only-development", action="store_true", help="stop before the test half")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit("needs the data in ../shared/data, which is not here")
    collections = [Collection(make()) for make in (patients, reports)]
    chosen = [develop(collection) for collection in collections]
    for collection in [] if options.only_development else collections:
        show_test(collection, chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
