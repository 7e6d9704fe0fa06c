"""`hoofbeat.toml`: aliases, prices, context sizes and rate limits of models. Never keys.

    [models.judge]                      # --model judge
    spec = "openai:gpt-4o"
    price_in = 2.50                     # per million tokens
    price_out = 10.00
    context = 128000
    requests_per_minute = 500
    key = "HOSPITAL_GATEWAY_KEY"        # the NAME of an environment variable

`plugins = ["my_stage.py"]` above the tables loads extensions.

A table may also bear a spec itself as its name (`[models."openai:gpt-4o"]`) to give that model its price.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import UsageError

__all__ = ["Config", "ModelSettings", "load_config"]

_SECRET = re.compile(r"api[_-]?key|(^|[_-])(token|secret|password|authorization|key)$", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


class ModelSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of one model."""

    spec: str = ""
    price_in: NotNegative | None = None
    price_out: NotNegative | None = None
    context: AtLeastOne | None = None
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    most_in_flight: AtLeastOne | None = None
    attempts: AtLeastOne = 6
    timeout: Positive = 180.0
    key: str = ""
    identity: str = ""
    extra: dict[str, object] = field(default_factory=dict)
    omit: list[str] = field(default_factory=list)


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file. `plugins` are files, relative to the file's folder, that the command loads (`cli.plugins`)."""

    plugins: list[str] = field(default_factory=list)
    models: dict[str, ModelSettings] = field(default_factory=dict)


def load_config(path: Path | None = None) -> Config:
    """Read the given file, else the one `HOOFBEAT_CONFIG` names, else `hoofbeat.toml` here; without any, defaults."""
    named = path or (Path(os.environ["HOOFBEAT_CONFIG"]) if os.environ.get("HOOFBEAT_CONFIG") else None)
    file = named or Path("hoofbeat.toml")
    if not file.is_file():
        if named:
            raise UsageError("there is no such configuration file", where=str(file), fix="check --config")
        return Config()
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise UsageError(f"the configuration can't be read: {err}", where=str(file), fix="correct the file") from err
    _refuse_secrets(raw, file)
    try:
        return msgspec.convert(raw, Config)
    except msgspec.ValidationError as err:
        raise UsageError(f"the configuration is wrong: {err}", where=str(file), fix="correct the file") from err


def _refuse_secrets(raw: dict[str, object], file: Path) -> None:
    """Keys in the file are refused by the field's name, whatever their place; what they say is not repeated."""
    models = raw.get("models")
    for name, table in models.items() if isinstance(models, dict) else ():
        if not isinstance(table, dict):
            continue
        found = _secret_field({field_name: value for field_name, value in table.items() if field_name != "key"})
        if not found and "key" in table and not _VARIABLE.fullmatch(str(table["key"])):
            found = "key that is no variable's name"
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
