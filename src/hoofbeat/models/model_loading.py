"""From one string to a model: `embedded`, `embedded:NAME`, `openai:NAME`, `http(s)://host/v1#NAME`,
`batch:FOLDER#NAME`, `replay:FILE`, or an alias in `hoofbeat.toml`.

`hoofbeat.toml` holds aliases, prices, context sizes and rate limits of models. Never keys.

    [models.judge]                      # --model judge
    spec = "openai:gpt-4o"
    price_in = 2.50                     # per million tokens
    price_out = 10.00
    context = 128000
    requests_per_minute = 500
    reasoning = 8000                    # tokens for hidden reasoning, added to every output limit
    key = "HOSPITAL_GATEWAY_KEY"        # the NAME of an environment variable

Above the tables: `plugins = ["my_stage.py"]` loads extensions, `known_models = "my-models.toml"` replaces what the
package knows of models by their names (`data/models.toml`), and `currency = "EUR"` says what prices here are in: list
prices in another currency are then not used. `ledger = "postgresql://USER@HOST/DATABASE"`, or a file, is where calls
are kept.

A table may name several servers of one model in place of a spec (`hoofbeat.models.fleet`):

    [models.fleet]
    name = "Qwen/Qwen3-32B"             # as the servers call it
    endpoints_file = "endpoints.txt"    # one address per line; or endpoints = ["http://a:8000/v1", ...]

A table may also have a spec as its name (`[models."openai:gpt-4o"]`) to give that model its price.

A `Session` is what all model calls of one command, or of one Python call, share: ledger, configuration and budget.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import InputError, ModelError, OutputError, UsageError, did_you_mean
from hoofbeat.models import SPEC_HELP
from hoofbeat.models.batch import BatchBackend
from hoofbeat.models.batch_formats import BATCH_FORMATS, BatchFormat
from hoofbeat.models.budget import Budget, Price
from hoofbeat.models.http_backend import HttpBackend
from hoofbeat.models.known_models import KnownModel, KnownModels, Provider, bare_name, load_known_models
from hoofbeat.models.model import Model, TextCheck
from hoofbeat.models.pacing import Pacer
from hoofbeat.models.replay import ReplayBackend
from hoofbeat.models.requests import OPENAI, Backend
from hoofbeat.models.wire import Dialect
from hoofbeat.store.artefact import Cost
from hoofbeat.store.ledger_base import CallLedger
from hoofbeat.store.ledger_places import LedgerPlace, ledger_place, open_ledger
from hoofbeat.store.postgres import PostgresServer, is_postgres
from hoofbeat.trust import FolderConfig, found_config, is_loopback, is_this_machine, parse_toml
from hoofbeat.window import ContextWindow

_SECRET = re.compile(r"api[_-]?key|(^|[_-])(token|secret|password|authorization|key)$", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


class ModelSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of one model."""

    spec: str = ""
    name: str = ""
    endpoints: list[str] = field(default_factory=list)
    endpoints_file: str = ""
    price_in: NotNegative | None = None
    price_out: NotNegative | None = None
    context: AtLeastOne | None = None
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    max_in_flight: AtLeastOne | None = None
    attempts: AtLeastOne = 6
    timeout: Positive = 180.0
    reasoning: Annotated[int, msgspec.Meta(ge=0)] | None = None
    key: str = ""
    identity: str = ""
    extra: dict[str, object] = field(default_factory=dict)
    omit: list[str] = field(default_factory=list)

    @property
    def is_fleet(self) -> bool:
        """Whether the table names several servers of one model."""
        return bool(self.name or self.endpoints or self.endpoints_file)


class ConfigFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file. `plugins` are files, relative to the file's folder, that the command loads (`hoofbeat.cli`).

    `known_models`, facts about models, and a `ledger` that is a file are relative to the file's folder as well. `on` is
    where work runs when a command does not say (`hoofbeat.engine`), `index` where indexes are kept, cut into `shards`.
    """

    plugins: list[str] = field(default_factory=list)
    known_models: str = ""
    on: str = ""
    index: str = ""
    shards: int = 1
    currency: str = "USD"
    ledger: str = ""
    models: dict[str, ModelSettings] = field(default_factory=dict)


class Config(ConfigFile, frozen=True, kw_only=True):
    """What a file says, and the file itself where it was found in the current folder and has to be trusted."""

    found: FolderConfig | None = None


def load_config(path: Path | None = None) -> Config:
    """Read the given file, else the one `HOOFBEAT_CONFIG` names, else `hoofbeat.toml` here; without any, defaults."""
    file, found = found_config(path)
    if not file.is_file():
        if path is not None or os.environ.get("HOOFBEAT_CONFIG"):
            raise UsageError("there is no such configuration file", where=str(file), fix="check --config")
        return Config()
    try:
        raw = parse_toml(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise UsageError(f"the configuration can't be read: {err}", where=str(file), fix="correct the file") from err
    _refuse_secrets(raw, file)
    try:
        config = msgspec.convert(raw, ConfigFile)
    except msgspec.ValidationError as err:
        raise UsageError(f"the configuration is wrong: {err}", where=str(file), fix="correct the file") from err
    folder = file.resolve().parent
    ledger = config.ledger if is_postgres(config.ledger) or not config.ledger else str(folder / config.ledger)
    known = str(folder / config.known_models) if config.known_models else ""
    models = {
        name: msgspec.structs.replace(each, endpoints_file=str(folder / each.endpoints_file))
        if each.endpoints_file
        else each
        for name, each in config.models.items()
    }
    _refuse_other_names(models, file, found)
    _refuse_own_fields(models, file)
    if found is not None and ledger:
        _need_ledger(ledger, found)
    plain = msgspec.structs.asdict(config) | {"known_models": known, "ledger": ledger, "models": models}
    return Config(**plain, found=found)


def _need_ledger(ledger: str, found: FolderConfig) -> None:
    """Ask before the folder's configuration sends all calls to another machine, or changes a file elsewhere."""
    if not is_postgres(ledger):
        found.need_place("keep all calls in", ledger)
        return
    host = PostgresServer(ledger).host
    if host and not is_this_machine(host):
        found.need(f"keep all calls in a database at {host}")


def _refuse_other_names(models: Mapping[str, ModelSettings], file: Path, found: FolderConfig | None) -> None:
    """Refuse tables by which a model would go under the name of another: the ledger would take its answers for that
    one's. The address of an endpoint may change, so the name of another endpoint is the user's choice."""
    for name, settings in models.items():
        if name.partition(":")[0] in _KINDS and (settings.spec or settings.is_fleet):
            raise UsageError(
                f"models.{name} redefines a built-in name",
                where=str(file),
                fix="choose another name for the table, and use it as the model's name",
            )
        kind = re.split("[:#]", settings.identity.strip().lower())[0]
        if kind not in _NAMED_KINDS or settings.identity in _own_identities(name, settings):
            continue
        if kind in ("http", "https"):
            if found is not None:
                found.need(f"store answers of models.{name} in the name of {settings.identity}")
            continue
        whose = "reserved for models on this machine" if kind in _LOCAL_KINDS else "the name of another model"
        raise UsageError(
            f"models.{name} uses the identity {settings.identity}, which is {whose}",
            where=str(file),
            fix="choose another identity, or remove this line: the model's spec is then its identity",
        )


def _refuse_own_fields(models: Mapping[str, ModelSettings], file: Path) -> None:
    """Refuse an `extra` that would ask another model, ask something else, or ask more often than the budget counts."""
    for name, settings in models.items():
        if wrong := sorted(_OWN_FIELDS & settings.extra.keys()):
            raise UsageError(
                f"models.{name}: extra can't set {', '.join(wrong)}, because Hoofbeat sets it for every call",
                where=str(file),
                fix="remove it from extra",
            )


