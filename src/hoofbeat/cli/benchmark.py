"""`hoofbeat benchmark`: questions that others published as a benchmark, and a benchmark with fewer questions."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.benchmarks.benchmark_import import ImportFormat, import_benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import (
    CommandWithList,
    ExtensionName,
    command_words,
    edition_option,
    json_option,
    output_option,
)
from hoofbeat.registry import registry


@click.group("benchmark")
def command() -> None:
    """Import published questions as a benchmark, count benchmarks, or shorten one."""


class _ImportCommand(CommandWithList):
    @staticmethod
    def listing() -> str:
        """The formats."""
        return "Formats:\n" + "\n".join(f"  {each.name:<14} {each.summary}" for each in registry.all(ImportFormat))


@command.command("import", cls=_ImportCommand)
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--as", "form", type=ExtensionName(ImportFormat), help="Format [default: detected from the fields].")
@click.option("--mapping", default="", help="Which field holds what: id=key,text=question,options=a+b+c+d,answer=gold.")
@click.option("--split", default="", help="Split to read from a folder [default: test].")
@click.option("--count-from", type=click.Choice(["0", "1"]), help="Number of the first option, if answers are numbers.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed for the order of options, if the file gives none."
)
@click.option("--title", default="", help="Title of the benchmark.")
@output_option("benchmark")
@json_option
def import_command(
    source: Path,
    form: ImportFormat | None,
    mapping: str,
    split: str,
    count_from: str | None,
    seed: int,
    title: str,
    output: Path,
    as_json: bool,
) -> None:
    """Import SOURCE, a file or folder of published questions, as a benchmark.

    rejected.jsonl lists rows that can't be read, with the reason. The documents of BEIR and R2MED folders become a
    corpus beside the benchmark.
    """
    screen = Screen(as_json=as_json)
    artefact = import_benchmark(
        source,
        output,
        form=form.name if form else "",
        mapping=mapping,
        split=split,
        count_from=int(count_from) if count_from else None,
        seed=seed,
        title=title,
        command=command_words(),
        progress=screen,
    )
    screen.reasons(artefact.manifest.counts)
    screen.finish(artefact, next_step=("hoofbeat", "show", output))


@command.command("stats")
@click.argument("sets", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--corpus", type=click.Path(path_type=Path), help="The corpus, if it is not beside the benchmark.")
@click.option("--tokenizer", default="none", show_default=True, help="none (words), minilm, or a tokenizer.json.")
@click.option("--distractors", is_flag=True, help="Also compute BERTScore of each distractor with the right option.")
@click.option("--encoder", default="minilm", show_default=True, help="Encoder for BERTScore.")
@click.option("--layer", default="auto", show_default=True, help="Layer for BERTScore: a number, last, or auto.")
@edition_option
@output_option("set-stats")
@json_option
def stats_command(
    sets: tuple[Path, ...],
    corpus: Path | None,
    tokenizer: str,
    distractors: bool,
    encoder: str,
    layer: str,
    edition: str,
    output: Path,
    as_json: bool,
) -> None:
    """Count SETS: questions, documents, positives, lengths, options and images per question, and their overlap.

    A set is a benchmark with its corpus, or a folder in BEIR's or R2MED's layout. R2MED's table counts GPT-2 tokens:
    name its tokenizer.json to compare with it. --distractors gives figure 2 of CUPCase.
    """
    from hoofbeat.corpus.stats import load_tokenizer
    from hoofbeat.judging.distractor_similarity import DISTRACTORS, DistractorScore, distractor_scores
    from hoofbeat.judging.scorers.bertscore import BertScorer
    from hoofbeat.models.encoder import load_encoder
    from hoofbeat.reports.sections.set_statistics_section import overlap_table, sets_table, similarity_table
    from hoofbeat.retrieval.rankings.set_statistics import open_set, set_statistics, write_set_statistics

    screen = Screen(as_json=as_json)
    opened = [open_set(path, corpus=corpus, edition=edition) for path in sets]
    scorer = BertScorer(load_encoder(encoder), layer=layer) if distractors else None
    scores = [row for each in opened for row in distractor_scores(each.name, each.questions, scorer)] if scorer else []
    found = set_statistics(opened, tokenizer=load_tokenizer(tokenizer), progress=screen)
    fields = DistractorScore.__struct_fields__
    artefact = write_set_statistics(
        output,
        found,
        opened,
        tables={DISTRACTORS: (fields, ([getattr(row, name) for name in fields] for row in scores))} if scorer else {},
        settings={"distractors": scorer.name} if scorer else {},
        command=command_words(),
    )
    shown = [sets_table(found, "sets")]
    shown += [overlap_table(found, "sets")] if found.overlaps else []
    if scorer and scores:
        names = dict.fromkeys(row.set for row in scores)
        f1 = {name: [row.f1 for row in scores if row.set == name] for name in names}
        shown.append(similarity_table("sets", scorer.name, f1))
    for table in shown:
        screen.table(table.columns, table.rows)
    screen.finish(artefact, next_step=("hoofbeat", "report", output))


@command.command("shorten")
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--answers", "answered", multiple=True, required=True, type=click.Path(path_type=Path),
              help="Run or judgments of its questions. Repeat it for several.")  # fmt: skip
@click.option("--questions", type=click.IntRange(1),
              metavar="N", help="Keep N questions [default: the minimum that ranks systems the same way].")  # fmt: skip
@edition_option
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for the choice and the test.")
@output_option("short")
@json_option
def shorten_command(
    benchmark: Path,
    answered: tuple[Path, ...],
    questions: int | None,
    edition: str,
    seed: int,
    output: Path,
    as_json: bool,
) -> None:
    """Keep a few questions of BENCHMARK that rank systems as all questions do.

    Hoofbeat chooses questions of all difficulties, and first those that separate systems best. It tests the ranking on
    held-out systems (with fewer than eight systems, on held-out questions). Accuracy on the short benchmark is not
    accuracy on the whole.
    """
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.recipes.short_form import shorten_benchmark

    screen = Screen(as_json=as_json)
    made = shorten_benchmark(
        Benchmark.open(benchmark, edition), answered, output, questions=questions, seed=seed, command=command_words()
    )
    rows = [
        [str(each.questions), f"{each.tau:.2f}", f"{each.worst:.2f}", f"{each.random_tau:.2f}"] for each in made.tested
    ]
    if rows:
        screen.table(
            ["questions", f"τ, held-out {made.tested[0].held_out}", "5th percentile", "random questions"], rows
        )
    else:
        screen.say(f"warning: {made.systems} systems are too few to test the ranking")
    screen.finish(made.artefact, next_step=("hoofbeat", "answer", output))
