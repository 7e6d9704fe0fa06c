"""How long HERO takes beside what it can't do without: encoding the questions once.

    python -m bench.hero [--sources 102] [--questions 1115] [--pairs 48056] [--rounds 3] [--keep FOLDER] [--json]

As many sources, questions and searches as in the paper's run. The sources are invented: passages of the real guidelines
beside the project (`../shared/data`), shuffled into documents of more than 80,000 characters, so that every one of them
is searched; the questions are made from their headings. General questions go to every source, the others to the sources
of their group. Reranking is off. Sources are indexed first; `--keep` keeps their vectors for the next time.

The searches are timed after the questions are encoded: four signals, fusion, parent sections, sufficiency and the
passages as a model is shown them. Traces are made when they are asked for, and timed apart, as JSON. The goal is that
encoding takes longer than searching.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.models import load_encoder
from hoofbeat.records import Document, Section
from hoofbeat.retrieval.hero.hero_engine import Hero
from hoofbeat.retrieval.hero.hero_signals import HeroSettings
from hoofbeat.retrieval.index.chunking import Chunking, cut
from hoofbeat.retrieval.index.kept_parts import PartPlace
from hoofbeat.retrieval.index_set import PassageCollection
from hoofbeat.retrieval.stage_roles import SearchQuery

GUIDELINES = Path(__file__).resolve().parents[2] / "shared" / "data" / "guidelines.jsonl.gz"
SHORTEST, LONGEST = 81_000, 140_000
GROUPS = 5
SEED = 20
SAMPLE = 20
GOAL = 1.0

_HEADING = re.compile(r"[A-Z][^.:;\n]{5,70}[^.:;\n,\s]")
_ASKED = (
    "What should I know about {}?",
    "My doctor mentioned {} and I did not dare to ask. What is recommended?",
    "Is there anything I must not do because of {}?",
    "How is {} usually handled, and how soon?",
    "Who decides about {}, and what happens then?",
)


class Piece(NamedTuple):
    """A heading and the text under it."""

    heading: str
    text: str


class Seconds(NamedTuple):
    """One round: encoding the questions and searching, by the clock and by CPU time, and all traces as JSON."""

    encoding: float
    searching: float
    encoding_cpu: float
    searching_cpu: float
    tracing: float


def pieces() -> list[Piece]:
    """Stretches of real recommendations under the headings that stand in them."""
    found = []
    with gzip.open(GUIDELINES) as rows:
        for row in rows:
            texts = [each["text"] for each in json.loads(row)["sections"] if each["heading"] == "Major Recommendations"]
            heading, body = "", list[str]()
            for line in "\n".join(texts).splitlines():
                if _HEADING.fullmatch(line.strip()) and len(" ".join(body)) > 300:
                    found.append(Piece(heading or "Recommendations", "\n".join(body)[:6000]))
                    heading, body = line.strip(), []
                else:
                    body.append(line)
    return found


def sources(count: int, rng: random.Random) -> list[Document]:
    """Invented documents, each longer than what is shown whole."""
    pool = pieces()
    rng.shuffle(pool)
    stock = iter(pool)
    made = []
    for number in range(count):
        target, text, sections = rng.randint(SHORTEST, LONGEST), "", list[Section]()
        while len(text) < target:
            piece = next(stock, None)
            if piece is None:
                rng.shuffle(pool)
                stock = iter(pool)
                continue
            start, body = len(text), len(text) + len(piece.heading) + 1
            text += f"{piece.heading}\n{piece.text}\n\n"
            sections.append(Section(heading=piece.heading, level=1, start=start, body=body, end=body + len(piece.text)))
        made.append(Document(id=f"source-{number:03}", title=f"Source {number}", text=text, sections=tuple(sections)))
    return made


def questions(documents: Sequence[Document], count: int, rng: random.Random) -> list[SearchQuery]:
    """Questions on headings of the sources."""
    headings = sorted({section.heading for document in documents for section in document.sections})
    return [
        SearchQuery(id=f"q{number}", text=rng.choice(_ASKED).format(rng.choice(headings))) for number in range(count)
    ]


def plan(documents: Sequence[Document], count: int, pairs: int) -> list[list[str]]:
    """The sources that each question is put to: every source, or those of one group, so many pairs in all."""
    names = [document.id for document in documents]
    groups = [names[first::GROUPS] for first in range(GROUPS)]
    in_groups = sum(len(groups[number % GROUPS]) for number in range(count))
    general = round((pairs - in_groups) / (len(names) - len(names) / GROUPS)) if len(names) > 1 else 0
    asked = [names if number < general else groups[number % GROUPS] for number in range(count)]
    left = pairs - sum(map(len, asked))
    for number in range(count):  # a few more or fewer, so that the number is exact
        if left > 0:
            extra = [name for name in names if name not in asked[number]][:left]
            asked[number], left = sorted([*asked[number], *extra]), left - len(extra)
        elif left < 0:
            fewer = min(-left, len(asked[number]))
            asked[number], left = asked[number][fewer:], left + fewer
    return asked


Collections = tuple[PassageCollection, PassageCollection, PassageCollection]
"""Children, sections and headings."""


def index(documents: Sequence[Document], keep: Path) -> tuple[Collections, dict[str, float]]:
    """The three collections, with everything built that a search needs, and the seconds that took."""
    began = time.perf_counter()
    encoder = load_encoder("minilm")

    def collection_of(how: str) -> PassageCollection:
        passages = [passage for document in documents for passage in cut(document, Chunking.parse(how))]
        return PassageCollection(passages, encoder=lambda _: encoder, place=PartPlace(keep / how.partition(":")[0]))

    made = collection_of("children:160/32"), collection_of("subsections"), collection_of("subheadings")
    for collection in made:
        collection.bm25(0.9, 0.4, partitioned=True)
    lexical = time.perf_counter()
    made[0].dense("minilm")
    return made, {"lexical": lexical - began, "vectors": time.perf_counter() - lexical}


class TimedEncoder:
    """Encodes query texts and adds up the seconds that takes."""

    def __init__(self, collection: PassageCollection) -> None:
        self._encoder = collection.dense("minilm").encoder
        self.seconds = self.cpu = 0.0

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        began, cpu = time.perf_counter(), time.process_time()
        vectors = self._encoder.encode(texts)
        self.seconds += time.perf_counter() - began
        self.cpu += time.process_time() - cpu
        return vectors


def one_round(hero: Hero, encoder: TimedEncoder, asked: list[SearchQuery], wanted: list[list[str]]) -> Seconds:
    """All searches once, and the traces of a sample of them, reckoned up to all."""
    encoder.seconds = encoder.cpu = 0.0
    began, cpu = time.perf_counter(), time.process_time()
    shown = sum(len(evidence.passages) for evidence in hero.evidence_all(asked, wanted))
    searching = time.perf_counter() - began - encoder.seconds
    searching_cpu = time.process_time() - cpu - encoder.cpu
    assert shown
    encoding, encoding_cpu = encoder.seconds, encoder.cpu
    some = list(hero.evidence_all(asked[:SAMPLE], wanted[:SAMPLE]))
    began = time.perf_counter()
    assert sum(len(msgspec.json.encode(evidence.trace)) for evidence in some)
    share = len(some) / sum(map(len, wanted))
    return Seconds(encoding, searching, encoding_cpu, searching_cpu, (time.perf_counter() - began) / share)


def show(measured: Sequence[Seconds], figures: dict[str, float]) -> None:
    """The figures, then the ratio that counts."""
    print(f"{figures['sources']:g} sources, {figures['children']:g} children, {figures['questions']:g} questions")
    print(f"indexing, once: lexical {figures['lexical']:.1f} s, vectors {figures['vectors']:.1f} s")
    for number, each in enumerate(measured, 1):
        print(
            f"round {number}: encoding the questions {each.encoding:.2f} s, {figures['pairs']:g} searches "
            f"{each.searching:.2f} s, searching ÷ encoding × {each.searching / each.encoding:.2f} "
            f"(by CPU time × {each.searching_cpu / each.encoding_cpu:.2f}), "
            f"all traces as JSON {each.tracing:.1f} s"
        )
    print(
        f"median: searching ÷ encoding × {figures['ratio']:.2f}, by CPU time × {figures['cpu_ratio']:.2f} "
        f"(goal: below {GOAL:g})"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=102)
    parser.add_argument("--questions", type=int, default=1115)
    parser.add_argument("--pairs", type=int, default=48_056)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if not GUIDELINES.exists():
        raise SystemExit("needs ../shared/data/guidelines.jsonl.gz, which is not here")
    rng = random.Random(SEED)
    documents = sources(options.sources, rng)
    asked = questions(documents, options.questions, rng)
    wanted = plan(documents, options.questions, min(options.pairs, options.sources * options.questions))
    with tempfile.TemporaryDirectory() as scratch:
        collections, figures = index(documents, options.keep or Path(scratch))
        encoder = TimedEncoder(collections[0])
        by_name = {document.id: document for document in documents}
        hero = Hero(by_name, *collections, HeroSettings(), encode=encoder)
        list(hero.evidence_all(asked[:1]))  # what is made at the first search belongs to the index
        measured = [one_round(hero, encoder, asked, wanted) for _ in range(options.rounds)]
    figures |= {
        "sources": len(documents),
        "children": len(collections[0].passages),
        "questions": len(asked),
        "pairs": sum(map(len, wanted)),
        "ratio": statistics.median(each.searching / each.encoding for each in measured),
        "cpu_ratio": statistics.median(each.searching_cpu / each.encoding_cpu for each in measured),
    }
    if options.json:
        print(json.dumps({**figures, "rounds": [each._asdict() for each in measured]}))
    else:
        show(measured, figures)


if __name__ == "__main__":
    main()
