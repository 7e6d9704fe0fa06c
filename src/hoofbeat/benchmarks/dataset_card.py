"""What a data set says of itself: Croissant metadata for machines, a datasheet and a card for people.

All of it is filled from the manifest: how the questions were made, what was turned away, which models and prompts took
part. What the manifest can't know (who will maintain it, under which licence it is given away) is asked for in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, write_json
from hoofbeat.records import Question
from hoofbeat.store.atomic_files import file_sha256, write_bytes
from hoofbeat.store.tables import canonical_json

__all__ = ["FIELDS", "data_card", "flat_row", "write_croissant_file", "write_datasheet_file"]

FIELDS: tuple[tuple[str, str, bool, str], ...] = (
    ("id", "sc:Text", False, "the question's id, the same in every edition"),
    ("question", "sc:Text", False, "what is asked"),
    ("context", "sc:Text", False, "the case that the question is about"),
    ("answer", "sc:Text", False, "the gold answer"),
    ("options", "sc:Text", True, "the options of multiple choice, in their order"),
    ("images", "sc:Text", True, "image files, relative to the data set"),
    ("documents", "sc:Text", True, "ids of the documents that answer the question"),
    ("evidence", "sc:Text", True, "quotes of those documents, each as document:start-end:quote"),
    ("facets", "sc:Text", False, "labels such as specialty or topic, as JSON"),
)
"""The columns of exported questions: name, type in schema.org's words, whether it is a list, and what it holds."""

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
_UNSTATED = "The licence is to be stated by whoever publishes this data set."


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
            "name": _name(bundle),
            "description": f"{manifest.title}. {len(bundle.questions)} questions. {manifest.notice}",
            "version": manifest.version,
            "license": bundle.licences() or [_UNSTATED],
            "rai:dataCollection": _made_in_words(bundle),
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


def write_datasheet_file(bundle: ExportBundle, folder: Path) -> None:
    """`DATASHEET.md`: the questions a reader asks of a data set, answered from the manifest."""
    manifest = bundle.manifest
    counts = manifest.counts
    reasons: dict[str, int] = {
        **counts.reasons,
        **{f"failed: {kind}": number for kind, number in counts.failures.items()},
    }
    facets = manifest.metrics.get("facets")
    review = manifest.metrics.get("review")
    parts = [
        f"# Datasheet: {manifest.title or _name(bundle)}",
        f"> {manifest.notice}",
        "## Why it was made",
        f"To evaluate retrieval and question answering on the documents named below. {manifest.title}.",
        "## What it holds",
        f"{len(bundle.questions)} questions in "
        f"{_list([f'{name} ({len(questions)})' for name, questions in bundle.given.items()])}. "
        f"{sum(bool(question.options) for question in bundle.questions)} have options, "
        f"{sum(bool(question.images) for question in bundle.questions)} images, "
        f"{sum(bool(question.evidence) for question in bundle.questions)} evidence located in their source.",
        _table(("field", "what it holds"), [(name, about) for name, _, _, about in FIELDS]),
        _lengths(manifest.metrics.get("tokens")),
        _facet_tables(facets if isinstance(facets, dict) else {}),
        "## How it was made",
        _made_in_words(bundle),
        _funnel(manifest.metrics.get("funnel")),
        _table(("turned away because", "candidates"), _most_first(reasons)),
        _table(("model", "identity"), sorted(manifest.models.items())),
        _table(("prompt", "fingerprint"), sorted(manifest.prompts.items())),
        _table(("parameter", "value"), sorted((key, str(value)) for key, value in manifest.settings.items())),
        _table(("input", "content"), [(each.name, each.sha256) for each in manifest.inputs]),
        "## What people have looked at",
        f"Waiting for review: {_list([f'{number} {kind}' for kind, number in review.items()])}."
        if isinstance(review, dict) and review
        else "The manifest lists nothing that waits for review, and no review either.",
        "## Uses, and uses it is not for",
        "For research on clinical question answering. Questions are about published reports or institutional "
        "documents; they must not be used to treat anyone, nor to identify anyone.",
        "## Licence and upkeep",
        f"Licences of the documents: {_list(bundle.licences()) or 'not stated in the corpus'}. {_UNSTATED} "
        "Benchmarks age: rerun the recipe on newer documents, and report the version used.",
    ]
    write_bytes(folder / "DATASHEET.md", ("\n\n".join(part for part in parts if part) + "\n").encode())


def data_card(bundle: ExportBundle, configs: Mapping[str, str]) -> str:
    """A `README.md` as the hub reads it: where each edition's files lie, and where to read on."""
    listed = "\n".join(f"  - config_name: {name}\n    data_files:\n      - split: test\n        path: {path}"
                       for name, path in configs.items())  # fmt: skip
    return (
        f"---\nconfigs:\n{listed}\nlanguage:\n  - en\ntags:\n  - medical\n---\n\n"
        f"# {bundle.manifest.title or _name(bundle)}\n\n{bundle.manifest.notice}\n\n{_made_in_words(bundle)}\n\n"
        "See `DATASHEET.md` for how it was made and what was turned away, `croissant.json` for metadata.\n"
    )


def _name(bundle: ExportBundle) -> str:
    return str(bundle.manifest.settings.get("recipe") or bundle.bench.artefact.path.name)


def _made_in_words(bundle: ExportBundle) -> str:
    manifest = bundle.manifest
    counts = manifest.counts
    return (
        f"Made with Hoofbeat {manifest.version}, recipe {_name(bundle)}, from "
        f"{_list([each.name for each in manifest.inputs]) or 'the documents of its corpus'}. "
        f"{counts.kept} candidates were kept, {counts.rejected} rejected, {counts.failed} failed. "
        f"Models: {_list(sorted(set(manifest.models.values()))) or 'none'}."
    )


def _most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _list(words: Sequence[str]) -> str:
    return ", ".join(words)


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def _lengths(tokens: object) -> str:
    if not isinstance(tokens, dict):
        return ""
    columns = ("minimum", "median", "mean", "p75", "p95", "maximum")
    rows = [[name, *(row.get(c, "") for c in columns)] for name, row in tokens.items() if isinstance(row, dict)]
    return _table((f"length ({tokens.get('tokenizer', '')})", *columns), rows)


def _facet_tables(facets: Mapping[str, object]) -> str:
    listed = ((name, list(rows.items())) for name, rows in facets.items() if isinstance(rows, dict))
    return "\n\n".join(_table((name, "questions"), rows) for name, rows in listed)


def _funnel(funnel: object) -> str:
    columns = ("step", "in", "kept", "rejected", "failed")
    stages = [stage for stage in funnel if isinstance(stage, dict)] if isinstance(funnel, list) else []
    return _table(columns, [[stage.get(column, "") for column in columns] for stage in stages])


def flat_row(question: Question) -> dict[str, object]:
    """A question as one flat row under the names of `FIELDS`."""
    return {
        "id": question.id,
        "question": question.text,
        "context": question.context,
        "answer": question.answer,
        "options": list(question.options),
        "images": list(question.images),
        "documents": list(question.documents),
        "evidence": [f"{span.document}:{span.start}-{span.end}:{span.quote}" for span in question.evidence],
        "facets": canonical_json(question.facets).decode(),
    }
