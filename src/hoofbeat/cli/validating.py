"""What `audit validate` and `audit ablate` print: the figures of their folders as small tables."""

from __future__ import annotations

from hoofbeat.audit.findings.protocol_comparison import Protocols
from hoofbeat.audit.findings.validation_figures import Validation
from hoofbeat.cli.console import Screen
from hoofbeat.findings.agreement import Agreement
from hoofbeat.findings.intervals import Interval

__all__ = ["protocol_summary", "show_protocols", "show_validation", "summary"]


def summary(found: Validation) -> dict[str, object]:
    """The key figures for the manifest."""
    judge = found.judge
    people = found.people.pairs[0] if found.people and len(found.people.pairs) == 1 else None
    return {
        "pairs": found.pairs,
        "references": found.references,
        "annotators_kappa": people.kappa.value if people else None,
        "annotators_alpha": found.people.nominal.value if found.people else None,
        "agreement": judge.agreement.accuracy if judge.agreement.n else None,
        "kappa": judge.agreement.kappa,
        "macro_f1": judge.f1.macro,
        "weighted_f1": judge.f1.weighted,
        "population_agreement": found.population.agreement,
        "significance_kappa": found.significance.agreement.kappa if found.significance else None,
        "corrected": {f"{rate.name} ({rate.scope})": rate.estimate for rate in found.corrected},
    }


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


def protocol_summary(found: Protocols) -> dict[str, object]:
    """The key figures for the manifest."""
    people = found.people
    return {
        "pairs": found.pairs,
        "agreement": found.agreement.accuracy if found.agreement.n else None,
        "kappa": found.agreement.kappa,
        "kept": {row.label: row.kept_share for row in found.shifts},
        "significance_kappa": found.significance.kappa,
        "flip_rates": {row.protocol: row.rate for row in found.flips},
        "people": {
            "n": people.n,
            "structured": people.structured.agreement.accuracy,
            "label_only": people.label_only.agreement.accuracy,
            "p": people.p,
        }
        if people
        else None,
    }


def show_protocols(screen: Screen, found: Protocols) -> None:
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
