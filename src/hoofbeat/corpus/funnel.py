"""The funnel: a corpus through a row of filters, with every document that was dropped, where and why.

The documents stream: memory does not grow with the corpus. A filter that must see all documents first (`two_pass`)
costs one more reading of the corpus, through the steps before it. The result is a new corpus with the documents that
stay and their images, `rejected.jsonl`, and `funnel.tsv` for a table and a plot.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hoofbeat.corpus.corpus import DOCUMENTS, REJECTED, Corpus
from hoofbeat.corpus.filter import Documents, FilterStep, FilterTable, Judge, PreparedFilter, RejectedDocument, judged
from hoofbeat.engine import current_engine
from hoofbeat.errors import InputError, UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import file_reference
from hoofbeat.store.files import atomic_write, copy_inside
from hoofbeat.store.tables import write_jsonl, write_tsv

FUNNEL = "funnel.tsv"
_AT_ONCE = 64
_HEADER = ("step", "in", "kept", "rejected", "reasons")


class FunnelStep(Struct, kw_only=True):
    """One step: its line, how many documents it received, kept and rejected, and why it rejected them."""

    step: str
    came: int = field(default=0, name="in")
    kept: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def rejected(self) -> int:
        """How many were rejected."""
        return self.came - self.kept


class Funnel:
    """Documents through steps, one at a time; iterate over it once, then read `steps`, `tables` and `models`."""

    def __init__(self, documents: Documents, steps: Sequence[FilterStep], progress: Progress = SILENT) -> None:
        self.filters = tuple(steps)
        self.steps = [FunnelStep(step=step.line) for step in steps]
        self.tables: dict[str, FilterTable] = {}
        self.models: dict[str, str] = {}
        self._documents = documents
        self._ready: list[PreparedFilter] = []
        for place, step in enumerate(self.filters):
            ready = step.prepare(partial(self._through, place), progress)
            self._ready.append(ready)
            self.tables.update({_own_name(name, self.tables): table for name, table in ready.tables.items()})
            self.models.update(ready.models)

    def __iter__(self) -> Iterator[Document | RejectedDocument]:
        """Every document that stays, with its marks, and every one that does not, in the order of the corpus."""
        for place, outcome in self._judged(len(self.filters)):
            for step in self.steps[: place + 1]:
                step.came += 1
            for step in self.steps[:place]:
                step.kept += 1
            if isinstance(outcome, RejectedDocument):
                reasons = self.steps[place].reasons
                reasons[outcome.reason] = reasons.get(outcome.reason, 0) + 1
            yield outcome

    def _through(self, steps: int) -> Iterator[Document]:
        """The documents that the first N steps keep."""
        return (outcome for _, outcome in self._judged(steps) if isinstance(outcome, Document))

    def _judged(self, steps: int) -> Iterator[tuple[int, Document | RejectedDocument]]:
        """What the first `steps` steps make of each document, and how many it passed."""
        given: deque[list[Document]] = deque()

        def blocks() -> Iterator[list[Document]]:
            stream = self._documents()
            while block := list(islice(stream, _AT_ONCE)):
                given.append(block)
                yield block

        work = _JudgeDocuments(
            [(step.line, ready.judge) for step, ready in zip(self.filters, self._ready, strict=False)][:steps]
        )
        for outcomes in current_engine().map(work, blocks()):
            for document, (place, outcome) in zip(given.popleft(), outcomes, strict=True):
                yield place, outcome or document


class _JudgeDocuments:
    """The work of a worker that judges: what steps make of documents; None for one that stays as it is."""

    def __init__(self, steps: Sequence[tuple[str, Judge]]) -> None:
        self._steps = steps

    def __call__(self, documents: Sequence[Document]) -> list[tuple[int, Document | RejectedDocument | None]]:
        return list(map(self._outcome, documents))

    def _outcome(self, given: Document) -> tuple[int, Document | RejectedDocument | None]:
        document = given
        for place, (line, judge) in enumerate(self._steps):
            outcome = judged(document, line, judge)
            if isinstance(outcome, RejectedDocument):
                return place, outcome
            document = outcome
        return len(self._steps), None if document is given else document


def filter_corpus(
    corpus: Corpus,
    steps: Sequence[FilterStep],
    target: Path,
    *,
    title: str = "",
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Write a new corpus of the documents that all steps keep; raises `InputError` when there are none."""
    if not steps:
        raise UsageError("no filter is given", fix='give at least one step, for example "year>=2023"')
    if target.resolve() == corpus.path.resolve():
        raise UsageError("a corpus can't be filtered into itself", where=str(target), fix="choose another folder")
    inputs = [corpus.artefact.reference(), *_files(steps)]
    with create(target, replace_kind="corpus") as draft:
        funnel = Funnel(corpus.documents, steps, progress)
        images = _Images(corpus, draft.path)
        kept = _write(funnel, draft.path, images, progress, len(corpus))
        rejected = len(corpus) - kept
        if not kept:
            raise _nothing(funnel.steps, corpus)
        write_tsv(draft.path / FUNNEL, _HEADER, map(_row, funnel.steps))
        for name, table in sorted(funnel.tables.items()):
            write_tsv(draft.path / name, table.header, table.rows)
        draft.finish(
            Manifest(
                kind="corpus",
                title=title or corpus.artefact.manifest.title,
                command=list(command),
                inputs=inputs,
                settings={"steps": [{"step": step.line, **step.settings} for step in steps]},
                seeds={name: seed for step in steps for name, seed in step.seeds.items()},
                models=dict(funnel.models),
                counts=Counts(kept=kept, rejected=rejected, reasons=_reasons(funnel.steps)),
                metrics={"funnel": funnel_data(funnel.steps), **images.counts()},
            )
        )
    return open_artefact(target, "corpus")


