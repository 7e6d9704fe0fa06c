"""The report on an audit: every figure from planted relations, what is kept in the page, and what stands beside it."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qsl

import msgspec
import polars
import pytest

from hoofbeat import teaching
from hoofbeat.audit import Audit
from hoofbeat.audit.audit_folder import ECONOMY, ORDER, PAIRS, EconomyProbe, OrderProbe
from hoofbeat.audit.case_records import CaseDecision
from hoofbeat.audit.disagreement_cases import read_cases, read_decisions
from hoofbeat.audit.findings.divergence_themes import Theme, ThemeExample
from hoofbeat.audit.findings.institution_rates import InstitutionRate
from hoofbeat.audit.synthesis.audit_export import export_audit
from hoofbeat.errors import InputError
from hoofbeat.records import Question
from hoofbeat.reports.model import GridView, Notice, PairView, Report, Viewer, tables_in, viewers_in
from hoofbeat.reports.report_build import assemble, build_report
from hoofbeat.reports.section import ReportOptions
from hoofbeat.reports.sections.audits import audit_chapter
from hoofbeat.reports.sections.audits.audit_facts import read_facts
from hoofbeat.reports.sections.audits.audit_viewers import kept_pairs
from hoofbeat.reports.sections.audits.source_matrix import pairs_link, usual_labels
from hoofbeat.reports.tables import Table
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl, write_parquet
from tests.reports.audits import made_audit, teaching_audit, write_audit
from tests.reports.examples import HOSTILE, JUDGE

DIVERGING = ("Divergent", "Contradictory")


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    return teaching_audit(tmp_path_factory.mktemp("audit") / "handbooks")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    return made_audit(tmp_path_factory.mktemp("audit") / "large", 45, 12)


def tables(report: Report) -> dict[str, Table]:
    return {table.name: table for table in tables_in(report.blocks)}


def viewers(report: Report) -> dict[str, Viewer]:
    return {viewer.id: viewer for viewer in viewers_in(report.blocks)}


def cards(report: Report) -> dict[str, tuple[str, str]]:
    return {card.label: (card.value, card.detail) for card in report.cards}


def test_published_figures_follow_the_audit_and_show_ours(audit: Artefact) -> None:
    report = assemble([audit], title="t", options=ReportOptions(published=("transplantqa",)))
    asked = Counter(answer.source for answer in Audit(audit).each_answer())
    silent = Counter(answer.source for answer in Audit(audit).each_answer() if answer.absent)
    [row] = tables(report)["published-transplantqa-3-ours"].rows
    assert row[2] == pytest.approx(sum(silent[source] / count for source, count in asked.items()) / len(asked))
    assert row[-1] == "not measured over the paper's items"
    assert [column.title for column in tables(report)["published-transplantqa-3"].columns] == [
        "origin", "model", "condition", "silent on a question",
    ]  # fmt: skip


def planted(audit: Artefact) -> Counter[str]:
    return Counter(pair.label for pair in Audit(audit).comparisons)


def test_the_first_screen_says_how_silent_how_divided_and_what_is_worst(audit: Artefact) -> None:
    report = assemble([audit], title="t")
    labels, shown = planted(audit), cards(report)
    judged = sum(labels.values()) - labels["Absent"]
    assert shown["Sources asked"] == ("8", "24 questions, 128 answers, 320 pairs")
    assert shown["Pairs with a silent source (R_abs)"][0] == f"{100 * labels['Absent'] / labels.total():.1f}%"
    value, detail = shown["Pairs that disagree where both answer (R_div)"]
    assert value == f"{100 * sum(labels[label] for label in DIVERGING) / judged:.1f}%"
    assert "95% interval" in detail
    assert f"n\u00a0=\u00a0{judged} judged pairs; no pair without a label" in detail
    diverging = {item.question for item in Audit(audit).comparisons if item.label in DIVERGING}
    assert f"{len(diverging)} of 24 questions" in shown["Questions with any disagreement"][1]
    grave = {item.question for item in Audit(audit).comparisons if item.significance == "high"}
    assert shown["Questions with a disagreement of high significance"][0] == str(len(grave))
    assert shown["How pairs were judged"][0] == "full"
    rates, worst, silent = report.leads
    assert rates.text.startswith("8 sources were asked 24 questions. ")
    assert f" of {judged} pairs ({value}, 95% interval " in rates.text
    assert rates.text.endswith(f" disagree, on {len(diverging)} of 24 questions.")
    assert silent.text.startswith(
        f"In {labels['Absent']} of 320 pairs ({shown['Pairs with a silent source (R_abs)'][0]}"
    )
    assert "high significance, tq-02" in worst.text
    assert worst.link == "#audit-1-p1"
    assert report.notes == ()


def test_a_judge_that_answered_and_failures_are_said(tmp_path: Path) -> None:
    artefact = teaching_audit(tmp_path / "a", failing=12, models={"answer": JUDGE, "judge": JUDGE})
    report = assemble([artefact], title="t")
    assert "The judge is the model that wrote the answers" in report.notes[0]
    found = tables(report)
    rates = {str(row[0]): row for row in found["audit-1-rates"].rows}
    assert [row[4] for row in rates.values()] == [12] * 4
    low, high = msgspec.convert(rates["R_div"][5], tuple[float, float])
    value = msgspec.convert(rates["R_div"][1], tuple[float, float, float])
    assert low < value[0] < high
    assert "12 without a label" in cards(report)["Pairs that disagree where both answer (R_div)"][1]
    assert [row[:2] for row in found["audit-1-failed"].rows] == [("timeout", 12)]


def test_questions_without_a_pair_are_said(audit: Artefact, tmp_path: Path) -> None:
    with create(tmp_path / "a") as draft:
        for name in audit.manifest.files:
            (draft.path / name).write_bytes((audit.path / name).read_bytes())
        alone = [Question(id=f"alone-{number}", text="Why?") for number in range(2)]
        write_jsonl(draft.path / "questions.jsonl", [*Audit(audit).questions, *alone])
        draft.finish(msgspec.structs.replace(audit.manifest, files={}))
    report = assemble([open_artefact(tmp_path / "a")], title="t")
    assert report.notes[0].startswith("2 questions of 26 went to fewer than two sources")
    assert "of 26 questions" in cards(report)["Questions with any disagreement"][1]


def test_matrices_of_sources_and_questions_are_those_planted(audit: Artefact, tmp_path: Path) -> None:
    made = build_report([audit.path], tmp_path / "r", title="t")
    pairs = Audit(audit).comparisons
    folder = made.path / "matrices" / "audit-1"
    names = sorted({pair.a for pair in pairs} | {pair.b for pair in pairs})

    def square(name: str) -> dict[tuple[str, str], str]:
        with (folder / name).open(encoding="utf-8", newline="") as stream:
            head, *lines = list(csv.reader(stream))
        first = head.index("name") + 1 if "name" in head else 1
        ids = {each.short: each.id for each in Audit(audit).names}
        return {
            (ids[line[first - 1]], ids[other]): cell
            for line in lines
            for other, cell in zip(head[first:], line[first:], strict=True)
        }

    diverging, judged = square("sources-diverging.csv"), square("sources-judged.csv")
    for a in names:
        for b in names:
            mine = [pair for pair in pairs if {pair.a, pair.b} == {a, b} and a != b]
            assert int(judged[a, b]) == sum(pair.label != "Absent" for pair in mine)
            assert int(diverging[a, b]) == sum(pair.label in DIVERGING for pair in mine)
    truth = {(item.question, item.a, item.b): item.label for item in teaching.relations()}
    for path in sorted((folder / "questions").iterdir()):
        question = path.name.partition("-")[2].removesuffix(".csv")
        cells = square(f"questions/{path.name}")
        assert cells
        for (a, b), label in cells.items():
            assert label == ("Consistent" if a == b else truth[question, min(a, b), max(a, b)])
    assert len(list((folder / "questions").iterdir())) == 24


def test_a_pair_shows_both_answers_and_the_passages_they_cite(audit: Artefact) -> None:
    report = assemble([audit], title="t")
    viewer = viewers(report)["audit-1-pairs"]
    assert viewer.total == 320
    assert [name for name, _ in viewer.facets] == ["severity", "organ", "differ in", "source", "and source"]
    first = viewer.entries[0]
    [view] = [block for block in first.blocks if isinstance(block, PairView)]
    gold = {(item.question, item.source): item for item in teaching.patient_gold()}
    for side in (view.a, view.b):
        known = gold[first.name, side.id]
        assert side.name == Audit(audit).names.full(side.id)
        assert side.text == known.answer
        assert [passage.source.partition(" ·")[0] for passage in side.cited] == [known.evidence[0].heading]
        [passage] = side.cited
        marked = passage.text[passage.marks[0][0] : passage.marks[0][1]]
        assert " ".join(marked.split()) == " ".join(known.evidence[0].quote.split())
        assert side.others
    assert view.label == "Contradictory"
    assert "high significance" in view.facts
    assert first.values[0] == ("high",)


def test_pairs_that_are_kept_are_the_most_serious_spread_over_questions(large: Artefact) -> None:
    facts = read_facts(Audit(large))
    kept = kept_pairs(facts, 40)
    assert kept.total == facts.found.pairs
    assert len(kept.pairs) == 40
    levels = [facts.levels.index(str(pair.significance)) for pair in kept.pairs]
    assert levels == sorted(levels, reverse=True)
    order = facts.domain.order
    serious = [
        pair
        for pair in Audit(large).comparisons
        if not pair.failure and pair.label == "Contradictory" and pair.significance == "high"
    ]
    contested = {pair.question for pair in serious}
    assert {pair.question for pair in kept.pairs[: len(contested)]} == contested
    ranks = [(level, order.index(pair.label)) for level, pair in zip(levels, kept.pairs, strict=True)]
    assert ranks == sorted(ranks, reverse=True)


def test_all_pairs_are_kept_where_they_fit_silent_ones_last(audit: Artefact) -> None:
    kept = kept_pairs(read_facts(Audit(audit)))
    assert len(kept.pairs) == kept.total == 320
    assert len({(pair.question, pair.a, pair.b) for pair in kept.pairs}) == 320
    silent = [pair.label == "Absent" for pair in kept.pairs]
    assert silent == sorted(silent)


def test_a_large_audit_says_what_is_left_out_and_packs_its_grids(large: Artefact) -> None:
    part = audit_chapter(large, "audit-1", None, most=50)
    text = " ".join(str(getattr(block, "text", "")) for block in part.blocks)
    total = len(Audit(large).comparisons)
    assert f"The 50 most serious of {total:,} pairs" in text
    assert f"The other {total - 50:,} are in the audit's table" in text
    found = {viewer.id: viewer for viewer in viewers_in(part.blocks)}
    assert found["audit-1-pairs"].total == 50
    diverging = [pair for pair in Audit(large).comparisons if pair.label in DIVERGING]
    assert f"lists all {len(diverging):,} diverging pairs" in text
    rows = list(csv.DictReader(dict(part.files)["pairs/audit-1-diverging.csv"].decode().splitlines()))
    assert {(row["question"], row["a"], row["b"], row["label"]) for row in rows} == {
        (pair.question, pair.a, pair.b, pair.label) for pair in diverging
    }
    levels = [("low", "medium", "high").index(row["significance"]) for row in rows]
    assert levels == sorted(levels, reverse=True)
    assert len(rows) == len(diverging)
    assert all(row["reasoning"] and row["topic"] for row in rows)
    questions = found["audit-1-viewer"]
    assert questions.packed
    assert questions.total == 12
    grids = [block for entry in questions.entries for block in entry.blocks if isinstance(block, GridView)]
    silent = {(answer.question, answer.source) for answer in Audit(large).answers if answer.absent}
    assert grids
    asked = Counter(answer.question for answer in Audit(large).answers)
    ids = {each.short: each.id for each in Audit(large).names}
    for entry in questions.entries:
        for grid in (block for block in entry.blocks if isinstance(block, GridView)):
            left = [name for name in grid.names if (entry.name, ids[name]) in silent]
            assert bool(left) == (len(grid.names) == asked[entry.name] <= 12)
            assert len(grid.cells) == len(grid.names) * (len(grid.names) - 1) // 2


def test_the_usual_label_shows_who_differs(large: Artefact) -> None:
    facts = read_facts(Audit(large))
    usual = usual_labels(facts.pairs)
    for number, question in enumerate(facts.pairs.questions[:4]):
        for place, source in enumerate(facts.pairs.sources):
            mine = Counter(
                facts.domain.order.index(pair.label)
                for pair in Audit(large).comparisons
                if pair.question == question and source in (pair.a, pair.b) and pair.label not in ("", "Absent")
            )
            most = max(mine.values(), default=0)
            assert usual[number, place] == max((label for label in mine if mine[label] == most), default=-1)


def test_checks_and_probes_have_their_tables(audit: Artefact, tmp_path: Path) -> None:
    with create(tmp_path / "a") as draft:
        for name in audit.manifest.files:
            (draft.path / name).write_bytes((audit.path / name).read_bytes())
        pair = {"question": "tq-01", "a": "a", "b": "b"}
        flips = [("Divergent", "Divergent")] * 7 + [("Divergent", "Complementary")] * 2 + [("Consistent", "")]
        write_jsonl(draft.path / ORDER, [OrderProbe(**pair, label=one, swapped=two) for one, two in flips])
        labels = [("Consistent", "Consistent")] * 9 + [("Consistent", "Divergent")]
        write_jsonl(draft.path / ECONOMY, [EconomyProbe(**pair, carried=one, judged=two) for one, two in labels])
        settings = {**audit.manifest.settings, "mode": "economy", "economy": {"risk": 0.5}}
        sample = {"carried": 80, "judged": 10, "unscored": 0, "other_label": 1, "wrong": 1, "bound": 0.445}
        saved = {
            **sample, "checked": 10, "judged_whole": 0, "calls": 30, "calls_without": 120, "rounds": [sample],
        }  # fmt: skip
        metrics = {**audit.manifest.metrics, "economy": saved}
        draft.finish(msgspec.structs.replace(audit.manifest, settings=settings, metrics=metrics, files={}))
    report = assemble([open_artefact(tmp_path / "a")], title="t")
    found = tables(report)
    flipped = found["audit-1-order"].rows[0]
    assert flipped[1:3] == (9, 2)
    assert "1 got no label" in found["audit-1-order"].note
    assert found["audit-1-order"].rows[1][2] == 2
    assert found["audit-1-economy"].rows == (("1", 80, 10, 0, 1, 1, 0.445),)
    assert "30 calls instead of 120 (4.0 times fewer)" in found["audit-1-economy"].note
    assert "Consistent → Divergent 1" in found["audit-1-economy"].note
    assert "agreement with the same judge, not with people" in found["audit-1-economy"].note
    value, detail = cards(report)["How pairs were judged"]
    assert value == "economy"
    assert "80 labels carried from other pairs, at most 44.5% of them on the wrong side" in detail
    cited = {str(row[0]): row[1] for row in found["audit-1-citations"].rows}
    answered = sum(not item.absent for item in teaching.patient_gold())
    assert cited["answers that cite a section that the model saw"] == answered
    assert cited["quotes found under the section cited"] == answered


def changed(audit: Artefact, target: Path, frame: polars.DataFrame | None = None, **fields: object) -> Artefact:
    """A copy of an audit with other pairs or other fields in its manifest."""
    with create(target) as draft:
        for name in audit.manifest.files:
            (draft.path / name).write_bytes((audit.path / name).read_bytes())
        if frame is not None:
            write_parquet(draft.path / PAIRS, frame)
        draft.finish(msgspec.structs.replace(audit.manifest, files={}, **fields))
    return open_artefact(target)


def test_labels_read_by_scanning_are_said(audit: Artefact, tmp_path: Path) -> None:
    scanned = changed(audit, tmp_path / "a", metrics={**audit.manifest.metrics, "label_only": 4})
    report = assemble([scanned], title="t")
    told = [block.text for block in report.blocks if isinstance(block, Notice)]
    assert [
        text for text in told if text.startswith("4 judgments did not follow the form") and "only the label" in text
    ]
    failed = tables(report)["audit-1-failed"]
    assert [row[:2] for row in failed.rows] == [("only the label could be read", 4)]
    assert "has labels" in failed.note
    plain = assemble([audit], title="t")
    assert "audit-1-failed" not in tables(plain)
    assert not [
        block for block in plain.blocks if isinstance(block, Notice) and "did not follow the form" in block.text
    ]


def test_a_judge_that_was_not_tried_is_said_unless_labels_are_planted(audit: Artefact, tmp_path: Path) -> None:
    untried = "The judge was not tested on pairs with a known relation"
    assert any(untried in block.text for block in assemble([audit], title="t").blocks if isinstance(block, Notice))
    comparisons = Audit(audit).comparisons
    known = {(pair.question, pair.a, pair.b): pair.label for pair in comparisons if pair.label}
    beside = assemble([audit], title="t", planted=known)
    assert not any(untried in block.text for block in beside.blocks if isinstance(block, Notice))
    broken = changed(audit, tmp_path / "a", metrics={"trial": {"right": "many"}})
    with pytest.raises(InputError, match="judge's trial in the audit can't be read"):
        assemble([broken], title="t")


def test_themes_stand_with_their_audit_or_alone(audit: Artefact, tmp_path: Path) -> None:
    pairs = [pair for pair in Audit(audit).comparisons if pair.label in DIVERGING and pair.topic]
    phrases = sorted(Counter(str(pair.topic).lower() for pair in pairs).items(), key=lambda item: -item[1])
    first = pairs[0]
    theme = Theme(
        name="all <of> it", rule_name=phrases[0][0], count=len(pairs), questions=17, sources=8, different=len(phrases),
        phrases=tuple(phrases), labels={"Divergent": 1}, levels={"low": 1, "medium": 2, "high": 3}, cohesion=0.5,
        examples=(ThemeExample(question=first.question, a=first.a, b=first.b, label="", significance="", topic="x"),),
    )  # fmt: skip
    with create(tmp_path / "themes") as draft:
        write_jsonl(draft.path / "themes.jsonl", [{"place": 1, "weight": 7.0, "theme": theme, "naming": {}}])
        manifest = Manifest(kind="themes", title="themes", inputs=[audit.reference()], counts=Counts(kept=1))
        draft.finish(msgspec.structs.replace(manifest, models={"encoder": "an encoder; threads 2"}))
    themes = open_artefact(tmp_path / "themes")
    report = assemble([audit, themes], title="t")
    assert [row[:2] for row in tables(report)["audit-1-themes"].rows] == [("all <of> it", len(pairs))]
    assert tables(report)["audit-1-themes"].links[0].startswith("#audit-1-p")
    assert dict(viewers(report)["audit-1-pairs"].facets)["theme"] == ("all <of> it",)
    alone = assemble([themes], title="t")
    assert tables(alone)["themes-1-themes"].n == len(pairs)


def test_pairs_within_an_institution_are_counted_beside_those_between_two(tmp_path: Path) -> None:
    made = made_audit(tmp_path / "a", 6, 8)
    audit = Audit(made)
    assert "audit-1-institutions" not in tables(assemble([made], title="t"))
    owners = {source.id: f"Institution {number // 2}" for number, source in enumerate(audit.sources)}
    sources = [
        msgspec.structs.replace(each, facets={**each.facets, "institution": owners[each.id]}) for each in audit.sources
    ]
    owned = write_audit(tmp_path / "b", audit.questions, sources, audit.answers, audit.comparisons)
    shown = tables(assemble([owned], title="t"))
    within, between, *each = shown["audit-1-institutions"].rows
    mine = [pair for pair in audit.comparisons if owners[pair.a] == owners[pair.b]]
    assert within[:5] == (
        "one institution",
        len(mine),
        sum(pair.label == "Absent" for pair in mine),
        sum(bool(pair.label) and pair.label != "Absent" for pair in mine),
        sum(pair.label in DIVERGING for pair in mine),
    )
    assert between[1] == len(audit.comparisons) - len(mine)
    assert [row[0] for row in each] == sorted({owners[pair.a] for pair in mine})
    assert sum(int(str(row[1])) for row in each) == len(mine)
    two = shown["audit-1-two-institutions"].rows
    assert {row[0] for row in two} == {
        " and ".join(sorted({owners[pair.a], owners[pair.b]})) for pair in audit.comparisons if pair not in mine
    }
    assert sum(int(str(row[1])) for row in two) == between[1]
    made = export_audit(Audit(owned), tmp_path / "out")
    rates = msgspec.json.decode(made.file("institutions.json").read_bytes(), type=list[InstitutionRate])
    assert [rate.pairs for rate in rates[:2]] == [within[1], between[1]]
    with made.file("institutions.csv").open(encoding="utf-8-sig", newline="") as stream:
        cells = list(csv.DictReader(stream))
    assert [(row["kind"], row["a"], row["b"], int(row["pairs"])) for row in cells] == [
        (rate.kind, rate.a, rate.b, rate.pairs) for rate in rates
    ]


def test_decisions_are_in_the_report_and_the_export(tmp_path: Path) -> None:
    made = made_audit(tmp_path / "a", 6, 8)
    audit = Audit(made)
    cases = read_cases(audit)
    decision = CaseDecision(
        case=cases[0].id, version=1, status="follow", seen=cases[0], person="p1", name="Dr. Ada Example", at=0.0,
        owner="Renal pharmacy", follow=cases[0].a.source, position="Check levels weekly.", note="Ask again in May.",
    )  # fmt: skip
    options = ReportOptions(decisions=(decision,))
    assert "audit-1-decisions" not in tables(assemble([made], title="t"))
    shown = tables(assemble([made], title="t", options=options))["audit-1-decisions"]
    (row,) = shown.rows
    name = audit.names.short(cases[0].a.source)
    assert row[3:9] == (
        "closed", f"follow {name}", "Renal pharmacy", "Check levels weekly.", "Ask again in May.",
        "Dr. Ada Example, 1970-01-01 00:00 UTC",
    )  # fmt: skip
    written = build_report([made.path], tmp_path / "r", options=options, formats=("html", "markdown"))
    for file in ("report.html", "report.md"):
        page = (written.path / file).read_text("utf-8")
        for words in ("Renal pharmacy", "Check levels weekly.", "Ask again in May.", "Dr. Ada Example"):
            assert words in page
    ((_, page_words),) = assemble([made], title="For the committee", options=options).summaries
    assert page_words.title == "For the committee"
    assert page_words.decided[0] == f"1 of {len(cases)} disagreements between two sources are decided and closed."
    signed_by = f"follow {name}; Check levels weekly; owner: Renal pharmacy. Signed by Dr. Ada Example, 1970-01-01."
    assert page_words.decided[1].endswith(signed_by)
    # one of several cases is decided, and all cases of its question but one: something is left to decide
    assert not page_words.todo[0].startswith("Nothing has to be decided")
    everything = tuple(msgspec.structs.replace(decision, case=each.id, seen=each) for each in cases)
    for left in range(len(cases)):
        some = everything[:left] + everything[left + 1 :]
        ((_, almost),) = assemble([made], title="", options=ReportOptions(decisions=some)).summaries
        assert cases[left].question in " ".join(almost.todo)
    ((_, settled),) = assemble([made], title="", options=ReportOptions(decisions=everything)).summaries
    assert settled.todo == ("Nothing has to be decided now. Repeat the audit when a source changes.",)
    assert settled.title.startswith("Do the sources agree?")
    exported = export_audit(audit, tmp_path / "out", ("csv", "json"), decisions=[decision])
    with exported.file("cases.csv").open(encoding="utf-8-sig", newline="") as stream:
        listed = list(csv.DictReader(stream))
    assert len(listed) == len(cases)
    (signed,) = (each for each in listed if each["signed by"])
    assert (signed["owner"], signed["status"], signed["note"]) == ("Renal pharmacy", "follow", "Ask again in May.")
    assert read_decisions(exported.file("cases.json")) == [decision]
    assert not export_audit(audit, tmp_path / "plain", ("csv",)).has("cases.csv")


def test_a_link_carries_any_name() -> None:
    link = pairs_link("audit-1", "a&b=c %é", "d")
    assert link == "#audit-1-pairs?source=a%26b%3Dc%20%25%C3%A9&and%20source=d"
    assert parse_qsl(link.partition("?")[2]) == [("source", "a&b=c %é"), ("and source", "d")]


def test_hostile_text_of_a_source_stays_text(tmp_path: Path) -> None:
    made = build_report([made_audit(tmp_path / "a", 4, 3, text=HOSTILE).path], tmp_path / "r", title="t")
    page = (made.path / "report.html").read_text("utf-8")
    assert "<script>window.owned" not in page
    assert "\u202e" not in page
    for name in made.manifest.files:
        if name.endswith(".csv"):
            with (made.path / name).open(encoding="utf-8", newline="") as stream:
                cells = [cell for row in csv.reader(stream) for cell in row]
            assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]


def test_the_same_audit_gives_the_same_bytes(large: Artefact, tmp_path: Path) -> None:
    first = build_report([large.path], tmp_path / "one", title="t")
    second = build_report([large.path], tmp_path / "two", title="t")
    assert first.manifest.files == second.manifest.files
