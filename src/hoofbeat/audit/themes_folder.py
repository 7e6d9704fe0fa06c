"""The themes of an audit: topics in which sources differ, grouped by a sentence encoder, named, and written.

A model adds vectors of the topic phrases, and names for the groups. A judge wrote the phrases about other people's
documents, so they go into a prompt as material only. A name that fails or is not a name is kept as a failure; the theme
then has the name of its most central phrase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.findings.divergence_themes import Theme, TopicPhrases, divergence_topics, themes
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import ChatRequest, Encoder, Estimate, Model
from hoofbeat.models.encoder import Vectors
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack
from hoofbeat.records import Failure
from hoofbeat.store import Artefact, Cost, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl, write_tsv

PROMPT = "theme-name"
_MAX_PHRASES = 12
_MAX_PHRASE = 120
_MAX_NAME = 80


class ThemeName(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A name that a model gave, or why there is none."""

    name: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


def embed_topics(phrases: Sequence[str], encoder: Encoder, *, progress: Progress = SILENT) -> Vectors:
    """A vector of unit length for each phrase, in their order."""
    return encoder.encode(list(phrases), progress)


def name_request(phrases: Sequence[str], pack: Pack) -> ChatRequest:
    """The call that names one group; of many phrases the first are shown, of a long one its beginning."""
    lines = [" ".join(phrase.split())[:_MAX_PHRASE] for phrase in phrases[:_MAX_PHRASES]]
    return pack.prompt(PROMPT).request(
        {"reader": pack.reader, "source_word": pack.source_word, "phrases": "\n".join(lines)}
    )


def estimate_names(model: Model, groups: Sequence[Sequence[str]], pack: Pack) -> Estimate:
    """What naming these groups would cost."""
    return model.estimate([name_request(phrases, pack) for phrases in groups])


def name_themes(
    model: Model, groups: Sequence[Sequence[str]], pack: Pack, *, progress: Progress = SILENT
) -> list[ThemeName]:
    """A name for each group of phrases, most frequent phrase first, in their order."""

    async def work(phrases: Sequence[str]) -> ThemeName:
        outcome = await model.chat_json(name_request(phrases, pack))
        if isinstance(outcome, Failure):
            return ThemeName(failure=outcome)
        name = " ".join(str(outcome.value["name"]).split()).strip(" .\"'“”")
        if not any(sign.isalnum() for sign in name) or len(name) > _MAX_NAME:
            why = Failure(kind="unreadable", message=f"this is no name for a theme: {name[:_MAX_NAME]!r}")
            return ThemeName(failure=why, calls=outcome.calls)
        return ThemeName(name=name, calls=outcome.calls)

    return model.run(groups, work, title="naming themes", progress=progress)


def distinct_names(names: Sequence[ThemeName], rules: Sequence[str]) -> list[str]:
    """The name each theme goes by: the model's (with the rule's behind it where it is no new one), else the rule's."""
    seen: set[str] = set()
    found = []
    for given, rule in zip(names, rules, strict=True):
        name = given.name or rule
        if name.casefold() in seen and given.name:
            name = f"{name} ({rule})"
        seen.add(name.casefold())
        found.append(name)
    return found


KIND = "themes"
THRESHOLD = 0.4
"""The mean cosine at which groups of phrases are one theme: chosen on invented phrases that were grouped by hand."""


class ThemeSettings(Struct, frozen=True, kw_only=True):
    """How themes are made: the encoder's name, the mean cosine or the number of themes, and whose topics.

    `named` is how many of the largest themes a model names, `examples` how many pairs are kept of a theme.
    """

    encoder: str = "minilm"
    threshold: float | None = None
    k: int | None = None
    labels: tuple[str, ...] = ()
    named: int = 100
    examples: int = 3

    @property
    def cosine(self) -> float | None:
        """The mean cosine that phrases of one theme reach; None where the number of themes is given."""
        return THRESHOLD if self.threshold is None and self.k is None else self.threshold


class AuditThemes(Struct, frozen=True, kw_only=True):
    """The themes of an audit, what models said to their names, and which models those were."""

    topics: TopicPhrases
    themes: list[Theme]
    names: list[ThemeName]
    settings: ThemeSettings
    encoder: Encoder
    model: Model | None = None

    @property
    def groups(self) -> list[list[str]]:
        """The phrases of the themes that a model names."""
        return [[phrase for phrase, _ in theme.phrases] for theme in self.themes[: self.settings.named]]

    def estimate(self, pack: Pack) -> Estimate:
        """What naming would cost."""
        return estimate_names(self.model, self.groups, pack) if self.model else Estimate()

    def with_names(self, pack: Pack, *, progress: Progress = SILENT) -> AuditThemes:
        """The themes under the names that the model gives; as they are without a model."""
        if self.model is None:
            return self
        names = name_themes(self.model, self.groups, pack, progress=progress)
        names += self.names[len(names) :]
        called = distinct_names(names, [theme.rule_name for theme in self.themes])
        renamed = [msgspec.structs.replace(theme, name=name) for theme, name in zip(self.themes, called, strict=True)]
        return msgspec.structs.replace(self, themes=renamed, names=names)


