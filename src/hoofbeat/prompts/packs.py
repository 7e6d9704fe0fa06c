"""Domain packs: what an audit needs to know of its domain, as data. Another domain brings another file."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import UsageError

__all__ = ["Label", "Pack", "load_pack", "pack_names"]

_FOLDER = resources.files("hoofbeat.prompts") / "packs"


class Label(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One relation between two answers: its name, its operational definition, and how it counts."""

    name: str
    definition: str
    diverges: bool = False
    topic: bool = False
    significance: bool = False


class Pack(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A domain: its labels in order (the first is the absent one, the second the consistent one), words and facets."""

    name: str
    title: str
    reader: str
    source_word: str
    not_addressed: str
    group_facet: str
    source_facet: str
    significance_levels: list[str]
    significance_meaning: str
    labels: list[Label]
    topics: list[str] = field(default_factory=list)
    fingerprint: str = ""

    @property
    def absent(self) -> str:
        """The label of a pair in which a source is silent."""
        return self.labels[0].name

    @property
    def consistent(self) -> str:
        """The label of a source with itself."""
        return self.labels[1].name

    @property
    def judged(self) -> list[Label]:
        """The labels a judge chooses from: all but the absent one."""
        return self.labels[1:]

    def label(self, name: str) -> Label:
        """One label by its name."""
        return next(label for label in self.labels if label.name == name)


def pack_names() -> list[str]:
    """All packs that ship with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))


@cache
def load_pack(name: str) -> Pack:
    """Read one pack."""
    if name not in pack_names():
        raise UsageError(f"there is no domain pack {name!r}", fix=f"use one of: {', '.join(pack_names())}")
    data = (_FOLDER / f"{name}.toml").read_bytes()
    try:
        pack = msgspec.convert(tomllib.loads(data.decode("utf-8")), Pack)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as err:
        raise UsageError(f"the domain pack {name} is wrong: {err}") from err
    return msgspec.structs.replace(pack, fingerprint=hashlib.sha256(data).hexdigest()[:12])