def _own_identities(name: str, settings: ModelSettings) -> set[str]:
    """The identities that name this model itself; OpenAI's and local ones are never configured."""
    if settings.is_fleet:
        return {f"{each.rstrip('/')}#{settings.name}" for each in ("fleet", *settings.endpoints)}
    spec = settings.spec or name
    kind = spec.partition(":")[0]
    if kind == "batch":
        return {f"batch#{spec.rpartition('#')[2]}"}
    return {spec} if kind in ("http", "https") else set()


def _refuse_secrets(raw: dict[str, object], file: Path) -> None:
    """Keys in the file are refused by the field's name, whatever their place; what they say is not repeated."""
    models = raw.get("models")
    for name, table in models.items() if isinstance(models, dict) else ():
        if not isinstance(table, dict):
            continue
        found = _secret_field({field_name: value for field_name, value in table.items() if field_name != "key"})
        if not found and "key" in table and not _VARIABLE.fullmatch(str(table["key"])):
            found = "key that is not a variable's name"
        if found:
            raise UsageError(
                f"models.{name} has a field {found}: keys come from the environment only",
                where=str(file),
                fix='remove it from the file; name the variable instead: key = "MY_KEY_VARIABLE"',
            )


def _secret_field(table: dict[str, object]) -> str:
    for name, value in table.items():
        if _SECRET.search(name):
            return name
        if isinstance(value, dict) and (inner := _secret_field(value)):
            return f"{name}.{inner}"
    return ""


_KINDS = ("embedded", "openai", "http", "https", "batch", "replay")
_LOCAL_KINDS = ("embedded", "replay")
_OWN_FIELDS = frozenset({"model", "messages", "input", "n", "stream"})
_NAMED_KINDS = (*_KINDS, "fleet")
_FORMS = {"openai": "openai:NAME", "batch": "batch:FOLDER#NAME", "replay": "replay:FILE"}
_FORMAT = "?format="
_MAX_IN_FLIGHT = 128
FLEET_IN_FLIGHT = 512
"""Calls to all servers of a fleet together: a process may have 1,024 files and connections open on most systems."""

_FLEET_CONNECT = 10.0  # seconds: there are other servers to call meanwhile
_START = 8


def load_model(
    spec: str,
    *,
    ledger: CallLedger,
    config: Config | None = None,
    budget: Budget | None = None,
    reasoning: int | None = None,
    quarantine: bool = False,
    tell: Callable[[str], None] | None = None,
    batches: dict[str, BatchBackend] | None = None,
) -> Model:
    """The model a spec or alias names. Nothing is called yet; wrong names are said here.

    `reasoning` is the allowance for hidden reasoning in place of the configuration's; `tell` gets what a user should
    know, such as that a window is assumed. `batches` keeps batch folders for the next model of the same name.
    """
    config = config or Config()
    settings = config.models.get(spec, ModelSettings())
    target = f"fleet#{settings.name}" if settings.is_fleet else settings.spec or spec
    if settings.spec and target in config.models and config.models[target].spec:
        raise UsageError(f"the alias {spec} refers to another alias, {target}", fix="give the model's spec there")
    found = config.found if spec in config.models else None
    backend = (batches or {}).get(spec) or _backend(target, settings, found, known=list(config.models), tell=tell)
    if found is not None and tell is not None and isinstance(backend, HttpBackend) and settings.spec:
        _tell_address(spec, backend, found, tell)
    if batches is not None and isinstance(backend, BatchBackend):
        batches[spec] = backend
    facts = load_known_models(Path(config.known_models) if config.known_models else None)
    known = None if target.startswith(("embedded", "replay:")) else facts.find(bare_name(target))
    served = known is not None and facts.served_by_provider(known, _host(target))
    priced = known if served or isinstance(backend, BatchBackend) else None
    price = _price(target, settings, facts, priced, config)
    if found is not None:
        _tell_requests(spec, settings, price, _price(target, ModelSettings(), facts, priced, config), found, tell)
    largest = facts.window(known) if known is not None else None
    window = _window(settings, backend, largest if known is not None and (served or not known.weights) else None)
    if known is not None and tell is not None:
        _tell_unchecked(spec, facts.provider(known), window, price, tell)
    return Model(
        spec=spec,
        backend=backend,
        ledger=ledger,
        budget=budget,
        price=price,
        pacer=_pacer(backend, settings),
        attempts=settings.attempts,
        window=window,
        max_window=largest,
        max_output=known.output if known is not None else None,
        reasoning=_allowance(target, settings, reasoning),
        quarantine=quarantine,
        tell=tell,
    )


