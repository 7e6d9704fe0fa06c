"""What the tests of HERO share: a small handbook, ways to ask it, and a reranker that counts a word."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.models.encoder import Encoder, Instructions
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Failure, Section
from hoofbeat.retrieval.hero.hero_engine import Hero
from hoofbeat.retrieval.hero.hero_evidence import HeroEvidence
from hoofbeat.retrieval.hero.hero_signals import HeroSettings
from hoofbeat.retrieval.index.chunking import Chunking, cut
from hoofbeat.retrieval.index_set import PassageCollection
from hoofbeat.retrieval.stage_roles import SearchQuery, StageTools
from tests.retrieval.support import HashedWords

CHILD = "book#children:160/32#"
LONG = HeroSettings(route=0, fallback=False)
"""Every source is searched, and what was found is shown."""


def laid_out(id: str, *sections: tuple[int, str, str], title: str = "A handbook") -> Document:
    """A document of sections given by level, heading and text."""
    text, laid = "", []
    for level, heading, words in sections:
        start, body = len(text), len(text) + len(heading) + 1
        text += f"{heading}\n{words}\n\n"
        laid.append(Section(heading=heading, level=level, start=start, body=body, end=body + len(words), page=level))
    return Document(id=id, title=title, text=text, sections=tuple(laid))


def filler(word: str, count: int) -> str:
    """So many words, all different, that begin alike."""
    return " ".join(f"{word}{number}" for number in range(count))


# Children by number: fluids 0-1 | wound 2 | bathing 3 | sport 4 | pets 5
BOOK = laid_out(
    "book",
    (1, "Fluids", f"water {filler('cup', 199)}"),
    (1, "Your skin", ""),
    (2, "Wound", "Keep the incision dry. A plaster is enough."),
    (2, "Bathing", "No tub for six weeks. Showers are fine."),
    (1, "Sport", "Walk every day. No swimming for six weeks."),
    (1, "Pets", "The cat may stay. Somebody else empties the tray."),
)


def collections(
    documents: Sequence[Document], encoder: Encoder | None = None
) -> tuple[PassageCollection, PassageCollection, PassageCollection]:
    found = encoder or HashedWords()
    children, sections, headings = (
        PassageCollection(
            [passage for document in documents for passage in cut(document, Chunking.parse(how))],
            encoder=lambda _: found,
        )
        for how in ("children:160/32", "subsections", "subheadings")
    )
    return children, sections, headings


def hero(*documents: Document, settings: HeroSettings = LONG, room: int | None = None) -> Hero:
    return Hero({each.id: each for each in documents}, *collections(documents), settings, room=room)


def ask(text: str, id: str = "q") -> SearchQuery:
    return SearchQuery(id=id, text=text)


def one(found: Hero, text: str, document: str = "book") -> HeroEvidence:
    (evidence,) = found.evidence([ask(text)], document)
    return evidence


def signal(evidence: HeroEvidence, name: str) -> list[tuple[str, int]]:
    (found,) = [each for each in evidence.trace.signals if each.name == name]
    return [(place.passage.rpartition("#")[2], place.rank) for place in found.best]


def only(**weights: float) -> HeroSettings:
    """One signal, and children as they were found."""
    none = {"dense": 0.0, "bm25": 0.0, "sections": 0.0, "titles": 0.0}
    return msgspec.structs.replace(LONG, expand="none", parents=False, **{**none, **weights})


class Prompted(HashedWords):
    """An encoder that was trained with prompts; keeps what it was given to encode, call by call."""

    name = identity = "prompted"
    prompts = Instructions(query="Q: ", document="D: ")

    def __init__(self) -> None:
        super().__init__()
        self.read: list[list[str]] = []

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> NDArray[np.float32]:
        self.read.append(list(texts))
        return super().encode(texts, progress)


class ByWord:
    """A reranker that likes texts with a word in them; where the query says `fail` it fails."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.identity = f"by {word}"
        self.notes: list[str] = []
        self.seen: list[list[str]] = []

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: StageTools
    ) -> list[list[float] | Failure]:
        self.seen += [list(each) for each in texts]
        failure = Failure(kind="timeout", message="too slow")
        return [
            failure if "fail" in query.text else [float(text.count(self.word)) for text in each]
            for query, each in zip(queries, texts, strict=True)
        ]


class NoTools:
    progress: Progress = SILENT
    indexes = None

    def model(self, spec: str) -> object:
        raise AssertionError("no model is needed")

    def search(self, line: str, queries: Sequence[SearchQuery], k: int, corpus: str = "") -> object:
        raise AssertionError("no other search is needed")


def with_reranker(reranker: ByWord, **settings: object) -> Hero:
    chosen = msgspec.structs.replace(LONG, rerank="yesno", **settings)
    return Hero({"book": BOOK}, *collections([BOOK]), chosen, rerank=reranker, tools=NoTools())  # type: ignore[arg-type]
