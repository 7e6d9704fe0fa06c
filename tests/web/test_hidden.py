"""What an open study hides is hidden from everybody but its owner, at every route, whatever a request says of itself.

The addresses are made from the application's own routes, so that a new route is tried as soon as it is there.
"""

from __future__ import annotations

import itertools
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from hoofbeat.benchmarks import Benchmark
from hoofbeat.corpus import Corpus
from hoofbeat.review.exam_items import exam_study
from hoofbeat.review.hidden_folders import VisibleLibrary, hidden_folders
from hoofbeat.review.invitations import secret_hash
from hoofbeat.review.review_records import Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.review.study_items import study_from
from hoofbeat.store import create, open_artefact
from hoofbeat.store.folder_library import FolderLibrary
from hoofbeat.web import create_app
from tests.web.review_site import store_site
from tests.web.support import serving
from tests.web.test_routes import routes_of
from tests.web.visitors import Seen, Visitor

PRETENCES: tuple[dict[str, str], ...] = (
    {},
    {"Host": "localhost"},
    {"Host": "[::1]:80"},
    {"X_Forwarded_For": "127.0.0.1", "X_Forwarded_Host": "127.0.0.1", "X_Forwarded_Proto": "https", "X_Real_IP": "::1"},
    {"Forwarded": "for=127.0.0.1;host=localhost", "Origin": "http://localhost", "Referer": "http://127.0.0.1/team"},
    {"Cookie": "hoofbeat-session-80=admin; hoofbeat-look-80=x", "Authorization": "Basic YWRtaW46YWRtaW4="},
)
"""What a request may say of itself; a proxy that rewrites `Host` makes everybody look like the first."""

HIDDEN = ("bench", "cases", "judged", "ranked", "ranked-2", "report", "run")
OTHERS = ("audit", "audit-2", "handbooks")
VALUES = {"table": ("rejected", "failed"), "before": (*HIDDEN, *OTHERS), "token": ("x",), "secret": ("x",)}
"""Values of the parameters of routes; `slug` has every folder, everything else a number."""


class Hall(Struct, frozen=True):
    """A server with an exam, and the words that tell something of its answers."""

    address: str
    store: ReviewStore
    study: Study
    routes: tuple[str, ...]
    secrets: tuple[str, ...]
    slugs: tuple[str, ...]
    tokens: dict[str, str]


_FOLDERS = ("cases", "handbooks", "bench", "run", "judged", "ranked", "ranked-2", "audit", "audit-2", "report")


