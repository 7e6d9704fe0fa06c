"""`hoofbeat audit themes`: what the sources of an audit disagree about, grouped, named and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.findings import Theme, Topics, divergence_topics, themes
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.theme_names import PROMPT, ThemeName, distinct_names, embed_topics, estimate_names, name_themes
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option, output_option
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import SPEC_HELP, Encoder, Estimate, Model, load_encoder
from hoofbeat.models.session import Session, open_session
from hoofbeat.models.vectors import cached_encoder, vectors_folder
from hoofbeat.prompts import Pack, load_prompt
from hoofbeat.reports.charts import Tally, count_bars, sheet, standalone
from hoofbeat.reports.words import count_of
from hoofbeat.store import Artefact, Cost, Counts, Manifest, check_target, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl, write_tsv
from hoofbeat.text import cut

__all__ = ["KIND", "THRESHOLD", "command"]

KIND = "themes"

THRESHOLD = 0.4
"""The mean cosine at which groups of phrases are one theme: chosen on invented phrases that were grouped by hand."""

_SHOWN, _DRAWN = 12, 30
_PATH = click.Path(path_type=Path)


class _Wanted(Struct, frozen=True, kw_only=True):
    """The options, as given."""

    model_spec: str | None
    named: int
    encoder: str
    threshold: float | None
    k: int | None
    labels: tuple[str, ...]
    weights: str
    examples: int
    ledger_path: Path | None
    config_path: Path | None
    budget: str | None
    only_estimate: bool
    output: Path


class _Found(Struct, frozen=True, kw_only=True):
    """The themes with the names they go by, and what naming them came to."""

    topics: Topics
    themes: list[Theme]
    names: list[ThemeName]
    encoder: Encoder
    model: Model | None


@click.command("themes")
@click.argument("audit", type=_PATH)
@click.option("--model", "model_spec", help=f"Let this model name the themes: {SPEC_HELP} [default: by rule].")
@click.option("--named", type=click.IntRange(1), default=100, show_default=True,
              help="How many of the largest themes the model names.")  # fmt: skip
@click.option("--encoder", default="minilm", show_default=True, help="Sentence encoder of the topic phrases.")
@click.option("--threshold", type=click.FloatRange(-1, 1),
              help=f"Mean cosine that phrases of one theme reach [default: {THRESHOLD}].")  # fmt: skip
@click.option("--themes", "k", type=click.IntRange(1), help="Make so many themes instead.")
@click.option(
    "--label", "labels", multiple=True, help="Take topics of pairs with this label [default: those that diverge]."
)
@click.option("--weights", default="", metavar="LEVEL=W,…",
              help="Weights of the significance levels [default: 1 for the least, 2 for the next, …].")  # fmt: skip
@click.option("--examples", type=click.IntRange(0, 20), default=3, show_default=True, help="Pairs shown of a theme.")
@click.option("--ledger", "ledger_path", type=_PATH, help="Ledger file.")
@click.option("--config", "config_path", type=_PATH, help="Configuration file.")
@click.option("--budget", help="Hard limit: money (2.50) or calls (200calls).")
@click.option("--estimate", "only_estimate", is_flag=True, help="Say what naming would spend, and stop.")
@output_option("themes")
@json_option
def command(audit: Path, as_json: bool, **options: object) -> None:
    """Group the topics in which sources of AUDIT differ into themes."""
    wanted = _Wanted(**options)  # type: ignore[arg-type]
    screen = Screen(as_json=as_json)
    check_target(wanted.output.resolve(), KIND)
    opened = Audit.open(audit)
    weights = _weights(wanted.weights, opened.pack)
    with open_session(ledger_path=wanted.ledger_path, config_path=wanted.config_path, budget=wanted.budget) as session:
        found = _find(screen, session, opened, wanted)
        if wanted.only_estimate:
            screen.estimate(_estimate(found, opened.pack, wanted))
            return
        found = _named(screen, found, opened.pack, wanted)
        _show(screen, found, weights)
        artefact = _write(found, opened, wanted, weights)
        if found.model:
            screen.calls(found.model)
        screen.finish(
            artefact,
            next_step=("open", wanted.output / "themes.svg"),
            themes=[msgspec.to_builtins(msgspec.structs.replace(t, phrases=t.phrases[:_SHOWN])) for t in found.themes],
        )


def _weights(text: str, pack: Pack) -> dict[str, float]:
    levels = pack.significance_levels
    if not text:
        return {level: float(place) for place, level in enumerate(levels, start=1)}
    given = {}
    for part in text.split(","):
        level, _, weight = part.strip().partition("=")
        try:
            given[level.strip()] = float(weight)
        except ValueError:
            raise UsageError(f"{part!r} is no weight of a level", fix="for example low=1,medium=2,high=3") from None
    if set(given) != set(levels) or not all(0 <= weight < float("inf") for weight in given.values()):
        raise UsageError(
            "each level of significance needs one weight of 0 or more", fix=f"the levels are {', '.join(levels)}"
        )
    return {level: given[level] for level in levels}


def _find(screen: Screen, session: Session, audit: Audit, wanted: _Wanted) -> _Found:
    """The themes, named by rule."""
    if wanted.threshold is not None and wanted.k is not None:
        raise UsageError("--threshold and --themes exclude each other", fix="give one of them")
    domain = RelationLabels.of(audit.pack.labels)
    topics = divergence_topics(audit.frame(), domain, wanted.labels or None)
    if not topics.phrases:
        raise InputError(
            f"no pair with the label {' or '.join(wanted.labels or domain.diverging)} has a topic",
            where=str(audit.artefact.path),
            fix="choose other labels with --label, or look whether the audit judged anything at all",
        )
    encoder = cached_encoder(load_encoder(wanted.encoder, model=session.model), vectors_folder())
    vectors = embed_topics(topics.phrases, encoder, progress=screen)
    threshold = THRESHOLD if wanted.threshold is None and wanted.k is None else wanted.threshold
    found = themes(
        topics,
        vectors,
        threshold=threshold,
        k=wanted.k,
        domain=domain,
        levels=audit.pack.significance_levels,
        examples=wanted.examples,
    )
    model = session.model(wanted.model_spec) if wanted.model_spec else None
    return _Found(topics=topics, themes=found, names=[ThemeName() for _ in found], encoder=encoder, model=model)


def _groups(found: _Found, wanted: _Wanted) -> list[list[str]]:
    """The phrases of the themes that a model names."""
    return [[phrase for phrase, _ in theme.phrases] for theme in found.themes[: wanted.named]]


def _estimate(found: _Found, pack: Pack, wanted: _Wanted) -> Estimate:
    return estimate_names(found.model, _groups(found, wanted), pack) if found.model else Estimate()


def _named(screen: Screen, found: _Found, pack: Pack, wanted: _Wanted) -> _Found:
    if found.model is None:
        return found
    names = name_themes(found.model, _groups(found, wanted), pack, progress=screen)
    names += found.names[len(names) :]
    called = distinct_names(names, [theme.rule_name for theme in found.themes])
    renamed = [msgspec.structs.replace(theme, name=name) for theme, name in zip(found.themes, called, strict=True)]
    return msgspec.structs.replace(found, themes=renamed, names=names)


def _weight(theme: Theme, weights: Mapping[str, float]) -> float:
    """What a theme's pairs weigh; one without a level weighs as the least."""
    rated = sum(theme.levels.values())
    return sum(weights[level] * count for level, count in theme.levels.items()) + (theme.count - rated) * min(
        weights.values(), default=1.0
    )


