"""The themes of an audit: topics in which sources differ, grouped by a sentence encoder, named, and written.

An encoder groups phrases by their words alone. A model that names a group sees each phrase with its question and may
part the group: "dose" under two questions on different drugs is two themes. A single phrase has its name already and
costs no call. A judge wrote the phrases about other people's documents, so they go into a prompt as material only. What
the model says is kept as a failure where it can't be used; the group then stays, named by its most central phrase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.findings.divergence_themes import (
    Theme,
    TopicPhrases,
    divergence_topics,
    phrase_groups,
    themes_of_groups,
)
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import ChatRequest, Encoder, Estimate, Model
from hoofbeat.models.encoder import Vectors
from hoofbeat.progress import SILENT, Named, Progress
from hoofbeat.prompts import Pack
from hoofbeat.records import Failure
from hoofbeat.store import Artefact, Cost, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl, write_tsv

PROMPT = "theme-name"
_MAX_LINES = 40
_MAX_PHRASE = 120
_MAX_QUESTION = 200
_MAX_NAME = 80

TopicInQuestion = tuple[str, str]
"""A topic phrase, and the question under which sources differ in it."""


class ThemeName(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A name that a model gave, or why there is none."""

    name: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


class PartedGroup(Struct, frozen=True, kw_only=True):
    """What a model makes of a group: for each of its lines the number of its theme (-1: none), and the themes' names.

    Where it failed, `failure` says why, and the group stays as it is.
    """

    themes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


def embed_topics(phrases: Sequence[str], encoder: Encoder, *, progress: Progress = SILENT) -> Vectors:
    """A vector of unit length for each phrase, in their order."""
    return encoder.encode(list(phrases), Named(progress, "encoding topics"))


def name_request(lines: Sequence[TopicInQuestion], pack: Pack) -> ChatRequest:
    """The call that parts and names one group; of many lines the first are shown, of a long one its beginning."""
    shown = [
        f"{number}. {_short(phrase, _MAX_PHRASE)} (question: {_short(question, _MAX_QUESTION)})"
        for number, (phrase, question) in enumerate(lines[:_MAX_LINES], start=1)
    ]
    return pack.prompt(PROMPT).request(
        {"reader": pack.reader, "source_word": pack.source_word, "phrases": "\n".join(shown)}
    )


def _short(text: str, limit: int) -> str:
    return " ".join(text.split())[:limit]


def estimate_names(model: Model, groups: Sequence[Sequence[TopicInQuestion]], pack: Pack) -> Estimate:
    """What naming these groups would cost."""
    return model.estimate([name_request(lines, pack) for lines in groups])


def name_themes(
    model: Model, groups: Sequence[Sequence[TopicInQuestion]], pack: Pack, *, progress: Progress = SILENT
) -> list[PartedGroup]:
    """What the model makes of each group of topics, most frequent first, in their order."""

    async def work(lines: Sequence[TopicInQuestion]) -> PartedGroup:
        outcome = await model.chat_json(name_request(lines, pack))
        if isinstance(outcome, Failure):
            return PartedGroup(failure=outcome)
        parted = _parted(outcome.value["themes"], lines)
        if isinstance(parted, str):
            return PartedGroup(failure=Failure(kind="unreadable", message=parted), calls=outcome.calls)
        return PartedGroup(themes=parted[0], names=parted[1], calls=outcome.calls)

    return model.run(groups, work, title="naming themes", progress=progress)


