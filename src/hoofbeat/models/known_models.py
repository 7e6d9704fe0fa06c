"""What is known of common models by their names: context window, output limit, list price.

The facts are in `data/models.toml`, with their date and sources, or in the file that `known_models` in `hoofbeat.toml`
names. A model of open weights reads as much as its server lets it, so there the file only says the most that can be.
"""

from __future__ import annotations

import re
import tomllib
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import UsageError
from hoofbeat.models.budget import Price
from hoofbeat.trust import parse_toml
from hoofbeat.window import ContextWindow

_FILE = Path(__file__).parent / "data" / "models.toml"
_Price = Annotated[float, msgspec.Meta(ge=0)]
_Tokens = Annotated[int, msgspec.Meta(ge=1)]


class Provider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who serves a model, from which addresses; `as_of` is the date of the facts.

    `checked` is false for facts that were entered from memory and compared with no page. `batch` is the share of the
    list price that batches cost.
    """

    as_of: str
    hosts: tuple[str, ...] = ()
    source: str = ""
    checked: bool = True
    batch: _Price = 1.0


class KnownModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of the models whose names match."""

    match: str
    provider: str
    context: _Tokens
    output: _Tokens | None = None
    price_in: _Price | None = None
    price_out: _Price | None = None
    weights: Literal["", "open"] = ""


class _KnownModelsFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    currency: str
    providers: dict[str, Provider]
    models: list[KnownModel] = field(default_factory=list)


class KnownModels:
    """The facts of one file."""

    def __init__(self, facts: _KnownModelsFile) -> None:
        self.currency = facts.currency
        self._facts = facts

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], KnownModel]]:
        return [(re.compile(each.match), each) for each in self._facts.models]

    def find(self, name: str) -> KnownModel | None:
        """The first entry that a model's name matches."""
        return next((known for pattern, known in self._patterns if pattern.search(name)), None)

    def served_by_provider(self, known: KnownModel, host: str) -> bool:
        """Whether this address is that of the model's provider."""
        return host in self.provider(known).hosts

    def provider(self, known: KnownModel) -> Provider:
        """Who serves the model."""
        return self._facts.providers[known.provider]

    def window(self, known: KnownModel) -> ContextWindow:
        """The largest window that the model can have, and whether that was checked."""
        return ContextWindow(tokens=known.context, source="known" if self.provider(known).checked else "unchecked")

    def price(self, known: KnownModel, *, batch: bool = False) -> Price | None:
        """The list price; None where the file has none."""
        if known.price_in is None or known.price_out is None:
            return None
        provider = self.provider(known)
        share = provider.batch if batch else 1.0
        source = f"list price of {provider.as_of}, {self.currency}" + ("" if provider.checked else ", unchecked")
        return Price(tokens_in=share * known.price_in, tokens_out=share * known.price_out, source=source)


@lru_cache(maxsize=8)
def load_known_models(path: Path | None = None) -> KnownModels:
    """The facts of the file, or those that come with the package."""
    file = path or _FILE
    try:
        facts = msgspec.convert(parse_toml(file.read_text(encoding="utf-8")), _KnownModelsFile)
        for each in facts.models:
            re.compile(each.match)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError, re.error) as err:
        raise UsageError(
            f"the file of known models can't be read: {err}",
            where=str(file),
            fix="correct the file, or remove known_models from hoofbeat.toml",
        ) from err
    if unknown := [each.provider for each in facts.models if each.provider not in facts.providers]:
        raise UsageError(
            f"the file of known models names a provider that it does not define: {unknown[0]}",
            where=str(file),
            fix=f"add [providers.{unknown[0]}] to the file",
        )
    return KnownModels(facts)


def bare_name(spec: str) -> str:
    """A model's own name in lower case, without the address or the organisation before it."""
    return spec.lower().removeprefix("openai:").rpartition("#")[2].rpartition("/")[2]
