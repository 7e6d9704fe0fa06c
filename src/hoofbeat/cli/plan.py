"""`hoofbeat plan`: what a study would take, on one machine and on clusters, before it starts."""

from __future__ import annotations

import re
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import json_option, ledger_option, reasoning_option
from hoofbeat.errors import UsageError
from hoofbeat.text import dollars

if TYPE_CHECKING:
    from hoofbeat.capacity import CapacityPlan, StudySize

_POSITIVE = click.IntRange(1)
_MOST = 10**15
_CHECK = "check --articles, --characters, --passages, --questions and --sources"
_NODES = re.compile(r"[1-9][0-9]{0,4}")


@click.command("plan")
@click.option("--articles", type=_POSITIVE, help="Number of articles.")
@click.option("--corpus", type=click.Path(path_type=Path), help="A corpus folder, instead of --articles.")
@click.option("--characters", type=_POSITIVE, help="Characters per article [default: a measured average].")
@click.option("--passages", type=_POSITIVE, help="Total number of passages [default: one per 800 characters].")
@click.option("--questions", type=click.IntRange(0), default=0, help="Number of questions.")
@click.option(
    "--sources", type=click.IntRange(0), default=0, help="Number of sources to audit, each with every question."
)
@click.option("--positions", type=_POSITIVE, help="Audit with --economy, with this number of positions per question.")
@click.option("--with", "line", default="bm25 + dense", show_default=True, help="Retriever line.")
@click.option("--model", "model_spec", default="embedded", show_default=True, help="Model that answers and judges.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Seconds per call [default: from the ledger].")
@click.option("--in-flight", type=_POSITIVE, help="Simultaneous calls per model server [default: 32].")
@click.option("--servers", type=_POSITIVE, help="Number of model servers [default: one per node].")
@click.option("--nodes", default="1,8,64", show_default=True, help="Cluster sizes to plan for.")
@click.option("--cores", type=_POSITIVE, default=16, show_default=True, help="Cores per node.")
@click.option("--probe", "probed", is_flag=True, help="First measure the speed of this machine (takes seconds).")
@ledger_option
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="Configuration file.")
@reasoning_option
@json_option
def command(
    articles: int | None,
    corpus: Path | None,
    characters: int | None,
    passages: int | None,
    questions: int,
    sources: int,
    positions: int | None,
    line: str,
    model_spec: str,
    seconds: float | None,
    in_flight: int | None,
    servers: int | None,
    nodes: str,
    cores: int,
    probed: bool,
    ledger_path: str | None,
    config_path: Path | None,
    reasoning: int | None,
    as_json: bool,
) -> None:
    """Estimate a study: calls, tokens, cost, hours, memory and disk.

    The estimate uses the size of the corpus, the numbers of questions and sources, the retriever line, and the measured
    speed of every stage and of the model. No model is called. The output names every assumption.
    """
    from hoofbeat.capacity import StudySize, load_costs, plan_capacity, probe, rate_of
    from hoofbeat.models.model_loading import FLEET_IN_FLIGHT, open_session
    from hoofbeat.retrieval.rankings.ranking_plan import passages_of

    screen = Screen(as_json=as_json)
    costs = load_costs()
    if corpus is not None:
        if articles is not None or characters is not None:
            named = "--characters" if articles is None else "--articles"
            raise UsageError(f"{named} and --corpus can't be used together", fix="give one of them")
        articles, text = _measured(corpus)
    else:
        articles = articles or 0
        text = articles * (characters or costs.text_per_article)
    if not articles and not questions:
        raise UsageError("there is nothing to plan", fix="give --articles or --corpus, --questions, or both")
    if passages is None:
        passages = articles * passages_of(text // articles) if articles else 0
    study = StudySize(articles=articles, characters=text, passages=passages, questions=questions, sources=sources,
                  line=line, positions=positions)  # fmt: skip
    _check(study, seconds)
    with open_session(
        ledger_path=ledger_path, config_path=config_path, reasoning=reasoning, tell=screen.say
    ) as session:
        model = session.model(model_spec)
        rate = rate_of(model, costs, seconds=seconds, in_flight=in_flight, servers=servers,
                       fleet_limit=FLEET_IN_FLIGHT)  # fmt: skip
        found = plan_capacity(
            study,
            model,
            rate,
            nodes=_node_counts(nodes),
            cores=cores,
            speed=probe(costs) if probed else 1.0,
            load=lambda name: session.model(name or model_spec),
        )
    if as_json:
        screen.emit(found)
    else:
        _show(screen, found)


def _check(study: StudySize, seconds: float | None) -> None:
    """Refuse numbers that can't be true together."""
    sources, positions = study.sources, study.positions
    for wrong, what, fix in (
        (not isfinite(seconds or 0), "--seconds is not a number of seconds", "write it as 4 or 0.5"),
        (
            max(study.characters, study.passages, study.questions, sources) > _MOST,
            f"a number is above {_MOST:,}",
            _CHECK,
        ),
        (
            bool(study.articles) and study.passages > study.characters,
            f"{study.passages:,} passages can't be cut from {study.characters:,} characters of text",
            _CHECK,
        ),
        (sources == 1, "an audit compares sources with each other, so one is too few", "give --sources 2 or more"),
        (sources and not study.questions, "sources are audited by questions, and there are none", "give --questions"),
        (
            positions is not None and not 1 <= positions <= sources,
            f"{sources:,} sources can't have {positions or 0:,} positions on a question",
            "give --positions up to the number of --sources",
        ),
    ):
        if wrong:
            raise UsageError(what, fix=fix)


def _measured(folder: Path) -> tuple[int, int]:
    """The documents of a corpus, and the characters of their texts."""
    from hoofbeat.corpus import Corpus

    lengths = [len(document.text) for document in Corpus.open(folder).documents()]
    return len(lengths), sum(lengths)


def _node_counts(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(_NODES.fullmatch(part) for part in parts):
        raise UsageError(
            f"{text!r} is not a list of cluster sizes", fix="write numbers up to 99,999, for example --nodes 1,8,64"
        )
    return sorted({int(part) for part in parts})


def _show(screen: Screen, plan: CapacityPlan) -> None:
    places = ["local" if count == 1 else f"{count} nodes" for count in plan.nodes]
    rows = [
        (
            stage.name,
            f"{stage.amount:,} {stage.unit}",
            _time(stage.serial_hours),
            *(_time(stage.hours[count]) for count in plan.nodes),
        )
        for stage in plan.stages
    ]
    screen.table(["stage", "amount", "serial", *places], [*rows, ("total", "", "", *map(_time, plan.hours.values()))])
    if plan.calls:
        money = "price unknown" if plan.money is None else dollars(plan.money)
        screen.say(f"{plan.calls:,} calls, {plan.tokens_in:,} tokens in, {plan.tokens_out:,} out, {money}")
    screen.say("Memory: " + _sizes(plan.memory))
    screen.say("Disk: " + _sizes(plan.disk) + f"; {sum(plan.disk.values()):,.1f} GB in total")
    screen.say("Assumptions:")
    for each in plan.assumptions:
        screen.say(f"- {each}")


def _sizes(sizes: dict[str, float]) -> str:
    return ", ".join(f"{name} {size:,.1f} GB" for name, size in sizes.items() if size >= 0.05) or "less than 0.1 GB"


def _time(hours: float) -> str:
    """Hours in the unit that people would use."""
    if hours >= 72:
        return f"{hours / 24:,.1f} days"
    if hours >= 1:
        return f"{hours:.1f} h"
    return f"{hours * 60:.1f} min" if hours * 60 >= 1 else f"{hours * 3600:.1f} s"