def _tell_address(spec: str, backend: HttpBackend, found: FolderConfig, tell: Callable[[str], None]) -> None:
    """Say where calls go that the folder's configuration leads there, unless the user has said yes to that."""
    if backend.address and not found.is_trusted:
        key = f", with the key in {backend.key_variable}" if backend.sends_key else ""
        tell(f"{spec}: calls go to {backend.address}{key} (as {found.file.name} in this folder says)")


def _tell_requests(
    spec: str,
    settings: ModelSettings,
    price: Price | None,
    listed: Price | None,
    found: FolderConfig,
    tell: Callable[[str], None] | None,
) -> None:
    """Ask before the folder's configuration counts less than the list price, and say what it adds to requests."""
    if price and listed and (price.tokens_in < listed.tokens_in or price.tokens_out < listed.tokens_out):
        found.need(f"count less than the list price for {spec}, so that a budget would allow more calls")
    if settings.extra and tell is not None and not found.is_trusted:
        added = ", ".join(f"{name} = {json.dumps(value)}" for name, value in sorted(settings.extra.items()))
        tell(f"{spec}: every request has {added} (as {found.file.name} in this folder says)")


def _pacer(backend: Backend, settings: ModelSettings) -> Pacer:
    limit = min(backend.max_in_flight, settings.max_in_flight or backend.max_in_flight)
    return Pacer(
        max_in_flight=limit,
        start=limit if isinstance(backend, BatchBackend) else _START * getattr(backend, "servers", 1),
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
    )


def _host(target: str) -> str:
    """The host that serves a model; empty where it is not known (batches) or there is none."""
    if target.startswith("openai:"):
        target = os.environ.get("OPENAI_BASE_URL") or OPENAI
    return urlsplit(target).hostname or "" if target.startswith(("http://", "https://")) else ""


def _price(
    target: str, settings: ModelSettings, facts: KnownModels, known: KnownModel | None, config: Config
) -> Price | None:
    """What is configured, else the list price at the model's own provider; embedded models cost nothing."""
    if settings.price_in is not None or settings.price_out is not None:
        return Price(tokens_in=settings.price_in or 0.0, tokens_out=settings.price_out or 0.0)
    if target.startswith(("embedded", "replay:")):
        return Price(tokens_in=0.0, tokens_out=0.0)
    if known is None or config.currency != facts.currency:
        return None
    return facts.price(known, batch=target.startswith("batch:"))


def _window(settings: ModelSettings, backend: Backend, known: ContextWindow | None) -> ContextWindow | None:
    """The window as far as it is known without a call; None where the endpoint is to be asked.

    A server may serve less of open weights than they can read, so it is asked first.
    """
    if settings.context:
        return ContextWindow(tokens=settings.context, source="configured")
    own = getattr(backend, "context", None)
    return ContextWindow(tokens=own, source="known") if isinstance(own, int) else known


def _tell_unchecked(
    spec: str, provider: Provider, window: ContextWindow | None, price: Price | None, tell: Callable[[str], None]
) -> None:
    """Say which facts that a command uses were never compared with the provider's page."""
    if provider.checked:
        return
    used = {
        "context window": (window is not None and window.source == "unchecked", "context"),
        "price": (price is not None and bool(price.source), "price_in and price_out"),
    }
    if names := [name for name, (is_used, _) in used.items() if is_used]:
        fields = ", ".join(field for is_used, field in used.values() if is_used)
        tell(
            f"{spec}: its {' and '.join(names)} were entered from memory (as of {provider.as_of}) and are unchecked. "
            f"Check the provider's page, and set {fields} in hoofbeat.toml"
        )


