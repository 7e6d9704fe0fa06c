"""`show`, `verify`, `report` and `serve` on every kind of folder, and on folders of folders."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from hoofbeat import teaching
from hoofbeat.store import Manifest, create
from hoofbeat.store.folder_library import FolderLibrary
from tests.cli.support import hoofbeat, json_of

RECORDED = ("--model", "replay:teaching")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of most kinds, by commands that call no model, or with the recorded replies of the demo."""
    folder = tmp_path_factory.mktemp("kinds")

    def run(*words: object) -> None:
        hoofbeat(*map(str, words), folder=folder)

    run("corpus", "import", teaching.cases_folder(), "-o", "cases")
    run("corpus", "import", *teaching.handbook_files(), "-o", "handbooks")
    run("corpus", "filter", "cases", "--keep", "words>=600", "-o", "long")
    run("corpus", "label", "cases", "-o", "labels")
    run("corpus", "stats", "cases", "--tokenizer", "none", "--scheme", "none", "-o", "stats")
    run("build", "teaching", "cases", "-o", "bench")
    run("export", "bench", "--as", "jsonl", "-o", "exported")
    run("benchmark", "stats", "bench", "-o", "sets")
    run("check", "bench", "--rules-only", "-o", "check")
    run("retrieve", "bench", "--edition", "search", "--with", "bm25", "--with", "bm25[pool=first]", "-o", "grid")
    run("retrieve", "handbooks", "--query", "May I swim?", "--with", "bm25", "--each-source", "-o", "evidence")
    conditions = [word for each in ("question", "closed", "bm25 @2") for word in ("--condition", each)]
    run("answer", "bench", *RECORDED, *conditions, "--limit", "20", "-o", "run")
    run("judge", "run", *RECORDED, "-o", "judged")
    sources = [word for name in ["alder", "brook", "cairn", "dune"] for word in ("--source", f"hb-{name}-kidney")]
    asked = [word for number in ("01", "02", "03", "07", "12", "13") for word in ("--question", f"tq-{number}")]
    run("audit", "handbooks", "teaching", *RECORDED, *sources, *asked, "--with", "bm25", "-o", "audit")
    run("audit", "export", "audit", "-o", "exported-audit")
    run("audit", "compare", "audit", "audit", "-o", "audits")
    run("judge", "run", *RECORDED, "--condition", "closed", "-o", "judged-closed")
    run("compare", "judged", "judged-closed", "-o", "compared")
    run("report", "grid/01-bm25", "judged", "audit", "-o", "report")
    with create(folder / "theirs") as draft:
        draft.finish(Manifest(kind="of-a-plugin", title="Something new", metrics={"figure": 0.25}))
    return folder


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("cases", "24 documents: hbt-case-01"),
        ("long", "rejected: "),
        ("labels", "Internal Medicine"),
        ("stats", "characters"),
        ("bench", "20 questions: q-hbt-case-01"),
        ("exported", "Exported 20 items"),
        ("sets", "questions"),
        ("check", "No doubt about "),
        ("grid/01-bm25", "nDCG@10"),
        ("grid/comparison", "bm25[pool=first]"),
        ("evidence", "pairs of question and source"),
        ("run", "they have no score until someone judges them"),
        ("judged", "19 of 20"),
        ("audit", "13 of 25 pairs of answers disagree (52%), on 4 of 6 questions"),
        ("exported-audit", "Exported 36 pairs of answers"),
        ("audits", "pairs with a silent source"),
        ("compared", "second − first, points"),
        ("report", "- Right answers."),
        ("theirs", "figure: 0.25"),
    ],
)
def test_the_first_screen_of_every_kind(made: Path, folder: str, found: str) -> None:
    shown = hoofbeat("show", folder, folder=made)
    assert found in shown.stdout
    assert "How it was made" in shown.stdout
    value = json_of(hoofbeat("show", folder, "--json", folder=made))
    assert value["artefact"] == folder


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_no_line_of_a_first_screen_is_wider_than_the_terminal(made: Path, columns: str) -> None:
    extra = {"COLUMNS": columns, "FORCE_COLOR": "1", "TERM": "xterm"}
    for folder in ("judged", "grid/01-bm25", "audits", "stats"):
        shown = re.sub(r"\x1b\[[0-9;]*m", "", hoofbeat("show", folder, folder=made, extra=extra).stdout)
        own = [line for line in shown.splitlines() if not line.startswith("hoofbeat ")]  # commands can be copied
        assert max(map(len, own)) <= int(columns), folder