def _show(screen: Screen, found: _Found, weights: Mapping[str, float]) -> None:
    topics = found.topics
    screen.title(
        f"{count_of(len(found.themes), 'theme')} of {count_of(len(topics.phrases), 'phrase')} in "
        f"{count_of(sum(topics.counts), 'pair')}"
    )
    screen.table(
        ["theme", "pairs", "weight", "questions", "sources", "phrases"],
        [
            [cut(theme.name, 60), f"{theme.count:,}", f"{_weight(theme, weights):g}", f"{theme.questions}",
             f"{theme.sources}", f"{theme.different}"]
            for theme in found.themes[:_SHOWN]
        ],
    )  # fmt: skip
    if len(found.themes) > _SHOWN:
        screen.say(f"and {len(found.themes) - _SHOWN:,} themes more, in themes.tsv")
    if topics.without:
        screen.say(f"{count_of(topics.without, 'pair')} without a topic are in no theme")


def _write(found: _Found, audit: Audit, wanted: _Wanted, weights: Mapping[str, float]) -> Artefact:
    failures: dict[str, int] = {}
    for name in found.names:
        if name.failure:
            failures[name.failure.kind] = failures.get(name.failure.kind, 0) + 1
    with create(wanted.output, replace_kind=KIND) as draft:
        _write_tables(draft.path, found, audit.pack.significance_levels, weights)
        write_bytes(draft.path / "themes.svg", _drawn(found.themes, found.topics).encode())
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{len(found.themes)} themes of {audit.artefact.path.resolve().name}",
                command=command_words(),
                inputs=[audit.artefact.reference()],
                settings={
                    "encoder": wanted.encoder,
                    "threshold": THRESHOLD if wanted.threshold is None and wanted.k is None else wanted.threshold,
                    "themes": wanted.k,
                    "labels": list(wanted.labels),
                    "weights": dict(weights),
                    "named": wanted.named if found.model else 0,
                    "pack": str(audit.artefact.manifest.settings.get("pack", "")),
                },
                models={"encoder": found.encoder.identity, **({"names": found.model.identity} if found.model else {})},
                prompts={PROMPT: load_prompt(PROMPT).label} if found.model else {},
                counts=Counts(kept=len(found.themes), failed=sum(failures.values()), failures=failures),
                cost=found.model.cost if found.model else Cost(),
                metrics={"phrases": len(found.topics.phrases), "pairs": sum(found.topics.counts),
                         "without a topic": found.topics.without},
            )
        )  # fmt: skip
    return open_artefact(wanted.output, KIND)


