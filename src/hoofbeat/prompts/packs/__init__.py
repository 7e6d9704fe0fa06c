"""Domain packs: what an audit needs to know of its domain, as data. Another domain brings another file.

A pack is a TOML file: one of this folder, named by its name, or one's own, named by its path or, once `--plugin
my_pack.toml` has loaded it, by its name. A pack with a `base` has all that it does not give itself from that pack; its
expansion words come before those of the base. What an audit can't work with is refused when the file is read, with the
field that is wrong and what to write instead.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import InputError
from hoofbeat.registry import registry
from hoofbeat.trust import parse_toml

if TYPE_CHECKING:
    from hoofbeat.prompts.library import Prompt

__all__ = [
    "DEFAULT_PACK",
    "OWN_PROMPTS",
    "Pack",
    "RelationLabel",
    "SynonymGroup",
    "decode_pack",
    "encode_pack",
    "load_pack",
    "pack_names",
    "read_pack",
    "shipped_packs",
]

_FOLDER = resources.files("hoofbeat.prompts.packs")
_NAME = re.compile(r"[a-z][a-z0-9_-]{1,39}")
_MIN_LABELS = 3
_MAX_BYTES = 200_000
_NO_LEVEL = "none"

DEFAULT_PACK = "transplant"
"""The pack of a command that names none."""

OWN_PROMPTS = ("answer-source", "absence", "compare", "compare-label", "compare-details", "positions", "theme-name")
"""The prompts whose instructions a pack can give in its own words."""


class SynonymGroup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Words for one thing: each of `terms` brings the others; `narrower` words bring them and are not brought."""

    terms: list[str]
    narrower: list[str] = field(default_factory=list)


class RelationLabel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One relation between two answers: its name, its operational definition, and how it counts.

    `example`: an invented question with two answers that have this label, for the judge. `diverges`: it counts as
    disagreement. `topic`: the judge names what the two differ in. `significance`: the judge says how much that matters.
    """

    name: str
    definition: str
    example: str = ""
    diverges: bool = False
    topic: bool = False
    significance: bool = False


class Pack(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A domain: its labels in order (the first is the absent one, the second the consistent one), words and facets.

    `decision` tells a judge in which order to try the labels. `answer_details` are what a judge is shown below each
    answer.
    """

    extension_kind: ClassVar[str] = "pack"
    extension_package: ClassVar[str] = "hoofbeat.prompts.packs"

    name: str
    title: str
    reader: str
    source_word: str
    not_addressed: str
    group_facet: str
    source_facet: str
    significance_levels: list[str]
    significance_meaning: str
    labels: list[RelationLabel]
    decision: str = ""
    answer_details: list[Literal["strength", "date"]] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    subtopics: dict[str, list[str]] = field(default_factory=dict)
    group_words: dict[str, list[str]] = field(default_factory=dict)
    expansions: list[SynonymGroup] = field(default_factory=list)
    prompts: dict[str, str] = field(default_factory=dict)
    base: str = ""
    fingerprint: str = ""

    @property
    def summary(self) -> str:
        """Its title, for listings."""
        return self.title

    @property
    def absent(self) -> str:
        """The label of a pair in which a source is silent."""
        return self.labels[0].name

    @property
    def consistent(self) -> str:
        """The label of a source with itself."""
        return self.labels[1].name

    @property
    def judged(self) -> list[RelationLabel]:
        """The labels of two sources that both address the question: all but the absent one."""
        return self.labels[1:]

    @property
    def choices(self) -> list[RelationLabel]:
        """The labels that a judge chooses from: all of them, the absent one last."""
        return [*self.judged, self.labels[0]]

    def prompt(self, name: str) -> Prompt:
        """A prompt, with the pack's own instructions where it gives some; its fingerprint then covers both."""
        from hoofbeat.prompts.library import load_prompt  # noqa: PLC0415 - listing packs needs no templates

        prompt = load_prompt(name)
        own = self.prompts.get(name)
        if own is None:
            return prompt
        fingerprint = hashlib.sha256(f"{prompt.fingerprint}\n{own}".encode()).hexdigest()[:12]
        return msgspec.structs.replace(prompt, system=own, fingerprint=fingerprint)

    def label(self, name: str) -> RelationLabel:
        """One label by its name."""
        return next(label for label in self.labels if label.name == name)


