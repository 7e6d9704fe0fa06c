"""What all model calls of one command, or of one Python call, share: ledger, configuration and budget."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from hoofbeat.models.budget import Budget
from hoofbeat.models.model import Model
from hoofbeat.models.model_loading import Config, load_config, load_model
from hoofbeat.store.call_ledger import Ledger
from hoofbeat.store.manifest import Cost


class Session(Struct, frozen=True, kw_only=True):
    """An open ledger with what is needed to load models."""

    ledger: Ledger
    config: Config
    budget: Budget

    def model(self, spec: str) -> Model:
        """The model of this name, on this session's ledger and budget."""
        return load_model(spec, ledger=self.ledger, config=self.config, budget=self.budget)


class UsedModels:
    """Language models by name, loaded when one is first asked for; remembers which were."""

    def __init__(self, load: Callable[[str], Model]) -> None:
        self._load = load
        self.used: dict[str, Model] = {}

    def __call__(self, spec: str) -> Model:
        """The model of that name; an empty name is the model of the command."""
        if spec not in self.used:
            self.used[spec] = self._load(spec)
        return self.used[spec]

    @property
    def cost(self) -> Cost:
        """What all of them cost together."""
        return sum((model.cost for model in dict.fromkeys(self.used.values())), start=Cost())


@contextmanager
def open_session(
    *, ledger_path: Path | None = None, config_path: Path | None = None, budget: str | None = None
) -> Iterator[Session]:
    """Open the ledger and the configuration."""
    config = load_config(config_path)
    limits = Budget.parse(budget)
    with Ledger(ledger_file(ledger_path)) as ledger:
        yield Session(ledger=ledger, config=config, budget=limits)


@contextmanager
def late_models(
    default: str, *, ledger_path: Path | None = None, config_path: Path | None = None, budget: str | None = None
) -> Iterator[Callable[[str], Model]]:
    """What loads models by name (an empty name is the default), with a session that is opened for the first one."""
    with ExitStack() as stack:
        sessions: list[Session] = []

        def load(spec: str) -> Model:
            if not sessions:
                opened = open_session(ledger_path=ledger_path, config_path=config_path, budget=budget)
                sessions.append(stack.enter_context(opened))
            return sessions[0].model(spec or default)

        yield load


def ledger_file(path: Path | None) -> Path:
    """Where the ledger is: `path`, `HOOFBEAT_LEDGER`, else `.hoofbeat/ledger.sqlite` in the current folder."""
    return path or Path(os.environ.get("HOOFBEAT_LEDGER") or Path(".hoofbeat") / "ledger.sqlite")
