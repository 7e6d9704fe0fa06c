"""What the commands of an audit print: how it went, and the figures of trials, validations and ablations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from hoofbeat.audit import Audit
from hoofbeat.audit.economy_check import calls_saved
from hoofbeat.audit.findings.protocol_comparison import ProtocolAgreement
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.table_agreement import SIDES, Trial, flip_rates
from hoofbeat.audit.findings.validation_figures import Validation
from hoofbeat.cli.console import Screen
from hoofbeat.findings.agreement import Agreement
from hoofbeat.findings.intervals import Interval, wilson
from hoofbeat.reports.tables import count_of

_INVENTED = "These pairs are invented. How the judge does on pairs of your own, people have to say: audit validate."
_DOUBTS = ("no section named", "section not shown", "quote not found", "quote elsewhere", "quote too short")


def print_audit_outcome(screen: Screen, audit: Audit) -> None:
    """Say how pairs came to their labels, what is doubtful in citations, and what the probes found."""
    metrics = cast("dict[str, Any]", audit.artefact.manifest.metrics)
    bases = metrics.get("basis", {})
    if bases:
        told = ", ".join(f"{count:,} {name}" for name, count in bases.items())
        screen.say(f"pairs by how they got their label ({audit.mode} judging): {told}")
    cited = metrics.get("citations", {})
    doubts = ", ".join(f"{cited[name]:,} {name}" for name in _DOUBTS if cited.get(name))
    if doubts:
        screen.say(f"citations of {count_of(cited.get('answers', 0), 'answer')} that are doubtful: {doubts}")
    if metrics.get("label_only"):
        screen.say(f"{count_of(metrics['label_only'], 'judgment')} could be read for the label only")
    if probes := audit.order_probes:
        found = flip_rates(((each.label, each.swapped) for each in probes), RelationLabels.of(audit.pack.labels))
        screen.say(
            f"with the answers exchanged, {found.flips} of {found.n} labels changed "
            f"(95% interval {found.interval.low:.1%} to {found.interval.high:.1%})"
        )
    if check := metrics.get("economy"):
        screen.say(economy_words(check, bases.get("judged", 0)))
    for reason, count in audit.artefact.manifest.counts.reasons.items():
        screen.say(f"left out: {count_of(count, 'row')} ({reason})")


def economy_words(check: Mapping[str, int], judged: int) -> str:
    """How many labels economy spread beside so many judged ones, what that saves, and how many of a sample agree."""
    if not check["spread"]:
        return "economy: no label was spread over a group, so nothing was saved and there was nothing to check"
    told = (
        f"economy: {check['spread']:,} labels were spread over groups, {judged:,} pairs had a call of their own "
        f"({calls_saved(check['spread'], judged, check['checked'] + check.get('unscored', 0))})"
    )
    if not check["checked"]:
        return f"{told}; none was judged for real"
    span = wilson(check["agree"], check["checked"])
    return (
        f"{told}; of {check['checked']} judged for real, "
        f"{check['agree']} agree (95% interval {span.low:.1%} to {span.high:.1%})"
    )


# Trials


def show_trial(screen: Screen, found: Trial) -> None:
    """Print a trial."""
    told, two_way = found.agreement, found.two_way
    screen.title("The judge beside planted relations")
    screen.table(
        (f"n = {found.n} pairs", "right", "share", "commonest label", "chance", "κ"),
        [
            ["all labels", f"{found.right}", _short_figure(told.accuracy, told.accuracy_interval),
             f"{found.commonest_share:.2f}", f"{found.chance:.2f}", _short_figure(told.kappa, told.kappa_interval)],
            [f"{SIDES[1]} or not", f"{found.two_way_right}", _short_figure(two_way.accuracy, two_way.accuracy_interval),
             f"{found.two_way_share:.2f}", "0.50", _short_figure(two_way.kappa, two_way.kappa_interval)],
            ["all labels, answers exchanged", f"{found.exchanged}", f"{found.exchanged / found.n:.2f}", "", "", ""],
            ["all labels, right in both orders", f"{found.both}", f"{found.both / found.n:.2f}", "", "", ""],
        ],
    )  # fmt: skip
    screen.title("By label")
    screen.table(
        ("planted", "pairs", *(f"said {label}" for label in told.labels), "no label", "precision", "recall"),
        [
            [score.label, f"{score.n:.0f}", *(f"{count}" for count in row), f"{score.n - sum(row):.0f}",
             _short(score.precision), _short(score.recall)]
            for score, row in zip(found.labels, told.confusion, strict=True)
        ],
    )  # fmt: skip
    flips = found.flips
    screen.say(
        f"with the answers exchanged, {flips.flips} of {flips.n} labels changed, {flips.crossing} of them between "
        f"diverging and not (95% interval of changes {flips.interval.low:.2f} to {flips.interval.high:.2f})"
    )
    if told.unscored or flips.unscored:
        screen.say(f"no label: {told.unscored} pairs, {flips.unscored} in one of the orders; they count as not right")
    screen.say(found.verdict)
    screen.say(_INVENTED)


def _short_figure(value: float | None, span: Interval | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} ({span.low:.2f} to {span.high:.2f})" if span else f"{value:.2f}"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


# Validations and ablations


def show_validation(screen: Screen, found: Validation) -> None:
    """Print a validation."""
    if found.people:
        screen.title("Annotators among themselves")
        rows = [
            [
                f"{row.a} and {row.b}",
                f"{row.n}",
                _share(row.agreement, row.agreement_interval),
                _figure(row.kappa.value, row.kappa.interval),
                _figure(row.linear.value, row.linear.interval) if row.linear else "-",
            ]
            for row in found.people.pairs
        ]
        screen.table(("annotators", "pairs", "agreement", "κ", "κ, linear weights"), rows)
        if len(found.annotators) > 2:
            alpha = found.people.nominal
            screen.say(f"Krippendorff's α of all {len(found.annotators)}: {_figure(alpha.value, alpha.interval)}")
    screen.title("The judge against people")
    judge, whole = found.judge, found.population
    screen.table(
        (f"figure, n = {judge.agreement.n}", "sample", "all pairs, estimated"),
        [
            ["agreement", _share(judge.agreement.accuracy, judge.agreement.accuracy_interval),
             _share(whole.agreement, whole.agreement_interval)],
            ["Cohen's κ", _figure(judge.agreement.kappa, judge.agreement.kappa_interval),
             _figure(whole.kappa, whole.kappa_interval)],
            ["κ, linear weights", _figure(judge.linear.value, judge.linear.interval), "-"],
            ["macro F1", _figure(judge.f1.macro, judge.f1.macro_interval),
             _figure(whole.f1.macro, whole.f1.macro_interval) if whole.f1 else "-"],
            ["weighted F1", _figure(judge.f1.weighted, judge.f1.weighted_interval),
             _figure(whole.f1.weighted, whole.f1.weighted_interval) if whole.f1 else "-"],
        ],
    )  # fmt: skip
    _references(screen, found)
    screen.table(
        ("label", "n", "precision", "recall", "F1"),
        [
            [row.label, f"{row.n:.0f}", _plain(row.precision), _plain(row.recall), _figure(row.f1, row.f1_interval)]
            for row in judge.f1.labels
        ],
    )
    _errors(screen, found)
    if found.significance:
        said = found.significance.agreement
        screen.say(f"significance, judge against people: κ {_figure(said.kappa, said.kappa_interval)}, n = {said.n}")
    screen.title("Rates corrected by people")
    screen.table(
        ("rate", "by the judge", "corrected", "labelled", "without a reference, range with those"),
        [
            [
                f"{rate.name}, {'absence as found' if rate.scope == 'answered' else 'absence checked, too'}",
                _percent(rate.judge),
                _share(rate.estimate, rate.interval) if rate.interval is not None else f"- ({rate.why})",
                str(rate.labelled),
                f"{rate.without}, {_range(rate.sensitivity)}" if rate.without else "0",
            ]
            for rate in found.corrected
        ],
    )


def _range(found: tuple[float, float] | None) -> str:
    return "no range" if found is None else f"{found[0]:.1%} to {found[1]:.1%}"


def _references(screen: Screen, found: Validation) -> None:
    how = ", ".join(f"{count} {name}" for name, count in found.references.items())
    screen.say(f"references: {how}")
    if found.judge.sensitivity:
        low, high = found.judge.sensitivity
        screen.say(f"with the pairs that have no reference all wrong or all right: {low:.1%} to {high:.1%}")
    if found.population.why:
        screen.say(f"no estimate for all pairs: {found.population.why}")


def _errors(screen: Screen, found: Validation) -> None:
    lines = found.judge.borders
    if not lines.errors:
        screen.say("errors: none")
        return
    screen.title("Where the errors lie")
    screen.table(
        ("between", "steps", "errors", "judge higher", "judge lower", "of all errors"),
        [
            [
                f"{row.lower} / {row.upper}",
                str(row.steps),
                str(row.over + row.under),
                str(row.over),
                str(row.under),
                f"{row.share:.0%}",
            ]
            for row in lines.borders
        ],
    )
    screen.say(
        f"{lines.adjacent} of {lines.errors} errors are between neighbours; {lines.crossing} change "
        "whether the pair diverges"
    )


def show_protocols(screen: Screen, found: ProtocolAgreement) -> None:
    """Print an ablation."""
    screen.title("Structured call against the label alone")
    both: Agreement = found.agreement
    screen.table(
        ("figure", "value", "n"),
        [
            ["agreement", _share(both.accuracy if both.n else None, both.accuracy_interval), str(both.n)],
            ["agreement, all judged pairs, estimated", _share(found.estimate, found.estimate_interval), str(both.n)],
            ["Cohen's κ", _figure(both.kappa, both.kappa_interval), str(both.n)],
            ["κ of significance", _figure(found.significance.kappa, found.significance.kappa_interval),
             str(found.significance.n)],
            ["topics that are the same", f"{found.topics.same}", str(found.topics.n)],
        ],
    )  # fmt: skip
    rows = [
        [
            row.label,
            str(row.n),
            _percent(row.kept_share),
            ", ".join(f"{name} {count}" for name, count in row.became.items()),
        ]
        for row in found.shifts
    ]
    screen.table(("structured label", "pairs", "kept", "becomes"), rows)
    levels = {name: ", ".join(f"{level} {n}" for level, n in counts.items()) for name, counts in found.levels.items()}
    screen.table(
        ("way", "without a label", "significance", "calls", "tokens in", "tokens out", "money"),
        [
            [name, str(found.unscored.get(name, "")), levels.get(name, ""), f"{cost.calls:,}", f"{cost.tokens_in:,}",
             f"{cost.tokens_out:,}", f"{cost.money:.4f}"]
            for name, cost in found.costs.items()
        ],
    )  # fmt: skip
    if found.flips:
        screen.title("Labels that change when the two answers are exchanged")
        screen.table(
            ("way", "flipped", "rate", "all judged pairs, estimated"),
            [
                [row.protocol, f"{row.flips} of {row.n}", _share(row.rate, row.interval),
                 _share(row.estimate, row.estimate_interval)]
                for row in found.flips
            ],
        )  # fmt: skip
    if found.people:
        screen.title("Against people")
        people = found.people
        screen.table(
            ("way", "agreement", "κ", "macro F1"),
            [
                [name, _share(said.agreement.accuracy, said.agreement.accuracy_interval),
                 _figure(said.agreement.kappa, said.agreement.kappa_interval), _plain(said.f1.macro)]
                for name, said in (("structured", people.structured), ("label-only", people.label_only))
            ],
        )  # fmt: skip
        screen.say(
            f"{people.only_structured} pairs only the structured call gets right, {people.only_label_only} only the "
            f"label alone; p = {people.p:.3f} (McNemar, exact, n = {people.n})"
        )


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _figure(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "no value"
    return _number(value) + (f" ({_number(interval.low)} to {_number(interval.high)})" if interval else "")


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-0.000", "0.000")


def _share(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1%}" + (f" ({interval.low:.1%} to {interval.high:.1%})" if interval else "")
