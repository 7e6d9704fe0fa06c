"""What travels through a recipe: a candidate for a question, with everything that was found out about it so far.

A step looks at every item and says what becomes of it: it goes on (changed or not), is rejected for a reason, or failed
because a model call brought nothing usable. One outcome an item, so the counts add up at every stage by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from hoofbeat.records import Facets, Failure, Span, Step


class RecipeItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A candidate. `values` holds what the steps wrote, by name, as plain JSON data; `documents` are its sources."""

    id: str
    documents: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    evidence: tuple[Span, ...] = ()
    facets: Facets = field(default_factory=dict)
    lineage: tuple[Step, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A value that an earlier step may have written."""
        return self.values.get(name, default)

    def put(self, **values: Any) -> RecipeItem:
        """With these values."""
        return msgspec.structs.replace(self, values={**self.values, **values})

    def labelled(self, **facets: str | list[str]) -> RecipeItem:
        """With these facets."""
        return msgspec.structs.replace(self, facets={**self.facets, **facets})

    def proven(self, *spans: Span) -> RecipeItem:
        """With this evidence, besides what it had; the same place is listed once."""
        return msgspec.structs.replace(self, evidence=tuple(dict.fromkeys((*self.evidence, *spans))))

    def done(self, step: Step) -> RecipeItem:
        """With one more step in its lineage."""
        return msgspec.structs.replace(self, lineage=(*self.lineage, step))


class ItemRejection(Struct, frozen=True, kw_only=True):
    """Why a step turns an item away: `reason` in words that many items share, `details` of this one, and where."""

    reason: str
    details: str = ""
    span: Span | None = None

    def again(self, say: str) -> AskAgain:
        """The same objection, of which the model is told before it counts."""
        return AskAgain(reason=self.reason, details=self.details, span=self.span, say=say)


Outcome = RecipeItem | ItemRejection | Failure


class AskAgain(Struct, frozen=True, kw_only=True):
    """What a rule objects to in a reply. The model is told so and asked once more before anything is rejected.

    `say` tells the model in a plain sentence what the objection is and what would satisfy the rule. Where the rule
    objects to the second reply as well, `otherwise` is what becomes of the item: by default it is rejected for
    `reason`. An item there lets the model insist, flagged. `places` are the parts to ask again, all when empty.
    """

    reason: str
    say: str
    details: str = ""
    span: Span | None = None
    otherwise: Outcome | None = None
    places: tuple[int, ...] = ()

    def rejection(self) -> ItemRejection:
        """The objection as a rejection."""
        return ItemRejection(reason=self.reason, details=self.details, span=self.span)


def ask_again(objections: Sequence[tuple[str, str]], otherwise: Outcome) -> Outcome | AskAgain:
    """All objections in one request, each a reason and what to tell the model; without any, the outcome itself."""
    if not objections:
        return otherwise
    return AskAgain(reason=objections[0][0], say=" ".join(say for _, say in objections), otherwise=otherwise)


class RejectedItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `rejected.jsonl`: the item as it was when a step turned it away."""

    id: str
    step: str
    reason: str
    details: str = ""
    span: Span | None = None
    documents: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)


class FailedItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `failed.jsonl`: an item for which a model call brought nothing usable."""

    id: str
    step: str
    failure: Failure
    documents: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)


class RecipeFunnelStep(Struct, kw_only=True):
    """One line of the funnel: how many came, went on, were rejected and failed at a step, and why."""

    step: str
    came: int = 0
    kept: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)

    @property
    def rejected(self) -> int:
        """How many were rejected."""
        return sum(self.reasons.values())

    @property
    def failed(self) -> int:
        """For how many a call brought nothing usable."""
        return sum(self.failures.values())

    @property
    def waiting(self) -> int:
        """How many wait for the answers of a batch."""
        return self.came - self.kept - self.rejected - self.failed
