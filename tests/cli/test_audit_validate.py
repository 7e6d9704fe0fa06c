"""`hoofbeat audit validate` and `audit ablate` as users run them: packets out, labels in, figures known in advance."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

from hoofbeat.audit import Audit
from hoofbeat.audit.findings.validation_folder import AblationFolder, ValidationFolder
from hoofbeat.audit.validation.packets import Packets
from tests.answering.support import Says, ScriptedServer
from tests.audit.packet_audits import LABELS, RATED, an_audit, in_turn
from tests.cli.support import hoofbeat, json_of

COUNTS = {"Absent": 200, "Consistent": 80, "Complementary": 60, "Divergent": 40, "Contradictory": 12}
TRUTH = {  # what people find in 20 pairs of each of the judge's labels (12 of the last)
    "Absent": {"Absent": 20},
    "Consistent": {"Consistent": 16, "Complementary": 4},
    "Complementary": {"Complementary": 14, "Divergent": 6},
    "Divergent": {"Divergent": 18, "Contradictory": 1, "Complementary": 1},
    "Contradictory": {"Contradictory": 12},
}


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    return an_audit(tmp_path / "audit", [*in_turn(**COUNTS), ""])


def truths(packets: Packets) -> dict[str, str]:
    """The label people should give each item."""
    said = {label: [known for known, count in given.items() for _ in range(count)] for label, given in TRUTH.items()}
    return {row.item: said[row.pair.label].pop(0) for row in packets.key}


def annotate(folder: Path, name: str, labels: dict[str, str], *, wrong: int = 0, delimiter: str = ",") -> Path:
    """Fill a packet in as a person would: with the right label, but for some seeded slips to the next one."""
    source = folder / "packets" / name / f"{name}.csv"
    with source.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    slips = set(random.Random(name).sample(range(len(rows)), wrong))
    for number, row in enumerate(rows):
        label = labels[row["item"]]
        if number in slips:
            label = LABELS[(LABELS.index(label) + 1) % len(LABELS)]
        row |= {"label": label, "significance": "high" if label in RATED else ""}
    target = folder / f"{name}.csv"
    with target.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return target


def test_there_and_back_with_figures_known_in_advance(audit: Audit, tmp_path: Path) -> None:
    drawn = json_of(
        hoofbeat("audit", "validate", "audit", "--packets", "packets", "--per-label", "20", "--json", folder=tmp_path)
    )
    assert drawn["kind"] == "packets"
    assert {row["label"]: (row["pairs"], row["drawn"]) for row in drawn["metrics"]["strata"]} == {
        label: (count, min(20, count)) for label, count in COUNTS.items()
    }
    labels = truths(Packets.open(tmp_path / "packets"))
    annotate(tmp_path, "annotator-1", labels)
    annotate(tmp_path, "annotator-2", labels, delimiter=";")
    words = ["audit", "validate", "audit", "--labels", "annotator-1.csv", "--labels", "annotator-2.csv"]
    done = json_of(hoofbeat(*words, "-o", "validation", "--json", folder=tmp_path))
    assert done["metrics"]["agreement"] == pytest.approx(80 / 92)
    assert done["metrics"]["annotators_kappa"] == 1.0
    whole = (200 + 80 * 0.8 + 60 * 0.7 + 40 * 0.9 + 12) / 392
    assert done["metrics"]["population_agreement"] == pytest.approx(whole)
    corrected = done["metrics"]["corrected"]
    assert corrected["R_div (all)"] == pytest.approx((60 * 0.3 + 40 * 0.95 + 12) / 192)
    assert corrected["R_con (answered)"] == pytest.approx(80 * 0.8 / 192)
    borders = done["figures"]["judge"]["borders"]
    assert [(row["lower"], row["upper"], row["over"], row["under"]) for row in borders["borders"]] == [
        ("Complementary", "Divergent", 1, 6),
        ("Consistent", "Complementary", 0, 4),
        ("Divergent", "Contradictory", 0, 1),
    ]
    assert done["counts"]["kept"] == 92
    folder = ValidationFolder.open(tmp_path / "validation")
    assert folder.artefact.verify() == []
    assert len(folder.pairs) == 92
    assert {pair.reference.label for pair in folder.pairs} == set(LABELS)
    assert sum(pair.weight or 0 for pair in folder.pairs) == pytest.approx(392)
    assert all(pair.reasoning for pair in folder.pairs)
    assert [ref.kind for ref in folder.artefact.manifest.inputs] == ["audit", "labels", "labels"]
    told = hoofbeat(*words, "--packets", "packets", "-o", "again", folder=tmp_path)
    assert "The judge against people" in told.stderr
    assert "Complementary / Divergent" in told.stderr
    assert "R_div, absence as found" in told.stderr
    assert "Where the errors are" in hoofbeat("show", "again", folder=tmp_path).stdout
    assert "for annotator-1, annotator-2" in hoofbeat("show", "packets", folder=tmp_path).stdout
    again = ValidationFolder.open(tmp_path / "again")
    assert again.figures == folder.figures
    assert again.pairs == folder.pairs


def test_slips_adjudication_and_parts(audit: Audit, tmp_path: Path) -> None:
    hoofbeat("audit", "validate", "audit", "--packets", "packets", "--per-label", "20", folder=tmp_path)
    labels = truths(Packets.open(tmp_path / "packets"))
    annotate(tmp_path, "annotator-1", labels, wrong=9)
    annotate(tmp_path, "annotator-2", labels)
    words = ["audit", "validate", "audit", "--labels", "annotator-1.csv", "--labels", "annotator-2.csv", "--json"]
    done = json_of(hoofbeat(*words, folder=tmp_path))
    assert done["figures"]["references"] == {"split": 9, "unanimous": 83}
    assert done["figures"]["people"]["pairs"][0]["agree"] == 83
    assert done["counts"] == {"kept": 83, "rejected": 9, "failed": 0, "reasons": {"no reference": 9}, "failures": {}}
    settled = [{"item": item, "label": label} for item, label in labels.items()]
    (tmp_path / "settled.jsonl").write_text("\n".join(map(json.dumps, settled)), encoding="utf-8")
    done = json_of(hoofbeat(*words, "--adjudicated", "settled.jsonl", folder=tmp_path))
    assert done["figures"]["references"] == {"adjudicated": 92}
    assert done["metrics"]["agreement"] == pytest.approx(80 / 92)
    lines = (tmp_path / "annotator-2.csv").read_text(encoding="utf-8-sig").splitlines(keepends=True)
    (tmp_path / "annotator-2.csv").write_text("".join(lines[:50]), encoding="utf-8")
    refused = hoofbeat(*words, "--packets", "packets", "-o", "no", folder=tmp_path, code=1)
    assert "annotator-2 has no label for 43 of 92 items" in refused.stderr
    assert not (tmp_path / "no").exists()
    done = json_of(hoofbeat(*words, "--packets", "packets", "--partial", folder=tmp_path))
    assert "annotator-2: 43 items without a label" in done["notes"]
    assert done["figures"]["references"]["single"] == 43


def test_what_is_refused(audit: Audit, tmp_path: Path) -> None:
    def refused(*words: str, code: int = 2) -> str:
        return hoofbeat("audit", "validate", "audit", *words, folder=tmp_path, code=code).stderr

    assert "there is nothing to do" in refused()
    assert "needs the annotators' files" in refused("--adjudicated", "x.csv")
    assert "there is no label 'Odd'" in refused("--packets", "packets", "--label", "Odd=3")
    assert "LABEL=N" in refused("--packets", "packets", "--label", "Absent")
    assert "can't read the file" in refused("--labels", "x.csv", code=1)
    hoofbeat("audit", "validate", "audit", "--packets", "packets", "--per-label", "3", folder=tmp_path)
    hoofbeat("audit", "validate", "audit", "--packets", "packets", "--per-label", "4", folder=tmp_path)
    path = tmp_path / "packets" / "annotator-1" / "annotator-1.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(",,,,annotator-1", ",Divergent,,,annotator-1", 1))
    assert "these packets may hold labels" in refused("--packets", "packets")
    path.write_text("item,label\nBCDFG-HJKLM,Divergent\n")
    told = refused("--labels", str(path), "--packets", "packets", code=1)
    assert "line 2: there is no item 'BCDFG-HJKLM' in this sample" in told
    assert "nothing was written" in told


def test_a_sample_judged_both_ways_and_set_against_people(audit: Audit, tmp_path: Path) -> None:
    structured = {"reasoning": "r", "classification": "Divergent", "topic": "weeks", "significance": "low"}
    script = [
        Says("reasoning", "", structured),
        Says("classification", "", {"classification": "Complementary"}),
        Says("topic", "", {"topic": "weeks", "significance": "none"}),
    ]
    with ScriptedServer(*script) as server:
        words = ["audit", "ablate", "audit", "--per-label", "10", "--order", "--model", server.spec(), "--json"]
        estimate = json_of(hoofbeat(*words, "--estimate", folder=tmp_path))
        assert estimate["estimate"]["calls"] == 40 * 5
        assert server.seen == []
        done = json_of(hoofbeat(*words, folder=tmp_path))
        assert done["cost"]["calls"] == len(server.seen) == 40 * 5
        assert done["figures"]["shifts"] == [
            {"label": "Divergent", "n": 40, "kept": 0, "kept_share": 0.0, "became": {"Complementary": 40}}
        ]
        assert done["metrics"]["flip_rates"] == {"structured": 0.0, "label-only": 0.0}
        made = AblationFolder.open(tmp_path / "ablation")
        assert (
            "One structured call compared with the label only" in hoofbeat("show", "ablation", folder=tmp_path).stdout
        )
        before = {path.name: path.read_bytes() for path in (tmp_path / "ablation").iterdir()}
        hoofbeat(*words, folder=tmp_path)
        assert {path.name: path.read_bytes() for path in (tmp_path / "ablation").iterdir()} == before
        assert len(server.seen) == 40 * 5
        assert made.artefact.manifest.seeds == {"draw": 0, "bootstrap": 0}
        assert set(made.artefact.manifest.prompts) == {"compare", "compare-label", "compare-details"}
        assert made.artefact.manifest.costs["label-only"].calls == 80
        hoofbeat("audit", "validate", "audit", "--packets", "packets", "--per-label", "20", folder=tmp_path)
        annotate(tmp_path, "annotator-1", truths(Packets.open(tmp_path / "packets")))
        hoofbeat("audit", "validate", "audit", "--labels", "annotator-1.csv", folder=tmp_path)
        people = ["audit", "ablate", "audit", "--validation", "validation", "--model", server.spec(), "-o", "people"]
        told = hoofbeat(*people, folder=tmp_path)
    assert "Compared with people" in told.stderr
    found = AblationFolder.open(tmp_path / "people").figures
    assert found.people is not None
    assert (found.pairs, found.people.n) == (72, 72)
    assert (found.people.only_structured, found.people.only_label_only) == (24, 19)
    an_audit(tmp_path / "other", in_turn(Divergent=30))
    wrong = ["audit", "ablate", "other", "--validation", "validation", "-o", "no", "--model", "embedded"]
    assert "this validation is of another audit" in hoofbeat(*wrong, folder=tmp_path, code=1).stderr


def test_an_audit_without_judged_pairs(tmp_path: Path) -> None:
    an_audit(tmp_path / "audit", ["Absent"] * 20)
    refused = hoofbeat("audit", "ablate", "audit", "--model", "embedded", folder=tmp_path, code=2)
    assert "no judged pairs" in refused.stderr
    done = json_of(hoofbeat("audit", "validate", "audit", "--packets", "packets", "--json", folder=tmp_path))
    assert done["counts"]["kept"] == 20