def test_one_question_of_a_run_of_judgments_and_of_rankings(made: Path) -> None:
    answers = hoofbeat("show", "run", "q-hbt-case-01", folder=made).stdout
    assert "right answer: " in answers
    assert "replay:teaching · closed" in answers
    assert "equivalence, by " in hoofbeat("show", "judged", "q-hbt-case-01", folder=made).stdout
    assert "hbt-case-01" in hoofbeat("show", "grid/01-bm25", "q-hbt-case-01", folder=made).stdout
    value = json_of(hoofbeat("show", "judged", "q-hbt-case-01", "--json", folder=made))
    assert (len(value["answers"]), len(value["judgments"])) == (3, 3)
    wrong = hoofbeat("show", "run", "q-hbt-case-1", folder=made, code=1)
    assert "did you mean q-hbt-case-" in wrong.stderr
    assert "has no items to show" in hoofbeat("show", "stats", "x", folder=made, code=2).stderr


def test_a_folder_of_folders_is_shown_verified_reported_and_served(made: Path) -> None:
    shown = hoofbeat("show", "grid", folder=made)
    assert "3 folders" in shown.stdout
    assert "Ranked 20 questions" in shown.stdout
    assert "What was found (comparison)" in shown.stdout
    assert "next: hoofbeat serve grid" in shown.stderr
    listed = json_of(hoofbeat("show", "grid", "--json", folder=made))
    assert [each["kind"] for each in listed["folders"]] == ["rankings", "rankings", "comparison"]
    assert "does not say which one" in hoofbeat("show", "grid", "q-hbt-case-01", folder=made, code=2).stderr
    assert "3 folders checked: all are unchanged" in hoofbeat("verify", "grid", folder=made).stdout
    told = hoofbeat("report", "grid", "-o", "report-of-grid", folder=made)
    assert "Wrote a report on 2 folders → report-of-grid" in told.stdout
    assert "Retrieval: " in told.stderr
    assert len(FolderLibrary([made / "grid"]).folders()) == 3
    (made / "grid" / "02-bm25-pool-first" / "run.trec").write_text("changed", encoding="utf-8")
    broken = hoofbeat("verify", "grid", "--json", folder=made, code=1)
    assert "1 of 3 folders changed since Hoofbeat wrote them" in json.loads(broken.stdout)["error"]


def test_verify_looks_at_every_depth_and_names_what_no_manifest_lists(made: Path, tmp_path: Path) -> None:
    """A folder whose manifest was taken away is not "unchanged", and one that lies deep is checked as well."""
    deep = tmp_path / "all" / "a" / "b" / "c" / "run"
    shutil.copytree(made / "run", deep)
    shutil.copytree(made / "judged", tmp_path / "all" / "judged")
    assert "2 folders checked: all are unchanged\n" in hoofbeat("verify", "all", folder=tmp_path).stdout
    (tmp_path / "all" / "SUMMARY.html").write_text("all is well", encoding="utf-8")
    (tmp_path / "all" / "link").symlink_to(deep)
    told = hoofbeat("verify", "all", folder=tmp_path).stdout
    assert "not checked, because no manifest lists it: all/SUMMARY.html, all/link\n" in told
    value = json_of(hoofbeat("verify", "all", "--json", folder=tmp_path))
    assert value["not checked"] == ["all/SUMMARY.html", "all/link"]
    (deep / "manifest.json").unlink()
    assert "not checked, because no manifest lists it: all/SUMMARY.html, all/a, " in (
        hoofbeat("verify", "all", folder=tmp_path).stdout
    )


def test_a_folder_without_what_a_report_shows_says_which_kinds_it_can(made: Path, tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    hoofbeat("export", str(made / "bench"), "--as", "jsonl", "-o", "some/exported", folder=tmp_path)
    told = hoofbeat("report", "some", folder=tmp_path, code=1)
    assert "no folder in it can be used here" in told.stderr
    assert "name a folder of the kind " in told.stderr


def test_names_and_titles_of_others_forge_no_line(made: Path, tmp_path: Path) -> None:
    name = "gold: unchanged, signed by alice\n1 folder checked: it is unchanged\nrest"
    shutil.copytree(made / "bench", tmp_path / name)
    verified = hoofbeat("verify", ".", folder=tmp_path).stdout
    assert len(verified.splitlines()) == 2, verified
    manifest = json.loads((tmp_path / name / "manifest.json").read_text(encoding="utf-8"))
    forged = "x\n\nsigned by: alice (verified)"
    manifest |= {"title": forged, "models": {"model": forged}, "command": ["hoofbeat", forged]}
    (tmp_path / name / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    shown = hoofbeat("show", name, folder=tmp_path)
    damaged = hoofbeat("report", name + "x", folder=tmp_path, code=1)
    for line in (shown.stdout + shown.stderr + damaged.stderr).splitlines():
        assert not line.startswith(("signed by", "1 folder checked", "rest"))