def _allowance(target: str, settings: ModelSettings, asked: int | None) -> int:
    """The tokens that a model may reason with, beside those of its answer.

    Without a setting: what the fields that are sent say, none for names of models known not to reason, else the usual.
    """
    if target.startswith(("embedded", "replay:")):
        return 0
    configured = _configured_reasoning(settings.extra)
    chosen = settings.reasoning if asked is None else asked
    if chosen is not None:
        if configured is not None and chosen < configured:
            raise UsageError(
                f"the settings for {target} allow {configured} tokens of reasoning, but reasoning is set to {chosen}",
                fix="set reasoning to at least that number: providers refuse a lower limit",
            )
        return chosen
    if configured is not None:
        return configured
    known = _reasoning_data()
    name = bare_name(target)
    plain = known.plain.search(name) and not known.reasons.search(name)
    return 0 if plain else known.allowance


def _configured_reasoning(extra: Mapping[str, object]) -> int | None:
    """What `extra` says of reasoning: none, or a number of tokens; None where it does not say."""

    def found(*path: str) -> object:
        value: object = extra
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    if (
        found("reasoning_effort") == "none"
        or found("thinking", "type") == "disabled"
        or found("chat_template_kwargs", "enable_thinking") is False
    ):
        return 0
    for path in _THINKING_BUDGETS:
        tokens = found(*path)
        if isinstance(tokens, int) and tokens >= 0:
            return tokens
    return None


_THINKING_BUDGETS = (
    ("thinking", "budget_tokens"),  # Anthropic: must be below max_tokens
    ("generationConfig", "thinkingConfig", "thinkingBudget"),  # Gemini; -1 lets the model choose
    ("thinking_token_budget",),  # vLLM
    ("reasoning", "max_tokens"),  # OpenRouter
)


class _ReasoningData(NamedTuple):
    allowance: int
    plain: re.Pattern[str]
    reasons: re.Pattern[str]


@lru_cache(maxsize=1)
def _reasoning_data() -> _ReasoningData:
    raw = tomllib.loads((Path(__file__).parent / "data" / "reasoning.toml").read_text(encoding="utf-8"))
    plain, reasons = (re.compile("|".join(f"(?:{each})" for each in raw[name])) for name in ("plain", "reasons"))
    return _ReasoningData(int(raw["allowance"]), plain, reasons)


def _backend(
    spec: str,
    settings: ModelSettings,
    found: FolderConfig | None,
    *,
    known: Sequence[str],
    tell: Callable[[str], None] | None = None,
) -> Backend:
    if settings.is_fleet:
        return _fleet(settings, found, tell)
    kind, _, rest = spec.partition(":")
    if kind == "embedded":
        from hoofbeat.models.http_backend import EmbeddedBackend  # noqa: PLC0415 - loads the runtime

        return EmbeddedBackend(rest, context=settings.context, dialect=_dialect(settings))
    if kind in ("http", "https"):
        return _http(spec, settings, found)
    if kind == "openai" and rest:
        url = (os.environ.get("OPENAI_BASE_URL") or OPENAI).rstrip("/")
        identity = f"openai:{rest}" if url == OPENAI else ""  # another endpoint's answers are another model's
        checked = found if settings.key else None  # the address and OPENAI_API_KEY are the user's own
        return _http(
            f"{url}#{rest}", settings, checked, identity=identity, key_variable="OPENAI_API_KEY", key_required=True
        )
    folder, _, name = rest.rpartition("#")
    if kind == "batch" and folder and name:
        if found is not None and settings.spec:
            found.need_place("write requests into", folder.partition(_FORMAT)[0])
        return _batch(folder, name, settings)
    if kind == "replay" and rest:
        path = _replay_file(rest)
        if not path.is_file():
            raise InputError("there is no such replay file", where=rest, fix="check the path after replay:")
        return ReplayBackend(path)
    raise _unknown(spec, known)


