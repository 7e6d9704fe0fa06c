"""What the tests of query writing and search agents share: a small library, and tools that note what is asked."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Passage
from hoofbeat.retrieval import IndexSet
from hoofbeat.retrieval.index.analysis import ENGLISH
from hoofbeat.retrieval.line import parse, stages
from hoofbeat.retrieval.stage_roles import FoundPassage, QueryWriter, SearchQuery
from tests.answering.support import asked_for
from tests.models.fault_server import FaultServer

LIBRARY = (
    "Invented: Hillside fever follows the bite of the red mite and is treated with doxycillin.",
    "Invented: Lowland cough is caused by dust of the grey reed.",
    "Invented: The red mite lives in hay and bites the ankles of farmers.",
)


def a_writer(line: str) -> QueryWriter:
    """The writer that a line begins with."""
    stage = next(stages(parse(f"{line} > bm25")))
    assert isinstance(stage, QueryWriter)
    return stage


def a_query(text: str, id: str = "q", **more: object) -> SearchQuery:
    """A query as it enters a line."""
    return SearchQuery(id=id, text=text, **more)  # type: ignore[arg-type]


def kinds(server: FaultServer) -> list[str]:
    """What each call of an agent was: a step, a reading, or the last answer."""
    fields = [asked_for(seen.body) for seen in server.seen]
    return ["step" if "action" in asked else "read" if "findings" in asked else "last" for asked in fields]


class LibraryTools:
    """One model, and a search that ranks the library by shared terms; every search is written down."""

    def __init__(self, model: Model, texts: Sequence[str] = LIBRARY) -> None:
        self.passages = [
            Passage(id=f"p{number}", document=f"d{number}", text=text) for number, text in enumerate(texts)
        ]
        self.searches: list[tuple[str, tuple[str, ...], int]] = []
        self._model = model
        self.models: list[str] = []

    @property
    def progress(self) -> Progress:
        return SILENT

    @property
    def indexes(self) -> IndexSet:
        raise AssertionError("a query writer searches, and reads no index")

    def model(self, spec: str) -> Model:
        self.models.append(spec)
        return self._model

    def search(self, line: str, queries: Sequence[SearchQuery], k: int, corpus: str = "") -> list[list[FoundPassage]]:
        self.searches.append((line, tuple(query.for_lexical for query in queries), k))
        return [self._search(query.for_lexical)[:k] for query in queries]

    def _search(self, text: str) -> list[FoundPassage]:
        wanted = set(ENGLISH.terms(text))
        scored = [(len(wanted & set(ENGLISH.terms(passage.text))), passage) for passage in self.passages]
        ranked = sorted(scored, key=lambda pair: -pair[0])
        return [FoundPassage(passage.document, passage, float(score)) for score, passage in ranked if score]
