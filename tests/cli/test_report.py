"""`hoofbeat report` as a person runs it: formats, published figures, and real predictions against other libraries."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from hoofbeat.store import Manifest, create, open_artefact
from tests.cli.support import hoofbeat, json_of
from tests.helpers import shared_data
from tests.reports import examples, scored
from tests.reports.test_scores import pattern


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    asked = scored.questions(30)
    answers = scored.choices(asked, "one", "closed", pattern(30, right=12, unread=1))
    scored.run(folder / "run", asked, answers)
    return folder


def test_all_formats_unless_told(run: Path) -> None:
    done = json_of(hoofbeat("report", "run", "-o", "all", "--json", folder=run))
    files = open_artefact(run / "all").manifest.files
    assert {"report.html", "report.md", "report.tex"} <= set(files)
    assert {Path(name).suffix for name in files if name.startswith("tables/")} == {".csv", ".tex"}
    assert done["metrics"]["Accuracy, closed, letter"].startswith("40.0%")


def test_a_report_is_named_after_its_content_unless_told_and_lists_its_folders(run: Path) -> None:
    for number in range(1, 6):
        shutil.copytree(run / "run", run / "named" / f"run-{number}", dirs_exist_ok=True)
    for count, words, title in (
        (1, (), "Answers of one to 30 questions"),
        (5, (), "Answers of one to 30 questions"),
        (2, ("--title", "Mine"), "Mine"),
    ):
        folders = [f"run-{number}" for number in range(1, count + 1)]
        hoofbeat("report", *folders, *words, "--format", "markdown", "-o", "page", folder=run / "named")
        assert open_artefact(run / "named" / "page").manifest.title == title
    text = (run / "named" / "page" / "report.md").read_text("utf-8")
    assert "Folders: run-1 and run-2 (run)." in text


def test_only_what_was_asked_for(run: Path) -> None:
    done = hoofbeat("report", "run", "-o", "some", "--format", "csv", "--format", "latex", folder=run)
    assert "next: open some/report.tex" in done.stderr + done.stdout
    alone = hoofbeat("report", "run", "-o", "sheets", "--format", "csv", folder=run)
    assert "next: open sheets/tables" in alone.stderr + alone.stdout
    files = open_artefact(run / "some").manifest.files
    assert "report.tex" in files
    assert not any(name.endswith((".html", ".md", ".svg")) for name in files)
    hoofbeat("verify", "some", folder=run)


def test_published_figures_and_bootstrap_settings(run: Path) -> None:
    words = ("--published", "cupcase", "--published", "clinbench", "--draws", "4", "--size", "250")
    hoofbeat("report", "run", "-o", "beside", *words, folder=run)
    made = open_artefact(run / "beside")
    assert made.manifest.settings["published"] == ["cupcase", "clinbench"]
    text = made.file("report.md").read_text(encoding="utf-8")
    assert "4 bootstrap samples of 250 questions" in text
    assert "CUPCase" in text


def test_a_changed_answer_is_no_result(run: Path, tmp_path: Path) -> None:
    """Labels that were edited once gave 100% accuracy under the old hash."""
    shutil.copytree(run / "run", tmp_path / "run")
    questions = tmp_path / "run" / "questions.jsonl"
    lines = [json.loads(line) for line in questions.read_text().splitlines()]
    chosen = {(row := json.loads(line))["question"]: row for line in (run / "run" / "answers.jsonl").open()}
    for line in lines:
        line["answer"] = chosen[line["id"]].get("choice") or line["answer"]
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    refused = hoofbeat("report", "run", "-o", "page", folder=tmp_path, code=1)
    assert "questions.jsonl is not what this run's manifest says" in refused.stderr
    assert not (tmp_path / "page").exists()
    accepted = hoofbeat("report", "run", "-o", "page", "--trust-changed", folder=tmp_path)
    manifest = json.loads((tmp_path / "page" / "manifest.json").read_text())
    assert [each["changed"] for each in manifest["inputs"]] == [["questions.jsonl"]]
    said = "Files of run had been changed since Hoofbeat wrote them, and were used: questions.jsonl."
    assert said in accepted.stderr
    shown = hoofbeat("show", "page", folder=tmp_path)
    assert said in shown.stdout + shown.stderr
    words = "run: Files were changed after Hoofbeat wrote them, and are shown as they are now: questions.jsonl."
    for name in ("report.html", "report.md"):
        assert words in (tmp_path / "page" / name).read_text(encoding="utf-8")
    hoofbeat("judge", "run", "--by", "choice", "-o", "judged", "--trust-changed", folder=tmp_path)
    hoofbeat("report", "judged", "-o", "later", folder=tmp_path)
    assert said in (tmp_path / "later" / "report.md").read_text(encoding="utf-8"), "what is made of it says so too"
    (inputs,) = json.loads((tmp_path / "later" / "manifest.json").read_text())["inputs"]
    assert inputs["changed"] == ["run: questions.jsonl"]


def test_wrong_words_are_refused(run: Path) -> None:
    for words in (("--published", "medqa"), ("--format", "odt"), ("--draws", "0")):
        done = hoofbeat("report", "run", "-o", "refused", *words, folder=run, code=2)
        assert "Usage" in done.stderr or "Invalid value" in done.stderr
    assert not (run / "refused").exists()


def _documented_section() -> str:
    """The section file that docs/extending.md shows."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "extending.md").read_text("utf-8")
    (code,) = [str(block) for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S) if "SECTION =" in block]
    assert len(code.splitlines()) < 40
    return code


