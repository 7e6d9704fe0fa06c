"""What annotators give back: read however a spreadsheet saved it, and refused with the lines that are wrong."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from hoofbeat.audit import Audit
from hoofbeat.audit.validation.packets import Packets, label_counts, pair_code, write_packets
from hoofbeat.audit.validation.people_validation import AnnotatorLabel, HumanLabels, human_labels, validated_pairs
from hoofbeat.errors import InputError
from hoofbeat.judging.blinded_sheet import UNKEYED
from tests.audit.packet_audits import an_audit, in_turn

COUNTS = {"Absent": 20, "Consistent": 12, "Complementary": 9, "Divergent": 8, "Contradictory": 6}
Row = dict[str, str]


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    return an_audit(tmp_path / "audit", in_turn(**COUNTS))


@pytest.fixture
def packets(audit: Audit, tmp_path: Path) -> Packets:
    return Packets(write_packets(audit, tmp_path / "packets", per_label=4))


def rows_of(packets: Packets, name: str = "annotator-1") -> list[Row]:
    """The packet filled in with the judge's own labels."""
    key = {row.item: row.pair for row in packets.key}
    with (packets.artefact.path / name / f"{name}.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        pair = key[row["item"]]
        row |= {"label": pair.label, "significance": pair.significance or ""}
    return rows


def saved(path: Path, rows: list[Row], *, delimiter: str = ",", encoding: str = "utf-8", first: str = "",
          ends: str = "\r\n") -> Path:  # fmt: skip
    stream = io.StringIO()
    writer = csv.DictWriter(stream, rows[0], delimiter=delimiter, lineterminator=ends)
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes((first + stream.getvalue()).encode(encoding))
    return path


def as_given(audit: Audit, packets: Packets) -> dict[tuple[str, str, str], AnnotatorLabel]:
    pairs = [row.pair for row in packets.key]
    return {pair.key: AnnotatorLabel(label=pair.label, significance=pair.significance) for pair in pairs}


def only(found: HumanLabels, who: str) -> dict[tuple[str, str, str], AnnotatorLabel]:
    assert found.annotators == (who,)
    return {pair: said[who] for pair, said in found.labels.items()}


@pytest.mark.parametrize(
    ("delimiter", "encoding", "first", "ends"),
    [
        (",", "utf-8", "", "\n"),
        (",", "utf-8-sig", "", "\r\n"),
        (";", "cp1252", "", "\r\n"),
        (";", "utf-8-sig", "sep=;\r\n", "\r\n"),
        ("\t", "utf-16", "", "\r\n"),
        (",", "utf-8", "", "\r"),
    ],
)
def test_files_as_spreadsheets_save_them(
    audit: Audit, packets: Packets, tmp_path: Path, delimiter: str, encoding: str, first: str, ends: str
) -> None:
    rows = rows_of(packets)
    rows[3]["note"] = "Für „später“, nicht; jetzt\nund noch eine Zeile"
    rows[5]["label"] = f"  {rows[5]['label'].upper()} "
    path = saved(tmp_path / "back.csv", rows, delimiter=delimiter, encoding=encoding, first=first, ends=ends)
    for known in (packets, None):
        found = human_labels(audit, [path], packets=known)
        said = only(found, "annotator-1")
        noted = [pair for pair, each in said.items() if each.note]
        assert {
            pair: AnnotatorLabel(label=each.label, significance=each.significance) for pair, each in said.items()
        } == (as_given(audit, packets))
        assert [said[pair].note.splitlines()[0] for pair in noted] == ["Für „später“, nicht; jetzt"]
    assert any("Windows-1252" in note for note in found.notes) == (encoding == "cp1252")


def test_a_note_guarded_from_spreadsheets_comes_back_as_it_was(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    rows = rows_of(packets)
    rows[3]["note"] = "'- not the same dose"
    found = human_labels(audit, [saved(tmp_path / "back.csv", rows)], packets=packets)
    assert [each.note for each in only(found, "annotator-1").values() if each.note] == ["- not the same dose"]


def test_json_lines_come_back_too(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    lines = [
        {"item": row["item"].lower(), "label": row["label"], "significance": row["significance"] or None, "sure": 3}
        for row in rows_of(packets)
    ]
    path = tmp_path / "dr-a.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n", encoding="utf-8")
    assert only(human_labels(audit, [path], packets=packets), "dr-a") == as_given(audit, packets)


def test_what_is_wrong_is_told_with_its_lines(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    rows = rows_of(packets)
    rows[0]["label"] = "Contradicting"
    rows[1]["item"] = "BCDFG-BCDFG"
    rows[2]["item"] = "7"
    rows[3]["label"] = ""
    rows[4]["significance"] = "severe"
    rows[6]["item"] = rows[5]["item"]
    rows[7]["item"] = ""
    path = saved(tmp_path / "back.csv", rows)
    for known in (packets, None):
        with pytest.raises(InputError) as caught:
            human_labels(audit, [path], packets=known)
        lines = str(caught.value).splitlines()
        assert lines[0] == "7 lines can't be used:"
        assert lines[1].startswith("line 2: 'Contradicting' is not one of the labels (Absent, Consistent,")
        assert lines[2] == "line 3: there is no item 'BCDFG-BCDFG' in this sample"
        assert lines[3] == "line 4: there is no item '7' in this sample"
        assert lines[4] == f"line 5: {rows[3]['item']} has no label"
        assert lines[5] == "line 6: 'severe' is not a level of significance (low, medium, high)"
        assert lines[6] == f"line 8: {rows[5]['item']} was already labelled by annotator-1 (line 7 of back.csv)"
        assert lines[7] == "line 9: the row has no item"


def test_names_that_the_packets_do_not_have_are_said(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    theirs = [row | {"annotator": "Dr. B"} for row in rows_of(packets, "annotator-1")]
    files = [saved(tmp_path / "a.csv", theirs), saved(tmp_path / "b.csv", rows_of(packets, "annotator-2"))]
    assert human_labels(audit, files, packets=packets).notes == (
        "names that the packets do not have: Dr. B. A person with two names counts as two people",
    )
    assert human_labels(audit, files).notes == ()


def test_lines_are_counted_as_an_editor_counts_them(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    rows = rows_of(packets)
    rows[0]["note"] = "one\ntwo\nthree"
    rows[1]["label"] = "?"
    path = saved(tmp_path / "back.csv", rows, delimiter=";", first="sep=;\n")
    with pytest.raises(InputError, match="line 6: '\\?' is not one of"):
        human_labels(audit, [path], packets=packets)


def test_missing_items_are_an_error_unless_a_part_will_do(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    rows = rows_of(packets)
    left = rows.pop()["item"]
    rows[0]["label"] = ""
    path = saved(tmp_path / "back.csv", rows[1:])
    with pytest.raises(InputError, match="annotator-1 has no label for 2 of 20 items") as caught:
        human_labels(audit, [path], packets=packets)
    assert left in str(caught.value)
    assert len(human_labels(audit, [path], packets=None).pairs) == 18
    found = human_labels(audit, [saved(tmp_path / "back.csv", rows)], packets=packets, partial=True)
    assert found.empty == {"annotator-1": 2}
    assert len(found.pairs) == 20
    assert len(found.labels) == 18
    assert "annotator-1: 2 items without a label" in found.notes


def test_two_files_by_one_person_are_refused(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    rows = rows_of(packets)
    one, two = saved(tmp_path / "one.csv", rows), saved(tmp_path / "two.csv", rows)
    with pytest.raises(InputError, match=r"already labelled by annotator-1 \(line 2 of one.csv\)"):
        human_labels(audit, [one, two], packets=packets)
    for row in rows:
        row["annotator"] = ""
    one, two = saved(tmp_path / "one.csv", rows), saved(tmp_path / "two.csv", rows, delimiter=";")
    with pytest.raises(InputError, match=r"the same rows in the same order as ") as caught:
        human_labels(audit, [one, two], packets=packets)
    assert caught.value.where == str(two)
    rows[0]["note"] = "Not sure."
    assert human_labels(audit, [one, saved(two, rows)], packets=packets).annotators == ("one", "two")


def test_adjudicated_labels_are_of_some_items_only(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    rows = rows_of(packets)
    settled = [dict(row) for row in rows[:3]]
    settled[0]["label"] = "Divergent"
    settled[0]["significance"] = "High"
    settled[1]["label"] = ""
    found = human_labels(
        audit, [saved(tmp_path / "a.csv", rows)], adjudicated=saved(tmp_path / "b.csv", settled), packets=packets
    )
    key = {row.item: row.pair.key for row in packets.key}
    assert found.adjudicated[key[rows[0]["item"]]] == AnnotatorLabel(label="Divergent", significance="high")
    assert found.adjudicated.keys() == {key[rows[0]["item"]], key[rows[2]["item"]]}
    settled[2]["item"] = settled[0]["item"]
    with pytest.raises(InputError, match="was already settled"):
        human_labels(audit, [tmp_path / "a.csv"], adjudicated=saved(tmp_path / "b.csv", settled), packets=packets)


def test_significance_counts_where_the_label_takes_it(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    rows = rows_of(packets)
    for row in rows:
        row["significance"] = "none" if row["label"] == "Divergent" else "LOW"
    found = human_labels(audit, [saved(tmp_path / "a.csv", rows)], packets=packets)
    said = {(each.label, each.significance) for each in only(found, "annotator-1").values()}
    assert said == {("Absent", None), ("Consistent", None), ("Complementary", None), ("Divergent", None),
                    ("Contradictory", "low")}  # fmt: skip
    assert "12 ratings of significance are ignored: their labels take none" in found.notes
    assert "4 labels need a significance but have none" in found.notes


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "does not name the columns"),
        (b"item,label\n", "no row"),
        (b"item,text\nBCDFG-HJKLM,x\n", "does not name the columns"),
        (b"item,label,label\nBCDFG-HJKLM,x,y\n", "two columns named 'label'"),
        (b'item,label\n"BCDFG,x\n', "not valid CSV"),
        (b"i\0t\0e\0m\0", "not a text file"),
        (b"\xef\xbb\xbfitem,label\nBCDFG-HJKLM,\xff\n", "not a text file"),
        (b"PK\x03\x04\0\0\0\0", "not a text file"),
    ],
)
def test_files_that_are_no_packets(audit: Audit, tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "back.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=told):
        human_labels(audit, [path])


def test_json_that_can_not_be_read_is_named(audit: Audit, tmp_path: Path) -> None:
    path = tmp_path / "back.jsonl"
    path.write_text('{"item": "BCDFG-HJKLM", "label": "Divergent"}\n[1]\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 2 can't be read"):
        human_labels(audit, [path])
    with pytest.raises(InputError, match="can't read the file"):
        human_labels(audit, [tmp_path / "none.csv"])


def test_packets_of_another_audit_are_refused(packets: Packets, tmp_path: Path) -> None:
    other = an_audit(tmp_path / "other", in_turn(Divergent=30))
    path = saved(tmp_path / "back.csv", rows_of(packets))
    with pytest.raises(InputError, match="these packets do not belong to the audit"):
        human_labels(other, [path], packets=packets)


@pytest.mark.parametrize("column", ["passages answer it", "says so"])  # the second as it was called before
def test_a_reviewer_can_say_that_a_silent_source_does_say_so(
    audit: Audit, packets: Packets, tmp_path: Path, column: str
) -> None:
    rows = [
        {column if name == "passages answer it" else name: cell for name, cell in row.items()}
        for row in rows_of(packets)
    ]
    for row in rows[::2]:
        row[column] = "Yes"
    found = human_labels(audit, [saved(tmp_path / "one.csv", rows)], packets=packets)
    assert sorted({each.says_so for each in only(found, "annotator-1").values()}) == ["", "yes"]
    rows[0][column] = "perhaps"
    with pytest.raises(InputError, match="perhaps"):
        human_labels(audit, [saved(tmp_path / "two.csv", rows)], packets=packets)


def test_labels_under_codes_of_before_are_still_found(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    pairs = {row.item: row.pair for row in packets.key}
    old = [{**row, "item": pair_code(UNKEYED, *pairs[row["item"]].key)} for row in rows_of(packets)]
    assert not {row["item"] for row in old} & pairs.keys()
    file = saved(tmp_path / "old.csv", old)
    found = human_labels(audit, [file])
    assert {pair.key for pair in found.pairs} == {pair.key for pair in pairs.values()}
    items = {each.rated.item for each in validated_pairs(audit, found, label_counts(audit)[0])}
    assert items == {row["item"] for row in old}, "the tables name items as the annotators' files do"


def test_packets_of_before_are_read_by_the_codes_of_their_key(audit: Audit, packets: Packets, tmp_path: Path) -> None:
    codes = {row.item: pair_code(UNKEYED, *row.pair.key) for row in packets.key}
    file = saved(tmp_path / "old.csv", [{**row, "item": codes[row["item"]]} for row in rows_of(packets)])
    packets.key = [replace(row, item=codes[row.item]) for row in packets.key]
    found = human_labels(audit, [file], packets=packets)
    assert len(found.pairs) == len(codes)
    assert set(found.codes.values()) == set(codes.values())
