"""Several documents as one source: who is one source, what is shown of it, and what an audit makes of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.audit import Audit, AuditPlan
from hoofbeat.audit.answers_by_source import CharacterBudget, QuestionsWithSources, SourcePassages
from hoofbeat.audit.audit_plan import plan_audit
from hoofbeat.audit.source_groups import group_documents, through_groups
from hoofbeat.audit.validation.name_mask import MASK, NameMask
from hoofbeat.benchmarks import write_benchmark
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_values
from hoofbeat.progress import SILENT
from hoofbeat.recipes import teaching_patient_questions
from hoofbeat.records import Document, Facets, Failure, Passage, Question, TraceStep
from hoofbeat.retrieval.corpus_index import index_corpus
from hoofbeat.store import Counts
from tests.audit.planted import handbooks
from tests.cli.support import hoofbeat
from tests.helpers import shared_data
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ledger_in

ALDER, BROOK = "Alder Bay Transplant Centre (invented)", "Brookfen University Hospital (invented)"


def _document(id: str, title: str, text: str = "Rest for two days.", **facets: str) -> Document:
    made: Facets = dict(facets)
    return Document(id=id, title=title, text=text, facets=made)


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return handbooks(tmp_path_factory.mktemp("grouped"))


@pytest.fixture(scope="module")
def plan(books: Corpus) -> AuditPlan:
    questions = teaching_patient_questions()
    return plan_audit(books, questions, lambda each: index_corpus(each, SILENT), line="hero[dense=0]", by="institution")


def test_an_institution_that_is_not_there_is_named_as_one(books: Corpus) -> None:
    """A misspelt institution was called a document, and the corpus was doubted."""
    with pytest.raises(
        UsageError, match="no institution and no document of this corpus is called 'Alder Bay Center'"
    ) as caught:
        plan_audit(
            books, teaching_patient_questions(), lambda each: index_corpus(each, SILENT), by="institution",
            sources=["Alder Bay Center"],
        )  # fmt: skip
    assert "'Alder Bay Transplant Centre (invented)'" in str(caught.value.fix)


def test_documents_of_one_institution_are_one_source() -> None:
    documents = [
        _document("1", "Surgery", institution="Alder", year="2019"),
        _document("2", "Diet", institution="Alder", year="2023"),
        _document("3", "Diet", institution="Brook", year="2020"),
        _document("4", "Leaflet"),
    ]
    groups = group_documents(documents, "institution", "organ")
    assert {group.id: [each.id for each in group.documents] for group in groups} == {
        "4": ["4"], "Alder": ["1", "2"], "Brook": ["3"],
    }  # fmt: skip
    alder, brook = groups[1].source("institution"), groups[2].source("institution")
    assert groups[1].names == {"1": "Surgery (2019)", "2": "Diet (2023)"}
    assert alder.documents == {"1": "Surgery", "2": "Diet"}
    assert alder.date == "", "an answer may rest on either document"
    assert "year" not in alder.facets
    assert brook.date == "2020"
    assert groups[2].names == {}, "a single document needs no name before its headings"
    with pytest.raises(UsageError, match="no document has the facet 'country'"):
        group_documents(documents, "country", "organ")


def test_packets_hide_the_titles_of_all_documents() -> None:
    documents = [
        _document(
            "1", "Going home: a guide for families of the Alder wards and all who visit them", institution="Alder"
        ),
        _document("2", "Eating well at Alder", institution="Alder"),
    ]
    (group,) = group_documents(documents, "institution", "organ")
    mask = NameMask([group.source("institution")], "institution")
    assert mask("Eating well at Alder (2): Fruit") == f"{MASK} (2): Fruit"
    assert mask(f"{group.names['1']}: Visits").startswith(MASK)


def _find(failing: str = "") -> object:
    def find(asked: QuestionsWithSources, room: CharacterBudget) -> Iterator[SourcePassages]:
        for question, sources in asked:
            for source in sources:
                route = "retrieved" if source in room.tight else "whole"
                yield SourcePassages(
                    question=question,
                    source=source,
                    route=route,
                    passages=tuple(
                        Passage(id=f"{source}#{n}", document=source, text="Rest.", heading=f"Part {n}") for n in (1, 2)
                    ),
                    trace=(TraceStep(stage="hero", what=f"route: {route}"),),
                    failure=Failure(kind="input", message="no index") if source == failing else None,
                )

    return find


def _shown(room: int, failing: str = "") -> SourcePassages:
    documents = [_document("1", "Surgery", institution="Alder"), _document("2", "Diet", institution="Alder")]
    (group,) = group_documents(documents, "institution", "organ")
    find = through_groups(_find(failing), {group.id: group}, "organ")  # type: ignore[arg-type]
    asked = [(Question(id="q", text="How long do I rest?"), ["Alder"])]
    (shown,) = find(asked, CharacterBudget(characters=room))
    return shown


def test_headings_name_the_document_and_documents_that_do_not_fit_together_are_searched() -> None:
    whole, searched = _shown(10_000), _shown(100)
    assert whole.route == "whole"
    assert [each.heading for each in whole.passages] == [
        "Surgery: Part 1", "Surgery: Part 2", "Diet: Part 1", "Diet: Part 2",
    ]  # fmt: skip
    assert searched.route == "retrieved"
    assert [each.heading for each in searched.passages] == [
        "Surgery: Part 1", "Diet: Part 1", "Surgery: Part 2", "Diet: Part 2",
    ], "the best passage of each document comes first, because a small window cuts the end"  # fmt: skip
    assert [step.what for step in searched.trace] == [
        "route: retrieved", "document", "route: retrieved", "document", "route: retrieved",
    ]  # fmt: skip
    assert [step.text for step in searched.trace if step.what == "document"] == ["Surgery (1)", "Diet (2)"]


def test_text_outside_sections_goes_by_the_document_s_name_alone() -> None:
    documents = [_document("1", "Surgery", institution="Alder"), _document("2", "Diet", institution="Alder")]
    (group,) = group_documents(documents, "institution", "organ")
    assert group.named(Passage(id="1#0", document="1", text="Rest.", heading="Surgery")).heading == "Surgery"


def test_a_source_is_not_silent_where_the_search_in_one_document_failed() -> None:
    assert _shown(10_000, failing="2").failure is not None
    assert _shown(10_000).failure is None


def test_a_question_goes_to_the_documents_of_its_group(plan: AuditPlan, tmp_path: Path) -> None:
    with FaultServer() as server, ledger_in(tmp_path) as ledger:
        planned = plan.each_planned(a_model(server.spec(), ledger))
        shown = {(each.question.id, each.condition): each for each in planned}
    general = next(each.id for each in plan.questions if facet_values(each.facets, "group") == ["general"])
    kidney = next(each.id for each in plan.questions if facet_values(each.facets, "group") == ["kidney"])
    assert {each.document for each in shown[general, ALDER].passages} == {"hb-alder-kidney", "hb-alder-liver"}
    assert {each.document for each in shown[kidney, ALDER].passages} == {"hb-alder-kidney"}
    assert (kidney, "Cairnmoor Liver Unit (invented)") not in shown
    assert plan.size == len(shown)


def test_handbooks_of_one_centre_answer_together(books: Corpus, tmp_path: Path) -> None:
    words = ("audit", str(books.artefact.path), "teaching", "--with", "hero[dense=0]", "--limit", "3")
    with FaultServer() as server:
        hoofbeat(*words, "--by", "institution", "--model", server.spec(), "-o", "audit", folder=tmp_path)
        asked = [seen.body["messages"][0]["content"] for seen in server.seen]
        few = hoofbeat(*words, "--by", "language", "--model", server.spec(), folder=tmp_path, code=2).stderr
        some = hoofbeat(
            *words, "--by", "institution", "--source", ALDER, "--source", "hb-brook-liver", "--model", server.spec(),
            "-o", "some", folder=tmp_path,
        )  # fmt: skip
    assert any("several documents of one institution" in each for each in asked)
    assert "so it can't be the source" in few or "have one language" in few
    audit = Audit.open(tmp_path / "audit")
    assert audit.artefact.manifest.settings["by"] == "institution"
    assert [source.id for source in audit.sources][:2] == [ALDER, BROOK]
    assert list(audit.sources[0].documents) == ["hb-alder-kidney", "hb-alder-liver"]
    assert audit.names.short(ALDER) == "Alder Bay Transplant Centre"
    together = [each for each in audit.answers if len({passage.document for passage in each.evidence}) > 1]
    assert together, "general questions are answered from both handbooks"
    titles = tuple(audit.sources[0].documents.values())
    for answer in together:
        assert all(passage.heading.startswith(titles) for passage in answer.evidence if answer.source == ALDER)
        if answer.source == ALDER and not answer.absent:
            assert all(each.startswith(titles) for each in answer.citations)
    assert some.stderr is not None
    assert [source.documents for source in Audit.open(tmp_path / "some").sources] == [
        audit.sources[0].documents, {"hb-brook-liver": audit.sources[1].documents["hb-brook-liver"]},
    ]  # fmt: skip


def test_guidelines_of_one_society_answer_together(tmp_path: Path) -> None:
    """Real guidelines: two societies with two documents each, long enough to be searched."""
    found: dict[str, list[str]] = {}
    with gzip.open(shared_data("guidelines.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            found.setdefault(json.loads(line)["developer"], []).append(line)
    several = [lines for _, lines in sorted(found.items()) if len(lines) > 1][:2]
    (tmp_path / "some.jsonl").write_text("".join(line for lines in several for line in lines[:2]), encoding="utf-8")
    import_corpus([tmp_path / "some.jsonl"], tmp_path / "books", workers=1)
    question = Question(id="q1", text="How is the diagnosis made?")
    write_benchmark(tmp_path / "bench", [question], title="one question", inputs=[], counts=Counts(kept=1))
    with FaultServer() as server:
        hoofbeat(
            "audit", "books", "bench", "--by", "institution", "--pack", "clinicians", "--with", "hero[dense=0]",
            "--whole-up-to", "500", "--model", server.spec(), "-o", "audit", folder=tmp_path,
        )  # fmt: skip
    audit = Audit.open(tmp_path / "audit")
    assert len(audit.sources) == 2
    assert len(audit.comparisons) == 1
    for answer in audit.answers:
        source = next(each for each in audit.sources if each.id == answer.source)
        assert {passage.document for passage in answer.evidence} == set(source.documents)
        assert answer.evidence[0].document != answer.evidence[1].document, "the documents take turns"
        assert [step.what for step in answer.trace if step.what == "document"] == ["document", "document"]
