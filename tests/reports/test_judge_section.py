"""The section on the judge: agreement with people, corrected scores, votes and probes, against other libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportion_confint

from hoofbeat.findings.agreement import krippendorff_alpha
from hoofbeat.judging.judgments_folder import Probe
from hoofbeat.records import Failure, Judgment, Vote
from hoofbeat.store import Artefact
from tests.reports import scored
from tests.reports.parsing import parsed, words
from tests.reports.test_scores import build, headings, pattern, rows_of

ASKED = scored.questions(60)


def human(judgments: list[Judgment], name: str, *, differing: set[int]) -> list[Judgment]:
    """A person's labels of these answers: the judge's, but for some."""
    other = {"equivalent": "mismatch", "mismatch": "equivalent"}
    return [
        replace(each, judge=f"human:{name}", label=other[each.label] if place in differing else each.label)
        for place, each in enumerate(judgments)
    ]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    folder = tmp_path_factory.mktemp("judge")
    answers, judgments = scored.free(ASKED, "m", "closed", pattern(60, right=36))
    labelled = judgments[:40]
    people = human(labelled, "Ana", differing={0, 1, 2, 39}) + human(labelled[:30], "Ben", differing={0, 5})
    probes = [
        Probe(probe="length", judge="openai:judge", question=each.question, model="m", condition="closed",
              before=each.label, after="equivalent", words=place, failure="timeout" if place == 0 else "")
        for place, each in enumerate(judgments[20:60])
    ]  # fmt: skip
    made = scored.judged(folder / "judged", ASKED, answers, [*judgments, *people], probes=probes)
    return build(folder / "report", made)


def test_agreement_with_each_person(report: Artefact) -> None:
    rows = {row["person"]: row for row in rows_of(report, "judgments-1-agreement-equivalence")}
    assert float(rows["Ana"]["agreement, 95% Wilson"]) == 0.9
    low, high = proportion_confint(36, 40, method="wilson")
    assert float(rows["Ana"]["agreement, 95% Wilson low"]) == pytest.approx(low)
    assert float(rows["Ana"]["agreement, 95% Wilson high"]) == pytest.approx(high)
    judge = ["equivalent"] * 36 + ["mismatch"] * 4
    ana = ["mismatch"] * 3 + ["equivalent"] * 33 + ["mismatch"] * 3 + ["equivalent"]
    assert float(rows["Ana"]["κ, 95% interval"]) == pytest.approx(cohen_kappa_score(judge, ana))
    assert rows["Ben"]["labelled"] == "30"
    pooled = rows["all people"]
    assert pooled["labelled"] == "70"
    assert float(pooled["agreement, 95% Wilson"]) == pytest.approx(64 / 70)
    two = ["mismatch"] + ["equivalent"] * 4 + ["mismatch"] + ["equivalent"] * 24
    assert float(pooled["κ, 95% interval"]) == pytest.approx(cohen_kappa_score(judge + judge[:30], ana + two))


def test_the_first_screen_says_how_people_agree_and_what_they_correct(report: Artefact) -> None:
    """It told the judge's scores alone, which people had corrected from 1 to 6 of 24."""
    found = report.manifest.metrics["found"]
    assert isinstance(found, list)
    (told,) = [str(each) for each in found if str(each).startswith("People agree")]
    assert told.startswith("People agree with the judge on 64 of 70 labels. Corrected by people: ")
    corrected = rows_of(report, "judgments-1-corrected")
    assert all(f"{float(row['corrected, 95%']):.1%}" in told for row in corrected)


def test_people_among_themselves(report: Artefact) -> None:
    row = rows_of(report, "judgments-1-people-equivalence")[0]
    assert (row["one"], row["other"], row["both labelled"]) == ("Ana", "Ben", "30")
    assert float(row["agreement, 95% Wilson"]) == pytest.approx(27 / 30)
    alpha = rows_of(report, "judgments-1-people-equivalence-alpha")[0]
    assert alpha["items with at least two labels"] == "30"
    assert -1 <= float(alpha["α, 95% interval"]) <= 1


def test_the_corrected_score_stands_beside_the_judges(report: Artefact) -> None:
    row = rows_of(report, "judgments-1-corrected")[0]
    assert float(row["by the judge"]) == 0.6
    assert int(row["labelled"]) == 37  # Ana and Ben contradict each other on three
    low, value, high = (float(row[f"corrected, 95%{end}"]) for end in (" low", "", " high"))
    assert low < value < high
    more = [row[f"more labels for ± {points} points"] for points in (5, 3)]
    assert more == ["not even all", "not even all"]  # 60 answers are too few for so narrow an interval
    why = [row["why"] for row in rows_of(report, "judgments-1-corrected-care")]
    assert any("3 labelled items are left out" in each for each in why)
    assert not any("got no label" in each for each in why)
    assert (row["contested"], row["planned"], row["unanswered"]) == ("3", "60", "0")


