"""Tables of records as data frames whose columns depend on the record, not on what happens to be in the file.

Files leave out what a record has by default, so a table read as it is lacks every column that no row fills: code that
worked on one folder would fail on the next. Here all fields of the record are columns, in its order, with its types and
defaults. Fields that are dictionaries (facets) keep the type that their content has.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from msgspec import NODEFAULT, Struct, inspect

from hoofbeat.records import Answer, Document, Hit, Judgment, Question

if TYPE_CHECKING:
    import polars

_RECORDS: dict[str, type[Struct]] = {
    "documents.jsonl": Document,
    "questions.jsonl": Question,
    "answers.jsonl": Answer,
    "judgments.jsonl": Judgment,
    "hits.jsonl": Hit,
}
_EDITIONS = "questions-"


def record_of(name: str) -> type[Struct] | None:
    """The record behind a table of a folder, by the name of its file; None for tables of another kind."""
    file = PurePosixPath(name).name
    return Question if file.startswith(_EDITIONS) and file.endswith(".jsonl") else _RECORDS.get(file)


def record_frame(file: Path, record: type[Struct]) -> polars.DataFrame:
    """A JSONL file of records as a data frame with all fields of the record; unknown fields follow them."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    types = column_types(record)
    empty = not file.stat().st_size
    names = [] if empty else polars.scan_ndjson(file, infer_schema_length=None).collect_schema().names()
    known = {name: kind for name, kind in types.items() if kind is not None and name in names}
    frame = (
        polars.DataFrame()
        if empty
        else polars.read_ndjson(file, schema_overrides=known or None, infer_schema_length=None)
    )
    made = []
    for each in msgspec.structs.fields(record):
        kind = types[each.name]
        column = polars.col(each.name) if each.name in names else polars.lit(None, dtype=kind or polars.String)
        default = () if each.default_factory is tuple else each.default
        if kind is not None and default is not NODEFAULT and default is not None:
            plain = list(default) if isinstance(default, tuple) else default
            column = column.fill_null(polars.lit(plain, dtype=kind))
        made.append(column.alias(each.name))
    others = [name for name in names if name not in types]
    if empty:
        return polars.DataFrame(schema={name: kind or polars.String() for name, kind in types.items()})
    return frame.select(*made, *others)


@cache
def column_types(record: type[Struct]) -> dict[str, polars.DataType | None]:
    """The type of each field's column; None where it follows from the content."""
    return {each.name: _type_of(inspect.type_info(each.type)) for each in msgspec.structs.fields(record)}


def _type_of(told: inspect.Type) -> polars.DataType | None:
    import polars  # noqa: PLC0415 - as above

    match told:
        case inspect.StrType() | inspect.LiteralType():
            return polars.String()
        case inspect.BoolType():
            return polars.Boolean()
        case inspect.IntType():
            return polars.Int64()
        case inspect.FloatType():
            return polars.Float64()
        case inspect.UnionType(types=types):
            rest = [each for each in types if not isinstance(each, inspect.NoneType)]
            return _type_of(rest[0]) if len(rest) == 1 else None
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            inner = _type_of(item)
            return polars.List(inner) if inner is not None else None
        case inspect.StructType(fields=fields):
            inside = {each.name: _type_of(each.type) for each in fields}
            known = {name: kind for name, kind in inside.items() if kind is not None}
            return polars.Struct(known) if len(known) == len(inside) else None
    return None