def test_a_section_of_a_plugin_file_is_listed_and_shown_in_its_place(tmp_path: Path) -> None:
    examples.corpus(tmp_path / "corpus")
    (tmp_path / "longest.py").write_text(_documented_section())
    assert "the longest documents of a corpus" not in hoofbeat("report", "--help", folder=tmp_path).stdout
    plugin = ("--plugin", "longest.py")
    assert "the longest documents of a corpus" in hoofbeat(*plugin, "report", "--help", folder=tmp_path).stdout
    hoofbeat(*plugin, "report", "corpus", "-o", "report", folder=tmp_path)
    report = open_artefact(tmp_path / "report", "report")
    page = (report.path / "report.md").read_text("utf-8")
    assert page.index("Corpus: ") < page.index("Longest documents: corpus") < page.index("How this was made")
    longest = [int(row["characters"]) for row in _table(report.path, "corpus-1-longest")]
    assert longest == sorted(longest, reverse=True) != []
    assert ("longest.py", "plugin") in [(ref.name, ref.kind) for ref in report.manifest.inputs]


def test_a_section_may_bring_a_kind_of_artefact(tmp_path: Path) -> None:
    with create(tmp_path / "notes") as draft:
        (draft.path / "notes.txt").write_text("Checked by two people.")
        draft.finish(Manifest(kind="notes", title="Notes"))
    err = hoofbeat("report", "notes", "-o", "report", folder=tmp_path, code=1).stderr
    assert "notes" in err
    (tmp_path / "notes.py").write_text(
        "from hoofbeat.reports.section import Chapter, ReportSection, chapter_per_artefact\n"
        "from hoofbeat.reports.model import Text\n"
        "def chapter(artefact, prefix):\n"
        "    text = artefact.file('notes.txt').read_text('utf-8')\n"
        "    return Chapter(title='Notes', id=prefix, blocks=(Text(text),))\n"
        "SECTION = ReportSection(name='notes', summary='what people noted', order=5, kinds=('notes',),\n"
        "    build=chapter_per_artefact('notes', chapter))\n"
    )
    hoofbeat("--plugin", "notes.py", "report", "notes", "-o", "report", folder=tmp_path)
    assert "Checked by two people." in (tmp_path / "report" / "report.md").read_text("utf-8")


def test_two_sections_with_the_same_id_are_refused(tmp_path: Path) -> None:
    examples.corpus(tmp_path / "corpus")
    code = _documented_section().replace('id=f"{prefix}-longest"', "id=prefix")
    (tmp_path / "longest.py").write_text(code)
    err = hoofbeat("--plugin", "longest.py", "report", "corpus", "-o", "report", folder=tmp_path, code=2).stderr
    assert "the section longest makes a chapter with the id 'corpus-1'" in err


def _table(folder: Path, name: str) -> list[dict[str, str]]:
    with open_artefact(folder).file(f"tables/{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_real_predictions_agree_with_other_libraries(tmp_path: Path) -> None:
    """Accuracies, intervals and paired tests of five models, each computed again from the file itself."""
    source = shared_data("mcq_predictions.jsonl.gz")
    right: dict[str, dict[str, bool]] = defaultdict(dict)
    with gzip.open(source, "rt", encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            right[row["model"]][row["id"]] = row["predicted"] == row["answer"]
    hoofbeat("predictions", str(source), "-o", "run", folder=tmp_path)
    hoofbeat("report", "run", "-o", "report", folder=tmp_path)
    rows = {row["model"]: row for row in _table(tmp_path / "report", "run-1-leaderboard")}
    assert set(rows) == set(right)
    rng = np.random.default_rng(17)
    for model, outcomes in right.items():
        row, values = rows[model], np.array(list(outcomes.values()), float)
        assert (int(row["right"]), int(row["planned"]), row["unscored"]) == (values.sum(), len(values), "0")
        assert float(row["accuracy, 95% interval"]) == pytest.approx(values.mean())
        wilson = proportion_confint(values.sum(), len(values), method="wilson")
        assert [float(row[f"95% Wilson {end}"]) for end in ("low", "high")] == pytest.approx(wilson)
        means = rng.choice(values, (4000, len(values))).mean(axis=1)
        bounds = [float(row[f"accuracy, 95% interval {end}"]) for end in ("low", "high")]
        assert bounds == pytest.approx(np.percentile(means, [2.5, 97.5]), abs=0.006)
    pairs = {(row["model"], row["against"]): row for row in _table(tmp_path / "report", "run-1-models")}
    assert len(pairs) == len(list(combinations(right, 2)))
    expected = []
    for a, b in pairs:
        only_a = sum(right[a][name] and not right[b][name] for name in right[a])
        only_b = sum(right[b][name] and not right[a][name] for name in right[a])
        assert (pairs[a, b]["only this right"], pairs[a, b]["only that right"]) == (str(only_a), str(only_b))
        expected.append(binomtest(only_a, only_a + only_b).pvalue)
    assert [float(row["p"]) for row in pairs.values()] == pytest.approx(expected)
    holm = multipletests(expected, method="holm")[1]
    assert [float(row["Holm p"]) for row in pairs.values()] == pytest.approx(holm)


def test_a_summary_ends_with_the_next_step(run: Path) -> None:
    pytest.importorskip("reportlab")
    done = hoofbeat("report", "run", "--title", "Mine", "--format", "summary", "-o", "one-page", folder=run)
    assert done.stderr.rstrip().splitlines()[-1] == "next: open one-page/summary.pdf"