def _parted(said: object, lines: Sequence[TopicInQuestion]) -> tuple[tuple[int, ...], tuple[str, ...]] | str:
    """The theme of each line and the themes' names, or what is wrong with them.

    A line beyond those shown goes with the first line of the same phrase, else with the first theme.
    """
    assert isinstance(said, list)
    shown = min(len(lines), _MAX_LINES)
    theme_of = dict.fromkeys(range(shown), -1)
    names: list[str] = []
    for each in said:
        name = " ".join(str(each["name"]).split()).strip(" .\"'“”")
        if not any(sign.isalnum() for sign in name) or len(name) > _MAX_NAME:
            return f"not a usable theme name: {name[:_MAX_NAME]!r}"
        members = [int(number) - 1 for number in each["members"]]
        if not members or any(theme_of.get(place, 0) >= 0 for place in members):
            return f"the theme {name!r} has no phrases, an unknown number, or a number of another theme"
        theme_of.update(dict.fromkeys(members, len(names)))
        names.append(name)
    if not names:
        return "the model named no theme"
    of_phrase: dict[str, int] = {}
    for place in range(shown):
        of_phrase.setdefault(lines[place][0], theme_of[place])
    rest = [of_phrase.get(phrase, 0) for phrase, _ in lines[shown:]]
    return (*(theme_of[place] for place in range(shown)), *rest), tuple(names)


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
    """The themes of an audit, what models said to their names, and which models those were.

    `groups` has the group of every row of the topics, `numbers` the group of every theme; `questions` are the texts by
    which a model sees what a phrase is about.
    """

    topics: TopicPhrases
    vectors: Vectors
    groups: NDArray[np.int64]
    numbers: list[int]
    themes: list[Theme]
    names: list[ThemeName]
    settings: ThemeSettings
    questions: Mapping[str, str]
    domain: RelationLabels
    levels: Sequence[str]
    encoder: Encoder
    model: Model | None = None
    parted: int = 0

    @property
    def asked(self) -> list[int]:
        """The places of the themes that a model names: the largest ones, but none of a single phrase."""
        return [place for place, theme in enumerate(self.themes[: self.settings.named]) if theme.different > 1]

    def _topics_in(self, place: int) -> polars.DataFrame:
        """The topics of a theme: phrase, question and pairs, the most frequent first."""
        rows = self.topics.rows.filter(polars.Series(self.groups == self.numbers[place]))
        counted = rows.group_by("phrase", "question").len()
        return counted.sort("len", "phrase", "question", descending=[True, False, False])

    def lines(self) -> list[list[TopicInQuestion]]:
        """What a model is shown of each theme that it names."""
        return [
            [
                (self.topics.phrases[phrase], self.questions.get(question, question))
                for phrase, question, _ in self._topics_in(place).iter_rows()
            ]
            for place in self.asked
        ]

    def estimate(self, pack: Pack) -> Estimate:
        """What naming would cost."""
        return estimate_names(self.model, self.lines(), pack) if self.model else Estimate()

    def with_names(self, pack: Pack, *, progress: Progress = SILENT) -> AuditThemes:
        """The themes as the model parts and names them; as they are without a model."""
        if self.model is None:
            return self
        said = name_themes(self.model, self.lines(), pack, progress=progress)
        groups, named, parted = self._regrouped(said)
        found = themes_of_groups(
            self.topics,
            self.vectors,
            groups,
            domain=self.domain,
            levels=self.levels,
            examples=self.settings.examples,
        )
        names = [named.get(number, ThemeName()) for number, _ in found]
        called = distinct_names(names, [theme.rule_name for _, theme in found])
        return msgspec.structs.replace(
            self,
            groups=groups,
            numbers=[number for number, _ in found],
            themes=[msgspec.structs.replace(theme, name=name) for (_, theme), name in zip(found, called, strict=True)],
            names=names,
            parted=parted,
        )

    def _regrouped(self, said: Sequence[PartedGroup]) -> tuple[NDArray[np.int64], dict[int, ThemeName], int]:
        """The group of every row after the model parted some, the names of the groups, and how many were parted.

        The model's first theme keeps the group's number. A topic that it left out is a group by itself.
        """
        groups = self.groups.copy()
        named: dict[int, ThemeName] = {}
        free = int(groups.max(initial=-1)) + 1
        keys = list(self.topics.rows.select("phrase", "question").iter_rows())
        parted = 0
        for place, heard in zip(self.asked, said, strict=True):
            number = self.numbers[place]
            if heard.failure is not None:
                named[number] = ThemeName(failure=heard.failure, calls=heard.calls)
                continue
            own = list(self._topics_in(place).select("phrase", "question").iter_rows())
            numbers = [number, *range(free, free + len(heard.names) - 1)]
            free += len(heard.names) - 1
            group_of: dict[tuple[object, ...], int] = {}
            for topic, theme in zip(own, heard.themes, strict=True):
                group_of[topic] = numbers[theme] if theme >= 0 else free
                free += theme < 0
            for row in np.flatnonzero(self.groups == number).tolist():
                groups[row] = group_of[keys[row]]
            parted += len(set(group_of.values())) > 1
            named |= {numbers[at]: ThemeName(name=name, calls=heard.calls) for at, name in enumerate(heard.names)}
        return groups, named, parted


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
            raise UsageError(f"{part!r} is not a weight", fix="for example low=1,medium=2,high=3") from None
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
            fix="choose other labels with --label, or check whether the audit has judged pairs",
        )
    encoder = load_encoder()
    vectors = embed_topics(topics.phrases, encoder, progress=progress)
    levels = audit.pack.significance_levels
    groups = phrase_groups(topics, vectors, threshold=settings.cosine, k=settings.k)
    found = themes_of_groups(topics, vectors, groups, domain=domain, levels=levels, examples=settings.examples)
    return AuditThemes(
        topics=topics,
        vectors=vectors,
        groups=groups,
        numbers=[number for number, _ in found],
        themes=[theme for _, theme in found],
        names=[ThemeName() for _ in found],
        settings=settings,
        questions={question.id: question.full_text for question in audit.questions},
        domain=domain,
        levels=levels,
        encoder=encoder,
        model=model,
    )


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
                    **({"groups parted by the model": found.parted} if model else {}),
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
