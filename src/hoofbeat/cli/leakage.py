"""`hoofbeat leakage`: signs that a model has seen a benchmark, each with its control, interval and caveat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from hoofbeat.benchmarks import Benchmark, corpus_beside
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import Calling, calling_options_of_several, command_words, edition_option, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.leakage.leakage_check import MAIN, PARTS, LeakagePlan, gather_outcomes, plan_check, probe, summarise
from hoofbeat.leakage.leakage_figures import CAVEATS, BookGap, LeakageEstimate, LeakageSummary
from hoofbeat.leakage.leakage_folder import KIND, write_leakage
from hoofbeat.leakage.leakage_text import LeakageItem
from hoofbeat.leakage.memory_probes import ORIGINAL, estimate_leakage, likelihood_texts
from hoofbeat.leakage.near_duplicates import THRESHOLD
from hoofbeat.leakage.training_cutoffs import POSITIONS, Cutoff, DateAccuracy, DateCounts, parse_cutoff
from hoofbeat.models import Estimate, Model
from hoofbeat.reports.tables import Column
from hoofbeat.reports.words import Form, written
from hoofbeat.store import check_target

_FOLDER = click.Path(path_type=Path)


@click.command("leakage")
@click.argument("benchmark", type=_FOLDER)
@click.option("--corpus", "corpus_path", type=_FOLDER, help="The documents [default: those beside the benchmark].")
@click.option("--run", "runs", multiple=True, type=_FOLDER, help="A run whose chosen options are scored. Several.")
@click.option("--judged", "judged", multiple=True, type=_FOLDER, help="Judgments of a run on this benchmark. Several.")
@click.option("--cutoff", "cutoffs", multiple=True, help="Where a model's training data end: MODEL=2024-06. Several.")
@click.option("--against", multiple=True, type=_FOLDER, help="Another benchmark to look for the questions in. Several.")
@click.option("--near", "threshold", type=click.FloatRange(0.05, 1.0), default=THRESHOLD, show_default=True,
              help="Share of a question's five-word runs that makes a near-duplicate.")  # fmt: skip
@click.option("--characters", type=click.IntRange(100, 5000), default=600, show_default=True,
              help="How much of a text is measured at most.")  # fmt: skip
@click.option("--share", type=click.FloatRange(0.1, 0.9), default=0.5, show_default=True,
              help="Share of a question that is shown for the model to continue.")  # fmt: skip
@click.option("--without", "left_out", multiple=True, type=click.Choice(PARTS), help="Leave a part out. Several.")
@edition_option
@click.option(
    "--control-edition",
    default="",
    help="Edition to measure beside this one [default: original, if any]; main is the first one.",
)
@click.option("--limit", type=click.IntRange(1), help="Only the first so many questions.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the controls.")
@output_option("leakage")
@calling_options_of_several
def command(benchmark: Path, output: Path, calling: Calling, **options: Any) -> None:
    """Look for signs that models have seen the questions of BENCHMARK; signs are consistent with leakage, no proof."""
    screen = calling.screen()
    asked = _Asked(specs=calling.model_specs, **options)
    check_target(output.resolve(), KIND)
    given = dict(parse_cutoff(text) for text in asked.cutoffs)
    bench = Benchmark.open(benchmark, asked.edition)
    corpus = Corpus.open(asked.corpus_path) if asked.corpus_path else corpus_beside(bench.artefact)
    others = [Benchmark.open(path) for path in asked.against]
    questions = bench.first(asked.limit)
    gathered = gather_outcomes(asked.runs, asked.judged, questions)
    _check_cutoffs(given, (*asked.names, *sorted(gathered.identities)))
    plan = plan_check(
        bench,
        questions,
        corpus,
        against=others,
        edition=_control(bench, asked.control_edition),
        share=asked.share,
        characters=asked.characters,
        threshold=asked.threshold,
        parts=asked.parts,
        seed=asked.seed,
        progress=screen,
    )
    with calling.open() as session:
        models = [session.model(name) for name in asked.names]
        if calling.only_estimate:
            screen.estimate(_estimate(models, plan, asked.parts))
            return
        probed = {model.spec: probe(model, plan, asked.parts, screen) for model in models}
        summary = summarise(plan, probed, {model.spec: model.identity for model in models}, gathered, given)
        inputs = [bench.artefact.reference(), *([corpus.artefact.reference()] if corpus else [])]
        artefact = write_leakage(
            output,
            plan,
            probed,
            summary,
            models=models,
            inputs=[*inputs, *gathered.inputs, *(other.artefact.reference() for other in others)],
            settings={**asked.settings(), "control_edition": plan.edition},
            parts=asked.parts,
            seed=asked.seed,
            command=command_words(),
        )
        _show(screen, summary)
        screen.calls(*models)
        screen.finish(
            artefact, next_step=("hoofbeat", "report", output, "-o", "report"), summary=msgspec.to_builtins(summary)
        )


class _Asked(Struct, frozen=True, kw_only=True):
    """The command's options as given."""

    corpus_path: Path | None
    specs: tuple[str, ...]
    runs: tuple[Path, ...]
    judged: tuple[Path, ...]
    cutoffs: tuple[str, ...]
    against: tuple[Path, ...]
    threshold: float
    characters: int
    share: float
    left_out: tuple[str, ...]
    edition: str
    control_edition: str
    limit: int | None
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """The models, each once."""
        return tuple(dict.fromkeys(self.specs))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the check that are not left out."""
        return tuple(part for part in PARTS if part not in self.left_out)

    def settings(self) -> dict[str, object]:
        """What the manifest says of how it was done."""
        chosen = {
            "models": list(self.names),
            "parts": list(self.parts),
            "share": self.share,
            "characters": self.characters,
            "near": self.threshold,
            "limit": self.limit,
            "cutoffs": list(self.cutoffs),
        }
        return {**chosen, **({"edition": self.edition} if self.edition else {})}


def _check_cutoffs(given: Mapping[str, Cutoff], known: Sequence[str]) -> None:
    bare = {name.partition("[")[0] for name in known}
    if unknown := sorted(given.keys() - set(known) - bare):
        raise UsageError(
            f"--cutoff names {', '.join(unknown)}, which is neither probed nor in a run",
            fix=f"write the model as it is given: {', '.join(dict.fromkeys(known))}",
        )


def _control(bench: Benchmark, named: str) -> str:
    """The other edition that is measured beside the one asked: the one named, else the original, or the modified."""
    editions = [MAIN, *bench.editions()]
    if named and named not in editions:
        raise UsageError(
            f"this benchmark has no edition {named!r}",
            where=str(bench.artefact.path),
            fix=f"it has {', '.join(editions)}",
        )
    asked = bench.edition or MAIN
    if named:
        return named if named != asked else ""
    if ORIGINAL not in editions:
        return ""
    return ORIGINAL if asked != ORIGINAL else MAIN


def _estimate(models: Sequence[Model], plan: LeakagePlan, parts: Sequence[str]) -> Estimate:
    items: list[LeakageItem] = plan.items
    texts = likelihood_texts(items, plan.edition) if "likelihood" in parts else []
    canaries = plan.canaries if "canary" in parts else []
    return sum((estimate_leakage(model, items, canaries, texts, parts) for model in models), Estimate())


def _show(screen: Screen, summary: LeakageSummary) -> None:
    screen.title(f"Signs of leakage over {summary.questions} questions (95% intervals)")
    _show_likelihoods(screen, summary)
    _show_overlaps(screen, summary)
    _show_dates(screen, summary.dates, summary.date_accuracies)
    _show_gaps(screen, summary.gaps)
    found = ", ".join(f"{count} in {_place(where)}" for where, count in summary.near.items())
    screen.say(f"near-duplicates (at least {summary.near_threshold:g} of a question's five-word runs): {found}")
    if not summary.documents:
        screen.say("   no corpus was given: documents were not searched")
    screen.say(f"   {CAVEATS['near']}")
    screen.say(f"canary strings in the corpus and the benchmark's files: {summary.canaries_found}")
    for row in summary.canaries:
        came = f"failed ({row.failure.kind})" if row.failure else f"{row.matched} of {row.hidden} hidden digits came"
        screen.say(f"   {row.model}, canary of {row.name}: {came}")
    if summary.canaries:
        screen.say(f"   {CAVEATS['canary']}")


def _place(where: str) -> str:
    return {"document": "documents other than the source", "question": "other questions"}.get(where, where)


def _show_likelihoods(screen: Screen, summary: LeakageSummary) -> None:
    rows = [row for row in summary.likelihoods if not row.by]
    if not rows:
        return
    header = ("perplexity", "text", "scored", "perplexity", "control", "control's", "control / own", "Min-K% gain")
    screen.table(
        header,
        [
            (
                row.model,
                row.text,
                f"{row.perplexity.n} of {row.planned}",
                _figure(row.perplexity),
                row.control or "–",
                _figure(row.control_perplexity),
                _figure(row.ratio),
                _figure(row.lowest_gain),
            )
            for row in rows
        ],
    )
    if any("unsupported" in row.unscored for row in rows):
        screen.say(f"   {CAVEATS['no likelihood']}")
    if any(row.perplexity.n for row in rows):
        screen.say(f"   {CAVEATS['likelihood']}")


def _show_overlaps(screen: Screen, summary: LeakageSummary) -> None:
    rows = [row for row in summary.overlaps if not row.by]
    if not rows:
        return
    header = ("overlap", "probe", "scored", "ROUGE-L", "another's", "edit", "another's", "longest run", "reproduced")
    screen.table(
        header,
        [
            (
                row.model,
                row.probe,
                f"{row.rouge.n} of {row.planned}",
                _figure(row.rouge),
                _figure(row.rouge_control),
                _figure(row.edit),
                _figure(row.edit_control),
                f"{row.run_longest} words",
                f"{row.reproduced} = {_figure(row.share, 'share')}",
            )
            for row in rows
        ],
    )
    screen.say(f"   {CAVEATS['overlap']}")


def _show_dates(screen: Screen, counts: Sequence[DateCounts], accuracies: Sequence[DateAccuracy]) -> None:
    for row in counts:
        if row.cutoff is None:
            screen.say(f"{row.model}: no training cutoff is known; give one with --cutoff {row.model}=2024-06")
            continue
        told = ", ".join(f"{row.positions[name]} {name}" for name in POSITIONS)
        screen.say(f"{row.model}: cutoff {row.cutoff.until} ({row.cutoff.kind}; {row.cutoff.source}): {told}")
    if accuracies:
        header = ("accuracy by date", "condition", "before", "after", Column("before - after", "points"))
        screen.table(
            header,
            [
                (
                    row.model,
                    row.condition,
                    f"{written(row.before, 'share')} of {row.before_n}",
                    f"{written(row.after, 'share')} of {row.after_n}",
                    (row.difference, row.interval.low, row.interval.high),
                )
                for row in accuracies
            ],
        )
    screen.say(f"   {CAVEATS['dates']}")


def _show_gaps(screen: Screen, gaps: Sequence[BookGap]) -> None:
    if not gaps:
        return
    header = (
        "closed against oracle",
        "protocol",
        Column("answers", "count"),
        Column("closed", "share"),
        Column("oracle", "share"),
        Column("gap", "points"),
        Column("right closed, wrong oracle", "count"),
        Column("unscored in either", "count"),
    )
    screen.table(
        header,
        [
            (
                row.model,
                row.protocol,
                row.pairs,
                row.closed.accuracy,
                row.oracle.accuracy,
                (row.gap.paired.difference, row.gap.paired.interval.low, row.gap.paired.interval.high),
                row.closed_only,
                row.unscored,
            )
            for row in gaps
        ],
    )
    screen.say(f"   {CAVEATS['gap']}")


def _figure(figure: LeakageEstimate, form: Form = "number") -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "–"
    return written((figure.value, figure.low, figure.high), form)
