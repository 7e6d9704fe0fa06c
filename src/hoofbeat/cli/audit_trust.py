"""`hoofbeat audit trial`, `validate` and `ablate`: how far an audit's judge can be trusted, in figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.findings.protocol_comparison import ProtocolAgreement
from hoofbeat.audit.findings.table_agreement import SIDES, Trial
from hoofbeat.audit.findings.validation_figures import Validation
from hoofbeat.audit.findings.validation_folder import ABLATION, VALIDATION
from hoofbeat.audit.validation.judge_trial import KIND as TRIAL
from hoofbeat.audit.validation.judge_trial import (
    estimate_injections,
    estimate_trial,
    hard_trial_pairs,
    put_injections,
    put_to_judge,
    trial_pairs,
    write_trial,
)
from hoofbeat.audit.validation.label_only import ablate_judge, ablation_sample, estimate_both
from hoofbeat.audit.validation.packets import KIND as PACKETS
from hoofbeat.audit.validation.packets import Packets, write_packets
from hoofbeat.audit.validation.people_validation import human_labels, validate_audit
from hoofbeat.cli.console import Screen
from hoofbeat.cli.injections import show_injections
from hoofbeat.cli.session import (
    Calling,
    calling_options,
    calling_options_of_judges,
    command_words,
    json_option,
    output_option,
)
from hoofbeat.errors import ArtefactError, UsageError
from hoofbeat.findings.agreement import Agreement
from hoofbeat.findings.intervals import Interval
from hoofbeat.models import Estimate
from hoofbeat.prompts import load_pack
from hoofbeat.prompts.packs import DEFAULT_PACK
from hoofbeat.store import check_target, open_artefact
from hoofbeat.text import dollars

_HARD_PACK = "clinicians"
_INVENTED = (
    "These pairs are invented. To check the judge on your own pairs, let people label some: hoofbeat audit validate."
)


@click.command("trial")
@click.option("--pack", "named_pack",
              help="Domain pack for the labels and the teaching example, or the path of its .toml file "
              f"[default: {DEFAULT_PACK}; with --hard {_HARD_PACK}].")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True,
              metavar="N", help="At most N pairs, evenly over the labels.")  # fmt: skip
@click.option(
    "--hard", is_flag=True, help="Use 60 hard pairs, sorted by kind, for judges that get the easy ones right."
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for the draw and the intervals."
)
@click.option(
    "--injections", is_flag=True,
    help="Also put instructions into answers (70, of 14 kinds), and measure how often they change the label.",
)  # fmt: skip
@output_option(TRIAL)
@calling_options_of_judges
def trial_command(
    named_pack: str | None, limit: int, hard: bool, injections: bool, seed: int, output: Path, calling: Calling
) -> None:
    """Test a judge on pairs of answers whose relation is known, in both orders.

    The pairs are invented: the teaching example of a domain pack, or hard pairs on clinical questions.
    """
    screen = calling.screen()
    pack_spec = named_pack or (_HARD_PACK if hard else DEFAULT_PACK)
    pack = load_pack(pack_spec)
    check_target(output.resolve(), TRIAL)
    drawn = hard_trial_pairs(limit=limit, seed=seed) if hard else trial_pairs(pack, limit=limit, seed=seed)
    with calling.open() as session:
        judges = [session.model(spec) for spec in dict.fromkeys(calling.model_specs)]
        if calling.only_estimate:
            parts = {"pairs in both orders": estimate_trial(judges, drawn, pack)}
            if injections:
                parts["instructions in answers"] = estimate_injections(judges, drawn, pack)
            screen.estimate(sum(parts.values(), start=Estimate()), parts=parts if injections else None)
            return
        calling.warn_if_tiny(screen, "judge", option="--judge")
        pairs = put_to_judge(judges, drawn, pack, progress=screen)
        tried = put_injections(judges, drawn, pack, progress=screen) if injections else ()
        artefact, figures = write_trial(
            pairs, pack, judges, output, limit=limit, seed=seed, injections=tried, command=command_words()
        )
        screen.calls(*judges)
        if not screen.as_json:
            show_trial(screen, figures)
        named = [word for judge in judges for word in ("--judge", judge.spec)]
        step = ("hoofbeat", "audit", "SOURCES", "QUESTIONS", "--pack", pack_spec, *named)
        more: dict[str, Any] = {"verdict": figures.verdict} if screen.as_json else {}
        screen.finish(artefact, next_step=(*step, "--trial", output), **more)


class _ValidateOptions(Struct, frozen=True, kw_only=True):
    """The options, as given."""

    packets: Path | None
    annotators: int
    per_label: int
    of_label: tuple[str, ...]
    seed: int
    files: tuple[Path, ...]
    adjudicated: Path | None
    partial: bool
    output: Path


@click.command("validate")
@click.argument("audit", type=click.Path(path_type=Path))
@click.option("--packets", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Folder for the packets; with --labels, the packets that were labelled.")  # fmt: skip
@click.option(
    "--annotators",
    type=click.IntRange(1, 50),
    default=2,
    show_default=True,
    help="Number of packets, one per annotator.",
)
@click.option("--per-label", type=click.IntRange(0), default=40, show_default=True, help="Pairs to draw per label.")
@click.option("--label", "of_label", multiple=True, metavar="LABEL=N",
              help="Draw N pairs of this label instead. Repeat it for several.")  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for the draw and the intervals."
)
@click.option("--labels", "files", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="An annotator's labels, CSV or JSONL. Repeat it for each annotator.")  # fmt: skip
@click.option("--adjudicated", type=click.Path(path_type=Path), metavar="FILE",
              help="Labels that annotators agreed on later; they override the majority.")  # fmt: skip
@click.option("--partial", is_flag=True, help="Accept files in which some items have no label.")
@output_option("validation")
@json_option
def validate_command(audit: Path, as_json: bool, **options: object) -> None:
    """Compare the judge of AUDIT with people.

    Without --labels: draw a stratified sample and write blinded packets for annotators. With --labels: read their
    labels and measure how far the judge agrees with them.
    """
    wanted = _ValidateOptions(**options)  # type: ignore[arg-type]
    screen = Screen(as_json=as_json)
    opened = Audit.open(audit)
    if wanted.files:
        _take_in(screen, opened, wanted)
        return
    if wanted.adjudicated is not None:
        raise UsageError("--adjudicated needs the annotators' files as well", fix="add them with --labels")
    if wanted.packets is None:
        raise UsageError(
            "there is nothing to do", fix="name a folder for packets (--packets), or the annotators' files (--labels)"
        )
    _write_packets(screen, opened, wanted, wanted.packets)


def _write_packets(screen: Screen, audit: Audit, wanted: _ValidateOptions, target: Path) -> None:
    _refuse_filled(target)
    check_target(target.resolve(), PACKETS)
    artefact = write_packets(
        audit,
        target,
        annotators=wanted.annotators,
        per_label=wanted.per_label,
        of_label=_numbers(wanted.of_label),
        seed=wanted.seed,
        command=command_words(),
        progress=screen,
    )
    design = Packets(artefact).design
    if not screen.as_json:
        rows = [
            [row.label, f"{row.pairs:,}", f"{row.drawn:,}", f"{row.weight:,.1f}" if row.weight else "-"]
            for row in design.strata
        ]
        screen.table(("label", "pairs", "drawn", "each represents"), rows)
        if design.unlabelled:
            screen.say(f"note: {design.unlabelled:,} pairs have no label, so none of them was drawn")
        screen.say(f"Give each annotator their folder in {target}. Keep {target / 'key'} to yourself.")
    labels = [word for name in design.annotators for word in ("--labels", f"{name}.csv")]
    step = ("hoofbeat", "audit", "validate", audit.artefact.path, "--packets", target, *labels)
    screen.finish(artefact, next_step=step)


def _refuse_filled(target: Path) -> None:
    """Packets that somebody has filled in are never written over."""
    try:
        changed = open_artefact(target, PACKETS).verify()
    except ArtefactError:  # not packets: told when the folder is checked
        return
    if changed:
        raise UsageError(
            f"Not overwritten: these packets may hold labels ({changed[0]})",
            where=str(target),
            fix="name another folder",
        )


def _numbers(given: tuple[str, ...]) -> Mapping[str, int]:
    found = {}
    for text in given:
        name, separator, number = text.rpartition("=")
        if not separator or not number.strip().isdecimal():
            raise UsageError(f"--label takes LABEL=N, not {text!r}", fix="write, for example, --label Contradictory=80")
        found[name.strip()] = int(number)
    return found


def _take_in(screen: Screen, audit: Audit, wanted: _ValidateOptions) -> None:
    check_target(wanted.output.resolve(), VALIDATION)
    packets = Packets.open(wanted.packets) if wanted.packets is not None else None
    given = human_labels(
        audit,
        wanted.files,
        adjudicated=wanted.adjudicated,
        packets=packets,
        partial=wanted.partial,
        progress=screen,
    )
    artefact, figures = validate_audit(
        audit,
        given,
        wanted.output,
        files=[*wanted.files, *([wanted.adjudicated] if wanted.adjudicated else [])],
        packets=packets,
        partial=wanted.partial,
        seed=wanted.seed,
        command=command_words(),
    )
    for note in given.notes:
        screen.say(f"note: {note}")
    if not screen.as_json:
        show_validation(screen, figures)
    screen.finish(
        artefact,
        next_step=("hoofbeat", "report", audit.artefact.path, wanted.output, "-o", "report"),
        **({"figures": msgspec.to_builtins(figures), "notes": list(given.notes)} if screen.as_json else {}),
    )


@click.command("ablate")
@click.argument("audit", type=click.Path(path_type=Path))
@click.option("--per-label", type=click.IntRange(1), default=40, show_default=True, help="Pairs to draw per label.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for the draw and the intervals."
)
@click.option("--order", is_flag=True, help="Also judge every pair with the two answers swapped.")
@click.option("--validation", "validated", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Use the pairs that people labelled in this validation, and compare both ways "
              "with people.")  # fmt: skip
@output_option("ablation")
@calling_options
def ablate_command(
    audit: Path, per_label: int, seed: int, order: bool, validated: Path | None, output: Path, calling: Calling
) -> None:
    """Judge a sample of AUDIT's pairs twice, in one structured call and by label only, and compare."""
    screen = calling.screen()
    opened = Audit.open(audit)
    check_target(output.resolve(), ABLATION)
    items, counts, inputs = ablation_sample(opened, per_label, seed, validated, screen)
    with calling.open() as session:
        model = session.model(calling.model_spec)
        if calling.only_estimate:
            screen.estimate(estimate_both(model, items, opened.pack, order=order))
            return
        artefact, figures = ablate_judge(
            opened,
            items,
            counts,
            model,
            output,
            seed=seed,
            settings={"per_label": None if validated else per_label, "order": order},
            inputs=inputs,
            command=command_words(),
            progress=screen,
        )
        screen.calls(model)
        if not screen.as_json:
            show_protocols(screen, figures)
        screen.finish(
            artefact,
            next_step=("hoofbeat", "report", opened.artefact.path, output, "-o", "report"),
            **({"figures": msgspec.to_builtins(figures)} if screen.as_json else {}),
        )


