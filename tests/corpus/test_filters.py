"""Filters, one by one: what is kept, what is not, and the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.corpus.citations import CitationCount, Citations, load_citations
from hoofbeat.corpus.filters.language import detect_language
from hoofbeat.corpus.filters.licence import licence_family
from hoofbeat.corpus.filters.promotional import promotion_score
from hoofbeat.corpus.filters.rare import RarityLimits, rarity
from hoofbeat.corpus.filters.venue import Venue, Venues, paper_venues
from hoofbeat.corpus.reader import read_file
from hoofbeat.errors import InputError
from hoofbeat.records import Document
from hoofbeat.teaching import cases_folder
from tests.corpus.filter_documents import case_reports, document, parse_filter, sectioned, split


def outcome(line: str, one: Document) -> str:
    """Empty when the document is kept, else the reason."""
    kept, rejected = split([one], parse_filter(line))
    assert len(kept) + len(rejected) == 1
    return rejected[0].reason if rejected else ""


def details(line: str, one: Document) -> str:
    return split([one], parse_filter(line))[1][0].details


@pytest.mark.parametrize(
    ("year", "line", "reason"),
    [
        ("2023", "year>=2023", ""),
        ("2022", "year>=2023", "not year>=2023"),
        ("2022", "year<2022", "not year<2022"),
        ("2022", "year=2022", ""),
        ("2021-05-03", "year<=2021", ""),
        ("", "year>=2023", "no year stated"),
        ("in press", "year>=2023", "no year stated"),
    ],
)
def test_year(year: str, line: str, reason: str) -> None:
    assert outcome(line, document(facets={"year": year})) == reason


def test_length() -> None:
    one = document(text="one two  three\nfour")
    assert outcome("words>=4", one) == ""
    assert outcome("words>4", one) == "not words>4"
    assert details("words>4", one) == "words 4"
    assert outcome("characters<=18", one) == "not characters<=18"


def test_words_in_title_keywords_and_text() -> None:
    one = document(
        title="A rare tumour",
        text="It was an autopsy.",
        facets={"keywords": ["Diagnosis, Differential"], "subjects": "X"},
    )
    assert outcome("title~unusual,RARE", one) == ""
    assert outcome("title~are", one) == "title does not match"
    assert outcome("keywords~diagnos", one) == ""
    assert outcome("keywords=x", one) == ""
    assert outcome("keywords=diagnosis", one) == "keywords does not match"
    assert details("keywords=diagnosis", one) == "Diagnosis, Differential, X"
    assert outcome("keywords~x", document()) == "no keywords"
    assert outcome('text~"an autopsy"', one) == ""
    assert outcome("text~biopsy", one) == "text does not match"
    assert outcome("facet.organ=kidney", document(facets={"organ": ["Liver", "Kidney"]})) == ""
    assert outcome("facet.organ=kidney", one) == "no facet.organ"


def test_article_type() -> None:
    line = "type=case-report"
    assert outcome(line, document(kind="case-report")) == ""
    assert outcome(line, document(kind="article", facets={"subjects": ["Oncology", "Case Reports"]})) == ""
    assert outcome(line, document(kind="article", facets={"article-type": "case-report"})) == ""
    assert outcome(line, document(kind="article", facets={"article-type": "review-article"})) == "other article type"
    assert details(line, document(kind="article")) == "article"
    assert outcome(line, document()) == "no article type"
    assert outcome("type=case series", document(kind="Case Series")) == ""


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("https://creativecommons.org/licenses/by/4.0/", "CC BY"),
        ("http://creativecommons.org/licenses/by-nc-nd/3.0/us", "CC BY-NC-ND"),
        ("https://creativecommons.org/licenses/by-sa/4.0", "CC BY-SA"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "public domain"),
        ("CC BY", "CC BY"),
        ("CC BY 4.0", "CC BY"),
        ("cc-by-nc-sa 4.0", "CC BY-NC-SA"),
        ("CC0", "CC0"),
        ("CC BY-NC", "CC BY-NC"),
        ("This is an open access article under the Creative Commons Attribution License", "CC BY"),
        ("Creative Commons Attribution-NonCommercial-NoDerivs License", "CC BY-NC-ND"),
        ("Creative Commons Attribution Non-Commercial Share Alike", "CC BY-NC-SA"),
        ("https://www.apache.org/licenses/LICENSE-2.0", "Apache-2.0"),
        ("This article is in the public domain", "public domain"),
        ("NO-CC CODE", "unknown"),
        ("© 2020 The Authors. All rights reserved.", "unknown"),
        ("", "unknown"),
    ],
)
def test_licence_families(text: str, family: str) -> None:
    assert licence_family(text) == family


def test_licence() -> None:
    one = document(licence="https://creativecommons.org/licenses/by-nc/4.0/")
    assert outcome("licence=CC BY,CC0", one) == "licence CC BY-NC"
    assert outcome("licence=CC BY-NC", one) == ""
    assert outcome("licence=unknown", document()) == ""
    assert details("licence=CC0", document()) == "none stated"
    by_address = document(licence="see there", facets={"licence-url": "http://creativecommons.org/licenses/by/4.0"})
    assert outcome("licence=CC BY", by_address) == ""


SENTENCES = {
    "en": "The patient was admitted to the hospital with fever and a cough that had lasted for two weeks.",
    "de": "Der Patient wurde mit Fieber und einem Husten aufgenommen, der seit zwei Wochen nicht besser war.",
    "fr": "Le patient a été admis à l'hôpital avec une fièvre et une toux qui duraient depuis deux semaines.",
    "es": "El paciente fue ingresado en el hospital con fiebre y una tos que no mejoraba desde hace dos semanas.",
    "pt": "O paciente foi internado no hospital com febre e uma tosse que não melhorava após duas semanas.",
    "it": "Il paziente è stato ricoverato con febbre e una tosse che non era migliorata dopo due settimane.",
    "nl": "De patiënt werd opgenomen met koorts en een hoest die na twee weken niet beter was, ook niet met rust.",
    "pl": "Pacjent został przyjęty do szpitala z gorączką i kaszlem, który nie ustąpił po dwóch tygodniach.",
    "cs": "Pacient byl přijat do nemocnice s horečkou a kašlem, které se po dvou týdnech nezlepšily, a s bolestí.",
    "sv": "Patienten togs in på sjukhuset med feber och en hosta som inte hade blivit bättre efter två veckor.",
    "da": "Patienten blev indlagt med feber og hoste, som ikke var blevet bedre efter to uger, og af en læge.",
    "tr": "Hasta ateş ve iki haftadır geçmeyen bir öksürük ile kabul edildi ve tedavi için bir antibiyotik seçildi.",
    "hu": "A beteg láz és köhögés miatt került a kórházba, és az állapota két hét után sem volt jobb.",
    "ru": "Больной был госпитализирован с лихорадкой и кашлем, который не прошёл после двух недель лечения.",
    "zh": "患者因发热和咳嗽两周入院，血液检查显示白细胞升高。",
    "ja": "患者は発熱と二週間続く咳のために入院し、血液検査を受けた。",
    "ko": "환자는 발열과 이 주 동안 지속된 기침으로 입원하였다.",
    "ar": "أدخل المريض إلى المستشفى بسبب الحمى والسعال المستمر منذ أسبوعين.",
    "el": "Ο ασθενής εισήχθη στο νοσοκομείο με πυρετό και βήχα δύο εβδομάδων.",
}


@pytest.mark.parametrize("code", SENTENCES)
def test_language_is_told_by_little_words_and_script(code: str) -> None:
    assert detect_language(SENTENCES[code]) == code


def test_language() -> None:
    german = document(text=SENTENCES["de"])
    assert outcome("language=en", german) == "language de"
    assert outcome("language=en,de", german) == ""
    assert outcome("language=en", document(text=SENTENCES["de"], facets={"language": "en-US"})) == ""
    assert outcome("language=en", document(facets={"language": "eng"})) == ""
    for text in ("", "12 34", "Fig. 1", "zebra " * 40):
        assert outcome("language=en", document(text=text)) == "language unknown"


def test_real_reports_are_english() -> None:
    found = [detect_language(one.text) for one in case_reports(300)]
    assert found.count("en") >= 299
    assert set(found) <= {"en", "unknown"}


def test_retraction() -> None:
    line = "not retracted"
    assert outcome(line, document()) == ""
    assert outcome(line, document(notices=("correction", "read as Windows-1252: the file is not valid UTF-8"))) == ""
    assert outcome(line, document(notices=("retraction",))) == "retracted"
    assert details(line, document(notices=("expression-of-concern",))) == "expression-of-concern"
    assert outcome(line, document(title="RETRACTED: A case")) == "retracted"
    assert outcome(line, document(title="Retracted eyelids in a boy")) == ""


def test_sections() -> None:
    one = sectioned(
        [("introduction", 1, "x"), ("case", 1, ""), ("patient", 2, "x"), ("", 2, "x"), ("discussion", 1, "")]
    )
    assert outcome("roles=introduction,case,patient", one) == ""
    assert outcome("roles=case,discussion,diagnosis", one) == "no section with the role discussion"
    assert details("roles=case,discussion,diagnosis", one) == "missing: discussion, diagnosis"
    parts = sectioned([("patient", 1, "x"), ("treatment", 1, "x")])
    assert outcome("roles=case", parts) == ""
    assert (
        outcome("roles=case", sectioned([("case", 1, ""), ("discussion", 1, "x")])) == "no section with the role case"
    )


def test_images() -> None:
    parts = [("case", 1, "As Fig. 2 shows"), ("tests", 2, "x"), ("discussion", 1, "x")]
    assert outcome("images", sectioned(parts)) == "no images"
    without_file = sectioned(parts, figures=(("Figure 1", "", 1),))
    assert details("images", without_file) == "1 figures without a file"
    one = sectioned(parts, figures=(("Figure 1", "images/d/1.png", 1),))
    assert outcome("images", one) == ""
    assert outcome("images(tests)", one) == ""
    assert outcome("images(case)", one) == ""
    assert outcome("images(discussion, patient)", one) == "no images in discussion or patient"
    assert details("images(discussion)", one) == "images in: case, tests"
    at_the_end = sectioned(parts, figures=(("Figure 2", "images/d/2.png", -1),))
    assert outcome("images(case)", at_the_end) == ""
    assert outcome("images(tests)", at_the_end) == "no images in tests"


def test_the_papers_venues() -> None:
    venues = paper_venues().venues
    assert len(venues) == 119
    assert {venue.name for venue in venues if not venue.medical} == {
        "Case Stud Eng Fail Anal",
        "Case Stud Chem Environ Eng",
        "Case Stud Transp Policy",
        "Prof Case Manag",
        "Case Rep Vet Med",
    }
    assert all(venue.note for venue in venues if not venue.medical)
    for venue in venues:
        assert paper_venues().find(venue.name) is not None


@pytest.mark.parametrize(
    ("name", "venue"),
    [
        ("Journal of Medical Case Reports", "J Med Case Reports"),
        ("BMJ Case Reports", "BMJ Case Rep"),
        ("Case Reports in Women's Health", "Case Rep Womens Health"),
        ("Case Reports in Women’s Health", "Case Rep Womens Health"),
        ("Autopsy & Case Reports", "Autops Case Rep"),
        ("European Heart Journal - Case Reports", "Eur Heart J Case Rep"),
        ("European Heart Journal: Case Reports", "Eur Heart J Case Rep"),
        ("Journal of Vascular Surgery Cases, Innovations and Techniques", "J Vasc Surg Cases Innov Tech"),
        ("Cold Spring Harbor Molecular Case Studies", "Cold Spring Harb Mol Case Stud"),
        ("CASE : Cardiovascular Imaging Case Reports", "CASE (Phila)"),
        ("International Journal of Surgery Case Reports", "Int J Surg Case Rep"),
        ("Case Stud. Transp. Policy", "Case Stud Transp Policy"),
        ("Journal of Medicine", None),
        ("Japanese Medical Case Reports", None),
        ("Spinal Cord", None),
        ("Medical Case Reports", None),
        ("", None),
    ],
)
def test_journals_are_known_by_all_their_names(name: str, venue: str | None) -> None:
    found = paper_venues().find(name)
    assert (found.name if found else None) == venue


def test_venue(tmp_path: Path) -> None:
    transport = document(facets={"journal": "Case Studies on Transport Policy"})
    assert outcome("venue", transport) == ""
    assert outcome("venue(medical)", transport) == "venue not on the list"
    assert details("venue(medical)", transport) == "Case Studies on Transport Policy"
    assert outcome("venue", document()) == "no venue stated"
    assert outcome("venue=Case Stud Transp Policy", transport) == ""
    own = tmp_path / "own.tsv"
    own.write_text("venue\nHoofbeat Teach Cases\n")
    assert outcome(f"venue({own})", document(facets={"journal": "Hoofbeat Teaching Cases"})) == ""
    assert parse_filter(f"venue({own})").files == (own,)
    own.write_text("name\nx\n")
    with pytest.raises(InputError, match="no column named venue"):
        parse_filter(f"venue({own})")
    assert Venues([Venue("Journal of Clinical Case Reports")]).find("J. Clin. Case Rep.")


CITATIONS = """citing,cited,case_report
PMC101,PMC1,yes
PMC102,PMC1,yes
PMC103,PMC1,yes
PMC104,PMC2,yes
PMC105,PMC2,yes
PMC106,PMC2,yes
PMC107,PMC2,yes
PMC108,PMC3,no
PMC109,PMC4,no
PMC110,PMC4,no
PMC111,PMC5,
PMC112,PMC5,
"""


def test_rarity(tmp_path: Path) -> None:
    file = tmp_path / "citations.csv"
    file.write_text(CITATIONS)
    years = {"PMC1": "2023", "PMC2": "2023", "PMC3": "2024", "PMC4": "2024", "PMC5": "2024", "PMC6": "2024"}
    documents = [document(id, facets={"year": year}) for id, year in years.items()]
    documents += [document("PMC7", facets={"year": "2022"}), document("PMC8")]
    step = parse_filter(f"rare({file}, year>2022, total<=3, other<=1)")
    kept, rejected = split(documents, step)
    assert {each.id: (each.facets["rarity"], each.facets["cited_by"]) for each in kept} == {
        "PMC1": ("rare", "3"),
        "PMC3": ("rare", "1"),
        "PMC5": ("unknown", "2"),
        "PMC6": ("unknown", "unknown"),
        "PMC8": ("unknown", "unknown"),
    }
    assert {each.id: each.reason for each in rejected} == {
        "PMC2": "cited by more than 3 articles",
        "PMC4": "cited by more than 1 article that is no case report",
        "PMC7": "published in or before 2022",
    }
    assert rejected[0].details == "cited by 4: 4 case reports, 0 others, 0 of unknown type"
    assert step.files == (file,)
    assert step.settings == {"year": 2022, "total": 3, "other": 1}
    strict, _ = split(documents, parse_filter(f"rare({file}, total<1)"))
    assert [each.id for each in strict] == ["PMC6", "PMC8"]
    assert isinstance(load_citations(file), Citations)


def test_rarity_at_the_limits() -> None:
    limits = RarityLimits(year=2020, total=2, other=0)
    one = document(facets={"year": "2021"})
    assert rarity(one, CitationCount(total=2, not_case_reports=0, unknown_type=0), limits).facets["rarity"] == "rare"
    assert rarity(one, CitationCount(total=2, not_case_reports=0, unknown_type=1), limits).facets["rarity"] == "unknown"
    found = rarity(one, CitationCount(total=2, not_case_reports=1, unknown_type=0), limits)
    assert found.reason == "cited by more than 0 articles that are no case reports"


def test_diagnosis_keywords() -> None:
    assert outcome("diagnosis", document(facets={"keywords": ["Delayed diagnosis"]})) == ""
    assert outcome("diagnosis", document(title="Sarcoidosis masquerading as lymphoma")) == ""
    assert outcome("diagnosis", document(text="A diagnosis was made.", facets={"keywords": ["tumour"]})) == (
        "no diagnosis keyword"
    )
    assert outcome("diagnosis", document(text="A diagnosis was made.")) == ""
    assert outcome("diagnosis(tumour)", document(facets={"keywords": ["Tumours"]})) == ""


def teaching_cases() -> list[Document]:
    return [one for path in sorted(cases_folder().glob("*.xml")) for one in read_file(path)]


def test_the_planted_promotional_case_is_found_and_no_other() -> None:
    found = {one.id: promotion_score(one) for one in teaching_cases()}
    assert [id for id, each in found.items() if each.score >= 3] == ["hbt-case-20"]
    planted = next(one for one in teaching_cases() if one.id == "hbt-case-20")
    features = {finding.feature for finding in found["hbt-case-20"].findings}
    assert features == {"praise", "call", "sponsor", "market", "product", "product in title"}
    for finding in found["hbt-case-20"].findings:
        if finding.start >= 0:
            assert planted.text[finding.start : finding.end] == finding.quote
    assert outcome("not promotional", planted) == "promotional"
    assert details("not promotional", planted).startswith("score ")
    assert outcome("not promotional(30)", planted) == ""


def test_clinical_prose_is_not_taken_for_advertising() -> None:
    text = (
        "He received rituximab (MabThera®, Roche). Next-generation sequencing was negative; a breakthrough infection "
        "followed. The superior mesenteric artery was occluded. Dressings were applied per the manufacturer's "
        "instructions, with an excellent outcome."
    )
    assert promotion_score(document(text=text)).score == 0


def test_real_reports_raise_hardly_any_alarm() -> None:
    flagged = {one.id for one in case_reports() if promotion_score(one).score >= 3}
    assert "PMC2686636" in flagged  # on a honey, "financially supported by" its maker
    assert len(flagged) <= 3, flagged
