"""The bench that sets an audit beside experts' syntheses: what it builds and counts, and that nothing is copied."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench.experts import HERE, KINDS, keys, main, make, outcomes, questions, rows, truths
from hoofbeat.audit import Audit, AuditSource
from hoofbeat.audit.pair_table import TableEnums
from hoofbeat.benchmarks import Benchmark
from hoofbeat.corpus import Corpus
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Comparison
from hoofbeat.store import Counts, Manifest, create
from hoofbeat.store.tables import write_jsonl, write_parquet
from tests.audit.comparison_rows import comparison_frame
from tests.helpers import shared_data

PACK = load_pack("guidelines")
_RUN = 8


def test_the_files_fit_together() -> None:
    asked, known = {question.id for question in questions()}, truths()
    assert set(known) == asked
    assert len(asked) == 123
    assert {truth.expected for truth in known.values()} == set(KINDS)
    institutions = {row["institution"] for row in rows("sources.tsv")}
    assert {truth.silent for truth in known.values()} <= {"", *institutions}
    assert all(bool(truth.silent) == (truth.expected == "one-sided") for truth in known.values())
    patterns = keys()
    assert len(patterns) == len(rows("keys.tsv")) == 168
    for name, truth in known.items():
        sides = {pattern for (question, _), pattern in patterns.items() if question == name}
        assert truth.expected != "differ" or len(sides) >= 2, name
    for pattern in patterns.values():
        re.compile(pattern)


def runs(text: str) -> set[tuple[str, ...]]:
    """Every run of eight words."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    return {tuple(found[at : at + _RUN]) for at in range(len(found) - _RUN + 1)}


def our_runs() -> set[tuple[str, ...]]:
    own = [question.text for question in questions()] + [truth.short for truth in truths().values()]
    return set().union(*map(runs, own))


def test_nothing_of_the_syntheses_is_copied() -> None:
    ours = our_runs()
    assert len(ours) > 300
    for path in shared_data("syntheses").glob("*.txt"):
        assert not ours & runs(path.read_text(encoding="utf-8")), path.name


def test_the_corpus_and_the_questions_are_built_from_the_data(tmp_path: Path) -> None:
    assert make(tmp_path / "out", shared_data("guidelines.jsonl.gz").parent)
    corpus = Corpus.open(tmp_path / "out" / "corpus")
    facets = {document.id: document.facets for document in corpus.documents()}
    assert len(facets) == 19
    assert facets["ngc-9686"] == {"institution": "ACS", "specialty": "lung"}
    texts = {document.id: document.text for document in corpus.documents()}
    assert not any(our_runs() & runs(text) for text in texts.values()), "nothing of the guidelines is copied"
    lacking = [side for side, pattern in keys().items() if not re.search(pattern, texts[side[1]], re.I | re.S)]
    assert len(lacking) <= len(keys()) // 10, lacking
    assert len(Benchmark.open(tmp_path / "out" / "questions").questions) == 123


def test_without_the_data_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["make", str(tmp_path / "out"), "--data", str(tmp_path)])
    assert "skipped: needs guidelines.jsonl.gz" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def an_audit(target: Path, said: dict[str, tuple[dict[str, str], dict[tuple[str, str], str]]]) -> Audit:
    """An audit of these questions: by question what each guideline says, and the label of each pair."""
    asked = [question for question in questions() if question.id in said]
    names = sorted({source for answers, _ in said.values() for source in answers})
    comparisons = [
        Comparison(question=name, a=a, b=b, label=label, judge="j", basis="judged" if label != "Absent" else "absent")
        for name, (_, labels) in said.items()
        for (a, b), label in labels.items()
    ]
    kinds = TableEnums.of(
        questions=said,
        sources=names,
        labels=[label.name for label in PACK.labels],
        levels=PACK.significance_levels,
        judges=["j"],
    )
    with create(target, replace_kind="audit") as draft:
        write_jsonl(draft.path / "questions.jsonl", asked)
        write_jsonl(draft.path / "sources.jsonl", [AuditSource(id=name, title=name, facets={}) for name in names])
        write_jsonl(
            draft.path / "answers.jsonl",
            [
                Answer(question=name, model="m", condition="source", source=source, text=text, absent=not text)
                for name, (answers, _) in said.items()
                for source, text in answers.items()
            ],
        )
        write_parquet(draft.path / "comparisons.parquet", comparison_frame(comparisons, kinds))
        settings: dict[str, object] = {"pack": f"{PACK.name}@{PACK.fingerprint}"}
        draft.finish(Manifest(kind="audit", title="invented", settings=settings, counts=Counts(kept=len(comparisons))))
    return Audit.open(target)


def test_found_missed_and_invented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    acs, canada, task_force = "ngc-9686", "ngc-10950", "ngc-10192"
    acp, aua = "ngc-9823", "ngc-9913"
    alike, apart = "Consistent", "Divergent"
    audit = an_audit(
        tmp_path / "audit",
        {
            "lung-d3": (  # 74, 74 and 80: the two that agree are no side of a difference
                {acs: "Until 74.", canada: "Up to 74.", task_force: "At 80."},
                {(canada, task_force): apart, (acs, canada): alike, (acs, task_force): alike},
            ),
            "lung-d1": (
                {acs: "Until 74.", canada: "Each year.", task_force: "For life."},
                {(acs, canada): apart, (acs, task_force): apart, (canada, task_force): apart},
            ),
            "prostate-d1": ({acp: "From 50 to 69.", aua: "From 55 to 69."}, {(acp, aua): alike}),
            "prostate-a4": ({acp: "No, he should not.", aua: "It is not recommended."}, {(acp, aua): apart}),
            "prostate-a2": ({acp: "Yes.", aua: "A shared one."}, {(acp, aua): "Complementary"}),
            "prostate-d5": ({acp: "", aua: "Every two years."}, {(acp, aua): "Absent"}),
            "prostate-n1": ({acp: "Yes.", aua: "No."}, {(acp, aua): apart}),
        },
    )
    found = {each.question: (each.right, each.why) for each in outcomes(audit)}
    assert found == {
        "lung-d3": (True, ""),
        "lung-d1": (False, "an answer lacks its side"),
        "prostate-d1": (False, "both sides in the answers, no diverging label"),
        "prostate-a4": (False, "both answers carry the fact: the judge"),
        "prostate-a2": (True, ""),
        "prostate-d5": (True, ""),
        "prostate-n1": (False, "a silent guideline was answered"),
    }
    main(["score", str(tmp_path / "audit")])
    told = capsys.readouterr().out
    assert "| all | 1 of 3 (0.06 to 0.79) | 2 | 1 of 2 (0.09 to 0.91) | 1 of 1 (0.21 to 1.00) | 0 of 1" in told
    assert "not in this audit: 116 of 123 questions" in told


def test_every_line_of_the_questions_is_small() -> None:
    for line in (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        assert set(record) == {"id", "topic", "text"}
        assert record["text"].endswith("?")
        assert len(record["text"]) < 180
