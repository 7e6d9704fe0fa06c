"""The datasheet of a benchmark: the questions a reader asks of a data set, answered from the manifest.

It says how the questions were made, what was turned away, which models and prompts took part. What the manifest can't
know (who will maintain the data set, under which licence it is published) is asked for in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat
from hoofbeat.records import Question
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import canonical_json
from hoofbeat.text import one_line, plain_markdown

FIELDS: tuple[tuple[str, str, bool, str], ...] = (
    ("id", "sc:Text", False, "the question's id, the same in every edition"),
    ("question", "sc:Text", False, "what is asked"),
    ("context", "sc:Text", False, "the case that the question is about"),
    ("answer", "sc:Text", False, "the gold answer"),
    ("accepted", "sc:Text", True, "other answers that count as right, each as JSON with who accepted it"),
    ("options", "sc:Text", True, "the options of multiple choice, in their order"),
    ("images", "sc:Text", True, "image files, relative to the data set"),
    ("documents", "sc:Text", True, "ids of the documents that answer the question"),
    ("evidence", "sc:Text", True, "quotes of those documents, each as document:start-end:quote"),
    ("facets", "sc:Text", False, "labels such as specialty or topic, as JSON"),
    ("lineage", "sc:Text", True, "the steps that made the question, each as JSON with its prompt and model"),
)
"""The columns of exported questions: name, type in schema.org's words, whether it is a list, and what it holds."""

LICENCE_UNSTATED = "Whoever publishes this data set must state its licence."


class _Datasheet(ExportFormat):
    name = "datasheet"
    summary = "the datasheet alone"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`DATASHEET.md` alone."""
        write_datasheet_file(bundle, folder)
        return len(bundle.questions)


FORMAT = _Datasheet()


def flat_row(question: Question) -> dict[str, object]:
    """A question as one flat row under the names of `FIELDS`."""
    return {
        "id": question.id,
        "question": question.text,
        "context": question.context,
        "answer": question.answer,
        "accepted": [canonical_json(each).decode() for each in question.accepted],
        "options": list(question.options),
        "images": list(question.images),
        "documents": list(question.documents),
        "evidence": [f"{span.document}:{span.start}-{span.end}:{span.quote}" for span in question.evidence],
        "facets": canonical_json(question.facets).decode(),
        "lineage": [canonical_json(step).decode() for step in question.lineage],
    }


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
        f"# Datasheet: {title_line(bundle)}",
        f"> {as_written(manifest.notice)}",
        "## Purpose",
        f"To evaluate retrieval and question answering on the documents named below. {as_written(manifest.title)}.",
        "## Content",
        f"{len(bundle.questions)} questions in "
        f"{_list([f'{name} ({len(questions)})' for name, questions in bundle.given.items()])}. "
        f"{sum(bool(question.options) for question in bundle.questions)} have options, "
        f"{sum(bool(question.images) for question in bundle.questions)} have images, "
        f"and {sum(bool(question.evidence) for question in bundle.questions)} have evidence located in their source.",
        _table(("field", "content"), [(name, about) for name, _, _, about in FIELDS]),
        _lengths(manifest.metrics.get("tokens")),
        _facet_tables(facets if isinstance(facets, dict) else {}),
        "## How it was made",
        made_in_words(bundle),
        _funnel(manifest.metrics.get("funnel")),
        _table(("reason for rejection", "candidates"), _most_first(reasons)),
        _table(("model", "identity"), sorted(manifest.models.items())),
        _table(("prompt", "fingerprint"), sorted(manifest.prompts.items())),
        _table(("parameter", "value"), sorted((key, str(value)) for key, value in manifest.settings.items())),
        _table(("input", "content"), [(each.name, each.sha256) for each in manifest.inputs]),
        "## Human review",
        f"Waiting for review: {_list([f'{number} {kind}' for kind, number in review.items()])}."
        if isinstance(review, dict) and review
        else "The manifest lists no review, and nothing that waits for review.",
        "## Intended and unintended uses",
        "For research on clinical question answering. Questions are about published reports or institutional "
        "documents. Do not use them to treat or to identify anyone.",
        "## Licence and maintenance",
        f"Licences of the documents: {_list(bundle.licences()) or 'not stated in the corpus'}. {LICENCE_UNSTATED} "
        "Benchmarks age: run the recipe again on newer documents, and report the version that you used.",
    ]
    write_bytes(folder / "DATASHEET.md", ("\n\n".join(part for part in parts if part) + "\n").encode())


def dataset_name(bundle: ExportBundle) -> str:
    """The recipe, or else the folder."""
    return str(bundle.manifest.settings.get("recipe") or bundle.bench.artefact.path.name)


def as_written(text: object) -> str:
    """What a folder says of itself, on one line that shows it as it is: a folder may come from anybody."""
    return plain_markdown(one_line(str(text)))


def title_line(bundle: ExportBundle) -> str:
    """What stands at the head of a card or datasheet."""
    return as_written(bundle.manifest.title or dataset_name(bundle))


def made_in_words(bundle: ExportBundle) -> str:
    """How the benchmark was made, in a few sentences."""
    manifest = bundle.manifest
    counts = manifest.counts
    return (
        f"Made with Hoofbeat {as_written(manifest.version)}, recipe {as_written(dataset_name(bundle))}, from "
        f"{_list([each.name for each in manifest.inputs]) or 'the documents of its corpus'}. "
        f"{counts.kept} candidates were kept, {counts.rejected} rejected, {counts.failed} failed. "
        f"Models: {_list(sorted(set(manifest.models.values()))) or 'none'}."
    )


def _most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _list(words: Sequence[str]) -> str:
    return ", ".join(map(as_written, words))


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    first, *others = ("| " + " | ".join(map(as_written, line)) + " |" for line in (header, *rows))
    return "\n".join((first, "|" + " --- |" * len(header), *others))


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
