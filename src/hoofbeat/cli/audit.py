"""`hoofbeat audit`: the same questions, one source at a time; and what is said of how an audit went."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import click
import msgspec
from click.core import ParameterSource
from msgspec import Struct

from hoofbeat.audit import Audit, AuditPlan, audit_sources
from hoofbeat.audit.audit_estimate import economy_range, estimate_audit
from hoofbeat.audit.audit_folder import KIND
from hoofbeat.audit.audit_plan import DEFAULT_LINE, narrowed_plan, plan_audit, plan_audit_of_answers, uncompared_note
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
from hoofbeat.recipes import named_questions
from hoofbeat.records import Question
from hoofbeat.reports.tables import count_of
from hoofbeat.retrieval.corpus_index import index_corpus
from hoofbeat.store import InputRef, check_target
from hoofbeat.store.artefact import file_reference
from hoofbeat.window import LIMITED_BY_WINDOW, windows_of

_DOUBTS = (
    "no section named",
    "section not shown",
    "quote not found",
    "quote changed",
    "quote cut",
    "quote elsewhere",
    "quote too short",
    "statement differs",
)
_NOT_ASKED = ("--by", "--with", "--passages", "--whole-up-to", "--max-tokens", "--words")

_TRUST, _FOLDERS, _DECISIONS = "audit_trust", "audit_folders", "audit_decisions"


class AuditCommand(VerbWithOthers):
    """The audit itself, unless its first word names one of the commands under it."""

    under = Under(
        "audit",
        {
            "trial": (_TRUST, "put pairs whose relation is known to a judge, before it is trusted"),
            "compare": (_FOLDERS, "set two audits of the same questions against each other"),
            "validate": (_TRUST, "have people label a sample of the pairs, and measure the judge by them"),
            "ablate": (_TRUST, "judge a sample again with the label alone, and compare"),
            "merge": (_FOLDERS, "put the shards of one audit together"),
            "table": (_FOLDERS, "print who says what: questions, institutions, one line each"),
            "export": (_FOLDERS, "write who says what and all pairs as tables, and matrices by question"),
            "cases": (_DECISIONS, "list disagreements as cases, with what was decided on them"),
            "gate": (_DECISIONS, "fail where what changed since an earlier audit may not pass"),
            "themes": (_FOLDERS, "group what sources differ in into themes"),
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
    economy: float | None
    economy_check: int | None
    economy_model: str | None
    trial_path: Path | None
    seed: int
    output: Path


@click.command("audit", cls=AuditCommand, epilog=AuditCommand.under.epilog())
@click.argument("corpus", metavar="[SOURCES]", required=False, type=click.Path(path_type=Path))
@click.argument("questions", metavar="[QUESTIONS]", required=False)
@click.option("--judge", "judge_specs", multiple=True,
              help="Model that compares the answers [default: --model]; of several the majority decides.")  # fmt: skip
@click.option("--answers", "answers_path", type=click.Path(path_type=Path), metavar="FILE",
              help="Answers given in a file (.jsonl, .csv, .parquet: question, source, answer[, absent]).")  # fmt: skip
@click.option("--fields", default="", metavar="NAME=FIELD,…",
              help="What the file calls them: id=focus+qtype,source=site,facets.topic=qtype.")  # fmt: skip
@click.option("--source", "sources", multiple=True, help="Audit only these sources (ids); several may be given.")
@click.option("--by", default="document", show_default=True, metavar="document|FACET",
              help="What a source is: a document, or all documents of one institution (or another facet).")  # fmt: skip
@click.option("--pack", default="transplant", show_default=True, help="Domain pack, or the path of a .toml file.")
@click.option("--with", "line", default=DEFAULT_LINE, show_default=True, help="Retriever line inside a source.")
@click.option("--passages", type=click.IntRange(1, 50), help="Passages shown of a long source [default: 5].")
@click.option("--whole-up-to", type=click.IntRange(0), metavar="CHARACTERS",
              help="Documents up to this length are shown whole [default: 80000].")  # fmt: skip
@click.option("--question", "ids", multiple=True, help="Ask only these questions (ids); several may be given.")
@click.option("--limit", type=click.IntRange(1), help="Only the first so many questions.")
@click.option("--max-tokens", type=click.IntRange(1), help="Length limit of an answer [default: the prompt's].")
@click.option("--words", type=click.Path(path_type=Path), metavar="FILE",
              help="Your table of words for the same thing (.tsv, .txt), besides those of the pack.")  # fmt: skip
@click.option("--shard", metavar="I/N", help="Only this part of the questions; `audit merge` puts the parts together.")
@click.option("--probe-order", type=click.IntRange(0), default=0, metavar="N",
              help="Judge so many pairs again with their answers exchanged.")  # fmt: skip
@click.option("--economy", type=click.FloatRange(0, 1, min_open=True, max_open=True), metavar="RISK",
              help="Judge between positions, and carry labels to the other pairs; at most this share of them is wrong "
              "(0.05), or all pairs are judged.")  # fmt: skip
@click.option("--economy-model", metavar="MODEL",
              help="With --economy: model that sorts answers into positions [default: the first judge].")  # fmt: skip
@click.option("--economy-check", type=click.IntRange(1), metavar="N",
              help="With --economy: check this many carried labels [default: what the risk needs].")  # fmt: skip
@click.option("--trial", "trial_path", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Trial of this judge (`audit trial`), for the report's word on trust.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="For what is drawn at random.")
@output_option("audit")
@calling_options
def command(calling: Calling, **options: object) -> None:
    """Ask every source of the corpus SOURCES the QUESTIONS and compare the answers.

    QUESTIONS is a benchmark folder, `teaching`, or `teaching:PACK` for those of a domain pack's example.
    With --answers FILE, answers that other software or people gave are compared; there are no SOURCES and QUESTIONS.
    """
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
        if calling.only_estimate:
            if economy is not None:
                screen.say(economy_range(plan, len(judges)))
            expected = estimate_audit(plan, model, judges)
            screen.estimate(expected)
            if expected.again_words and not screen.as_json:
                screen.say(expected.again_words)
            return
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
        raise UsageError("answers are given, so nothing is asked", fix="leave out SOURCES and QUESTIONS")
    else:
        inputs = [file_reference(path, "answers")]
        plan = plan_audit_of_answers(path, wanted.fields, wanted.pack, wanted.sources)
    narrowed = narrowed_plan(
        plan,
        ids=wanted.ids,
        limit=wanted.limit,
        shard=wanted.shard,
        probe_order=wanted.probe_order,
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
    """Refuse options that were given but have nothing to act on; a default that was not asked for is no offence."""
    if answers:
        _refuse(context, _NOT_ASKED, "answers are given, so no source is searched or asked", "leave out {}")
    else:
        _refuse(context, ["--fields"], "there is no file of answers whose fields could be named", "add --answers FILE")
    if not economy:
        idle = ["--economy-check", "--economy-model"]
        _refuse(context, idle, "no label is carried from one pair to others", "add --economy 0.05")


def _refuse(context: click.Context, options: tuple[str, ...] | list[str], why: str, fix: str) -> None:
    names = {option: each.name for each in context.command.params for option in each.opts}
    idle = [
        option
        for option in options
        if context.get_parameter_source(str(names[option])) not in (None, ParameterSource.DEFAULT)
    ]
    if idle:
        said = ", ".join(idle)
        raise UsageError(f"{said} would do nothing: {why}", fix=fix.format(said))


def institution_figures(audit: Audit) -> dict[str, Any]:
    """For `--json`: the rates within and between institutions, where one of them has several documents."""
    from hoofbeat.audit.synthesis.audit_export import audit_institution_rates

    rates = audit_institution_rates(audit)
    return {"institutions": msgspec.to_builtins(rates)} if rates else {}


def print_audit_outcome(screen: Screen, audit: Audit) -> None:
    """Say how pairs came to their labels, what is doubtful in citations, and what the probes found."""
    metrics = cast("dict[str, Any]", audit.artefact.manifest.metrics)
    bases = metrics.get("basis", {})
    if bases:
        told = ", ".join(f"{count:,} {name}" for name, count in bases.items())
        screen.say(f"pairs by how they got their label ({audit.mode} judging): {told}")
    if limited := metrics.get(LIMITED_BY_WINDOW):
        window = windows_of(audit.artefact.manifest.settings).get("answer")
        told = ", ".join(f"{count_of(count, 'answer')} from what was {name}" for name, count in limited.items())
        screen.say(f"limited by the window of the model that answers ({window}): {told}")
    cited = metrics.get("citations", {})
    doubts = ", ".join(f"{cited[name]:,} {name}" for name in _DOUBTS if cited.get(name))
    if doubts:
        screen.say(f"citations of {count_of(cited.get('answers', 0), 'answer')} that are doubtful: {doubts}")
    if panel := panel_agreement(audit.frame(), audit.judges, [label.name for label in audit.pack.labels]):
        screen.say(panel_words(panel))
    if metrics.get("label_only"):
        screen.say(f"{count_of(metrics['label_only'], 'judgment')} could be read for the label only")
    if probes := audit.order_probes:
        labels, asked = [(each.label, each.swapped) for each in probes], [each.question for each in probes]
        found = flip_rates(labels, RelationLabels.of(audit.pack.labels), questions=asked)
        screen.say(
            f"with the answers exchanged, {found.flips} of {found.n} labels changed "
            f"(95% interval {found.interval.low:.1%} to {found.interval.high:.1%}{found.interval.few_note})"
        )
    if check := metrics.get("economy"):
        screen.say(economy_words(check, audit.risk))
    for reason, count in audit.artefact.manifest.counts.reasons.items():
        screen.say(f"left out: {count_of(count, 'row')} ({reason})")


def panel_words(panel: PanelAgreement) -> str:
    """How far several judges agree, and what became of pairs without a majority."""
    span = panel.unanimous_interval
    told = (
        f"{len(panel.judges)} judges: all say the same of {panel.unanimous:,} of {panel.pairs:,} pairs "
        f"(95% interval {span.low:.1%} to {span.high:.1%}{span.few_note})"
    )
    if panel.by_side:
        told += f"; {panel.by_side:,} have a majority only for whether the answers diverge"
    return f"{told}; {panel.no_majority:,} have no majority and therefore no label" if panel.no_majority else told
