"""How HERO is set: every layer of it can be switched off or changed, so that what a layer brings can be measured."""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.models.encoders.encoder_base import DEFAULT_ENCODER
from hoofbeat.retrieval.line import Stage

SIGNALS = ("dense", "bm25", "sections", "titles")
"""The four first-stage rankings of children."""

NAVIGATION = frozenset({"sections", "titles"})
"""The signals that find sections, which stand for their children."""


class HeroSettings(Struct, frozen=True, kw_only=True):
    """The settings of HERO. The paper gives `route`, `k` and `top`; the other numbers are ours.

    `route`: sources up to so many characters are shown whole, 0 for none. `dense` to `titles`: the signals' weights in
    the fusion, 0 to leave one out. `first`: how deep each signal goes in a source. `depth`: how many children a
    reranker reads. `parents` and `neighbours`: whether children bring their section, and how many sections on each
    side of it; `span`: the characters that such a passage may have. `enough`: evidence below it is weak. `fits`:
    sources up to so many characters may be shown whole when it is.
    """

    route: int = 80_000
    expand: Literal["terms", "none"] = "terms"
    dense: float = 1.0
    bm25: float = 1.0
    sections: float = 0.5
    titles: float = 0.5
    k: int = 60
    first: int = 20
    rerank: str = "none"
    depth: int = 20
    parents: bool = True
    neighbours: int = 1
    span: int = 6_000
    top: int = 5
    fallback: bool = True
    enough: float = 0.4
    fits: int = 120_000
    encoder: str = DEFAULT_ENCODER

    def __post_init__(self) -> None:
        if not all(0 <= weight < math.inf for weight in self.weights.values()) or not any(self.weights.values()):
            raise UsageError(
                "HERO needs a signal: no weight is negative and not all are 0",
                fix=f"give at least one of {', '.join(SIGNALS)} a weight above 0",
            )
        if min(self.k, self.first, self.depth, self.span, self.top) < 1 or min(self.route, self.neighbours) < 0:
            raise UsageError(
                "HERO can't work with these numbers",
                fix="k, first, depth, span and top are at least 1; route and neighbours at least 0",
            )

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each signal."""
        return dict(zip(SIGNALS, (self.dense, self.bm25, self.sections, self.titles), strict=True))

    @classmethod
    def of(cls, stage: Stage) -> HeroSettings:
        """The settings that a stage of a retriever line gives."""
        return cls(
            route=stage.count("route"),
            expand="terms" if stage.word("expand") == "terms" else "none",
            dense=stage.number("dense"),
            bm25=stage.number("bm25"),
            sections=stage.number("sections"),
            titles=stage.number("titles"),
            k=stage.count("k"),
            first=stage.count("first"),
            rerank=stage.word("rerank"),
            depth=stage.count("depth"),
            parents=stage.word("parents") == "on",
            neighbours=stage.count("neighbours"),
            span=stage.count("span"),
            top=stage.count("top"),
            fallback=stage.word("fallback") == "on",
            enough=stage.number("enough"),
            fits=stage.count("fits"),
            encoder=stage.word("encoder"),
        )