def pack_names() -> list[str]:
    """All packs that ship with the package, and those that plugins brought."""
    return list(registry.names(Pack))


def load_pack(name: str) -> Pack:
    """The pack of this name, or of this file where the name ends in `.toml`."""
    return read_pack(Path(name)) if name.endswith(".toml") else registry.get(Pack, name)


def shipped_packs() -> list[Pack]:
    """The packs of this folder."""
    files = [entry for entry in _FOLDER.iterdir() if entry.name.endswith(".toml")]
    return [_parsed(entry.read_bytes(), entry.name) for entry in sorted(files, key=lambda each: each.name)]


def read_pack(path: Path) -> Pack:
    """Read a user's pack from its file; its name must be new."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as err:
        raise InputError(
            f"the domain pack can't be read: {err.strerror or err}", where=str(path), fix="check the path"
        ) from err
    if len(data) > _MAX_BYTES:
        raise InputError(
            "the file is too large for a domain pack", where=str(path), fix=f"the maximum is {_MAX_BYTES:,} bytes"
        )
    pack = _parsed(data, str(path))
    if _FOLDER.joinpath(f"{pack.name}.toml").is_file():
        raise InputError(
            f"the name {pack.name!r} is already used by a pack of Hoofbeat",
            where=str(path),
            fix="give your pack another name",
        )
    return pack


def encode_pack(pack: Pack) -> bytes:
    """A pack as JSON, for an audit's folder: it can then be read where the pack's file is not."""
    return msgspec.json.format(msgspec.json.encode(pack), indent=1) + b"\n"


def decode_pack(data: bytes, where: str) -> Pack:
    """A pack as `encode_pack` wrote it; its fingerprint is that of the file it came from."""
    try:
        pack = msgspec.json.decode(data, type=Pack)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise InputError(f"the domain pack is wrong: {err}", where=where, fix="make the audit again") from err
    _check(pack, where)
    return pack


def _parsed(data: bytes, where: str) -> Pack:
    try:
        values = parse_toml(data.decode("utf-8"))
    except UnicodeDecodeError as err:
        raise InputError("the domain pack is not UTF-8 text", where=where, fix="save it as UTF-8") from err
    except tomllib.TOMLDecodeError as err:
        raise InputError(f"the domain pack is not valid TOML: {err}", where=where, fix="correct that line") from err
    if "fingerprint" in values:
        raise InputError("a domain pack must not set its fingerprint", where=where, fix="remove that line")
    base = _base(values.get("base"), where)
    try:
        pack = msgspec.convert(_over(base, values), Pack)
    except msgspec.ValidationError as err:
        raise InputError(
            f"the domain pack is wrong: {err}", where=where, fix="compare it with the list of fields in docs/packs.md"
        ) from err
    _check(pack, where)
    hashed = data if base is None else data + base.fingerprint.encode()
    return msgspec.structs.replace(pack, fingerprint=hashlib.sha256(hashed).hexdigest()[:12])


def _base(name: object, where: str) -> Pack | None:
    """The pack that another one is based on."""
    if name is None:
        return None
    shipped = _FOLDER.joinpath(f"{name}.toml")
    if isinstance(name, str) and _NAME.fullmatch(name) and shipped.is_file():
        return _parsed(shipped.read_bytes(), f"{name}.toml")
    raise InputError(
        f"the domain pack is wrong: its base {name!r} does not exist",
        where=where,
        fix="name a pack of Hoofbeat, or remove `base`",
    )


def _over(base: Pack | None, values: dict[str, object]) -> dict[str, object]:
    """What a file gives, and from its base what it does not give; expansion words are those of both."""
    if base is None:
        return values
    inherited = msgspec.to_builtins(base)
    own = values.get("expansions")
    words = [*own, *inherited["expansions"]] if isinstance(own, list) else inherited["expansions"]
    # an order of decision names labels, so it is of no use to a pack with its own labels
    left = {"name", "fingerprint", *(("decision",) if "labels" in values else ())}
    kept = {name: value for name, value in inherited.items() if name not in left}
    return {**kept, **values, "expansions": words}


def _check(pack: Pack, where: str) -> None:
    """Refuse a pack that an audit can't work with, naming the first thing that is wrong."""
    for what, fix in _problems(pack):
        raise InputError(f"the domain pack is wrong: {what}", where=where, fix=fix)