def funnel_data(steps: Sequence[FunnelStep]) -> list[dict[str, object]]:
    """The funnel as plain data for a plot or JSON: step, in, kept, rejected, reasons."""
    return [dict(zip(_HEADER, (*_row(step)[:4], dict(_sorted(step.reasons))), strict=True)) for step in steps]


def funnel_markdown(steps: Sequence[FunnelStep]) -> str:
    """The funnel as a Markdown table."""
    lines = [f"| {' | '.join(_HEADER)} |", "|---|---:|---:|---:|---|"]
    for step in steps:
        cells = [str(cell).replace("|", "\\|") for cell in _row(step)]
        lines.append(f"| `{cells[0]}` | {' | '.join(cells[1:])} |")
    return "\n".join(lines) + "\n"


def read_funnel(artefact: Artefact) -> list[FunnelStep]:
    """The funnel of a corpus that was filtered."""
    listed = msgspec.convert(artefact.manifest.metrics.get("funnel"), list[FunnelStep] | None)
    if listed is None:
        raise InputError(
            "this corpus has no funnel, because it was not filtered",
            where=str(artefact.path),
            fix="filter it with hoofbeat corpus filter",
        )
    return listed


class _Images:
    """The images of the documents that stay, from one corpus folder to another."""

    def __init__(self, corpus: Corpus, target: Path) -> None:
        self._corpus = corpus
        self._target = target
        self._copied: set[str] = set()
        self._missing = 0

    def keep(self, document: Document) -> Document:
        """Copy a document's images; it names only those that its corpus has."""
        if not any(figure.files for figure in document.figures):
            return document
        figures = tuple(
            msgspec.structs.replace(figure, files=tuple(name for name in figure.files if self._copy(name)))
            for figure in document.figures
        )
        return msgspec.structs.replace(document, figures=figures)

    def counts(self) -> dict[str, int]:
        return {"images": len(self._copied), "images_missing": self._missing}

    def _copy(self, name: str) -> bool:
        if not name.startswith("images/") or not self._corpus.artefact.has(name):
            self._missing += 1
            return False
        if name not in self._copied:
            copy_inside(self._corpus.artefact.file(name), name, self._target)
            self._copied.add(name)
        return True


def _write(funnel: Funnel, folder: Path, images: _Images, progress: Progress, total: int) -> int:
    """Write what stays and what does not, side by side; says how many stay."""
    with progress.task("Filter documents", total) as task, atomic_write(folder / REJECTED) as refused:

        def staying() -> Iterator[Document]:
            for outcome in funnel:
                task.advance()
                if isinstance(outcome, RejectedDocument):
                    refused.write(msgspec.json.encode(outcome) + b"\n")
                else:
                    yield images.keep(outcome)

        return write_jsonl(folder / DOCUMENTS, staying())


def _row(step: FunnelStep) -> tuple[str, int, int, int, str]:
    reasons = "; ".join(f"{count} {reason}" for reason, count in _sorted(step.reasons))
    return step.step, step.came, step.kept, step.rejected, reasons


def _sorted(reasons: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))


def _reasons(steps: Sequence[FunnelStep]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for step in steps:
        total.update(step.reasons)
    return dict(sorted(total.items()))


def _files(steps: Sequence[FilterStep]) -> list[InputRef]:
    paths = dict.fromkeys(path for step in steps for path in step.files)
    return [file_reference(path) for path in paths]


def _own_name(name: str, taken: dict[str, FilterTable]) -> str:
    """The name of a table, numbered where two steps leave one of the same name."""
    path, number = Path(name), 2
    while name in taken:
        name, number = f"{path.stem}-{number}{path.suffix}", number + 1
    return name


def _nothing(steps: Sequence[FunnelStep], corpus: Corpus) -> InputError:
    last = next((step for step in reversed(steps) if step.came), steps[0])
    reasons = "; ".join(f"{count} × {reason}" for reason, count in _sorted(last.reasons)[:3])
    return InputError(
        f"no document was kept: `{last.step}` rejects the last {last.came} ({reasons})",
        where=str(corpus.path),
        fix="loosen that step or leave it out",
    )