def test_probes_leave_failed_pairs_aside(report: Artefact) -> None:
    row = rows_of(report, "judgments-1-probes")[0]
    assert (row["pairs"], row["unscored"], row["flipped"], row["to equivalent"]) == ("39", "1", "24", "24")
    assert float(row["share flipped, 95% Wilson"]) == pytest.approx(24 / 39)


def test_votes_of_several_judges(tmp_path: Path) -> None:
    answers, judgments = scored.free(ASKED, "m", "closed", pattern(60, right=36))
    voted = []
    for place, each in enumerate(judgments):
        labels = [each.label, each.label, "mismatch" if place < 6 else each.label]
        votes = tuple(Vote(judge=f"judge-{n}", label=label) for n, label in enumerate(labels))
        voted.append(replace(each, judge="majority of 3", votes=votes))
    split = (Vote(judge="judge-0", label="equivalent"), Vote(judge="judge-1", label="mismatch"))
    voted[59] = replace(voted[59], label="", votes=split, failure=Failure(kind="no-majority", message="split"))
    report = build(tmp_path / "report", scored.judged(tmp_path / "judged", ASKED, answers, voted))
    rows = {(row["one"], row["other"]): row for row in rows_of(report, "judgments-1-votes-equivalence")}
    assert float(rows["judge-0", "judge-2"]["agreement, 95% Wilson"]) == pytest.approx(53 / 59)
    assert float(rows["judge-0", "judge-1"]["agreement, 95% Wilson"]) == pytest.approx(59 / 60)
    assert "no majority among the judges on 1 answer of 60" in words(
        parsed(report.file("report.html").read_text("utf-8"))
    )
    assert rows_of(report, "judgments-1-leaderboard")[0]["unscored"] == "1"


def test_a_judge_that_was_never_checked_has_no_section(tmp_path: Path) -> None:
    answers, judgments = scored.free(ASKED, "m", "closed", pattern(60, right=36))
    report = build(tmp_path / "report", scored.judged(tmp_path / "judged", ASKED, answers, judgments))
    assert "The judge" not in headings(report)


def test_a_judge_that_answered_is_pointed_out(tmp_path: Path) -> None:
    answers, judgments = scored.free(ASKED, "m", "closed", pattern(60, right=36))
    told = []
    for name, judge, answered in (("same", "m", []), ("named", "openai:judge", ["m"]), ("other", "openai:judge", [])):
        made = scored.judged(
            tmp_path / name, ASKED, answers, judgments, judge=judge, judges_that_answered=list[str](answered)
        )
        page = build(tmp_path / f"report-{name}", made).file("report.html").read_text("utf-8")
        told.append("a model tends to agree with itself" in page)
    assert told == [True, True, False]


def test_labels_of_a_scale_have_weighted_kappa_and_ordinal_alpha(tmp_path: Path) -> None:
    scale = ("irrelevant", "partly", "relevant")
    answers, judgments = scored.free(ASKED, "m", "oracle", pattern(60, right=36))
    given = [scale[place % 3] for place in range(60)]
    seen = {"Ana": [scale[(place % 3 + (place % 7 == 0)) % 3] for place in range(60)],
            "Ben": [scale[min(2, place % 3 + (place % 5 == 0))] for place in range(60)]}  # fmt: skip
    graded = [
        replace(each, aspect="relevance", passage="p1", label=label, score=5.0)
        for each, label in zip(judgments, given, strict=True)
    ]
    people = [
        replace(each, judge=f"human:{name}", label=label, score=None)
        for name, labels in seen.items()
        for each, label in zip(graded, labels, strict=True)
    ]
    made = scored.judged(tmp_path / "judged", ASKED, answers, [*judgments, *graded, *people])
    report = build(tmp_path / "report", made)
    rows = {row["person"]: row for row in rows_of(report, "judgments-1-agreement-relevance")}
    for name, labels in seen.items():
        for weights in ("linear", "quadratic"):
            expected = cohen_kappa_score(labels, given, labels=list(scale), weights=weights)
            assert float(rows[name][f"{weights} κ, 95% interval"]) == pytest.approx(expected)
    (pair,) = rows_of(report, "judgments-1-people-relevance")
    expected = cohen_kappa_score(seen["Ana"], seen["Ben"], labels=list(scale), weights="quadratic")
    assert float(pair["quadratic κ, 95% interval"]) == pytest.approx(expected)
    scales = {row["scale"]: row for row in rows_of(report, "judgments-1-people-relevance-alpha")}
    numbers = [(scale.index(a), scale.index(b)) for a, b in zip(*seen.values(), strict=True)]
    alpha = krippendorff_alpha(numbers, "ordinal").value
    assert float(scales["ordinal"]["α, 95% interval"]) == pytest.approx(alpha)
    assert "irrelevant < partly < relevant" in report.file("report.md").read_text("utf-8").replace("&lt;", "<")