def _replay_file(name: str) -> Path:
    if name != "teaching":
        return Path(name)
    from hoofbeat.teaching import recorded_replies  # noqa: PLC0415 - few commands replay the demo

    return recorded_replies()


def _fleet(settings: ModelSettings, found: FolderConfig | None, tell: Callable[[str], None] | None) -> Backend:
    if not settings.name or settings.spec or bool(settings.endpoints) == bool(settings.endpoints_file):
        raise UsageError(
            "a model with several endpoints needs a name and either endpoints or endpoints_file, but no spec",
            fix='write name = "NAME" and endpoints = ["http://host:port/v1", ...] in its table of hoofbeat.toml',
        )

    from hoofbeat.models.fleet import FleetBackend  # noqa: PLC0415 - few commands call a fleet

    def make(address: str) -> HttpBackend:
        if not address.startswith(("http://", "https://")) or "#" in address:
            raise UsageError(
                f"{address!r} is not the address of an endpoint",
                where=settings.endpoints_file or None,
                fix="write http://host:port/v1; the model's name is written once, as name = ...",
            )
        now = FolderConfig.of(found.file) if found is not None else None  # the list may have changed since the consent
        try:
            backend = _http(f"{address}#{settings.name}", settings, now, connect_timeout=_FLEET_CONNECT)
        except UsageError as err:
            err.where = err.where or settings.endpoints_file or None
            raise
        if now is not None and tell is not None:
            _tell_address(settings.name, backend, now, tell)
        return backend

    return FleetBackend(
        identity=_dialect(settings).identity(settings.identity or f"fleet#{settings.name}"),
        endpoints=settings.endpoints,
        file=Path(settings.endpoints_file) if settings.endpoints_file else None,
        make=make,
        max_in_flight=settings.max_in_flight or FLEET_IN_FLIGHT,
        tell=tell,
    )


def _batch(folder: str, name: str, settings: ModelSettings) -> BatchBackend:
    path, _, format = folder.partition(_FORMAT)
    if _FORMAT in folder and format not in BATCH_FORMATS:
        raise UsageError(
            f"there is no batch format {format!r}",
            fix=f"{did_you_mean(format, BATCH_FORMATS)}choose one of: {', '.join(BATCH_FORMATS)}",
        )
    chosen = msgspec.convert(format or "openai", BatchFormat)
    dialect = _dialect(settings, openai=chosen == "openai")
    return BatchBackend(Path(path), name, format=chosen, identity=settings.identity, dialect=dialect)


def _dialect(settings: ModelSettings, *, openai: bool = False) -> Dialect:
    return Dialect(extra=settings.extra, omit=tuple(settings.omit), openai=openai)


def _http(
    spec: str,
    settings: ModelSettings,
    found: FolderConfig | None = None,
    *,
    identity: str = "",
    key_variable: str = "HOOFBEAT_API_KEY",
    key_required: bool = False,
    connect_timeout: float = 30.0,
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
            f"an endpoint is written http://host:port/v1#NAME, but {address!r} "
            + ("lacks its model name" if host else "has no valid host and port"),
            fix="put the model's name after a #" if host else "correct the address",
        )
    variable = settings.key or key_variable
    led_there = (settings.spec or settings.is_fleet) and os.environ.get(variable) and not is_loopback(address)
    if found is not None and (settings.key or led_there):
        found.need_key(variable, address)
    return HttpBackend(
        url=address,
        name=name,
        identity=settings.identity or identity or spec,
        key_variable=variable,
        key_required=key_required or bool(settings.key),
        timeout=settings.timeout,
        connect_timeout=connect_timeout,
        max_in_flight=settings.max_in_flight or _MAX_IN_FLIGHT,
        dialect=_dialect(settings, openai=urlsplit(address).hostname == urlsplit(OPENAI).hostname),
    )


def _unknown(spec: str, known: Sequence[str]) -> ModelError:
    kind = spec.partition(":")[0]
    if kind in _FORMS:
        return ModelError(f"the model {spec!r} lacks its name", fix=f"write it as {_FORMS[kind]}")
    return ModelError(
        f"there is no model {spec!r}", fix=f"{did_you_mean(kind, [*_KINDS, *known])}name one of: {SPEC_HELP}"
    )