def _problems(pack: Pack) -> Iterator[tuple[str, str]]:
    """What is wrong and what to do about it, in the order of the file."""
    if not _NAME.fullmatch(pack.name):
        yield (
            f"name {pack.name!r} is not allowed",
            "use 2 to 40 lower-case letters, digits, - and _, starting with a letter",
        )
    for name in ("title", "reader", "source_word", "not_addressed", "group_facet", "source_facet"):
        value = str(getattr(pack, name))
        if not value.strip() or "\n" in value.strip():
            yield f"{name} is empty or has several lines", "write one line"
    opening = re.split(r"[:.]", pack.not_addressed, maxsplit=1)[0]
    if len(opening.split()) < 2:
        yield (
            f"not_addressed begins with {opening!r}",
            "begin with at least two words that no answer begins with, then a colon",
        )
    yield from _level_problems(pack)
    yield from _label_problems(pack)
    if _repeated(pack.topics) or not all(topic.strip() for topic in pack.topics):
        yield "topics has an empty or repeated topic", "give each topic once"
    for topic in pack.subtopics:
        if topic not in pack.topics:
            yield f"subtopics has {topic!r}, which is not in topics", "spell it as in topics"
    for group in pack.expansions:
        if not group.terms or not all(term.strip() for term in [*group.terms, *group.narrower]):
            yield "expansions has a group without words, or an empty word", "give each group its terms"
    yield from _prompt_problems(pack)


def _prompt_problems(pack: Pack) -> Iterator[tuple[str, str]]:
    if not pack.prompts:
        return
    from hoofbeat.prompts.library import template_names  # noqa: PLC0415 - listing packs needs no templates

    for name, text in pack.prompts.items():
        if name not in OWN_PROMPTS:
            yield f"prompts has {name!r}", f"a pack can replace only these: {', '.join(OWN_PROMPTS)}"
            continue
        names = template_names(text)
        known = pack.prompt(name).variables
        if names is None:
            yield f"the prompt {name} is not a valid template", "close every {{ and {%"
        elif unknown := sorted(names - set(known)):
            yield f"the prompt {name} has the unknown variable {unknown[0]!r}", f"it can use {', '.join(known)}"


def _level_problems(pack: Pack) -> Iterator[tuple[str, str]]:
    levels = pack.significance_levels
    if _NO_LEVEL in (level.casefold() for level in levels):
        yield "significance_levels has 'none'", "leave it out: a judge can always say none"
    if _repeated(levels) or not all(level.strip() for level in levels):
        yield "significance_levels has an empty or repeated level", "list each level once, lowest first"
    if any(label.significance for label in pack.labels):
        if not levels:
            yield "labels have a significance, but there are no significance_levels", "list them, lowest first"
        unsaid = [level for level in levels if level.casefold() not in pack.significance_meaning.casefold()]
        if unsaid:
            yield f"significance_meaning does not say what {unsaid[0]!r} means", "say when to choose each level"


def _label_problems(pack: Pack) -> Iterator[tuple[str, str]]:
    labels = pack.labels
    if len(labels) < _MIN_LABELS:
        yield (
            f"only {len(labels)} labels",
            "give at least three, in order: silence, agreement, then the others",
        )
    if _repeated([label.name for label in labels]):
        yield "two labels have the same name", "give each label a different name"
    for label in labels:
        if not label.name.strip() or "\n" in label.name or not label.definition.strip():
            yield f"the label {label.name!r} has no name or no definition", "say when a judge should choose it"
    for label, role in zip(labels, ("silence", "agreement"), strict=False):
        if label.diverges or label.topic or label.significance:
            yield (
                f"the label {label.name!r} means {role}, so it can't diverge",
                "remove diverges, topic and significance there, or reorder the labels",
            )
    if not any(label.diverges for label in labels):
        yield "no label diverges", "write `diverges = true` for those that count as disagreement"


def _repeated(names: list[str]) -> bool:
    return len({name.strip().casefold() for name in names}) < len(names)
