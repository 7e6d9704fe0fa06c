"""The first screen of any folder that Hoofbeat wrote: what it is, what was found, how it was made, what to run next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hoofbeat.cli.console import Screen
from hoofbeat.cli.results import show_disagreements, show_leaderboard
from hoofbeat.findings.caveats import caveats
from hoofbeat.folders import made_in_words
from hoofbeat.reports.tables import Column, count_of, model_name
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.tables import read_jsonl, read_tsv
from hoofbeat.text import cut, dollars, some_of

T = TypeVar("T")
PAGE = "report.html"
_ROWS = 12
_FILES = 6


def show_folder(screen: Screen, artefact: Artefact) -> None:
    """The first screen of one folder."""
    manifest = artefact.manifest
    screen.title(manifest.title or artefact.path.name)
    screen.say(f"{made_in_words(manifest)} ({manifest.kind})")
    for warning in caveats(manifest):
        screen.say(f"warning: {warning}")
    _FOUND.get(manifest.kind, _show_metrics)(screen, artefact)
    screen.title("How it was made")
    if manifest.command:
        screen.line(manifest.command_text)
    for role, model in manifest.models.items():
        screen.say(f"model{'' if role == 'model' else f' ({role})'}: {model_name(model)}")
    if manifest.inputs:
        names = [f"{each.name} ({each.kind or 'file'})" for each in manifest.inputs]
        screen.say(f"from: {some_of(names, _FILES)}")
    if manifest.cost.calls:
        money = f", {dollars(manifest.cost.money)}" if manifest.cost.money else ""
        screen.say(f"cost: {count_of(manifest.cost.calls, 'model call')}{money}")
    files = sorted(manifest.files, key=lambda name: "/" in name)  # what is in folders inside comes last
    screen.say(f"files: {some_of(files, _FILES)}")


def next_command(artefact: Artefact) -> tuple[object, ...]:
    """What people mostly do with a folder of this kind."""
    path = artefact.path
    if artefact.has(PAGE):
        return ("open", path / PAGE)
    match artefact.manifest.kind:
        case "run":
            return ("hoofbeat", "judge", path, "--model", "JUDGE")
        case "audit":
            return ("hoofbeat", "audit", "table", path)
        case "packets":
            return ("hoofbeat", "review", path)
        case "export" | "audit-export" | "index" | "labels":
            return ()
        case "trial":
            return ("hoofbeat", "audit", "SOURCES", "QUESTIONS", "--trial", path)
        case "evidence":
            return ("hoofbeat", "serve", path)
        case _:
            return ("hoofbeat", "report", path, "-o", "report")


def show_collection(screen: Screen, root: Path, folders: Sequence[Path]) -> None:
    """The first screen of a folder of folders: what was found, where a report or comparison says it, and a table."""
    opened = [open_artefact(folder) for folder in folders]
    screen.title(f"{root.name or root}: {count_of(len(opened), 'folder')}")
    screen.table(
        ["folder", "kind", "what it holds"],
        [(str(each.path.relative_to(root)), each.manifest.kind, made_in_words(each.manifest)) for each in opened],
    )
    for kind in ("report", "comparison"):
        told = [each for each in opened if each.manifest.kind == kind]
        if len(told) == 1:
            screen.title(f"What was found ({told[0].path.relative_to(root)})")
            _FOUND[kind](screen, told[0])
            return


def _show_metrics(screen: Screen, artefact: Artefact) -> None:
    """The figures of the manifest that are a number or a word."""
    for name, value in artefact.manifest.metrics.items():
        if isinstance(value, bool | int | str):
            screen.say(f"{name}: {value}")
        elif isinstance(value, float):
            screen.say(f"{name}: {value:.3g}")


def _show_rejections(screen: Screen, artefact: Artefact) -> None:
    screen.reasons(artefact.manifest.counts)


def _show_rankings(screen: Screen, artefact: Artefact) -> None:
    from hoofbeat.cli.retrieve import show_measures

    if artefact.manifest.metrics:
        show_measures(screen, [artefact])
    else:
        screen.say("There are no judgments of relevance, so nothing was measured.")


def _show_audit(screen: Screen, artefact: Artefact) -> None:
    from hoofbeat.audit import Audit

    show_disagreements(screen, Audit(artefact))


def _show_check(screen: Screen, artefact: Artefact) -> None:
    from hoofbeat.cli.check import show_check
    from hoofbeat.findings.answer_check import read_answer_check
    from hoofbeat.findings.benchmark_checks import CheckSummary

    show_check(screen, _read(artefact, "summary.json", CheckSummary), read_answer_check(artefact))


def _show_leakage(screen: Screen, artefact: Artefact) -> None:
    from hoofbeat.cli.leakage import show_leakage
    from hoofbeat.leakage.leakage_figures import LeakageSummary

    show_leakage(screen, _read(artefact, "summary.json", LeakageSummary))


def _show_trial(screen: Screen, artefact: Artefact) -> None:
    from hoofbeat.audit.findings.table_agreement import Trial
    from hoofbeat.cli.audit_trust import show_trial

    show_trial(screen, msgspec.convert(artefact.manifest.metrics, Trial))


def _show_validation(screen: Screen, artefact: Artefact) -> None:
    from hoofbeat.audit.findings.validation_folder import ValidationFolder
    from hoofbeat.cli.audit_trust import show_validation

    show_validation(screen, ValidationFolder(artefact).figures)


def _show_ablation(screen: Screen, artefact: Artefact) -> None:
    from hoofbeat.audit.findings.validation_folder import AblationFolder
    from hoofbeat.cli.audit_trust import show_protocols

    show_protocols(screen, AblationFolder(artefact).figures)


def _show_packets(screen: Screen, artefact: Artefact) -> None:
    from hoofbeat.audit.validation.packets import Packets

    design = Packets(artefact).design
    screen.say(f"for {some_of(list(design.annotators), _ROWS)}; the folder key tells what was judged: keep it secret")
    screen.table(
        ["label", Column("pairs", "count"), Column("drawn", "count")],
        [(row.label, row.pairs, row.drawn) for row in design.strata],
    )


def _show_themes(screen: Screen, artefact: Artefact) -> None:
    rows = list(read_tsv(artefact.file("themes.tsv")))
    columns = ("pairs", "questions", "sources")
    screen.table(["theme", *columns], [(cut(row["theme"], 60), *map(row.get, columns)) for row in rows[:_ROWS]])
    if len(rows) > _ROWS:
        screen.say(f"and {len(rows) - _ROWS:,} more themes, in themes.tsv")


def _show_stats(screen: Screen, artefact: Artefact) -> None:
    from hoofbeat.cli.corpus_show import print_stats
    from hoofbeat.corpus.stats import CorpusStats

    [stats] = read_jsonl(artefact.file("stats.jsonl"), CorpusStats)
    print_stats(screen, stats)


def _show_sets(screen: Screen, artefact: Artefact) -> None:
    rows = list(read_tsv(artefact.file("sets.tsv")))
    names = ("questions", "documents", "positives")
    screen.table(["set", *names], [(row["name"], *(row.get(name, "") for name in names)) for row in rows])


def _show_labels(screen: Screen, artefact: Artefact) -> None:
    counts = {name: count for name, count in artefact.manifest.metrics.items() if isinstance(count, int)}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    screen.table(["label", Column("documents", "count")], ordered)


def show_report(screen: Screen, artefact: Artefact) -> None:
    """What a report says was found, in its sentences; without any, its key figures."""
    found = artefact.manifest.metrics.get("found")
    if isinstance(found, list):
        for sentence in found:
            screen.say(f"- {sentence}")
    else:
        _show_metrics(screen, artefact)


def _show_comparison(screen: Screen, artefact: Artefact) -> None:
    """Retrievers with their measure, or pairs of systems with their difference."""
    metrics: Mapping[str, Any] = artefact.manifest.metrics
    pairs = metrics.get("pairs")
    if isinstance(pairs, dict):
        rows = [
            (name, str(pair["n"]), f"{100 * pair['difference']:+.1f} ({100 * pair['low']:+.1f} to "
             f"{100 * pair['high']:+.1f})", f"{pair['p_holm']:.3f}")
            for name, pair in pairs.items()
        ]  # fmt: skip
        screen.table(["systems", "questions", "second − first, points", "p (Holm)"], rows[:_ROWS])
        screen.say(f"{metrics.get('flipped', 0):,} changes of a question's outcome (right, wrong or unscored)")
        return
    measured = [(name, each) for name, each in metrics.items() if isinstance(each, dict) and "value" in each]
    if measured:
        measure, n = measured[0][1]["measure"], measured[0][1]["n"]
        ordered = sorted(measured, key=lambda item: -item[1]["value"])
        screen.table(
            ["retriever", f"{measure}, n = {n}"],
            [(name, f"{each['value']:.3f} [{each['low']:.3f}, {each['high']:.3f}]") for name, each in ordered],
        )


_RATES = {
    "R_abs": "pairs with a silent source",
    "R_div": "pairs that disagree",
    "intensity": "disagreement among pairs answered in both",
    "pct_any_div": "questions with a disagreement",
    "prevalence": "the same, among pairs answered in both",
}


def _show_audit_comparison(screen: Screen, artefact: Artefact) -> None:
    rates = [(words, artefact.manifest.metrics.get(name)) for name, words in _RATES.items()]
    rows = [
        (words, *(rate.get(when) for when in ("before", "after"))) for words, rate in rates if isinstance(rate, dict)
    ]
    screen.table(["", Column("before", "share"), Column("after", "share")], rows)


def _show_gate(screen: Screen, artefact: Artefact) -> None:
    passed = artefact.manifest.metrics.get("passed")
    screen.say(f"The gate {'passes' if passed else 'fails'}.")
    told = msgspec.json.decode(artefact.file("gate.json").read_bytes())
    for each in told["conditions"]:
        screen.say(f"{'fails' if each['failed'] else 'passes'}: it fails if {each['condition']}")


def _show_protocol(screen: Screen, artefact: Artefact) -> None:
    from hoofbeat.reports.sections.protocol_section import read_differences

    found = read_differences(artefact)
    screen.say(f"This run differs from the paper in {count_of(len(found), 'point')}.")
    for each in found:
        screen.say(f"{each.what}: in the paper {each.paper}; here {each.here}", indent=2)


def _show_evidence(screen: Screen, artefact: Artefact) -> None:
    routes = artefact.manifest.metrics.get("routes")
    for route, count in routes.items() if isinstance(routes, dict) else ():
        screen.say(f"{route}: {count_of(count, 'source')}")


def _read(artefact: Artefact, name: str, kind: type[T]) -> T:
    return msgspec.json.decode(artefact.file(name).read_bytes(), type=kind)


_FOUND: dict[str, Callable[[Screen, Artefact], None]] = {
    "corpus": _show_rejections,
    "benchmark": _show_rejections,
    "rankings": _show_rankings,
    "evidence": _show_evidence,
    "run": show_leaderboard,
    "judgments": show_leaderboard,
    "check": _show_check,
    "leakage": _show_leakage,
    "audit": _show_audit,
    "trial": _show_trial,
    "validation": _show_validation,
    "ablation": _show_ablation,
    "packets": _show_packets,
    "themes": _show_themes,
    "stats": _show_stats,
    "set-stats": _show_sets,
    "labels": _show_labels,
    "report": show_report,
    "comparison": _show_comparison,
    "audit-comparison": _show_audit_comparison,
    "gate": _show_gate,
    "protocol": _show_protocol,
}