class Session(Struct, frozen=True, kw_only=True):
    """An open ledger with what is needed to load models.

    `batches` are the batch folders in use, by the models' names: all requests of a command go into one file. With
    `check`, the model `checker` looks for instructions in the texts of every request first.
    """

    ledger: CallLedger
    config: Config
    budget: Budget
    reasoning: int | None = None
    quarantine: bool = False
    check: Callable[[Model], TextCheck] | None = None
    checker: str = ""
    tell: Callable[[str], None] | None = None
    batches: dict[str, BatchBackend] = field(default_factory=dict)

    def model(self, spec: str) -> Model:
        """The model of this name, on this session's ledger and budget, with one that looks at its texts if asked."""
        model = self._load(spec)
        if self.check is not None:
            model.check = self.check(self._load(self.checker))
        return model

    def _load(self, spec: str) -> Model:
        return load_model(
            spec,
            ledger=self.ledger,
            config=self.config,
            budget=self.budget,
            reasoning=self.reasoning,
            quarantine=self.quarantine,
            tell=self.tell,
            batches=self.batches,
        )


TINY = "embedded"
USEFUL = "embedded:qwen2.5-coder-1.5b"


def too_small_note(specs: Sequence[str], task: str) -> str:
    """That the default model is too small for the task, where one of these models is it; else empty."""
    if all(spec.partition("[")[0] != TINY for spec in specs):
        return ""
    return (
        f"the model `{TINY}` has 135 million parameters and is too small to {task}. It only shows that the command "
        "works. Use a stronger model instead"
    )


def _telling_once(tell: Callable[[str], None]) -> Callable[[str], None]:
    """`tell`, but each sentence only once."""
    told: set[str] = set()

    def once(text: str) -> None:
        if text not in told:
            told.add(text)
            tell(text)

    return once


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
    *,
    ledger_path: LedgerPlace | None = None,
    config_path: Path | None = None,
    budget: str | float | None = None,
    reasoning: int | None = None,
    quarantine: bool = False,
    check: Callable[[Model], TextCheck] | None = None,
    checker: str = "",
    tell: Callable[[str], None] | None = None,
    output: Path | None = None,
) -> Iterator[Session]:
    """Open the ledger and the configuration; `reasoning` is the allowance of every model, whatever is configured.

    `quarantine` makes no call whose texts tell a model what to do; with `check`, the model `checker` looks for that as
    well. `tell` gets what a user should know of the models,
    each sentence once. `output` is where the result goes: a ledger in it would be removed when it is replaced.
    """
    if checker.startswith("batch:"):
        raise UsageError("a batch folder can't check texts", where=checker, fix="name a model that answers at once")
    config = load_config(config_path)
    limits = Budget.parse(budget)
    place = ledger_place(ledger_path, config.ledger)
    if output is not None and not is_postgres(place) and Path(place).resolve().is_relative_to(output.resolve()):
        raise OutputError(
            "the ledger is in the output folder",
            where=str(place),
            fix="choose another folder with -o, or another ledger with --ledger",
        )
    with open_ledger(place) as ledger:
        telling = _telling_once(tell) if tell is not None else None
        yield Session(
            ledger=ledger,
            config=config,
            budget=limits,
            reasoning=reasoning,
            quarantine=quarantine,
            check=check,
            checker=checker,
            tell=telling,
        )


@contextmanager
def late_models(
    default: str, opened: Callable[[], AbstractContextManager[Session]], budget: str | float | None
) -> Iterator[Callable[[str], Model]]:
    """What loads models by name (an empty name is the default), with a session that is `opened` for the first one."""
    Budget.parse(budget)  # a wrong one is told now, not when the first model is needed
    with ExitStack() as stack:
        sessions: list[Session] = []

        def load(spec: str) -> Model:
            if not sessions:
                sessions.append(stack.enter_context(opened()))
            return sessions[0].model(spec or default)

        yield load
