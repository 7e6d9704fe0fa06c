"""`hoofbeat audit`: the same questions to each source, and what an audit found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import click
import msgspec
from click.core import ParameterSource
from msgspec import Struct

from hoofbeat.audit import Audit, AuditPlan, audit_sources
from hoofbeat.audit.audit_doubts import doubtful_citations
from hoofbeat.audit.audit_estimate import economy_range, estimate_audit
from hoofbeat.audit.audit_folder import KIND
from hoofbeat.audit.audit_plan import (
    DEFAULT_LINE,
    narrowed_plan,
    pack_note,
    plan_audit,
    plan_audit_of_answers,
    uncompared_note,
)
from hoofbeat.audit.economy.economy_audit import Economy, economy_words
from hoofbeat.audit.findings.panel_agreement import PanelAgreement, panel_agreement
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.table_agreement import flip_rates
from hoofbeat.audit.validation.judge_trial import trial_of, untried_note
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import Calling, Under, VerbWithOthers, calling_options, command_words, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.models import Model
from hoofbeat.models.model_loading import UsedModels
from hoofbeat.progress import Progress
from hoofbeat.prompts.packs import DEFAULT_PACK
from hoofbeat.recipes import named_questions
from hoofbeat.records import Question
from hoofbeat.reports.tables import count_of
from hoofbeat.retrieval.corpus_index import index_corpus
from hoofbeat.store import InputRef, check_target
from hoofbeat.store.artefact import file_reference
from hoofbeat.window import LIMITED_BY_WINDOW, windows_of

_NOT_ASKED = ("--by", "--with", "--passages", "--whole-up-to", "--max-tokens", "--words")

_TRUST, _FOLDERS, _DECISIONS = "audit_trust", "audit_folders", "audit_decisions"


class AuditCommand(VerbWithOthers):
    """The audit itself, unless its first word names one of the commands under it."""

    under = Under(
        "audit",
        {
            "trial": (_TRUST, "test a judge on pairs whose relation is known"),
            "compare": (_FOLDERS, "compare two audits of the same questions"),
            "validate": (_TRUST, "let people label a sample of pairs, and compare the judge with them"),
            "ablate": (_TRUST, "judge a sample again by label only, and compare"),
            "merge": (_FOLDERS, "merge the shards of one audit"),
            "table": (_FOLDERS, "print who says what, one line per institution"),
            "export": (_FOLDERS, "write tables for others: who says what, all pairs, matrices"),
            "cases": (_DECISIONS, "list disagreements as cases, with your team's decisions"),
            "gate": (_DECISIONS, "fail (in CI) if a change since an earlier audit is not acceptable"),
            "themes": (_FOLDERS, "group the disagreements into themes"),
        },
        "a corpus",
    )


class _Wanted(Struct, frozen=True, kw_only=True):
    """The options, as given."""

    corpus: Path | None
    questions: str | None
    judge_specs: tuple[str, ...]
    answers_path: Path | None
    fields: str
    sources: tuple[str, ...]
    by: str
    pack: str
    line: str
    passages: int | None
    whole_up_to: int | None
    ids: tuple[str, ...]
    limit: int | None
    max_tokens: int | None
    words: Path | None
    shard: str | None
    probe_order: int
    canary: bool
    economy: float | None
    economy_check: int | None
    economy_model: str | None
    trial_path: Path | None
    seed: int
    output: Path


@click.command("audit", cls=AuditCommand, epilog=AuditCommand.under.epilog())
@click.argument("corpus", metavar="[SOURCES]", required=False, type=click.Path(path_type=Path),
                shell_complete=AuditCommand.under.complete)  # fmt: skip
@click.argument("questions", metavar="[QUESTIONS]", required=False)
@click.option("--judge", "judge_specs", multiple=True,
              help="Model that compares the answers [default: --model]. Repeat it for several: the "
              "majority decides.")  # fmt: skip
@click.option("--answers", "answers_path", type=click.Path(path_type=Path), metavar="FILE",
              help="Compare the answers in this file (.jsonl, .csv, .parquet: question, source, "
              "answer[, absent]).")  # fmt: skip
@click.option("--fields", default="", metavar="NAME=FIELD,…",
              help="With --answers: the names of its fields, such as "
              "id=focus+qtype,source=site,facets.topic=qtype.")  # fmt: skip
@click.option("--source", "sources", multiple=True, help="Only this source (its id). Repeat it for several.")
@click.option("--by", default="document", show_default=True, metavar="document|FACET",
              help="What counts as a source: each document, or all documents with the same value of a facet "
              "(institution).")  # fmt: skip
@click.option(
    "--pack", default=DEFAULT_PACK, show_default=True, help="Domain pack: a name, or the path of a .toml file."
)
@click.option(
    "--with", "line", default=DEFAULT_LINE, show_default=True, help="Retriever line for searching inside a source."
)
@click.option(
    "--passages", type=click.IntRange(1, 50), help="Passages of a long source that the model sees [default: 5]."
)
@click.option("--whole-up-to", type=click.IntRange(0), metavar="CHARACTERS",
              help="The model sees documents up to this length whole [default: 80000].")  # fmt: skip
@click.option("--question", "ids", multiple=True, help="Only this question (its id). Repeat it for several.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N questions.")
@click.option("--max-tokens", type=click.IntRange(1), help="Maximum tokens per answer [default: set by the prompt].")
@click.option("--words", type=click.Path(path_type=Path), metavar="FILE",
              help="Your table of synonyms (.tsv, .txt), added to those of the pack.")  # fmt: skip
@click.option("--shard", metavar="I/N", help="Only part I of N of the questions; `audit merge` joins the parts.")
@click.option("--probe-order", type=click.IntRange(0), default=0, metavar="N",
              help="Judge N pairs again with the two answers swapped.")  # fmt: skip
@click.option("--canary", is_flag=True,
              help="Put a code into every comparison's prompt, and count a reply only if it repeats the code. A judge "
              "that obeys the text of an answer instead of the prompt does not.")  # fmt: skip
@click.option("--economy", type=click.FloatRange(0, 1, min_open=True, max_open=True), metavar="RISK",
              help="Save calls: group answers by position, judge between positions and copy the labels to the other "
              "pairs. If more than this share (0.05) of copied labels may be wrong, judge all pairs.")  # fmt: skip
@click.option("--economy-model", metavar="MODEL",
              help="With --economy: model that groups answers by position [default: the first judge].")  # fmt: skip
@click.option("--economy-check", type=click.IntRange(1), metavar="N",
              help="With --economy: check N copied labels [default: as many as the risk needs].")  # fmt: skip
@click.option("--trial", "trial_path", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Trial of this judge (from `audit trial`): the report then says how far to trust it.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for all random draws.")
@output_option("audit")
@calling_options
def command(calling: Calling, **options: object) -> None:
    """Ask every source of the corpus SOURCES the same QUESTIONS, compare the answers, and print who differs on what.

    QUESTIONS is a benchmark folder, `teaching`, or `teaching:PACK` for the example of a domain pack. With --answers
    FILE, Hoofbeat compares answers of other software or of people; leave out SOURCES and QUESTIONS then.
    """
    from hoofbeat.cli.results import show_disagreements

    wanted = _Wanted(**options)  # type: ignore[arg-type]
    _refuse_idle_options(
        click.get_current_context(), answers=wanted.answers_path is not None, economy=wanted.economy is not None
    )
    if not calling.only_estimate:
        check_target(wanted.output.resolve(), KIND)
    screen = calling.screen()
    with calling.open() as session:
        model = session.model(calling.model_spec)
        specs = dict.fromkeys(wanted.judge_specs or (calling.model_spec,))
        judges = [model if spec == calling.model_spec else session.model(spec) for spec in specs]
        in_lines = UsedModels(lambda spec: session.model(spec or calling.model_spec))
        economy = None
        if wanted.economy is not None:
            sorter = session.model(wanted.economy_model) if wanted.economy_model else judges[0]
            economy = Economy(sorter=sorter, risk=wanted.economy, check=wanted.economy_check)
        plan, inputs = _planned(wanted, economy, in_lines, screen)
        tried = trial_of(wanted.trial_path, judges, plan.pack) if wanted.trial_path is not None else None
        if note := uncompared_note(plan):
            screen.say(note)
        if click.get_current_context().get_parameter_source("pack") is ParameterSource.DEFAULT:
            screen.say(pack_note(plan.pack, plan.questions, plan.sources))
        if calling.only_estimate:
            if economy is not None:
                screen.say(economy_range(plan, len(judges)))
            expected = estimate_audit(plan, model, judges)
            screen.estimate(expected)
            if expected.again_words and not screen.as_json:
                screen.say(expected.again_words)
            return
        calling.warn_if_tiny(screen, "compare answers", specs=(calling.model_spec, *specs))
        if tried is None:
            screen.say(untried_note(judges, plan.pack, wanted.pack, wanted.output))
        made = audit_sources(
            plan,
            model,
            judges,
            wanted.output,
            inputs=[*inputs, tried[1]] if tried else inputs,
            command=command_words(),
            line_cost=lambda: in_lines.cost,
            trial=tried[0] if tried else None,
            progress=screen,
        )
        screen.calls(model, *judges, *([economy.sorter] if economy else []))
        print_audit_outcome(screen, Audit(made))
        show_disagreements(screen, Audit(made))
        more = institution_figures(Audit(made)) if screen.as_json else {}
        screen.finish(made, next_step=("hoofbeat", "report", wanted.output, "-o", "report"), **more)


def _planned(
    wanted: _Wanted, economy: Economy | None, models: Callable[[str], Model], progress: Progress
) -> tuple[AuditPlan, list[InputRef]]:
    """The plan that the options ask for, and what it is made of."""
    path = wanted.answers_path
    if path is None:
        opened, asked, inputs = _opened(wanted.corpus, wanted.questions)
        plan = plan_audit(
            opened,
            asked,
            lambda corpus: index_corpus(corpus, progress, models=models),
            sources=wanted.sources,
            by=wanted.by,
            pack=wanted.pack,
            line=wanted.line,
            passages=wanted.passages,
            whole_up_to=wanted.whole_up_to,
            max_tokens=wanted.max_tokens,
            words=wanted.words,
            model=models,
        )
    elif wanted.corpus is not None or wanted.questions is not None:
        raise UsageError(
            "--answers has the answers, so SOURCES and QUESTIONS are not used", fix="leave out SOURCES and QUESTIONS"
        )
    else:
        inputs = [file_reference(path, "answers")]
        plan = plan_audit_of_answers(path, wanted.fields, wanted.pack, wanted.sources)
    narrowed = narrowed_plan(
        plan,
        ids=wanted.ids,
        limit=wanted.limit,
        shard=wanted.shard,
        probe_order=wanted.probe_order,
        canary=wanted.canary,
        economy=economy,
        seed=wanted.seed,
    )
    return narrowed, inputs


def _opened(corpus: Path | None, questions: str | None) -> tuple[Corpus, list[Question], list[InputRef]]:
    if corpus is None or questions is None:
        raise UsageError(
            "an audit needs sources and questions", fix="hoofbeat audit SOURCES QUESTIONS, or --answers FILE"
        )
    opened = Corpus.open(corpus)
    asked, more = named_questions(questions)
    return opened, asked, [opened.artefact.reference(), *more]


# Options that would do nothing beside others are refused before any work


def _refuse_idle_options(context: click.Context, *, answers: bool, economy: bool) -> None:
    """Refuse options that were given but have no effect; defaults are fine."""
    if answers:
        _refuse(context, _NOT_ASKED, "--answers has the answers, so no source is searched or asked", "leave out {}")
    else:
        _refuse(context, ["--fields"], "it names the fields of a file of answers", "add --answers FILE")
    if not economy:
        idle = ["--economy-check", "--economy-model"]
        _refuse(context, idle, "labels are copied only with --economy", "add --economy 0.05")


def _refuse(context: click.Context, options: tuple[str, ...] | list[str], why: str, fix: str) -> None:
    names = {option: each.name for each in context.command.params for option in each.opts}
    idle = [
        option
        for option in options
        if context.get_parameter_source(str(names[option])) not in (None, ParameterSource.DEFAULT)
    ]
    if idle:
        said = ", ".join(idle)
        raise UsageError(f"{said} has no effect here: {why}", fix=fix.format(said))


def institution_figures(audit: Audit) -> dict[str, Any]:
    """For `--json`: rates within and between institutions, if one of them has several documents."""
    from hoofbeat.audit.synthesis.audit_export import audit_institution_rates

    rates = audit_institution_rates(audit)
    return {"institutions": msgspec.to_builtins(rates)} if rates else {}


def print_audit_outcome(screen: Screen, audit: Audit) -> None:
    """Say how pairs got their labels, which citations are doubtful, and what the probes found."""
    metrics = cast("dict[str, Any]", audit.artefact.manifest.metrics)
    bases = metrics.get("basis", {})
    if bases:
        told = ", ".join(f"{count:,} {name}" for name, count in bases.items())
        screen.say(f"how pairs got their label ({audit.mode} judging): {told}")
    if limited := metrics.get(LIMITED_BY_WINDOW):
        window = windows_of(audit.artefact.manifest.settings).get("answer")
        told = ", ".join(
            f"{count_of(count, 'answer')} from a source that was {name}" for name, count in limited.items()
        )
        screen.say(f"limited by the context window of the answering model ({window}): {told}")
    if doubts := doubtful_citations(metrics):
        screen.say(doubts)
    if panel := panel_agreement(audit.frame(), audit.judges, [label.name for label in audit.pack.labels]):
        screen.say(panel_words(panel))
    if metrics.get("label_only"):
        screen.say(f"in {count_of(metrics['label_only'], 'judgment')} only the label could be read")
    if probes := audit.order_probes:
        labels, asked = [(each.label, each.swapped) for each in probes], [each.question for each in probes]
        found = flip_rates(labels, RelationLabels.of(audit.pack.labels), questions=asked)
        screen.say(
            f"with the two answers swapped, {found.flips} of {found.n} labels changed "
            f"(95% interval {found.interval.low:.1%} to {found.interval.high:.1%}{found.interval.few_note})"
        )
    if check := metrics.get("economy"):
        screen.say(economy_words(check, audit.risk))
    for reason, count in audit.artefact.manifest.counts.reasons.items():
        screen.say(f"left out: {count_of(count, 'row')} ({reason})")


def panel_words(panel: PanelAgreement) -> str:
    """How far several judges agree, and how many pairs have no majority."""
    span = panel.unanimous_interval
    told = (
        f"{len(panel.judges)} judges: all agree on {panel.unanimous:,} of {panel.pairs:,} pairs "
        f"(95% interval {span.low:.1%} to {span.high:.1%}{span.few_note})"
    )
    if panel.by_side:
        told += f"; on {panel.by_side:,} a majority only says whether the answers diverge"
    return f"{told}; {panel.no_majority:,} have no majority and so no label" if panel.no_majority else told
