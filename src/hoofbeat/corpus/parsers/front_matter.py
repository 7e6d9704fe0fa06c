"""What a document says about itself beside its text: front matter, or a side file for formats that have none.

`key: value` lines between two `---` lines. `id`, `title`, `kind`, `licence` and `notice` go to the record, every other
key is a facet; a value written `[a, b]` is a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hoofbeat.corpus.parsers.prose import TextBuilder
from hoofbeat.errors import InputError
from hoofbeat.records import Document, Facets
from hoofbeat.text import safe_id, squeeze

MAX_SIDE_FILE = 1_000_000


class FrontMatter(Struct, frozen=True, kw_only=True):
    """A document's statements about itself; empty where it makes none."""

    id: str = ""
    title: str = ""
    kind: str = ""
    licence: str = ""
    notices: tuple[str, ...] = ()
    facets: Facets = field(default_factory=dict)


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Front matter and the rest; text that has none is returned whole."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return FrontMatter(), text
    end = next((place for place, line in enumerate(lines[1:], start=1) if line.strip() in {"---", "..."}), None)
    if end is None:
        return FrontMatter(), text
    pairs = [
        (key.strip(), value.strip()) for key, colon, value in (line.partition(":") for line in lines[1:end]) if colon
    ]
    return about_from((key, _value(value)) for key, value in pairs if key and not key.startswith("#")), "\n".join(
        lines[end + 1 :]
    )


def about_from(pairs: Iterable[tuple[str, str | list[str]]]) -> FrontMatter:
    """Statements from key and value pairs."""
    record: dict[str, str] = {}
    notices: list[str] = []
    facets: Facets = {}
    for key, value in pairs:
        words = value if isinstance(value, list) else [value]
        name = {"license": "licence", "notices": "notice"}.get(key.lower(), key)
        if name == "notice":
            notices += [word for word in words if word]
        elif name in {"id", "title", "kind", "licence"}:
            record[name] = squeeze(", ".join(words))
        elif value:
            facets[key] = value
    if record.get("id"):
        record["id"] = safe_id(record["id"])
    return FrontMatter(notices=tuple(notices), facets=facets, **record)


def side_file(path: Path) -> FrontMatter:
    """What a Markdown source of the same name (beside the file or one folder up) or `<stem>.json` says about a file."""
    for source in (path.with_suffix(".md"), path.parent.parent / f"{path.stem}.md"):
        if _readable(source):
            about, _ = split_front_matter(source.read_text(encoding="utf-8-sig", errors="replace"))
            if about != FrontMatter():
                return about
    source = path.with_suffix(".json")
    if not _readable(source):
        return FrontMatter()
    try:
        found = msgspec.json.decode(source.read_bytes(), type=dict[str, str | int | float | list[str]])
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise InputError(
            f"its side file can't be read: {source.name}: {err}", fix="make it one JSON object of texts, or remove it"
        ) from err
    return about_from(_plain(found).items())


def _plain(found: Mapping[str, str | int | float | list[str]]) -> dict[str, str | list[str]]:
    return {key: value if isinstance(value, list) else str(value) for key, value in found.items()}


def _readable(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_SIDE_FILE


def _value(text: str) -> str | list[str]:
    if text.startswith("[") and text.endswith("]"):
        return [item for part in text[1:-1].split(",") if (item := _unquoted(part.strip()))]
    return _unquoted(text)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text


def assemble(about: FrontMatter, builder: TextBuilder, stem: str) -> Document:
    """A document from what was said about it and its text; the first heading is the title where none is stated."""
    sections = builder.sections()
    first = next((section.heading for section in sections if section.heading), "")
    return Document(
        id=about.id or safe_id(stem),
        title=about.title or first or stem,
        text=builder.text,
        kind=about.kind,
        sections=sections,
        figures=tuple(builder.figures),
        tables=tuple(builder.tables),
        facets=about.facets,
        licence=about.licence,
        notices=about.notices,
    )