@pytest.fixture(scope="module")
def shown(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of the tests, and copies of two under names that say nothing."""
    target = tmp_path_factory.mktemp("shown") / "all"
    for name in _FOLDERS:  # other tests add folders to theirs
        shutil.copytree(folders / name, target / name)
    for name, copy in (("bench", "zz-copy"), ("run", "zz-run")):
        shutil.copytree(target / name, target / copy)
    return target


@pytest.fixture(scope="module")
def hall(shown: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    """One for all who look: what pages prepare is prepared once."""
    with _opened(shown, tmp_path_factory.mktemp("hall")) as opened:
        yield opened


@contextmanager
def _opened(shown: Path, folder: Path) -> Iterator[Hall]:
    with ReviewStore.open(str(folder / "review.db")) as store:
        study, items = exam_study(shown / "bench", seed=1)
        store.create_study(study, items)
        roles = {
            "reviewer": store.invite("Invented reviewer", "reviewer", by="")[1],
            "adjudicator": store.invite("Invented adjudicator", "adjudicator", by="")[1],
            "elsewhere": store.invite("Invented other admin", "admin", by="")[1],
            "admin": store.invite("Invented owner", "admin", by="")[1],
        }
        with store._database.write() as connection:  # an admin of another study only
            connection.exec_driver_sql(
                "UPDATE review_people SET studies='[\"another\"]' WHERE name LIKE '%other admin'"
            )
        app = create_app(store_site(store, [shown], tries_per_minute=10_000))
        with serving(app) as address:
            routes = tuple(sorted(routes_of(app)))
            yield Hall(address, store, study, routes, secrets_of(shown), (*HIDDEN, *OTHERS, "zz-copy", "zz-run"), roles)


def secrets_of(folders: Path) -> tuple[str, ...]:
    """Names of questions and documents, and words of gold answers as a page or JSON writes them."""
    questions = Benchmark.open(folders / "bench").questions
    documents = Corpus(open_artefact(folders / "cases", "corpus")).documents()
    answers = {each.answer[:40] for each in questions if len(each.answer) > 30 and each.answer[:40].isascii()}
    return tuple(sorted({*(each.id for each in questions), *(each.title for each in documents), *answers}))


def addresses(hall: Hall) -> Iterator[tuple[str, str]]:
    """Method and address of every route that shows something, with every folder in it."""
    asked = {
        "/side-by-side": [f"a={a}&b={b}" for a, b in itertools.permutations(("run", "judged", "zz-run", "audit"), 2)],
        "/side-by-side/questions/1": ["a=run&b=judged", "a=zz-run&b=run"],
        "/ask": [f"example={n}" for n in range(5)],
        "/corpora/handbooks/documents/1": ["ranking=ranked.1&hit=1", "question=bench.1", "question=zz-copy.1"],
    }
    for route in hall.routes:
        method, _, path = route.partition(" ")
        acts = method == "POST" and path.startswith(("/team", "/exam", "/api/exam", "/review", "/worklist"))
        if acts or path.startswith(("/join", "/enter", "/leave", "/static")):
            continue
        names = re.findall(r"{(\w+)}", path)
        choices = [
            hall.slugs if name == "slug" else [hall.study.id] if name == "study" else VALUES.get(name, ("1",))
            for name in names
        ]
        for values in itertools.product(*choices):
            filled = re.sub(r"{\w+}", "{}", path).format(*values)
            for query in ("", *asked.get(filled, ())):
                yield method, f"{filled}?{query}" if query else filled


def ask(visitor: Visitor, method: str, path: str, **headers: str) -> Seen:
    """What a visitor gets, once it is prepared, and where a redirect leads."""
    for _ in range(2400):
        if method == "GET":
            seen = visitor.get(path, **headers)
        else:
            fields = {"text": "a patient with fever and a rash", "line": "bm25", "corpus": ["cases", "handbooks"]}
            seen = visitor.post(path, fields, **headers)
        if seen.status == 303 and seen.headers["location"].startswith(("/corpora", "/ask", "/benchmarks")):
            return ask(visitor, "GET", seen.headers["location"], **headers)
        if seen.status not in (202, 503) and "refresh" not in seen.headers:
            break
        time.sleep(0.05)
    return seen


def told(hall: Hall, visitor: Visitor, pretences: Sequence[dict[str, str]] = ({},)) -> dict[str, list[str]]:
    """The secrets that a visitor learns, by address; pretences are tried in turn."""
    found = {}
    for (method, path), headers in zip(addresses(hall), itertools.cycle(pretences), strict=False):
        seen = ask(visitor, method, path, **headers)
        assert seen.status < 500, (method, path, seen.status)
        words = seen.text.replace("&#39;", "'")
        if leaked := [secret for secret in hall.secrets if secret in words]:
            found[f"{method} {path}"] = leaked[:3]
    return found


def test_whoever_drops_the_cookie_learns_nothing_of_a_running_exam(hall: Hall) -> None:
    visitor = Visitor(hall.address)
    visitor.get("/")
    assert not told(hall, visitor)


@pytest.mark.parametrize("first", [0, 3])
def test_no_header_opens_a_running_exam(hall: Hall, first: int) -> None:
    visitor = Visitor(hall.address)
    visitor.get("/")
    assert not told(hall, visitor, PRETENCES[first:] + PRETENCES[:first])
    for pretence in PRETENCES:
        for path in ("/benchmarks/bench/questions/1", "/api/runs/run/answers", "/corpora/cases", "/reports/report"):
            assert visitor.get(path, **pretence).status == 403, (path, pretence)


@pytest.mark.parametrize("who", ["reviewer", "adjudicator", "elsewhere"])
def test_whoever_is_signed_in_learns_nothing_either(hall: Hall, who: str) -> None:
    assert not told(hall, Visitor(hall.address, hall.tokens[who]))


@pytest.fixture
def own_hall(shown: Path, tmp_path: Path) -> Iterator[Hall]:
    """One whose exam may be closed."""
    with _opened(shown, tmp_path) as opened:
        yield opened


def test_the_owner_sees_it_and_everybody_once_it_is_closed(own_hall: Hall) -> None:
    hall = own_hall
    visitor, owner = Visitor(hall.address), Visitor(hall.address, hall.tokens["admin"])
    seen = told(hall, owner)
    browsed = {"/benchmarks/", "/corpora/", "/runs/", "/rankings/", "/reports/", "/side-by-side"}
    assert {start for start in browsed if not any(start in path for path in seen)} == set(), "the walk finds it all"
    before = visitor.get("/benchmarks/bench")
    assert before.status == 403
    assert "this is hidden while a study is open" in before.text.lower()
    assert visitor.get("/api/benchmarks/bench/questions").json()["fix"]
    assert "9 folders are hidden" in visitor.get("/").text
    hall.store.close_study(hall.study.id, "")
    visitor.get("/")
    after = told(hall, visitor)
    assert seen.keys() - after.keys() <= {
        path for path in seen if any(part in path for part in ("/exam", "/team", "?example="))
    }
    assert "hidden while" not in visitor.get("/").text


def test_what_was_found_before_a_study_began_is_hidden_with_it(shown: Path, tmp_path: Path) -> None:
    where = str(tmp_path / "review.db")
    with ReviewStore.open(where) as store, serving(create_app(store_site(store, [shown]))) as address:
        visitor = Visitor(address)
        visitor.get("/ask")
        asked = visitor.post("/ask", {"text": "fever and rash", "line": "bm25", "corpus": "cases"})
        searched = visitor.post("/corpora/cases/search", {"text": "fever", "line": "bm25"})
        matched = visitor.post("/benchmarks/bench/search", {"text": "fever"})
        kept = [each.headers["location"] for each in (asked, searched, matched)]
        assert all(visitor.get(path).status == 200 for path in kept)
        store.create_study(*exam_study(shown / "bench", seed=1))
        job = kept[0].rpartition("/")[2]
        for path in (*kept, f"/api/ask/{job}"):
            assert visitor.get(path).status == 403, path
        assert visitor.post(f"/ask/{job}/stop").status == 403


@pytest.mark.parametrize(
    ("folder", "form", "hidden"),
    [
        ("audit", "pair", {"audit", "audit-2", "handbooks"}),
        ("run", "equivalence", {*HIDDEN, "zz-copy", "zz-run"}),
        ("judged", "error-analysis", {*HIDDEN, "zz-copy", "zz-run"}),
        ("bench", "likert", set()),
    ],
)
def test_a_blinded_review_hides_what_it_is_about(
    shown: Path, tmp_path: Path, folder: str, form: str, hidden: set[str]
) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        study, items = study_from(shown / folder, form=form)
        store.create_study(study, items)
        with serving(create_app(store_site(store, [shown]))) as address:
            there = {each["slug"] for each in Visitor(address).get("/api/library").json()["folders"]}
            assert there == {*HIDDEN, *OTHERS, "zz-copy", "zz-run"} - hidden
            store.close_study(study.id, "")
            assert len(Visitor(address).get("/api/library").json()["folders"]) == 12


def test_a_corpus_is_hidden_where_the_exam_s_benchmark_is_not_on_the_server(shown: Path, tmp_path: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        store.create_study(*exam_study(shown / "bench", seed=1))
        site = store_site(store, [shown / "cases", shown / "handbooks"])
        with serving(create_app(site)) as address:
            assert Visitor(address).get("/corpora/cases").status == 403
            assert Visitor(address).get("/corpora/handbooks").status == 200


def test_what_was_made_from_a_folder_that_is_not_served_is_hidden(shown: Path, tmp_path: Path) -> None:
    """Judgments of some questions, or a report on judgments: nobody can follow them back to the exam's benchmark."""
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        study, items = exam_study(shown / "bench", seed=1)
        store.create_study(study, items)
        few = tmp_path / "few"
        with create(few / "run") as draft:
            shutil.copy(shown / "run" / "answers.jsonl", draft.path)
            lines = (shown / "run" / "questions.jsonl").read_text("utf-8").splitlines(keepends=True)
            (draft.path / "questions.jsonl").write_text("".join(lines[:2]), "utf-8")
            draft.finish(msgspec.structs.replace(open_artefact(shown / "run").manifest, files={}))
        judged = open_artefact(shown / "judged")
        with create(tmp_path / "shown" / "judged-few") as draft:
            (draft.path / "judgments.jsonl").write_bytes(judged.file("judgments.jsonl").read_bytes())
            (draft.path / "questions.jsonl").write_text("".join(lines[:2]), "utf-8")
            inputs = [open_artefact(few / "run").reference()]
            draft.finish(msgspec.structs.replace(judged.manifest, inputs=inputs, files={}))
        shutil.copytree(shown / "report", tmp_path / "shown" / "report")
        site = store_site(store, [tmp_path / "shown", shown / "bench", shown / "audit", shown / "handbooks"])
        with serving(create_app(site)) as address:
            assert Visitor(address).get("/runs/judged-few").status == 403
            assert Visitor(address).get("/reports/report").status == 403
            assert Visitor(address).get("/audits/audit").status == 200
            store.close_study(study.id, "")
            assert Visitor(address).get("/reports/report").status == 200


def test_the_link_that_opens_the_browse_pages_does_not_open_an_exam(shown: Path, tmp_path: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        store.create_study(*exam_study(shown / "bench", seed=1))
        with serving(create_app(store_site(store, [shown], access=secret_hash("look")))) as address:
            visitor = Visitor(address)
            assert visitor.get("/enter/look").status == 303
            assert visitor.get("/audits/audit").status == 200
            assert visitor.get("/benchmarks/bench").status == 403


def test_reviewers_who_may_browse_do_not_see_what_is_hidden(shown: Path, tmp_path: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        store.create_study(*exam_study(shown / "bench", seed=1))
        _, token = store.invite("Invented reviewer", "reviewer", by="")
        with serving(create_app(store_site(store, [shown], reviewers_browse=True))) as address:
            visitor = Visitor(address, token)
            assert visitor.get("/audits/audit").status == 200
            assert visitor.get("/benchmarks/bench").status == 403


def test_no_method_of_a_library_goes_round_what_is_hidden(shown: Path) -> None:
    public = {name for name in vars(FolderLibrary) if not name.startswith("_")}
    assert public == {name for name in vars(VisibleLibrary) if not name.startswith("_")}
    library = FolderLibrary([shown])
    assert VisibleLibrary(library, None).folders() == []
    assert hidden_folders(library, []) == frozenset()
