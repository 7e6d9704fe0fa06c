"""Items from an audit, or from packets drawn of one: pairs of answers under the codes of `judging.packets`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hoofbeat.audit import Audit
from hoofbeat.judging.packets import PacketRow, Packets, Rules, Stratum, answers_of, draw_pairs, label_counts
from hoofbeat.judging.packets_records import Drawn
from hoofbeat.judging.packets_text import Mask, pair_code, shown
from hoofbeat.prompts import Pack
from hoofbeat.records import Question
from hoofbeat.store import Artefact
from hoofbeat.store.files import read_bytes
from hoofbeat.store.tables import read_jsonl
from hoofbeat.web.review.items_tasks import facet_of, group_of
from hoofbeat.web.review.records import Item, Shown

__all__ = ["audit_items", "even_share", "pack_settings", "packet_items"]

_PER_LABEL = 40


def audit_items(artefact: Artefact, sample: int | None, seed: int) -> tuple[dict[str, Any], list[Item]]:
    """Pairs of an audit, as many of every label as there are or as are asked for, in the order of their codes.

    Rare labels are thereby drawn more often than they occur; the settings keep how many pairs each label has.
    """
    audit = Audit(artefact)
    counts, unlabelled = label_counts(audit)
    wanted = even_share(counts, sample) if sample else dict.fromkeys(counts, _PER_LABEL)
    pairs, _ = draw_pairs(audit, {name: count for name, count in wanted.items() if count}, seed=seed)
    questions = {question.id: question for question in audit.questions}
    mask = Mask(audit.sources, audit.pack.source_facet)
    answers = answers_of(audit, pairs)
    items = [
        _item(
            pair_code(*pair.key),
            pair,
            shown(questions[pair.question].full_text),
            (mask(shown(answers[pair.question, side].text)) for side in (pair.a, pair.b)),
            _group(questions[pair.question], audit.pack),
        )
        for pair in pairs
    ]
    drawn = {name: sum(pair.label == name for pair in pairs) for name in counts}
    strata = [Stratum(label=name, pairs=count, drawn=drawn[name]) for name, count in counts.items()]
    settings = {**pack_settings(audit.pack), "design": msgspec.to_builtins(strata), "unlabelled": unlabelled}
    return settings, sorted(items, key=lambda item: item.id)


def even_share(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """`total` divided evenly among labels; what a rare label can't give is divided among the others."""
    given = dict.fromkeys(counts, 0)
    while total > 0 and (open_ := [name for name in counts if given[name] < counts[name]]):
        each = max(1, total // len(open_))
        for name in open_:
            more = min(each, counts[name] - given[name], total)
            given[name] += more
            total -= more
    return given


def packet_items(artefact: Artefact) -> tuple[dict[str, Any], list[Item]]:
    """The pairs of a folder of packets, with the rules that lie beside them."""
    packets = Packets(artefact)
    first = packets.design.annotators[0]
    texts = {row.item: row for row in read_jsonl(artefact.file(f"{first}/{first}.jsonl"), PacketRow)}
    rules = msgspec.json.decode(read_bytes(artefact.file(f"{first}/rules.json")), type=Rules)
    items = []
    for row in packets.key:
        text = texts[row.item]
        sides = (text.answer_a, text.answer_b)
        items.append(_item(row.item, row.pair, text.question, reversed(sides) if row.swapped[first] else sides, ""))
    settings = {
        "pack": packets.design.pack,
        "labels": msgspec.to_builtins(list(rules.labels)),
        "significance_levels": list(rules.significance_levels),
        "significance_meaning": rules.significance_meaning,
        "reader": rules.reader,
        "source_word": rules.source_word,
        "design": msgspec.to_builtins(list(packets.design.strata)),
        "unlabelled": packets.design.unlabelled,
    }
    return settings, sorted(items, key=lambda item: item.id)


def _item(code: str, pair: Drawn, question: str, sides: Iterable[str], group: str) -> Item:
    first, second = sides
    return Item(
        id=code,
        study="",
        place=0,
        shown=(
            Shown(title="Question", text=question, kind="question"),
            Shown(title="Answer A", text=first, kind="answer"),
            Shown(title="Answer B", text=second, kind="answer"),
        ),
        key={"question": pair.question, "a": pair.a, "b": pair.b},
        stratum=pair.label,
        group=group,
    )


def _group(question: Question, pack: Pack) -> str:
    return facet_of(question.facets, pack.group_facet) or group_of(question.facets)


def pack_settings(pack: Pack) -> dict[str, Any]:
    """What the pair form needs of a domain pack, as a study's settings keep it."""
    return {
        "pack": f"{pack.name}@{pack.fingerprint}",
        "labels": [
            {
                "name": label.name,
                "definition": " ".join(label.definition.split()),
                "significance": label.significance,
            }
            for label in pack.labels
        ],
        "significance_levels": list(pack.significance_levels),
        "significance_meaning": " ".join(pack.significance_meaning.split()),
        "reader": pack.reader,
        "source_word": pack.source_word,
    }