def show_trial(screen: Screen, found: Trial) -> None:
    """Print a trial."""
    told, two_way = found.agreement, found.two_way
    screen.title("The judge on pairs whose relation is known")
    screen.table(
        (f"n = {found.n} pairs", "right", "share", "commonest label", "chance", "κ"),
        [
            ["all labels", f"{found.right}", _short_figure(told.accuracy, told.accuracy_interval),
             f"{found.commonest_share:.2f}", f"{found.chance:.2f}", _short_figure(told.kappa, told.kappa_interval)],
            [f"{SIDES[1]} or not", f"{found.two_way_right}", _short_figure(two_way.accuracy, two_way.accuracy_interval),
             f"{found.two_way_share:.2f}", "0.50", _short_figure(two_way.kappa, two_way.kappa_interval)],
            ["all labels, answers swapped", f"{found.exchanged}", f"{found.exchanged / found.n:.2f}", "", "", ""],
            ["all labels, right in both orders", f"{found.both}", f"{found.both / found.n:.2f}", "", "", ""],
        ],
    )  # fmt: skip
    screen.title("By label")
    screen.table(
        ("true label", "pairs", *(f"said {label}" for label in told.labels), "no label", "precision", "recall"),
        [
            [score.label, f"{score.n:.0f}", *(f"{count}" for count in row), f"{score.n - sum(row):.0f}",
             _short(score.precision), _short(score.recall)]
            for score, row in zip(found.labels, told.confusion, strict=True)
        ],
    )  # fmt: skip
    if found.kinds:
        screen.title("By kind")
        screen.table(
            ("kind", "pairs", "right", "right in both orders", "differences missed", "differences invented"),
            [
                [row.kind, f"{row.n}", f"{row.right}: {_short_figure(row.right / row.n, row.interval)}", f"{row.both}",
                 f"{row.missed}", f"{row.invented}"]
                for row in found.kinds
            ],
        )  # fmt: skip
    flips = found.flips
    screen.say(
        f"with the two answers swapped, {flips.flips} of {flips.n} labels changed, {flips.crossing} of them between "
        f"diverging and not diverging (95% interval of changes {flips.interval.low:.2f} to {flips.interval.high:.2f}"
        f"{flips.interval.few_note})"
    )
    if told.unscored or flips.unscored:
        screen.say(f"no label: {told.unscored} pairs, {flips.unscored} in one of the orders; they count as wrong")
    screen.say(found.verdict)
    screen.say(_INVENTED)
    show_injections(screen, found.injections)


