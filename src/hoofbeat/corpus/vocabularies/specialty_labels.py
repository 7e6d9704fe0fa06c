"""Specialty labels: by rule, with a confidence and the words that decided; by a model where asked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.corpus.corpus import Corpus
from hoofbeat.corpus.vocabularies.specialties import UNKNOWN, FieldEvidence, Scheme, gather, load_scheme, places
from hoofbeat.corpus.vocabularies.vocabulary import Vocabulary
from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Document, Failure
from hoofbeat.store import Artefact, Cost, Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl, write_tsv

KIND = "labels"
THRESHOLD = 0.6
_DOUBT = 0.5
_REASONS = 6
_SHOWN = 6000


class SpecialtyLabel(Struct, frozen=True, kw_only=True):
    """A document's label in a scheme, how sure it is, what it was read from, and what came next.

    `name` is `unknown` below the threshold; `best` is then still what the evidence leans to.
    """

    scheme: str
    name: str
    confidence: float
    best: str
    runner_up: str = ""
    reasons: tuple[FieldEvidence, ...] = ()


class ModelLabel(Struct, frozen=True, kw_only=True):
    """A model's label for a document, or why there is none."""

    document: str
    scheme: str
    name: str = ""
    reason: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


def label_specialty(
    document: Document,
    scheme: str = "ogcare",
    *,
    threshold: float = THRESHOLD,
    vocabulary: Vocabulary | None = None,
) -> SpecialtyLabel:
    """The document's label by rule. With the ICD-10-CM vocabulary given, the chapters of what it mentions count too."""
    return label_evidence(gather(document, vocabulary), load_scheme(scheme), threshold=threshold)


def label_evidence(
    evidence: Sequence[FieldEvidence], scheme: Scheme, *, threshold: float = THRESHOLD
) -> SpecialtyLabel:
    """The label for evidence already gathered: one reading of a document serves every scheme."""
    by_field: defaultdict[str, float] = defaultdict(float)
    for item in evidence:
        by_field[item.field] += item.points
    scores = [
        (sum(by_field[name] * weight for name, weight in label.fields.items()), label.name) for label in scheme.label
    ]
    ranked = sorted(scores, key=lambda pair: -pair[0])
    (first, best), (second, runner_up) = ranked[0], ranked[1] if len(ranked) > 1 else (0.0, "")
    if first <= 0:
        return SpecialtyLabel(scheme=scheme.name, name=UNKNOWN, confidence=0.0, best=UNKNOWN)
    confidence = round(scheme.calibration.confidence((first - second) / (first + _DOUBT)), 4)
    fields = next(label.fields for label in scheme.label if label.name == best)
    telling = sorted(
        (item for item in evidence if item.field in fields),
        key=lambda item: (-item.points * fields[item.field], item.place, item.start),
    )
    return SpecialtyLabel(
        scheme=scheme.name,
        name=best if confidence >= threshold else UNKNOWN,
        confidence=confidence,
        best=best,
        runner_up=runner_up if second > 0 else "",
        reasons=tuple(telling[:_REASONS]),
    )


def label_request(document: Document, scheme: Scheme) -> ChatRequest:
    """The call that asks a model for a document's label."""
    shown: list[str] = []
    room = _SHOWN
    for place in sorted(places(document), key=lambda each: each.kind not in ("abstract", "lead", "case", "diagnosis")):
        if place.kind not in ("title", "keywords", "journal") and room > 0:
            shown.append(place.text[:room])
            room -= len(place.text)
    prompt = load_prompt("specialty")
    assert prompt.schema is not None
    names = [*scheme.names, UNKNOWN]
    properties = prompt.schema["properties"]
    assert isinstance(properties, dict)
    schema = {**prompt.schema, "properties": {**properties, "label": {"type": "string", "enum": names}}}
    values = {
        "labels": [{"name": name} for name in scheme.names],
        "title": document.title or "(none)",
        "text": "\n\n".join(shown),
    }
    return prompt.request(values, schema=schema)


def label_with_model(
    model: Model, documents: Sequence[Document], scheme: str = "ogcare", *, progress: Progress = SILENT
) -> list[ModelLabel]:
    """Ask a model for every document's label, in the documents' order. A failed call is a record, never a label."""
    chosen = load_scheme(scheme)

    async def work(document: Document) -> ModelLabel:
        outcome = await model.chat_json(label_request(document, chosen))
        if isinstance(outcome, Failure):
            return ModelLabel(document=document.id, scheme=chosen.name, failure=outcome)
        return ModelLabel(
            document=document.id,
            scheme=chosen.name,
            name=str(outcome.value["label"]),
            reason=str(outcome.value["reason"]).strip(),
            calls=outcome.calls,
        )

    return model.run(documents, work, title="specialty", progress=progress)


def label_requests(corpus: Corpus, scheme: str) -> list[ChatRequest]:
    """The calls that labelling a corpus by a model would make, for an estimate."""
    chosen = load_scheme(scheme)
    return [label_request(document, chosen) for document in corpus.documents()]


def label_corpus(
    corpus: Corpus,
    target: Path,
    scheme: str = "ogcare",
    *,
    model: Model | None = None,
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Write a label for every document, by a model where one is given, else by rule: `labels.tsv` and `.jsonl`."""
    chosen = load_scheme(scheme)
    failures: Counter[str] = Counter()
    if model is None:
        rows = _rows_by_rule(corpus, chosen, progress)
    else:
        labels = label_with_model(model, list(corpus.documents()), scheme, progress=progress)
        failures.update(str(item.failure.kind) for item in labels if item.failure is not None)
        rows = [
            (item.document, item.name, "", item.failure.message if item.failure is not None else item.reason)
            for item in labels
        ]
    by = "rule" if model is None else "model"
    with create(target, replace_kind=KIND) as draft:
        header = ("document", "label", "confidence", "reason")
        write_tsv(draft.path / "labels.tsv", header, rows)
        write_jsonl(draft.path / "labels.jsonl", [dict(zip(header, row, strict=True)) for row in rows])
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{chosen.title}, by {by}",
                command=list(command),
                inputs=[corpus.artefact.reference()],
                settings={"scheme": chosen.name, "by": by},
                models={"label": model.identity} if model is not None else {},
                prompts={"specialty": load_prompt("specialty").label} if model is not None else {},
                counts=Counts(
                    kept=len(rows) - failures.total(), failed=failures.total(), failures=dict(sorted(failures.items()))
                ),
                metrics=dict(sorted(Counter(row[1] for row in rows if row[1]).items())),
                cost=model.cost if model is not None else Cost(),
            )
        )
    return open_artefact(target, KIND)


def _rows_by_rule(corpus: Corpus, scheme: Scheme, progress: Progress) -> list[tuple[str, str, str, str]]:
    rows = []
    with progress.task("labelling", len(corpus)) as task:
        for document in corpus.documents():
            label = label_evidence(gather(document), scheme)
            reasons = "; ".join(sorted({reason.text for reason in label.reasons})[:6])
            rows.append((document.id, label.name, f"{label.confidence:.3f}", reasons))
            task.advance()
    return rows
