"""`hoofbeat corpus label`: a specialty for every document, by rule, or by a model where that is asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import Calling, calling_options, command_words, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.vocabularies import SCHEMES, label_specialty, label_with_model, load_scheme
from hoofbeat.corpus.vocabularies.labelling import label_request
from hoofbeat.models.session import Session
from hoofbeat.progress import Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.store import Cost, Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl, write_tsv

__all__ = ["label_command"]

KIND = "labels"
Row = tuple[str, str, str, str]
"""Document, label, confidence (rules) or nothing (model), reason or failure."""


@click.command("label")
@click.argument("corpus_path", metavar="CORPUS", type=click.Path(path_type=Path))
@click.option("--scheme", default="ogcare", show_default=True, help=f"{', '.join(SCHEMES)}, or a TOML file.")
@click.option("--by-model", is_flag=True, help="Ask the model named by --model instead of the rules.")
@output_option("labels")
@calling_options
def label_command(corpus_path: Path, scheme: str, by_model: bool, output: Path, calling: Calling) -> None:
    """Label every document of CORPUS with a specialty of SCHEME: by rule with a confidence, or by a model."""
    screen = calling.screen()
    corpus = Corpus.open(corpus_path)
    chosen = load_scheme(scheme)
    models: dict[str, str] = {}
    cost = Cost()
    if by_model:
        with calling.open() as session:
            if calling.only_estimate:
                model = session.model(calling.model_spec)
                screen.estimate(model.estimate([label_request(d, chosen) for d in corpus.documents()]))
                return
            rows, failures, models, cost = _by_model(session, calling.model_spec, corpus, scheme, screen)
    else:
        rows, failures = _by_rule(corpus, scheme, screen), Counter()
    with create(output, replace_kind=KIND) as draft:
        header = ("document", "label", "confidence", "reason")
        write_tsv(draft.path / "labels.tsv", header, rows)
        write_jsonl(draft.path / "labels.jsonl", [dict(zip(header, row, strict=True)) for row in rows])
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{chosen.title}, by {'model' if by_model else 'rule'}",
                command=command_words(),
                inputs=[corpus.artefact.reference()],
                settings={"scheme": chosen.name, "by": "model" if by_model else "rule"},
                models=models,
                prompts={"specialty": load_prompt("specialty").label} if by_model else {},
                counts=Counts(
                    kept=len(rows) - failures.total(), failed=failures.total(), failures=dict(sorted(failures.items()))
                ),
                metrics=dict(sorted(Counter(row[1] for row in rows if row[1]).items())),
                cost=cost,
            )
        )
    screen.finish(open_artefact(output, KIND), next_step=("hoofbeat", "corpus", "stats", corpus_path))


def _by_rule(corpus: Corpus, scheme: str, progress: Progress) -> list[Row]:
    rows = []
    with progress.task("labelling", len(corpus)) as task:
        for document in corpus.documents():
            label = label_specialty(document, scheme)
            reasons = "; ".join(sorted({reason.text for reason in label.reasons})[:6])
            rows.append((document.id, label.name, f"{label.confidence:.3f}", reasons))
            task.advance()
    return rows


def _by_model(
    session: Session, spec: str, corpus: Corpus, scheme: str, screen: Screen
) -> tuple[list[Row], Counter[str], dict[str, str], Cost]:
    model = session.model(spec)
    labels = label_with_model(model, list(corpus.documents()), scheme, progress=screen)
    rows = [
        (item.document, item.name, "", item.failure.message if item.failure is not None else item.reason)
        for item in labels
    ]
    failures: Counter[str] = Counter(str(item.failure.kind) for item in labels if item.failure is not None)
    screen.calls(model)
    return rows, failures, {"label": model.identity}, model.cost
