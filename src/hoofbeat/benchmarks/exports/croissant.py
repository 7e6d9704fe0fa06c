"""Croissant metadata over JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat, write_json
from hoofbeat.benchmarks.exports.datasheet import (
    FIELDS,
    LICENCE_UNSTATED,
    dataset_name,
    flat_row,
    made_in_words,
    write_datasheet_file,
)
from hoofbeat.store.files import file_sha256, inside
from hoofbeat.store.tables import write_jsonl

_CONTEXT: dict[str, object] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{
        name: f"cr:{name}"
        for name in (
            "citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet",
            "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
            "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField",
            "transform",
        )
    },
}  # fmt: skip


class _Croissant(ExportFormat):
    name = "croissant"
    summary = "Croissant 1.1 metadata over JSON lines, and a datasheet"
    all_editions = True

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`croissant.json` (Croissant 1.1) with the questions of each edition as flat JSON lines, and a datasheet."""
        files = {}
        for name, questions in bundle.given.items():
            files[name] = inside(folder, f"{name}.jsonl")
            write_jsonl(files[name], map(flat_row, questions))
            bundle.copy_images(questions, folder)
        write_croissant_file(bundle, folder, files, "application/jsonlines")
        write_datasheet_file(bundle, folder)
        return len(bundle.questions)


FORMAT = _Croissant()


def write_croissant_file(bundle: ExportBundle, folder: Path, files: Mapping[str, Path], media_type: str) -> None:
    """`croissant.json` (Croissant 1.1) for these files, one record set each, by the edition's name."""
    distribution, record_sets = [], []
    for edition, path in files.items():
        file_id = f"{edition}-file"
        name = path.relative_to(folder).as_posix()
        distribution.append(
            {
                "@type": "cr:FileObject",
                "@id": file_id,
                "name": name,
                "contentUrl": name,
                "encodingFormat": media_type,
                "sha256": file_sha256(path),
            }
        )
        record_sets.append(
            {
                "@type": "cr:RecordSet",
                "@id": edition,
                "name": edition,
                "field": [_field(edition, file_id, *field) for field in FIELDS],
            }
        )
    manifest = bundle.manifest
    write_json(
        folder / "croissant.json",
        {
            "@context": _CONTEXT,
            "@type": "sc:Dataset",
            "conformsTo": "http://mlcommons.org/croissant/1.1",
            "name": dataset_name(bundle),
            "description": f"{manifest.title}. {len(bundle.questions)} questions. {manifest.notice}",
            "version": manifest.version,
            "license": bundle.licences() or [LICENCE_UNSTATED],
            "rai:dataCollection": made_in_words(bundle),
            "rai:dataUseCases": "Evaluating retrieval and question answering. Not for clinical use.",
            "distribution": distribution,
            "recordSet": record_sets,
        },
    )


def _field(edition: str, file_id: str, name: str, data_type: str, many: bool, about: str) -> dict[str, object]:
    field: dict[str, object] = {
        "@type": "cr:Field",
        "@id": f"{edition}/{name}",
        "name": name,
        "description": about,
        "dataType": data_type,
        "source": {"fileObject": {"@id": file_id}, "extract": {"column": name}},
    }
    return {**field, "repeated": True} if many else field
