"""From one string to a model: `embedded`, `embedded:NAME`, `openai:NAME`, `http(s)://host/v1#NAME`,
`batch:FOLDER#NAME`, `replay:FILE`, or an alias in `hoofbeat.toml`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from hoofbeat.errors import InputError, ModelError, UsageError, did_you_mean
from hoofbeat.models.backend import Backend
from hoofbeat.models.batch import BatchBackend
from hoofbeat.models.budget import Budget, Price
from hoofbeat.models.config import Config, ModelSettings
from hoofbeat.models.http import HttpBackend
from hoofbeat.models.model import Model
from hoofbeat.models.pacing import Pacer
from hoofbeat.models.replay import ReplayBackend
from hoofbeat.models.wire import Dialect
from hoofbeat.store.ledger import Ledger

__all__ = ["SPEC_HELP", "load_model"]

SPEC_HELP = (
    "embedded, embedded:qwen2.5-coder-1.5b, openai:NAME, http://host:port/v1#NAME, batch:FOLDER#NAME, replay:FILE, "
    "or an alias in hoofbeat.toml"
)
_KINDS = ("embedded", "openai", "http", "https", "batch", "replay")
_FORMS = {"openai": "openai:NAME", "batch": "batch:FOLDER#NAME", "replay": "replay:FILE"}
_OPENAI = "https://api.openai.com/v1"
_MAX_IN_FLIGHT = 128


def load_model(spec: str, *, ledger: Ledger, config: Config | None = None, budget: Budget | None = None) -> Model:
    """The model a spec or alias names. Nothing is called yet; wrong names are said here."""
    config = config or Config()
    settings = config.models.get(spec, ModelSettings())
    target = settings.spec or spec
    if settings.spec and target in config.models and config.models[target].spec:
        raise UsageError(f"the alias {spec} names another alias, {target}", fix="give the model's spec there")
    backend = _backend(target, settings, known=list(config.models))
    price = None
    if settings.price_in is not None or settings.price_out is not None:
        price = Price(tokens_in=settings.price_in or 0.0, tokens_out=settings.price_out or 0.0)
    elif target.startswith(("embedded", "replay:")):
        price = Price(tokens_in=0.0, tokens_out=0.0)
    most = min(backend.most_in_flight, settings.most_in_flight or backend.most_in_flight)
    pacer = Pacer(
        most=most,
        start=most if isinstance(backend, BatchBackend) else 8,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
    )
    context = settings.context or getattr(backend, "context", None)
    return Model(
        spec=spec,
        backend=backend,
        ledger=ledger,
        budget=budget,
        price=price,
        pacer=pacer,
        attempts=settings.attempts,
        context=context,
    )


def _backend(spec: str, settings: ModelSettings, *, known: Sequence[str]) -> Backend:
    kind, _, rest = spec.partition(":")
    if kind == "embedded":
        from hoofbeat.models.local import EmbeddedBackend  # noqa: PLC0415 - loads the runtime

        return EmbeddedBackend(rest, context=settings.context, dialect=_dialect(settings))
    if kind in ("http", "https"):
        return _http(spec, settings)
    if kind == "openai" and rest:
        url = (os.environ.get("OPENAI_BASE_URL") or _OPENAI).rstrip("/")
        identity = f"openai:{rest}" if url == _OPENAI else ""  # another endpoint's answers are another model's
        return _http(f"{url}#{rest}", settings, identity=identity, key_variable="OPENAI_API_KEY", key_required=True)
    folder, _, name = rest.rpartition("#")
    if kind == "batch" and folder and name:
        return BatchBackend(Path(folder), name, identity=settings.identity, dialect=_dialect(settings, openai=True))
    if kind == "replay" and rest:
        path = Path(rest)
        if not path.is_file():
            raise InputError("there is no such replay file", where=rest, fix="check the path after replay:")
        return ReplayBackend(path)
    raise _unknown(spec, known)


def _dialect(settings: ModelSettings, *, openai: bool = False) -> Dialect:
    return Dialect(extra=settings.extra, omit=tuple(settings.omit), openai=openai)


def _http(
    spec: str,
    settings: ModelSettings,
    *,
    identity: str = "",
    key_variable: str = "HOOFBEAT_API_KEY",
    key_required: bool = False,
) -> HttpBackend:
    address, _, name = spec.partition("#")
    try:
        parts = urlsplit(address)
        host = parts.hostname if parts.port != 0 else None
    except ValueError:
        host = None
    if host and (parts.username or parts.password or parts.query):
        raise UsageError(
            "an endpoint's address must not hold a user name, password or query",
            fix='name a key variable in hoofbeat.toml instead: key = "MY_KEY_VARIABLE"',
        )
    if not host or not name:
        raise UsageError(
            f"an endpoint is written http://host:port/v1#NAME, and {address!r} "
            + ("lacks its model name" if host else "has no right host and port"),
            fix="put the model's name behind a #" if host else "correct the address",
        )
    return HttpBackend(
        url=address,
        name=name,
        identity=settings.identity or identity or spec,
        key_variable=settings.key or key_variable,
        key_required=key_required or bool(settings.key),
        timeout=settings.timeout,
        most_in_flight=settings.most_in_flight or _MAX_IN_FLIGHT,
        dialect=_dialect(settings, openai=urlsplit(address).hostname == urlsplit(_OPENAI).hostname),
    )


def _unknown(spec: str, known: Sequence[str]) -> ModelError:
    kind = spec.partition(":")[0]
    if kind in _FORMS:
        return ModelError(f"the model {spec!r} lacks its name", fix=f"write it as {_FORMS[kind]}")
    return ModelError(
        f"there is no model {spec!r}", fix=f"{did_you_mean(kind, [*_KINDS, *known])}name one of: {SPEC_HELP}"
    )
