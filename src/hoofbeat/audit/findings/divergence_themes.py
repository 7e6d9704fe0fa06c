"""What sources disagree about: the judge's topic phrases, put together into themes and counted.

A phrase includes all its spellings (case, spaces and closing marks apart). Phrases are grouped by their vectors,
which come from outside, for findings call no model; a theme is named by its most central phrase.

Groups come from average linkage over cosines and are the same for the same phrases every time. Vectors of unit length
make average linkage cheap: the mean cosine between two groups is the dot product of their mean vectors. The tree is
built by following nearest neighbours (each chain ends in two that are each other's nearest), and cut where the mean
cosine falls below a threshold or where the wanted number of groups is left. Many thousands of phrases are first put
together with the ones they almost repeat. Nothing is random.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.findings.pair_arrays import Frame, sure_rows
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels
from hoofbeat.audit.findings.serious_divergence import LEVELS
from hoofbeat.errors import UsageError
from hoofbeat.text import caseless

Vectors = NDArray[np.float32]
_FREE, _MAX_GROUPS = 4000, 8000
"""The maximum number of phrases that enter the tree unchanged, and of groups: its table of cosines is square."""

_LOOSER = (0.8, 0.6, 0.4, 0.2, 0.0)
_BLOCK = 512
_DIGITS = 4
"""Cosines are rounded: what single precision adds behind must not decide between two machines."""


def cluster(
    vectors: Vectors,
    *,
    threshold: float | None = None,
    k: int | None = None,
    free: int = _FREE,
    max_groups: int = _MAX_GROUPS,
) -> NDArray[np.int64]:
    """A group for each vector, numbered in the order they first appear.

    Give either the `threshold` that the mean cosine of two groups must reach for them to be one, or the number `k` of
    groups. More than `free` vectors are first joined with what they almost repeat (a cosine of 0.8, or the threshold
    where that is higher), and more loosely only as long as more than `max_groups` groups would be left.
    """
    if (threshold is None) == (k is None):
        raise UsageError("a threshold or a number of groups is needed, not both", fix="give one of the two")
    if k is not None and k < 1:
        raise UsageError(f"{k} groups can't be made", fix="give 1 or more")
    if not len(vectors):
        return np.empty(0, np.int64)
    first = np.arange(len(vectors))
    if len(vectors) > free:
        first = leaders(vectors, max(_LOOSER[0], threshold or 0.0))
        for looser in _LOOSER[1:]:
            if first.max() < max_groups:
                break
            first = leaders(vectors, looser)
    size = int(first.max()) + 1
    sums = np.zeros((size, vectors.shape[1]), np.float64)
    np.add.at(sums, first, vectors.astype(np.float64))
    weights = np.bincount(first, minlength=size).astype(np.float64)
    return _numbered(_cut(_tree(sums, weights), size, threshold, k)[first])


def leaders(vectors: Vectors, threshold: float) -> NDArray[np.int64]:
    """Each vector with the nearest earlier one that leads a group, where their cosine reaches the threshold.

    A phrase that is near no leader leads a new group. Groups are numbered in the order of their leaders.
    """
    leading = np.empty_like(vectors)
    group = np.empty(len(vectors), np.int64)
    count = 0
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        before = count
        best, cosine = np.full(len(block), -1), np.full(len(block), -2.0)
        if before:
            cosines = np.round(block @ leading[:before].T, _DIGITS)
            best = cosines.argmax(axis=1)
            cosine = cosines[np.arange(len(block)), best]
        among = np.round(block @ block.T, _DIGITS)
        mine: list[int] = []
        for row in range(len(block)):
            if mine:
                near = int(among[row, mine].argmax())
                if among[row, mine[near]] > cosine[row]:
                    best[row], cosine[row] = before + near, among[row, mine[near]]
            if cosine[row] >= threshold:
                group[start + row] = best[row]
            else:
                group[start + row] = before + len(mine)
                mine.append(row)
        leading[before : before + len(mine)] = block[mine]
        count = before + len(mine)
    return group


def _tree(sums: NDArray[np.float64], weights: NDArray[np.float64]) -> list[tuple[float, int, int]]:
    """Every merge (mean cosine, one group, the other, which is no more), by the chain of nearest neighbours."""
    means = (sums / weights[:, None]).astype(np.float32)
    near = means @ means.T
    np.round(near, _DIGITS, out=near)
    np.fill_diagonal(near, -np.inf)
    sizes = weights.astype(np.float32)
    gone_by = np.zeros(len(sizes), np.float32)  # minus infinity for groups that are no more
    merges: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while len(merges) < len(sizes) - 1:
        if not chain:
            chain.append(int(gone_by.argmax()))
        while True:
            tip = chain[-1]
            other = int((near[tip] + gone_by).argmax())
            if len(chain) > 1 and near[tip, chain[-2]] >= near[tip, other]:
                other = chain[-2]
                break
            chain.append(other)
        del chain[-2:]
        kept, gone = min(tip, other), max(tip, other)
        merges.append((float(near[kept, gone]), kept, gone))
        near[kept] = (sizes[kept] * near[kept] + sizes[gone] * near[gone]) / (sizes[kept] + sizes[gone])
        near[kept, kept] = -np.inf
        near[:, kept] = near[kept]
        sizes[kept] += sizes[gone]
        gone_by[gone] = -np.inf
    return merges


def _cut(merges: list[tuple[float, int, int]], size: int, threshold: float | None, k: int | None) -> NDArray[np.int64]:
    """The groups that are left when only the nearest merges are made."""
    ordered = sorted(merges, key=lambda merge: -merge[0])
    if threshold is not None:
        ordered = [merge for merge in ordered if merge[0] >= threshold]
    else:
        ordered = ordered[: max(0, size - (k or 1))]
    parent = list(range(size))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    for _, kept, gone in ordered:
        one, two = sorted((root(kept), root(gone)))
        parent[two] = one
    return np.array([root(place) for place in range(size)], np.int64)


def _numbered(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups numbered in the order they first appear."""
    _, first, places = np.unique(groups, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    numbered: NDArray[np.int64] = order[places]
    return numbered


_EDGES = re.compile(r"^[\s\W_]+|[\s\W_]+$")
_EXAMPLES = 3


class TopicPhrases(Struct, frozen=True):
    """The phrases of a table, most frequent first, with how many pairs have each; and those pairs.

    `rows` has a line for each pair with a topic: the phrase's place, question, a, b, label and significance.
    `without` counts diverging pairs that have no topic.
    """

    phrases: tuple[str, ...]
    counts: tuple[int, ...]
    rows: polars.DataFrame
    without: int


class ThemeExample(Struct, frozen=True, kw_only=True):
    """A pair of a theme, to look at."""

    question: str
    a: str
    b: str
    label: str
    significance: str
    topic: str


class Theme(Struct, frozen=True, kw_only=True):
    """A group of phrases: its name, how many pairs, questions and sources it is about, and some of its pairs.

    `phrases` are all its `different` ones with their pairs, the most frequent first; `labels` and `levels` count its
    pairs by label and by significance. `cohesion` is the mean cosine of its phrases with their centre. `rule_name` is
    the most central phrase, `name` the same unless a model named it.
    """

    name: str
    rule_name: str
    count: int
    questions: int
    sources: int
    different: int
    phrases: tuple[tuple[str, int], ...]
    labels: dict[str, int]
    levels: dict[str, int]
    cohesion: float
    examples: tuple[ThemeExample, ...]


def plain_topic(phrase: str) -> str:
    """A phrase as it is counted: small letters, single spaces, no marks at its ends."""
    return _EDGES.sub("", caseless(phrase))


def divergence_topics(
    table: Frame, domain: RelationLabels = FIVE_RELATIONS, labels: Sequence[str] | None = None
) -> TopicPhrases:
    """The topic phrases of the diverging pairs, or of pairs with other `labels`."""
    wanted = list(domain.diverging if labels is None else labels)
    unknown = [label for label in wanted if label not in domain.order]
    if unknown:
        raise UsageError(f"there is no label {unknown[0]!r}", fix=f"the labels are {', '.join(domain.order)}")
    columns = ("question", "a", "b", "label", "significance", "topic")
    rows = (
        sure_rows(table)
        .filter(polars.col("label").cast(polars.String).is_in(wanted))
        .select(polars.col(name).cast(polars.String) for name in columns)
        .collect()
    )
    spellings = rows["topic"].drop_nulls().unique().to_list()
    plain = {spelling: plain_topic(spelling) for spelling in spellings}
    rows = rows.with_columns(
        phrase=polars.col("topic").replace_strict(plain, default=None, return_dtype=polars.String).fill_null("")
    )
    counts = (
        rows.filter(polars.col("phrase") != "").group_by("phrase").len().sort("len", "phrase", descending=[True, False])
    )
    phrases = counts["phrase"].to_list()
    places = {phrase: place for place, phrase in enumerate(phrases)}
    kept = (
        rows.filter(polars.col("phrase") != "")
        .with_columns(polars.col("phrase").replace_strict(places, return_dtype=polars.Int64))
        .sort("phrase", "question", "a", "b")
    )
    return TopicPhrases(tuple(phrases), tuple(counts["len"].to_list()), kept, rows.height - kept.height)


def themes(
    topics: TopicPhrases,
    vectors: Vectors,
    *,
    threshold: float | None = None,
    k: int | None = None,
    domain: RelationLabels = FIVE_RELATIONS,
    levels: Sequence[str] = LEVELS,
    examples: int = _EXAMPLES,
) -> list[Theme]:
    """The themes of the phrases, the one with most pairs first; `vectors` has a row of unit length for each phrase.

    Give the `threshold` of the mean cosine, or the number `k` of themes.
    """
    groups = phrase_groups(topics, vectors, threshold=threshold, k=k)
    found = themes_of_groups(topics, vectors, groups, domain=domain, levels=levels, examples=examples)
    return [theme for _, theme in found]


def phrase_groups(
    topics: TopicPhrases, vectors: Vectors, *, threshold: float | None = None, k: int | None = None
) -> NDArray[np.int64]:
    """A group for each row of the topics, by its phrase."""
    if len(vectors) != len(topics.phrases):
        raise UsageError(f"{len(topics.phrases)} phrases and {len(vectors)} vectors", fix="embed each phrase once")
    groups = cluster(vectors, threshold=threshold, k=k)
    found: NDArray[np.int64] = groups[topics.rows["phrase"].to_numpy()] if len(groups) else groups
    return found


def themes_of_groups(
    topics: TopicPhrases,
    vectors: Vectors,
    groups: NDArray[np.int64],
    *,
    domain: RelationLabels = FIVE_RELATIONS,
    levels: Sequence[str] = LEVELS,
    examples: int = _EXAMPLES,
) -> list[tuple[int, Theme]]:
    """The themes of rows that are grouped already, each with its group's number, the one with most pairs first.

    Rows of one phrase may be in several groups: a theme counts its own rows only.
    """
    if not len(groups):
        return []
    mine = topics.rows.with_columns(
        theme=polars.Series(groups),
        level=polars.col("significance").replace_strict(
            {name: place for place, name in enumerate(levels)}, default=-1, return_dtype=polars.Int64
        ),
        place=polars.col("label").replace_strict(
            {name: place for place, name in enumerate(domain.order)}, return_dtype=polars.Int64
        ),
    )
    found = []
    for (number,), rows in mine.group_by("theme", maintain_order=True):
        counted = rows.group_by("phrase").len().sort("len", "phrase", descending=[True, False])
        places, counts = counted["phrase"].to_numpy(), counted["len"].to_numpy().astype(np.float64)
        order = np.argsort(places)
        central, cohesion = _centre(vectors[places[order]], counts[order])
        phrases = [(topics.phrases[place], count) for place, count in counted.iter_rows()]
        name = topics.phrases[int(places[order][central])]
        found.append((int(number), _theme(phrases, rows, name, cohesion, domain, levels, examples)))
    return sorted(found, key=lambda each: (-each[1].count, each[1].rule_name, each[0]))


def _centre(vectors: Vectors, counts: NDArray[np.float64]) -> tuple[int, float]:
    """The most central vector, each counting as often as its phrase occurs, and the mean cosine with the centre."""
    centre = (vectors * counts[:, None]).sum(axis=0)
    size = float(np.linalg.norm(centre))
    cosines = np.round(vectors @ (centre / size), 4) if size else np.zeros(len(vectors))
    return int(cosines.argmax()), float(cosines.mean())


def _theme(
    phrases: Sequence[tuple[str, int]],
    rows: polars.DataFrame,
    name: str,
    cohesion: float,
    domain: RelationLabels,
    levels: Sequence[str],
    examples: int,
) -> Theme:
    labels = dict(rows.group_by("label").len().iter_rows())
    rated = dict(rows.group_by("significance").len().iter_rows())
    worst = rows.sort("level", "place", "question", "a", "b", descending=[True, True, False, False, False])
    shown = worst.unique("question", keep="first", maintain_order=True).head(examples)
    return Theme(
        name=name,
        rule_name=name,
        count=rows.height,
        questions=rows["question"].n_unique(),
        sources=len({*rows["a"].unique(), *rows["b"].unique()}),
        different=len(phrases),
        phrases=tuple(phrases),
        labels={label: labels[label] for label in domain.order if label in labels},
        levels={level: rated.get(level, 0) for level in levels},
        cohesion=cohesion,
        examples=tuple(
            ThemeExample(
                question=row["question"],
                a=row["a"],
                b=row["b"],
                label=row["label"],
                significance=row["significance"] or "",
                topic=row["topic"],
            )
            for row in shown.iter_rows(named=True)
        ),
    )
