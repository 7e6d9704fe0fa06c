"""Specialty schemes, and the label of a document: by rule, with a confidence and the words that decided, or by a model.

A scheme is the list of labels that a paper sorts its cases into. Words are tied to fields of medicine once
(`specialties.toml`), and each scheme says which fields speak for which of its labels, so that one reading of a document
serves every scheme.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from importlib import resources
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hoofbeat.corpus.corpus import Corpus
from hoofbeat.corpus.terms import Term, phrase_key, term_form, tokens
from hoofbeat.corpus.vocabulary import Vocabulary
from hoofbeat.engine import current_engine
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_values
from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Document, Failure
from hoofbeat.store import Artefact, Cost, Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl, write_tsv
from hoofbeat.trust import parse_toml

UNKNOWN = "unknown"
_AT_ONCE = 64
SCHEMES = {
    "ogcare": "specialties-ogcare.toml",
    "cupcase": "specialties-cupcase.toml",
    "clinbench": "specialties-clinbench.toml",
    "body-systems": "body_systems.toml",
}


class MedicalField(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field of medicine: its words, journals and ICD-10-CM ranges."""

    words: tuple[str, ...] = ()
    strong: tuple[str, ...] = ()
    journals: tuple[str, ...] = ()
    icd10: tuple[str, ...] = ()
    weight: float = 1.0


class SchemeLabel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One label and the fields that speak for it; `printed` where the paper's text has its name, `share` in percent.

    `includes` tells a model what its name does not say: blood is in R2MED's Lymphatic system.
    """

    name: str
    fields: dict[str, float]
    includes: str = ""
    short: str = ""
    printed: bool = False
    share: float | None = None


class Calibration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How lead and evidence become a confidence: a logistic curve fitted on labelled reports."""

    offset: float = 0.0
    lead: float = 3.0
    cases: int = 0

    def confidence(self, lead: float) -> float:
        """The probability that a label with this lead over the next is right."""
        return 1.0 / (1.0 + math.exp(-(self.offset + self.lead * lead)))


