"""The leak guard: every kind of mention with its words and kind, what must not fire, and the step made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.corpus.terms import Term
from hoofbeat.corpus.vocabulary import Vocabulary
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.guards.leaks import Leak, excluded_in, find_leaks, is_doubtful, leak_check, names_in_full
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.records import Document
from tests.recipes.support import a_context

VOCABULARY = Vocabulary.of(
    "invented",
    [
        Term(code="D86.0", name="Sarcoidosis of lung", synonyms=("Boeck's sarcoid",)),
        Term(code="Z99.1", name="Marblewood fever", synonyms=("river sawyer's ague", "MWF")),
        Term(code="E05", name="Hyperthyroidism"),
        Term(code="E03.9", name="Hypothyroidism, unspecified"),
    ],
)


def leaks(text: str, diagnosis: str, **more: object) -> list[tuple[str, str]]:
    found = find_leaks(text, diagnosis, **more)  # type: ignore[arg-type]
    assert all(text[leak.start : leak.end] == leak.text for leak in found)
    assert [leak.start for leak in found] == sorted(leak.start for leak in found)
    return [(leak.text, leak.kind) for leak in found]


@pytest.mark.parametrize(
    ("text", "diagnosis", "words", "kind"),
    [
        ("He had sarcoidosis.", "Sarcoidosis", "sarcoidosis", "name"),
        ("A carcinoma of the left breast.", "breast carcinoma", "carcinoma of the left breast", "order"),
        ("Tuberculous pleurisy.", "tuberculosis", "Tuberculous", "inflection"),
        ("Known sarcodosis of the lung.", "sarcoidosis", "sarcodosis", "misspelling"),
        ("He had Wegener's.", "granulomatosis with polyangiitis", "Wegener's", "eponym"),
        ("He had hepatoma.", "hepatocellular carcinoma", "hepatoma", "synonym"),
        ("Treated as SLE before.", "systemic lupus erythematosus", "SLE", "abbreviation"),
        ("An appendectomy followed.", "acute appendicitis", "appendectomy", "procedure"),
        ("Anti-tuberculous drugs.", "pulmonary tuberculosis", "Anti-tuberculous", "procedure"),
        ("There was no evidence of sarcoidosis.", "sarcoidosis", "sarcoidosis", "negated"),
        ("Sarcoidosis was ruled out.", "sarcoidosis", "Sarcoidosis", "negated"),
        ("The haemorrhage in the adrenal gland.", "adrenal hemorrhage", "haemorrhage in the adrenal", "order"),
        ("A sarcoid-\nosis of the skin.", "sarcoidosis", "sarcoid-\nosis", "name"),
        ("A sarcoi\u00addosis.", "sarcoidosis", "sarcoi\u00addosis", "name"),
    ],
)
def test_each_kind_of_mention(text: str, diagnosis: str, words: str, kind: str) -> None:
    found = leaks(text, diagnosis)
    assert (words, kind) in found


def test_given_synonyms_count() -> None:
    assert leaks("The marblewood ague came back.", "river fever") == []
    assert leaks("The marblewood ague came back.", "river fever", synonyms=["Marblewood ague"]) == [
        ("marblewood ague", "synonym")
    ]


def test_names_and_codes_of_vocabularies_count() -> None:
    found = leaks("River sawyer's ague, coded Z99.1 (Z99), not MWF.", "Marblewood fever", vocabularies=[VOCABULARY])
    assert found == [("River sawyer's ague", "term"), ("Z99.1", "code"), ("Z99", "code"), ("MWF", "negated")]
    assert leaks("Coded Z98.1 and E05.", "Marblewood fever", vocabularies=[VOCABULARY]) == []


def test_a_vocabulary_tells_another_word_from_a_misspelling() -> None:
    assert leaks("He had hyperthyroidism.", "hypothyroidism", vocabularies=[VOCABULARY]) == []
    assert leaks("He had hyperthyroidism.", "hypothyroidism") == []
    assert leaks("He had hypothyroidsm.", "hypothyroidism", vocabularies=[VOCABULARY]) == [
        ("hypothyroidsm", "misspelling")
    ]
    assert leaks("He had hypothyroidsm.", "hypothyroidism", min_match=1.0) == []


def test_abbreviations_mean_what_their_document_says() -> None:
    source = Document(id="d", title="", text="We report marblewood quay ague (MQA). A mean renal bulk (MRB) was taken.")
    assert leaks("MQA was suspected.", "marblewood quay ague", source=source) == [("MQA", "abbreviation")]
    assert leaks("MRB was small.", "marblewood river bane", source=source) == []
    assert leaks("MQA was suspected.", "marblewood quay ague") == [("MQA", "abbreviation")]  # by its first letters
    otherwise = "A mean quota of air (MQA) was measured. The MQA was normal."
    assert leaks(otherwise, "marblewood quay ague") == []


@pytest.mark.parametrize(
    ("diagnosis", "words"),
    [
        ("1. Small bowel obstruction due to gallstone ileus", "gallstone ileus"),
        ("Acute promyelocytic leukemia (APL) with coagulopathy", "promyelocytic leukemia"),
        ("Tuberculosis of the spine (Pott's disease)", "Pott disease"),
        ("Gout; chronic renal failure", "renal failure"),
        ("Mucormycosis and renal abscess", "an abscess of the kidney"),
        ("Sarcoidosis, pulmonary", "sarcoidosis"),
        ("Granulomatosis with polyangiitis", "granulomatosis with polyangiitis"),
    ],
)
def test_a_diagnosis_as_models_write_it_is_taken_apart(diagnosis: str, words: str) -> None:
    assert leaks(f"He was told of {words} then.", diagnosis)


@pytest.mark.parametrize(
    ("diagnosis", "text"),
    [
        ("Granulomatosis with polyangiitis", "Biopsy showed granulomas."),
        ("Acute pancreatitis with pleural effusion", "A pleural effusion was seen on the left."),
        ("glucose-6-phosphate dehydrogenase deficiency", "Glucose was 90 and phosphate was normal."),
        ("systemic lupus erythematosus", "Lupus anticoagulant and rheumatoid factor were absent."),
        ("endometriosis", "The endometrial stripe was thin."),
        ("Wilson disease", "John Wilson and Dr. Wilson came. Wilson et al. described it."),
        ("Still's disease", "Still, she was tired. She sat still."),
        ("pneumonia", "The organism was not found; its mechanism is unclear."),
        ("Pacemaker infection", "A pacemaker had been implanted."),
        ("acute disease", "The patient came by bus."),
    ],
)
def test_what_is_no_mention(diagnosis: str, text: str) -> None:
    assert leaks(text, diagnosis) == []


@pytest.mark.parametrize("diagnosis", ["", "  ", "?!", "\x00"])
def test_no_diagnosis_gives_nothing_away(diagnosis: str) -> None:
    assert find_leaks("He had gout.", diagnosis) == []


def test_hostile_input_is_harmless() -> None:
    for text in ("(" * 20_000, "a-" * 20_000, "gout " * 5_000, "\u00ad" * 10_000, "A1B" * 5_000):
        find_leaks(text, "(((gout [.*] \\", synonyms=["[" * 100, "+" * 100])
    assert find_leaks("gout " * 1000, "gout")[-1] == Leak(start=4995, end=4999, text="gout", form="gout", kind="name")
    find_leaks("He had gout.", "and with of, " * 500)


SOURCE = Document(
    id="d", title="", text="A man of 40 came with a cough. Biopsy proved sarcoidosis of the lung. He went home."
)
STEP = leak_check("leaks")


def judged(tmp_path: Path, stem: str, **more: object) -> RecipeItem | ItemRejection:
    item = RecipeItem(id="i", documents=("d",), values={"stem": stem, "diagnosis": "Sarcoidosis", **more})
    with a_context(tmp_path, [SOURCE], RecipeSettings(), lambda _name, _request: {}) as context:
        (outcome,) = STEP.run([item], context)
    assert isinstance(outcome, RecipeItem | ItemRejection)
    return outcome


def test_the_step_rejects_with_the_words_and_their_place_in_the_source(tmp_path: Path) -> None:
    outcome = judged(tmp_path, "A man of 40 came with a cough. Biopsy proved sarcoidosis of the lung.")
    assert isinstance(outcome, ItemRejection)
    assert outcome.reason == "the stem gives the answer away"
    assert "'sarcoidosis' (name of Sarcoidosis)" in outcome.details
    assert outcome.span is not None
    assert SOURCE.text[outcome.span.start : outcome.span.end] == outcome.span.quote == "sarcoidosis"


def test_a_rewritten_stem_has_no_place_in_the_source(tmp_path: Path) -> None:
    outcome = judged(tmp_path, "Someone has sarcoidosis, they say.")
    assert isinstance(outcome, ItemRejection)
    assert outcome.span is None


def test_a_clean_stem_goes_on_unchanged(tmp_path: Path) -> None:
    outcome = judged(tmp_path, "A man of 40 came with a cough.", synonyms=["Boeck's disease"])
    assert isinstance(outcome, RecipeItem)
    assert outcome.lineage == ()


def test_a_synonym_of_the_item_counts(tmp_path: Path) -> None:
    outcome = judged(tmp_path, "He had the marblewood ague.", synonyms=["marblewood ague"])
    assert isinstance(outcome, ItemRejection)


def test_denied_mentions_may_be_let_through(tmp_path: Path) -> None:
    item = RecipeItem(
        id="i", documents=("d",), values={"stem": "No evidence of sarcoidosis.", "diagnosis": "sarcoidosis"}
    )
    with a_context(tmp_path, [SOURCE], RecipeSettings(), lambda _name, _request: {}) as context:
        assert isinstance(STEP.run([item], context)[0], ItemRejection)
        assert STEP.run([item], context)[0] != item
        assert leak_check("lenient", negated=False).run([item], context)[0] == item


@pytest.mark.parametrize(
    ("text", "diagnosis", "synonyms", "found"),
    [
        (
            "Cardiopulmonary resuscitation (CPR) was begun. CPR went on.",
            "Liver laceration caused by mechanical cardiopulmonary resuscitation",
            (),
            False,
        ),
        (
            "He had community-acquired pneumonia (CAP) and CAP again.",
            "Necrotizing pneumonia due to community-acquired methicillin-resistant Staphylococcus aureus",
            (),
            False,
        ),
        (
            "CT showed soft tissue edema with gas formation.",
            "Necrotizing fasciitis of the neck due to Clostridium subterminale",
            ("soft tissue infection",),
            False,
        ),
        ("Culture grew P. shigelloides.", "Sepsis due to Plesiomonas shigelloides", ("P. shigelloides",), True),
        ("S. maltophilia grew.", "Enterocolitis caused by Stenotrophomonas maltophilia", ("S. maltophilia",), True),
        ("She had SCIC.", "Sickle cell intrahepatic cholestasis", ("SCIC",), True),
    ],
)
def test_only_names_of_the_whole_diagnosis_are_names(
    text: str, diagnosis: str, synonyms: tuple[str, ...], found: bool
) -> None:
    source = Document(id="d", title="", text=text)
    names = leaks(text, diagnosis, synonyms=synonyms, source=source)
    assert bool([each for each in names if each[1] in {"abbreviation", "synonym"}]) == found


def test_a_short_form_of_an_underlying_disease_is_not_the_answer() -> None:
    text = "A woman with sickle cell disease (SCD) had jaundice. SCD was known."
    found = leaks(text, "Sickle cell intrahepatic cholestasis", source=Document(id="d", title="", text=text))
    assert "SCD" not in [words for words, _ in found]


def test_a_denial_ends_where_a_new_statement_begins() -> None:
    text = "Dilation of the esophagus, without a discrete transition point, with associated esophageal pneumatosis."
    assert leaks(text, "Esophageal pneumatosis secondary to ileus") == [("esophageal pneumatosis", "name")]
    assert leaks("A mass without evidence of sarcoidosis", "sarcoidosis") == [("sarcoidosis", "negated")]


@pytest.mark.parametrize(
    ("words", "full"), [("necrotizing fasciitis", True), ("fasciitis", False), ("Clostridium subterminale", False)]
)
def test_which_mention_is_the_full_name(words: str, full: bool) -> None:
    diagnosis = "Necrotizing fasciitis of the neck due to Clostridium subterminale"
    leak = Leak(start=0, end=len(words), text=words, form=words, kind="name")
    assert names_in_full(leak, diagnosis) == full


@pytest.mark.parametrize(("text", "full"), [("She had chickenpox.", True), ("CPR was begun.", False)])
def test_another_name_of_the_whole_disease_is_its_full_name(text: str, full: bool) -> None:
    [leak] = find_leaks(text, "Varicella", synonyms=("chickenpox", "CPR"))
    assert names_in_full(leak, "Varicella") is full


@pytest.mark.parametrize(
    ("text", "diagnosis", "synonyms", "doubtful"),
    [
        (
            "red cells within activated macrophages",
            "Hemophagocytic lymphohistiocytosis",
            ["macrophage activation syndrome"],
            True,
        ),
        (
            "macrophage activation syndrome",
            "Hemophagocytic lymphohistiocytosis",
            ["macrophage activation syndrome"],
            False,
        ),
        ("sarcoidosis was suspected", "Pulmonary sarcoidosis", [], False),
        ("a tuberculous cavity", "Pulmonary tuberculosis", [], False),
        ("the bile grew Clostridium perfringens", "Clostridium perfringens cholecystitis", [], False),
        ("a sign that Wilson described", "Wilson disease", [], False),
    ],
)
def test_a_finding_that_shares_words_with_the_answer_is_doubtful(
    text: str, diagnosis: str, synonyms: list[str], doubtful: bool
) -> None:
    leaks = find_leaks(text, diagnosis, synonyms=synonyms)
    assert all(is_doubtful(leak, diagnosis) == doubtful for leak in leaks)
    assert leaks or not doubtful


def test_no_planted_leak_is_doubtful() -> None:
    lines = (Path(__file__).parent / "data" / "leak_plants.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")][1:]
    assert len(rows) > 300
    for _, _, diagnosis, words in rows:
        assert not any(is_doubtful(leak, diagnosis) for leak in find_leaks(words, diagnosis)), (diagnosis, words)


@pytest.mark.parametrize(
    ("case", "disease", "said"),
    [
        ("He had pain. CT showed no evidence of acute pancreatitis.", "Acute pancreatitis", "CT showed no evidence"),
        ("Acute pancreatitis was suspected. CT was normal.", "Acute pancreatitis", ""),
        ("CT showed no evidence of pancreatitis.", "Splenic infarction", ""),
    ],
)
def test_a_case_excludes_a_disease_that_it_denies_by_name(case: str, disease: str, said: str) -> None:
    assert excluded_in(case, disease).startswith(said)
    assert bool(excluded_in(case, disease)) == bool(said)