def _short_figure(value: float | None, span: Interval | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} ({span.low:.2f} to {span.high:.2f}{span.few_note})" if span else f"{value:.2f}"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def show_validation(screen: Screen, found: Validation) -> None:
    """Print a validation."""
    if found.people:
        screen.title("Agreement among annotators")
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
        (f"figure, n = {judge.agreement.n}", "sample", "all pairs (estimate)"),
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
        ("rate", "by the judge", "corrected", "labelled", "without a reference: number, range"),
        [
            [
                f"{rate.name}, {'absence as found' if rate.scope == 'answered' else 'absence also checked'}",
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
        screen.say(f"if all pairs without a reference were wrong, or all right: {low:.1%} to {high:.1%}")
    if found.population.why:
        screen.say(f"no estimate for all pairs: {found.population.why}")


def _errors(screen: Screen, found: Validation) -> None:
    lines = found.judge.borders
    if not lines.errors:
        screen.say("errors: none")
        return
    screen.title("Where the errors are")
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
        f"{lines.adjacent} of {lines.errors} errors are between neighbouring labels; {lines.crossing} change "
        "whether the pair diverges"
    )


def show_protocols(screen: Screen, found: ProtocolAgreement) -> None:
    """Print an ablation."""
    screen.title("One structured call compared with the label only")
    both: Agreement = found.agreement
    screen.table(
        ("figure", "value", "n"),
        [
            ["agreement", _share(both.accuracy if both.n else None, both.accuracy_interval), str(both.n)],
            ["agreement, all judged pairs (estimate)", _share(found.estimate, found.estimate_interval), str(both.n)],
            ["Cohen's κ", _figure(both.kappa, both.kappa_interval), str(both.n)],
            ["κ of significance", _figure(found.significance.kappa, found.significance.kappa_interval),
             str(found.significance.n)],
            ["same topic", f"{found.topics.same}", str(found.topics.n)],
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
    screen.table(("structured label", "pairs", "same label", "label only says"), rows)
    levels = {name: ", ".join(f"{level} {n}" for level, n in counts.items()) for name, counts in found.levels.items()}
    screen.table(
        ("way", "without a label", "significance", "calls", "tokens in", "tokens out", "cost"),
        [
            [name, str(found.unscored.get(name, "")), levels.get(name, ""), f"{cost.calls:,}", f"{cost.tokens_in:,}",
             f"{cost.tokens_out:,}", dollars(cost.money)]
            for name, cost in found.costs.items()
        ],
    )  # fmt: skip
    if found.flips:
        screen.title("Labels that change when the two answers are swapped")
        screen.table(
            ("way", "changed", "rate", "all judged pairs (estimate)"),
            [
                [row.protocol, f"{row.flips} of {row.n}", _share(row.rate, row.interval),
                 _share(row.estimate, row.estimate_interval)]
                for row in found.flips
            ],
        )  # fmt: skip
    if found.people:
        screen.title("Compared with people")
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
            f"only the structured call is right on {people.only_structured} pairs, only the label alone on "
            f"{people.only_label_only}; p = {people.p:.3f} (McNemar, exact, n = {people.n})"
        )


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _figure(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "no value"
    return _number(value) + (
        f" ({_number(interval.low)} to {_number(interval.high)}{interval.few_note})" if interval else ""
    )


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-0.000", "0.000")


def _share(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1%}" + (f" ({interval.low:.1%} to {interval.high:.1%}{interval.few_note})" if interval else "")