class Scheme(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scheme of labels; `fallback` is what a reader would say where nothing else fits."""

    name: str
    title: str
    source: str
    label: tuple[SchemeLabel, ...]
    fallback: str = ""
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def names(self) -> tuple[str, ...]:
        """The labels' names, in the paper's order."""
        return tuple(label.name for label in self.label)


class _Fields(Struct, frozen=True, forbid_unknown_fields=True):
    field: dict[str, MedicalField]


@cache
def medical_fields() -> dict[str, MedicalField]:
    """The fields of medicine by name."""
    text = (resources.files("hoofbeat.corpus") / "data" / "specialties.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Fields).field


@cache
def load_scheme(name: str) -> Scheme:
    """A scheme by its name, or from a TOML file of the same form."""
    if name in SCHEMES:
        text = (resources.files("hoofbeat.corpus") / "data" / SCHEMES[name]).read_text(encoding="utf-8")
    elif name.endswith(".toml") and Path(name).is_file():
        text = ""
    else:
        raise UsageError(f"there is no scheme {name!r}", fix=f"use one of: {', '.join(SCHEMES)}, or a TOML file")
    try:
        text = text or Path(name).read_text(encoding="utf-8")
        scheme = msgspec.convert(parse_toml(text), Scheme)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as err:
        raise UsageError(
            f"the scheme {name} is wrong: {err}", fix="compare it with the schemes that Hoofbeat includes"
        ) from err
    unknown = {known for label in scheme.label for known in label.fields} - set(medical_fields())
    if unknown or len(set(scheme.names)) != len(scheme.names) or not scheme.label:
        wrong = f"no such fields: {', '.join(sorted(unknown))}" if unknown else "its labels need different names"
        raise UsageError(f"the scheme {name} is wrong: {wrong}", fix="see specialties.toml for the fields")
    return scheme


_STRONG = 3.0
_ICD = 2.0
_JOURNAL = 4.0
_CHILD = 12.0
_LEAD = 1500
_WEIGHTS = {"title": 6.0, "keywords": 4.0, "journal": 4.0, "diagnosis": 4.0, "abstract": 3.0, "lead": 3.0, "case": 3.0}
_OTHER_WEIGHT = 1.0
_ROLES = {
    "abstract": "abstract",
    "diagnosis": "diagnosis",
    **dict.fromkeys(("case", "patient", "tests", "treatment", "outcome"), "case"),
}
_LEFT_OUT = "back"
_MAX_READ = 12_000
_AGE = re.compile(
    r"(?<![\w-])(\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten)[\s-]+(day|week|month|year|yr)s?[\s-]+old\b"
)
_ADULT_AGE = 18


class TextZone(Struct, frozen=True):
    """A stretch of a document that is weighed as one: what it is, its text, and where that begins in the document."""

    kind: str
    text: str
    start: int = 0


class FieldEvidence(Struct, frozen=True, kw_only=True):
    """Words at a place that speak for a field, with how much they add; offsets point into the place's own text.

    For title, keywords and journal that is the title, keywords or journal; for all others the document's text.
    """

    field: str
    place: str
    text: str
    start: int
    end: int
    points: float


def places(document: Document) -> Iterator[TextZone]:
    """The stretches of a document, each with what it is."""
    if document.title:
        yield TextZone("title", document.title)
    for name in ("keywords", "journal", "diagnosis"):
        if text := "; ".join(facet_values(document.facets, name)):
            yield TextZone(name if name != "diagnosis" else "keywords", text)
    if not document.sections:
        yield TextZone("lead", document.text[:_LEAD])
        yield TextZone("case", document.text[_LEAD : _LEAD * 4], _LEAD)
        yield TextZone("body", document.text[_LEAD * 4 :], _LEAD * 4)
        return
    first = True
    for section in document.sections:
        text = document.text[section.body : section.end]
        if text and section.role != _LEFT_OUT:
            kind = _ROLES.get(section.role, "lead" if first else "body")
            yield TextZone(kind, text, section.body)
            first = False


def gather(document: Document, vocabulary: Vocabulary | None = None) -> list[FieldEvidence]:
    """All evidence of a document. The words of a place share its weight, so that a long text does not count more."""
    grouped: dict[str, list[FieldEvidence]] = {}
    room: Counter[str] = Counter()
    for place in places(document):
        read = place.text[: max(0, _MAX_READ - room[place.kind])]
        room[place.kind] += len(read)
        grouped.setdefault(place.kind, []).extend(_in_place(TextZone(place.kind, read, place.start), vocabulary))
    found: list[FieldEvidence] = []
    for kind, items in grouped.items():
        total = sum(item.points for item in items)
        scale = _WEIGHTS.get(kind, _OTHER_WEIGHT) / (total + 4.0)
        found += [msgspec.structs.replace(item, points=item.points * scale) for item in items]
    return found + list(_child(document))


def _in_place(place: TextZone, vocabulary: Vocabulary | None) -> Iterator[FieldEvidence]:
    if place.kind == "journal":
        yield from _journal(place)
        return
    counts: Counter[tuple[str, str]] = Counter()
    firsts: dict[tuple[str, str], tuple[int, int, float]] = {}
    for form, start, end, names in _hits(place.text, vocabulary):
        for name, points in names:
            counts[name, form] += 1
            firsts.setdefault((name, form), (start, end, points))
    fields = medical_fields()
    for (name, form), count in counts.items():
        start, end, points = firsts[name, form]
        weight = points * fields[name].weight * (1.0 + math.log(count))
        text = place.text[start:end]
        yield FieldEvidence(
            field=name, place=place.kind, text=text, start=place.start + start, end=place.start + end, points=weight
        )


Hit = tuple[str, int, int, tuple[tuple[str, float], ...]]


def _hits(text: str, vocabulary: Vocabulary | None) -> Iterator[Hit]:
    """Phrases of the rules, single words, and codes, each with the fields it speaks for."""
    for match in _phrases().find_phrases(text):
        names = tuple((code.rpartition(":")[0], _points(code)) for code in match.codes)
        yield phrase_key(match.text), match.start, match.end, names
    forms, starts, ends = tokens(text)
    for form, start, end in zip(forms, starts, ends, strict=True):
        if names := _fields_of(form):
            yield form, start, end, names
    if vocabulary is not None:
        for match in vocabulary.find_in(text):
            if names := _fields_of_code(match.code):
                yield match.code, match.start, match.end, names


def _points(code: str) -> float:
    return _STRONG if code.endswith(":strong") else 1.0


@cache
def _phrases() -> Vocabulary:
    """The rules of several words as a vocabulary."""
    by_code: dict[str, list[str]] = {}
    for name, rules in medical_fields().items():
        for code, words in ((f"{name}:strong", rules.strong), (f"{name}:word", rules.words)):
            by_code[code] = [word for word in words if " " in word]
    terms = [Term(code=code, name=code, synonyms=tuple(words)) for code, words in by_code.items() if words]
    return Vocabulary.of("fields", terms)


@cache
def _word_rules() -> tuple[tuple[str, str, float], ...]:
    """The rules of one word: pattern, field, points."""
    rules = []
    for name, each in medical_fields().items():
        for points, words in ((_STRONG, each.strong), (1.0, each.words)):
            rules += [(word, name, points) for word in words if " " not in word]
    return tuple(rules)


@lru_cache(maxsize=100_000)
def _fields_of(form: str) -> tuple[tuple[str, float], ...]:
    """The fields a word speaks for, each with its best rule's points."""
    best: dict[str, float] = {}
    for pattern, name, points in _word_rules():
        if pattern.endswith("*"):
            fits = form.startswith(pattern[:-1])
        elif pattern.startswith("*"):
            fits = form.endswith(pattern[1:])
        else:
            fits = form == term_form(pattern)
        if fits:
            best[name] = max(points, best.get(name, 0.0))
    return tuple(best.items())


@lru_cache(maxsize=20_000)
def _fields_of_code(code: str) -> tuple[tuple[str, float], ...]:
    category = code.partition(".")[0]
    ranges: Iterable[tuple[str, str]] = (
        (name, span) for name, rules in medical_fields().items() for span in rules.icd10
    )
    names = {name for name, span in ranges if span.partition("-")[0] <= category <= span.partition("-")[2]}
    return tuple((name, _ICD) for name in sorted(names))


def _journal(place: TextZone) -> Iterator[FieldEvidence]:
    lower = place.text.lower()
    for name, rules in medical_fields().items():
        for part in rules.journals:
            if (start := lower.find(part)) >= 0 and (start == 0 or not lower[start - 1].isalpha()):
                end = start + len(part)
                text = place.text[start:end]
                yield FieldEvidence(field=name, place="journal", text=text, start=start, end=end, points=_JOURNAL)
                break


def _child(document: Document) -> Iterator[FieldEvidence]:
    """The patient's age, the first that is given in title or text."""
    for place, text in (("title", document.title), ("case", document.text)):
        if found := _AGE.search(text):
            number, unit = found.groups()
            years = int(number) if number.isdigit() else 5
            if unit not in ("year", "yr") or years < _ADULT_AGE:
                points = _CHILD / 4 if unit in ("year", "yr") and years > 12 else _CHILD / 3
                yield FieldEvidence(
                    field="pediatrics",
                    place=place,
                    text=found.group(),
                    start=found.start(),
                    end=found.end(),
                    points=points,
                )
            return


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
    """The document's label by rule. With the ICD-10-CM vocabulary, the chapters of diseases it mentions also count."""
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
        "labels": [{"name": label.name, "includes": label.includes} for label in scheme.label],
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
    stream = corpus.documents()
    with progress.task("labelling", len(corpus)) as task:
        blocks = iter(lambda: list(islice(stream, _AT_ONCE)), [])
        for labelled in current_engine().map(partial(_label_rows, scheme), blocks):
            rows += labelled
            task.advance(len(labelled))
    return rows


def _label_rows(scheme: Scheme, documents: Sequence[Document]) -> list[tuple[str, str, str, str]]:
    rows = []
    for document in documents:
        label = label_evidence(gather(document), scheme)
        reasons = "; ".join(sorted({reason.text for reason in label.reasons})[:6])
        rows.append((document.id, label.name, f"{label.confidence:.3f}", reasons))
    return rows
