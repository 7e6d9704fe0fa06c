"""What the tests of query writing and search agents share: a small library, and tools that note what is asked."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Passage
from hoofbeat.retrieval import agents, writing
from hoofbeat.retrieval.analysis import ENGLISH
from hoofbeat.retrieval.line import Stage, StageSpec, parse, stages
from hoofbeat.retrieval.stages import Found, SearchQuery, Writer
from tests.answering.support import asked_for
from tests.models.fault_server import FaultServer

RANKERS = {name: StageSpec(name, "ranker") for name in ("bm25", "dense")}
KNOWN = {**RANKERS, **{spec.name: spec for spec in (*writing.SPECS, *agents.SPECS)}}

LIBRARY = (
    "Invented: Hillside fever follows the bite of the red mite and is treated with doxycillin.",
    "Invented: Lowland cough is caused by dust of the grey reed.",
    "Invented: The red mite lives in hay and bites the ankles of farmers.",
)


def a_stage(line: str) -> Stage:
    """The first stage of a line."""
    return next(stages(parse(f"{line} > bm25", KNOWN)))


def a_writer(line: str) -> Writer:
    """The writer that a line begins with."""
    stage = a_stage(line)
    return agents.make_writer(stage) if stage.spec in agents.SPECS else writing.make_writer(stage)


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

    def model(self, spec: str) -> Model:
        self.models.append(spec)
        return self._model

    def search(self, line: str, queries: Sequence[SearchQuery], k: int) -> list[list[Found]]:
        self.searches.append((line, tuple(query.for_lexical for query in queries), k))
        return [self._search(query.for_lexical)[:k] for query in queries]

    def _search(self, text: str) -> list[Found]:
        wanted = set(ENGLISH.terms(text))
        scored = [(len(wanted & set(ENGLISH.terms(passage.text))), passage) for passage in self.passages]
        ranked = sorted(scored, key=lambda pair: -pair[0])
        return [Found(passage.document, passage, float(score)) for score, passage in ranked if score]
