"""The layout of the Hugging Face Hub: Parquet files, a card, a datasheet and Croissant metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat
from hoofbeat.benchmarks.exports.croissant import write_croissant_file
from hoofbeat.benchmarks.exports.datasheet import (
    FIELDS,
    as_written,
    flat_row,
    made_in_words,
    title_line,
    write_datasheet_file,
)
from hoofbeat.records import Question
from hoofbeat.store.files import inside, write_bytes
from hoofbeat.store.tables import write_parquet


class _Huggingface(ExportFormat):
    name = "huggingface"
    summary = "Parquet, a card, a datasheet, Croissant"
    all_editions = True

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """The Hugging Face layout: a Parquet file for each edition, a card, a datasheet, Croissant metadata."""
        files = {}
        for name, questions in bundle.given.items():
            path = inside(folder, f"{name}/test-00000-of-00001.parquet")
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_parquet(path, questions)
            bundle.copy_images(questions, folder)
            files[name] = path
        configs = {name: path.relative_to(folder).as_posix() for name, path in files.items()}
        write_bytes(folder / "README.md", _data_card(bundle, configs).encode())
        write_croissant_file(bundle, folder, files, "application/x-parquet")
        write_datasheet_file(bundle, folder)
        return len(bundle.questions)


FORMAT = _Huggingface()


def _write_parquet(path: Path, questions: Sequence[Question]) -> None:
    import polars  # noqa: PLC0415 - only where Parquet is written

    schema = {name: polars.List(polars.String) if many else polars.String() for name, _, many, _ in FIELDS}
    write_parquet(path, polars.DataFrame([flat_row(question) for question in questions], schema=schema))


def _data_card(bundle: ExportBundle, configs: Mapping[str, str]) -> str:
    """A `README.md` as the hub reads it: where each edition's files lie, and where to read on."""
    listed = "\n".join(  # as JSON, which is YAML: an edition's name is that of a file
        f"  - config_name: {json.dumps(name)}\n    data_files:\n      - split: test\n        path: {json.dumps(path)}"
        for name, path in configs.items()
    )
    return (
        f"---\nconfigs:\n{listed}\nlanguage:\n  - en\ntags:\n  - medical\n---\n\n"
        f"# {title_line(bundle)}\n\n{as_written(bundle.manifest.notice)}\n\n{made_in_words(bundle)}\n\n"
        "See `DATASHEET.md` for how it was made and what was rejected, `croissant.json` for metadata.\n"
    )
