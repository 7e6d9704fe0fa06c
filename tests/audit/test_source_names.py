"""What people call sources: by institution, and by what tells documents of one institution apart."""

from __future__ import annotations

import pytest

from hoofbeat.audit import AuditSource
from hoofbeat.audit.source_names import SourceNames, judged_order, name_sides
from hoofbeat.records import Document, Facets

WHO = {"a": "Alder Society", "b": "Brook College"}


def _source(id: str, title: str = "", **facets: str) -> AuditSource:
    made: Facets = dict(facets)
    return AuditSource.of(Document(id=id, title=title, text="", facets=made))


def test_a_source_goes_by_its_institution() -> None:
    names = SourceNames([_source("ngc-1", "Screening for lung cancer.", institution="Alder Society", year="2016")])
    assert names.short("ngc-1") == "Alder Society"
    assert names.full("ngc-1") == "Alder Society, Screening for lung cancer, 2016"
    assert names["ngc-1"].id == "ngc-1"
    assert names.short("unknown") == names.full("unknown") == "unknown"


def test_documents_of_one_institution_are_told_apart_by_as_little_as_will_do() -> None:
    sources = [
        _source("1", "Guide", institution="Alder (invented)", organ="kidney"),
        _source("2", "Guide", institution="Alder (invented)", organ="liver"),
        _source("3", "Diet", institution="Brook", organ="liver", year="2010"),
        _source("4", "Diet", institution="Brook", organ="liver", year="2015"),
        _source("5", "Pain", institution="Brook", organ="liver"),
        _source("6", "", institution="Cairn"),
        _source("7", "", institution="Cairn"),
        _source("8", "No institution"),
    ]
    names = SourceNames(sources, "institution", "organ")
    assert [names.short(str(number)) for number in range(1, 9)] == [
        "Alder, kidney", "Alder, liver", "Brook, Diet, 2010", "Brook, Diet, 2015", "Brook, Pain", "Cairn, 6",
        "Cairn, 7", "No institution",
    ]  # fmt: skip
    assert names.institution("3") == names.institution("5") == "Brook"
    assert len({each.short for each in names}) == len(names) == 8


def test_a_date_of_the_metadata_is_trusted_and_one_of_the_text_is_flagged() -> None:
    given = AuditSource.of(
        Document(id="a", title="", text="Published: 2001.", facets={"date": "2011 May (rev. 2013 Aug)"})
    )
    assert (given.date, given.dated_by) == ("2011 May (rev. 2013 Aug)", "facet")
    found = AuditSource.of(Document(id="b", title="", text="Last updated: May 2016.\n\nRest." + "x" * 9000))
    assert (found.date, found.dated_by) == ("May 2016", "text")
    inside = AuditSource.of(Document(id="c", title="", text="x" * 5000 + " published 2016 " + "x" * 5000))
    assert (inside.date, inside.dated_by) == ("", "")
    names = SourceNames([given, found, inside])
    assert [names[each].year for each in "abc"] == ["2013", "2016?", ""]
    assert names["a"].older_than(names["b"])
    assert not names["b"].older_than(names["a"])
    assert not names["c"].older_than(names["b"]), "a source without a date is neither older nor newer"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Source A says 4 weeks; source B's limit is 6.", "Alder Society says 4 weeks; Brook College's limit is 6."),
        ("Sources A and B agree.", "Alder Society and Brook College agree."),
        ("The answer of source B is stricter.", "Brook College is stricter."),
        ("A recommends it, whereas B does not.", "Alder Society recommends it, whereas Brook College does not."),
        ("Vitamin A and hepatitis B vaccine: both say yes.", "Vitamin A and hepatitis B vaccine: both say yes."),
        ("Hepatitis B only is tested; grade A evidence.", "Hepatitis B only is tested; grade A evidence."),
        ("(A is b, B is a.) Source A says yes.", "Brook College says yes."),
        ("Source A-12 is a form.", "Source A-12 is a form."),
    ],
)  # fmt: skip
def test_letters_become_names_where_they_plainly_mean_the_sources(said: str, shown: str) -> None:
    assert name_sides(said, "a", "b", lambda source: WHO[source]) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("(A is b, B is a.) A reader of B could eat what A forbids.",
         "A reader of Alder Society could eat what Brook College forbids."),
        ("Both A and B forbid it; hepatitis B is not meant.",
         "Both Alder Society and Brook College forbid it; hepatitis B is not meant."),
        ("A's limit is lower, and B would wait.", "Alder Society's limit is lower, and Brook College would wait."),
        ("Vaccines against hepatitis A and B are advised.", "Vaccines against hepatitis A and B are advised."),
        ("The dose differs (A 5 mg, B 10 mg).",
         "The dose differs (A 5 mg, B 10 mg). (A: Alder Society; B: Brook College.)"),
        ("Carried from b (A) and c (B): Source A forbids it.",
         "Label of the pair Brook College and Cedar Trust: Brook College forbids it."),
    ],
)  # fmt: skip
def test_no_letter_is_left_that_nothing_explains(said: str, shown: str) -> None:
    assert name_sides(said, "a", "b", lambda source: {**WHO, "c": "Cedar Trust"}[source]) == shown


def test_pairs_are_listed_in_the_order_of_the_judge() -> None:
    assert judged_order("(A is b, B is a.) Source A says 38.5.", "a", "b") == ("b", "a")
    assert judged_order("Source A says 38.5.", "a", "b") == ("a", "b")
    assert judged_order("(A is other, B is none.) As it says.", "a", "b") == ("a", "b")
    names = SourceNames([_source("a", institution="Alder Society"), _source("b", institution="Brook College")])
    turned = "(A is b, B is a.) Source A says 38.5."
    assert names.both_judged(turned, "a", "b") == "Brook College and Alder Society"
    told = names.topic_in_order("when to call (38.5 vs 38.0 °C)", turned, "a", "b")
    assert told == "when to call (38.5 vs 38.0 °C) [in this order: Brook College, Alder Society]"
    assert names.topic_in_order("when to call", turned, "a", "b") == "when to call"
