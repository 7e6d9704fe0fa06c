"""An artefact folder as an object for Python and notebooks: its manifest, its tables as data frames, and a display.

Classes that know more about one kind of folder (`Corpus`, `Benchmark`, `Run`, ...) are built on this one.
"""

from __future__ import annotations

import html
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hoofbeat.errors import InputError, UsageError, did_you_mean
from hoofbeat.store.artefact import Artefact
from hoofbeat.store.manifest import Manifest
from hoofbeat.store.tables import bare_cell, read_parquet

if TYPE_CHECKING:
    import pandas
    import polars

_TABLES = (".jsonl", ".tsv", ".csv", ".parquet")
_SHOWN = 12


class ArtefactFolder:
    """An opened artefact folder of any kind."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact
        self.path: Path = artefact.path
        self.manifest: Manifest = artefact.manifest

    @property
    def kind(self) -> str:
        """What the folder is: corpus, benchmark, rankings, run, judgments, audit, report, ..."""
        return self.manifest.kind

    @property
    def tables(self) -> list[str]:
        """The names of the tables in the folder (JSONL, TSV, CSV and Parquet files)."""
        return [name for name in self.manifest.files if name.endswith(_TABLES)]

    def table(self, name: str) -> polars.DataFrame:
        """One table as a Polars data frame; the suffix of the file may be left out."""
        file = self.artefact.file(self._table_file(name))
        if file.suffix == ".parquet":
            return read_parquet(file)
        return _read_lines(file) if file.suffix == ".jsonl" else _read_cells(file)

    def pandas(self, name: str) -> pandas.DataFrame:
        """One table as a pandas data frame; pandas must be installed."""
        frame = self.table(name)
        try:
            import pandas  # noqa: PLC0415 - optional, and slow to load
        except ImportError as err:
            raise UsageError("pandas is not installed", fix="pip install pandas, or use .table() for Polars") from err
        return pandas.DataFrame(frame.to_dict(as_series=False))

    def _table_file(self, name: str) -> str:
        if name in self.tables:
            return name
        short = {each: str(PurePosixPath(each).with_suffix("")) for each in self.tables}
        same = [each for each in self.tables if short[each] == name]
        if len(same) != 1:
            known = ", ".join(self.tables) or "none"
            which = f"{len(same)} tables are called {name}" if same else f"this {self.kind} has no table {name}"
            raise UsageError(
                which,
                where=str(self.path),
                fix=f"{did_you_mean(name, [*self.tables, *short.values()])}its tables are: {known}",
            )
        return same[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, {_counted(self.manifest)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: kind, title, counts, the main figures and the tables."""
        manifest = self.manifest
        rows = [("folder", str(self.path)), ("counts", _counted(manifest))]
        rows += [("models", ", ".join(dict.fromkeys(manifest.models.values())))] if manifest.models else []
        rows += [("cost", f"{manifest.cost.calls} calls, {manifest.cost.money:.2f} in money")] * bool(
            manifest.cost.calls
        )
        rows += [(name, _figure(value)) for name, value in list(manifest.metrics.items())[:_SHOWN]]
        rows += [("tables", ", ".join(self.tables))] if self.tables else []
        cells = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(value)}</td></tr>'
            for name, value in rows
            if value
        )
        return f"<p><b>{html.escape(self.kind)}</b> {html.escape(manifest.title)}</p><table>{cells}</table>"


def _counted(manifest: Manifest) -> str:
    counts = manifest.counts
    parts = [f"{counts.kept} kept"]
    parts += [f"{counts.rejected} rejected"] if counts.rejected else []
    return ", ".join([*parts, f"{counts.failed} failed"] if counts.failed else parts)


def _figure(value: object) -> str:
    """A figure of the manifest in one line; longer lists and tables are left to the folder's own tables."""
    if isinstance(value, dict) and "value" in value:
        low, high = value.get("low"), value.get("high")
        interval = f" [{low:.3f}, {high:.3f}]" if isinstance(low, float) and isinstance(high, float) else ""
        return f"{value['value']:.3f}{interval}" if isinstance(value["value"], float) else str(value["value"])
    if isinstance(value, dict) and not any(isinstance(each, dict | list) for each in value.values()):
        return ", ".join(f"{each} {name}" for name, each in value.items())
    return "" if isinstance(value, dict | list) else str(value)


def _read_lines(file: Path) -> polars.DataFrame:
    """A JSONL table. Values whose types differ within a column (facets: a text or a list) come as JSON text."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    if not file.stat().st_size:
        return polars.DataFrame()
    try:
        return polars.read_ndjson(file, infer_schema_length=None)
    except (OSError, polars.exceptions.PolarsError) as err:
        raise InputError(f"can't read the table: {err}", where=str(file), fix="make the artefact again") from err


def _read_cells(file: Path) -> polars.DataFrame:
    import polars  # noqa: PLC0415 - as above

    tabs = file.suffix == ".tsv"
    try:
        frame = polars.read_csv(
            file, separator="\t" if tabs else ",", quote_char=None if tabs else '"', infer_schema_length=None
        )
    except (OSError, polars.exceptions.PolarsError) as err:
        raise InputError(f"can't read the table: {err}", where=str(file), fix="make the artefact again") from err
    texts = [name for name, kind in frame.schema.items() if kind == polars.String]
    return frame.with_columns(
        polars.Series(name, [None if cell is None else bare_cell(cell) for cell in frame[name]], dtype=polars.String)
        for name in texts
    )
