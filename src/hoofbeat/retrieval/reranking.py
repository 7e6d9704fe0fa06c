"""Rerankers: query and text read together, for the top of a ranking.

rerank@100                                  a language model's Yes against No for each text
rerank[with=listwise,window=20]@100         a language model puts windows of texts into order
rerank[with=models/my-cross-encoder]@100    a cross-encoder from a folder
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from hoofbeat.errors import UsageError
from hoofbeat.models.crossencoder import CrossEncoder
from hoofbeat.records import Failure
from hoofbeat.retrieval.line import Option, Stage, StageSpec
from hoofbeat.retrieval.reranking_llm import Listwise, YesNo
from hoofbeat.retrieval.stages import SearchQuery, Tools

__all__ = ["SPECS", "ByCrossEncoder", "asks_a_model", "make_reranker"]

SPECS: tuple[StageSpec, ...] = (
    StageSpec(
        "rerank",
        "reranker",
        (
            Option("with", "yesno"),
            Option("model", ""),
            Option("read", "passage", choices=("passage", "document")),
            Option("chars", 2000.0, 100, 1e9, whole=True),
            Option("window", 20.0, 2, 100, whole=True),
            Option("stride", 10.0, 1, 100, whole=True),
        ),
        takes_depth=True,
        summary="reads query and text together: yesno or listwise by a language model, or a cross-encoder's folder",
    ),
)
"""The stages this module makes."""

_METHODS = {"yesno": ("window", "stride"), "listwise": (), "": ("model", "chars", "window", "stride")}


class ByCrossEncoder:
    """Scores by a cross-encoder."""

    def __init__(self, encoder: CrossEncoder) -> None:
        self.encoder = encoder
        self.identity = encoder.identity
        self.prompts: dict[str, str] = {}
        self._pairs = 0

    @property
    def notes(self) -> list[str]:
        """What a reader of the results should know."""
        if not self.encoder.cut:
            return []
        return [
            f"{self.encoder.cut} of {self._pairs} pairs were cut at the {self.encoder.window} tokens "
            f"that {self.encoder.name} reads"
        ]

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: Tools
    ) -> list[list[float] | Failure]:
        """For each query a score for each of its texts, higher is better; or why there are none."""
        asked = [[] if query.failure else list(found) for query, found in zip(queries, texts, strict=True)]
        pairs = [(query.text, text) for query, found in zip(queries, asked, strict=True) for text in found]
        scores = iter(self.encoder.score(pairs, tools.progress) if pairs else ())
        self._pairs += len(pairs)
        results: list[list[float] | Failure] = []
        for query, found in zip(queries, asked, strict=True):
            mine = [next(scores) for _ in found]
            results.append(query.failure or (mine if all(map(math.isfinite, mine)) else _no_number(self.encoder)))
        return results


def _no_number(encoder: CrossEncoder) -> Failure:
    return Failure(kind="unreadable", message=f"{encoder.name} gave a score that is no number")


def asks_a_model(stage: Stage) -> bool:
    """Whether this reranker needs a language model."""
    return stage.word("with") in ("yesno", "listwise")


def make_reranker(stage: Stage) -> YesNo | Listwise | ByCrossEncoder:
    """The reranker a stage of a line names; a cross-encoder is loaded here."""
    method = stage.word("with") if asks_a_model(stage) else ""
    defaults = {option.name: option.default for option in stage.spec.options}
    given = dict(zip(defaults, stage.values, strict=True))
    useless = [name for name in _METHODS[method] if given[name] != defaults[name]]
    if useless:
        raise _wrong(stage, f"{' and '.join(useless)} can't be used with {method or 'a cross-encoder'}", "leave it out")
    if not method:
        return ByCrossEncoder(CrossEncoder(_folder(stage)))
    chars, window, stride = (stage.count(name) for name in ("chars", "window", "stride"))
    if method == "yesno":
        return YesNo(model=stage.word("model"), chars=chars)
    if stride > window:
        what = f"a stride of {stride} over a window of {window} would leave texts unread"
        raise _wrong(stage, what, "give a stride no larger than the window; half of it is usual")
    return Listwise(model=stage.word("model"), window=window, stride=stride, chars=chars)


def _folder(stage: Stage) -> Path:
    """The folder named by `with`; a word that is no method and looks like no path is a slip."""
    name = stage.word("with")
    path = Path(name).expanduser()
    if not path.exists() and not any(mark in name for mark in "/\\~."):
        close = get_close_matches(name.lower(), ("yesno", "listwise"), n=1, cutoff=0.5)
        guess = f"did you mean {close[0]}? " if close else ""
        raise _wrong(
            stage, f"there is no reranker {name!r}", f"{guess}give yesno, listwise or a cross-encoder's folder"
        )
    return path


def _wrong(stage: Stage, what: str, fix: str) -> UsageError:
    return UsageError(what, where=f"retriever line, {stage}", fix=fix)
