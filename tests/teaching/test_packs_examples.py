"""The small invented audits of the domain packs: marked as invented, quoted exactly, every pair planted soundly."""

from __future__ import annotations

from itertools import combinations

import pytest

from hoofbeat import teaching
from hoofbeat.errors import UsageError
from hoofbeat.prompts import load_pack, pack_names

SMALL = ["clinicians", "education", "guidelines", "legal"]


def front(text: str) -> dict[str, str]:
    _, head, _ = text.split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.strip().splitlines())


def test_every_pack_has_an_example() -> None:
    assert teaching.example_names() == pack_names() == sorted([*SMALL, "transplant"])
    assert len(teaching.example("transplant").relations) == 320
    with pytest.raises(UsageError, match="there is no teaching example 'law'"):
        teaching.example("law")


@pytest.mark.parametrize("name", SMALL)
def test_sources_say_that_they_are_invented(name: str) -> None:
    example, pack = teaching.example(name), load_pack(name)
    assert 3 <= len(example.files) <= 4
    for path in example.files:
        text = path.read_text(encoding="utf-8")
        meta = front(text)
        assert meta["id"] == path.stem
        assert meta[pack.source_facet].endswith("(invented)")
        assert meta[pack.group_facet]
        institution = meta[pack.source_facet].removesuffix(" (invented)")
        assert f"> Invented teaching material. {institution} does not exist." in text
        assert meta["notice"].startswith("Invented teaching material.")
        assert len(text) < 4000


@pytest.mark.parametrize("name", teaching.example_names())
def test_groups_and_topics_are_the_packs(name: str) -> None:
    example, pack = teaching.example(name), load_pack(name)
    assert [question.id for question in example.asked()] == [item.id for item in example.questions]
    for item, question in zip(example.questions, example.asked(), strict=True):
        assert question.facets == {"group": item.group, "topics": list(item.topics)}
    if name != "transplant":
        assert {topic for item in example.questions for topic in item.topics} <= set(pack.topics)
        groups = {front(path.read_text(encoding="utf-8"))[pack.group_facet] for path in example.files}
        asked = {item.group for item in example.questions}
        assert "general" in asked
        assert len(asked - {"general"}) >= 1
        assert asked - {"general"} < groups


@pytest.mark.parametrize("name", SMALL)
def test_gold_is_quoted_from_under_its_heading(name: str) -> None:
    example = teaching.example(name)
    texts = {path.stem: path.read_text(encoding="utf-8") for path in example.files}
    pack = load_pack(name)
    group = {source: front(text)[pack.group_facet] for source, text in texts.items()}
    expected = [(q.id, s) for q in example.questions for s in sorted(texts) if q.group in ("general", group[s])]
    assert [(gold.question, gold.source) for gold in example.gold] == expected
    for gold in example.gold:
        assert gold.absent == (not gold.answer) == (not gold.evidence)
        for each in gold.evidence:
            assert texts[gold.source].count(each.quote) == 1
            assert f"## {each.heading}\n\n{each.quote}\n" in texts[gold.source]


@pytest.mark.parametrize("name", SMALL)
def test_every_pair_is_planted_once_with_all_labels(name: str) -> None:
    example, pack = teaching.example(name), load_pack(name)
    silent = {(gold.question, gold.source): gold.absent for gold in example.gold}
    sources = {q.id: sorted(s for question, s in silent if question == q.id) for q in example.questions}
    pairs = [(q.id, a, b) for q in example.questions for a, b in combinations(sources[q.id], 2)]
    assert [(each.question, each.a, each.b) for each in example.relations] == pairs
    assert {each.label for each in example.relations} == {label.name for label in pack.labels}
    for each in example.relations:
        label = pack.label(each.label)
        assert (each.label == pack.absent) == (silent[each.question, each.a] or silent[each.question, each.b])
        assert (each.topic is not None) == label.topic
        assert (each.significance in pack.significance_levels) == label.significance
        assert each.why


@pytest.mark.parametrize("name", SMALL)
def test_sources_that_agree_relate_alike_to_the_others(name: str) -> None:
    known = {}
    for each in teaching.example(name).relations:
        known[each.question, each.a, each.b] = known[each.question, each.b, each.a] = each.label
    for (question, a, b), label in known.items():
        if label == "Consistent":
            others = {d for q, c, d in known if q == question and c == a and d != b}
            assert all(known[question, a, other] == known[question, b, other] for other in others)
