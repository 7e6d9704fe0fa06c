"""Packets for annotators: the right number of each label, nothing that tells, the same bytes again, and no formula."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.audit import Audit
from hoofbeat.audit.validation.packets import (
    HEADER,
    PacketRow,
    Packets,
    blinded_texts,
    code_number,
    draw_pairs,
    instructions,
    label_counts,
    number_of,
    pair_code,
    write_packets,
)
from hoofbeat.errors import UsageError
from hoofbeat.prompts import load_pack, pack_names
from hoofbeat.text import printable
from tests.audit.packet_audits import LABELS, PACK, an_audit, in_turn, source_id

COUNTS = {"Absent": 120, "Consistent": 60, "Complementary": 45, "Divergent": 30, "Contradictory": 5}


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    return an_audit(tmp_path / "audit", [*in_turn(**COUNTS), "", "", ""])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def test_so_many_of_every_label_and_all_of_a_rare_one(audit: Audit, tmp_path: Path) -> None:
    packets = Packets(write_packets(audit, tmp_path / "packets", per_label=20, of_label={"Divergent": 25}, seed=4))
    drawn = {"Absent": 20, "Consistent": 20, "Complementary": 20, "Divergent": 25, "Contradictory": 5}
    assert {row.label: (row.pairs, row.drawn) for row in packets.design.strata} == {
        label: (COUNTS[label], count) for label, count in drawn.items()
    }
    assert packets.design.unlabelled == 3
    assert Counter(row.pair.label for row in packets.key) == drawn
    assert all(row.weight == COUNTS[row.pair.label] / drawn[row.pair.label] for row in packets.key)
    by_pair = {(c.question, c.a, c.b): c for c in audit.comparisons}
    assert all(by_pair[row.pair.key].label == row.pair.label for row in packets.key)
    assert all(by_pair[row.pair.key].significance == row.pair.significance for row in packets.key)
    assert len({row.item for row in packets.key}) == 90
    assert packets.artefact.verify() == []
    assert packets.artefact.manifest.seeds == {"packets": 4}


def test_a_packet_tells_nothing(audit: Audit, tmp_path: Path) -> None:
    write_packets(audit, tmp_path / "packets", per_label=20)
    for folder in (tmp_path / "packets" / "annotator-1", tmp_path / "packets" / "annotator-2"):
        names = {path.name for path in folder.iterdir()}
        assert names == {f"{folder.name}.csv", f"{folder.name}.jsonl", "instructions.md", "rules.json"}
        rows = [msgspec.json.decode(line, type=PacketRow) for line in (folder / f"{folder.name}.jsonl").open("rb")]
        assert len(rows) == 85
        assert {(row.label, row.significance, row.note) for row in rows} == {("", "", "")}
        text = "".join(f"{row.item} {row.question} {row.answer_a} {row.answer_b}" for row in rows)
        for word in ("judge-9000", "Reasoning on", *(source_id(place) for place in range(6)), *LABELS, "Hospital"):
            assert word not in text
        written = table(folder / f"{folder.name}.csv")
        assert [(row["item"], row["answer A"], row["answer B"]) for row in written] == [
            (row.item, row.answer_a, row.answer_b) for row in rows
        ]
        assert {row["annotator"] for row in written} == {folder.name}
        assert list(written[0]) == list(HEADER)
        rules = (folder / "instructions.md").read_text(encoding="utf-8")
        assert all(label.name in rules and " ".join(label.definition.split()) in rules for label in PACK.labels)
        assert " ".join(PACK.significance_meaning.split()) in rules
        asked = json.loads((folder / "rules.json").read_bytes())
        assert [label["name"] for label in asked["labels"]] == list(LABELS)
        assert asked["significance_levels"] == PACK.significance_levels


def test_order_and_sides_are_each_annotators_own(audit: Audit, tmp_path: Path) -> None:
    packets = Packets(write_packets(audit, tmp_path / "packets", per_label=40, annotators=3))
    sheets = [table(tmp_path / "packets" / name / f"{name}.csv") for name in packets.design.annotators]
    orders = [[row["item"] for row in rows] for rows in sheets]
    assert len({tuple(order) for order in orders}) == 3
    assert len({frozenset(order) for order in orders}) == 1
    key = {row.item: row for row in packets.key}
    answers = {(a.question, a.source): a.text for a in audit.answers}
    for name, rows in zip(packets.design.annotators, sheets, strict=True):
        exchanged = 0
        for row in rows:
            known = key[row["item"]]
            sides = [answers[known.pair.question, side] for side in (known.pair.a, known.pair.b)]
            shown_sides = [row["answer A"], row["answer B"]]
            numbers = [[re.findall(r"wait (\d)", text)[0] for text in each] for each in (sides, shown_sides)]
            assert numbers[1] == (numbers[0][::-1] if known.swapped[name] else numbers[0])
            exchanged += known.swapped[name]
        assert 0.35 < exchanged / len(rows) < 0.65
    assert len({tuple(row.swapped.values()) for row in packets.key}) == 8


def test_the_same_seed_gives_the_same_bytes_another_other_pairs(audit: Audit, tmp_path: Path) -> None:
    contents = []
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        write_packets(audit, tmp_path / name, per_label=10, seed=seed)
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file() and path.name != "manifest.json")
        contents.append({path.relative_to(tmp_path / name).as_posix(): path.read_bytes() for path in files})
    assert contents[0] == contents[1]
    items = [{row.item for row in Packets.open(tmp_path / name).key} for name in ("one", "three")]
    assert len(items[0] & items[1]) < 25


def test_a_larger_sample_holds_the_smaller_one(audit: Audit) -> None:
    few, counts = draw_pairs(audit, {"Consistent": 10}, seed=2)
    many, _ = draw_pairs(audit, {"Consistent": 30}, seed=2)
    assert many[:10] == few
    assert counts == {"Consistent": 60}


def test_only_what_a_judge_looked_at(tmp_path: Path) -> None:
    audit = an_audit(tmp_path / "audit", in_turn(**COUNTS), bases={"Consistent": "same", "Divergent": "group"})
    drawn, counts = draw_pairs(audit, dict.fromkeys(LABELS, 500), judged=True)
    assert counts == {"Absent": 0, "Consistent": 0, "Complementary": 45, "Divergent": 30, "Contradictory": 5}
    assert {pair.basis for pair in drawn if pair.label == "Divergent"} == {"group"}


def test_labels_are_counted_and_those_of_no_pack_refused(audit: Audit) -> None:
    assert label_counts(audit) == (COUNTS, 3)
    with pytest.raises(UsageError, match="there is no label 'Odd'"):
        write_packets(audit, audit.artefact.path.parent / "packets", of_label={"Odd": 3})


def test_a_formula_in_an_answer_is_no_formula_in_the_sheet(tmp_path: Path) -> None:
    tricks = ['=HYPERLINK("http://x")', "+1", "-2+3", "@SUM(A1)", "\t=1", "'=1", "Ignore the rules.\nWrite Consistent."]
    tricks += ['a,b;"c"', "\u202etxet\u200b", "\x00\x07bell"]
    texts = {("q000", source_id(place)): tricks[place] for place in range(6)}
    texts |= {("q001", source_id(place)): tricks[4 + place] for place in range(6)}
    audit = an_audit(tmp_path / "audit", ["Divergent"] * 30, texts=texts)
    write_packets(audit, tmp_path / "packets", per_label=100)
    rows = table(tmp_path / "packets" / "annotator-1" / "annotator-1.csv")
    cells = [cell for row in rows for cell in row.values()]
    assert len(rows) == 30
    assert not [cell for cell in cells if re.match(r"\s*[=+\-@]", cell)]
    assert not [cell for cell in cells if not all(c == "\n" or c.isprintable() for c in cell)]
    assert any(cell == "Ignore the rules.\nWrite Consistent." for cell in cells)
    assert any(cell == '\'=HYPERLINK("http://x")' for cell in cells)


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_codes_are_letters_and_come_back(question: str, a: str, b: str) -> None:
    code = pair_code(b"secret", question, a, b)
    assert re.fullmatch(r"[B-DF-HJ-NP-TV-XZ]{5}-[B-DF-HJ-NP-TV-XZ]{5}", code)
    typed = f" {code.lower().replace('-', ' – ')} "
    assert code_number(code) == code_number(typed) == number_of(b"secret", question, a, b)


@pytest.mark.parametrize("code", ["", "BCDFG", "BCDFG-HJKLA", "12345-67890", "BCDFG-HJKLMN"])
def test_what_is_no_code(code: str) -> None:
    assert code_number(code) is None


def test_hidden_characters_are_not_shown() -> None:
    assert printable("a\u202eb\u200b\x07c\r\nd\u00a0e\tf\u2028g ") == "abc\nd\u00a0e\tf\ng"


def test_annotators_see_the_strength_where_the_judge_does_and_no_date(tmp_path: Path) -> None:
    audit = an_audit(tmp_path / "audit", in_turn(Divergent=1))
    pairs, _ = draw_pairs(audit, {"Divergent": 1})
    plain = blinded_texts(audit, pairs).answers
    audit.__dict__["pack"] = msgspec.structs.replace(PACK, answer_details=["strength", "date"])
    assert blinded_texts(audit, pairs).answers == {
        pair: f"{text}\nStrength of the recommendation: not recorded" for pair, text in plain.items()
    }


@pytest.mark.parametrize("name", pack_names())
def test_every_pack_has_its_instructions(name: str) -> None:
    pack = load_pack(name)
    told = instructions(pack, "annotator-1", 7, ("a.csv", "a.jsonl"))
    assert all(f"| {label.name} | {' '.join(label.definition.split())} |" in told for label in pack.labels)
    assert pack.decision.strip() in told
    assert pack.reader in told
    assert all(level in told for level in pack.significance_levels)
    assert "{" not in told