def level_weights(text: str, pack: Pack) -> dict[str, float]:
    """The weights of the significance levels, as `low=1,high=2`; without words 1 for the lowest, 2 for the next."""
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


def find_themes(
    audit: Audit,
    load_encoder: Callable[[], Encoder],
    settings: ThemeSettings,
    *,
    model: Model | None = None,
    progress: Progress = SILENT,
) -> AuditThemes:
    """The themes, named by rule."""
    domain = RelationLabels.of(audit.pack.labels)
    topics = divergence_topics(audit.frame(), domain, settings.labels or None)
    if not topics.phrases:
        raise InputError(
            f"no pair with the label {' or '.join(settings.labels or domain.diverging)} has a topic",
            where=str(audit.artefact.path),
            fix="choose other labels with --label, or look whether the audit judged anything at all",
        )
    encoder = load_encoder()
    vectors = embed_topics(topics.phrases, encoder, progress=progress)
    found = themes(
        topics,
        vectors,
        threshold=settings.cosine,
        k=settings.k,
        domain=domain,
        levels=audit.pack.significance_levels,
        examples=settings.examples,
    )
    names = [ThemeName() for _ in found]
    return AuditThemes(topics=topics, themes=found, names=names, settings=settings, encoder=encoder, model=model)


def theme_weight(theme: Theme, weights: Mapping[str, float]) -> float:
    """What a theme's pairs weigh; one without a level has the lowest weight."""
    rated = sum(theme.levels.values())
    return sum(weights[level] * count for level, count in theme.levels.items()) + (theme.count - rated) * min(
        weights.values(), default=1.0
    )


def write_themes(
    found: AuditThemes,
    audit: Audit,
    target: Path,
    *,
    weights: Mapping[str, float],
    chart: str,
    command: Sequence[str] = (),
) -> Artefact:
    """Write the folder; `chart` is the picture of the largest themes, as SVG."""
    failures: dict[str, int] = {}
    for name in found.names:
        if name.failure:
            failures[name.failure.kind] = failures.get(name.failure.kind, 0) + 1
    settings, model = found.settings, found.model
    with create(target, replace_kind=KIND) as draft:
        _write_tables(draft.path, found, audit.pack.significance_levels, weights)
        write_bytes(draft.path / "themes.svg", chart.encode())
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{len(found.themes)} themes of {audit.artefact.path.resolve().name}",
                command=list(command),
                inputs=[audit.artefact.reference()],
                settings={
                    "encoder": settings.encoder,
                    "threshold": settings.cosine,
                    "themes": settings.k,
                    "labels": list(settings.labels),
                    "weights": dict(weights),
                    "named": settings.named if model else 0,
                    "pack": str(audit.artefact.manifest.settings.get("pack", "")),
                },
                models={"encoder": found.encoder.identity, **({"names": model.identity} if model else {})},
                prompts={PROMPT: audit.pack.prompt(PROMPT).label} if model else {},
                counts=Counts(kept=len(found.themes), failed=sum(failures.values()), failures=failures),
                cost=model.cost if model else Cost(),
                metrics={
                    "phrases": len(found.topics.phrases),
                    "pairs": sum(found.topics.counts),
                    "without a topic": found.topics.without,
                },
            )
        )
    return open_artefact(target, KIND)


class _Row(Struct, frozen=True, kw_only=True):
    """A line of themes.jsonl: the theme, its weight, and what the model said to its name."""

    place: int
    weight: float
    theme: Theme
    naming: ThemeName


def _write_tables(folder: Path, found: AuditThemes, levels: Sequence[str], weights: Mapping[str, float]) -> None:
    write_jsonl(
        folder / "themes.jsonl",
        (
            _Row(place=place, weight=theme_weight(theme, weights), theme=theme, naming=name)
            for place, (theme, name) in enumerate(zip(found.themes, found.names, strict=True), start=1)
        ),
    )
    write_tsv(
        folder / "themes.tsv",
        ("place", "theme", "most_central", "pairs", "weight", "questions", "sources", "phrases", "cohesion", *levels,
         "first_phrases", "example_question", "example_a", "example_b"),
        [
            (place, theme.name, theme.rule_name, theme.count, theme_weight(theme, weights), theme.questions,
             theme.sources, theme.different, theme.cohesion, *(theme.levels[level] for level in levels),
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