class _Row(Struct, frozen=True, kw_only=True):
    """A line of themes.jsonl: the theme, its weight, and what the model said to its name."""

    place: int
    weight: float
    theme: Theme
    naming: ThemeName


def _write_tables(folder: Path, found: _Found, levels: Sequence[str], weights: Mapping[str, float]) -> None:
    write_jsonl(
        folder / "themes.jsonl",
        (
            _Row(place=place, weight=_weight(theme, weights), theme=theme, naming=name)
            for place, (theme, name) in enumerate(zip(found.themes, found.names, strict=True), start=1)
        ),
    )
    write_tsv(
        folder / "themes.tsv",
        ("place", "theme", "most_central", "pairs", "weight", "questions", "sources", "phrases", "cohesion", *levels,
         "first_phrases", "example_question", "example_a", "example_b"),
        [
            (place, theme.name, theme.rule_name, theme.count, _weight(theme, weights), theme.questions, theme.sources,
             theme.different, theme.cohesion, *(theme.levels[level] for level in levels),
             "; ".join(phrase for phrase, _ in theme.phrases[:5]),
             *((theme.examples[0].question, theme.examples[0].a, theme.examples[0].b) if theme.examples else ("",) * 3))
            for place, theme in enumerate(found.themes, start=1)
        ],
    )  # fmt: skip

    write_tsv(
        folder / "phrases.tsv",
        ("phrase", "pairs", "place", "theme"),
        [
            (phrase, pairs, place, theme.name)
            for place, theme in enumerate(found.themes, start=1)
            for phrase, pairs in theme.phrases
        ],
    )


def _drawn(found: Sequence[Theme], topics: Topics) -> str:
    """The largest themes as bars."""
    shown = found[:_DRAWN]
    tallies = [Tally(theme.name, theme.count) for theme in shown]
    if rest := found[_DRAWN:]:
        tallies.append(Tally(f"{len(rest):,} more", sum(theme.count for theme in rest), rest=True))
    title = f"What sources disagree about: {count_of(len(found), 'theme')}, {count_of(sum(topics.counts), 'pair')}"
    chart = count_bars(tallies, title=title, total=sum(topics.counts))
    return standalone(sheet([("", chart)], title=title))
