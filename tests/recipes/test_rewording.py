"""Rewording sentences of a case: what rules allow, what becomes of the case, and what is recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.models import ChatRequest
from hoofbeat.recipes.cases.case_diagnosis import with_flags
from hoofbeat.recipes.cases.cut_check import cut_check, cuts_table, marked
from hoofbeat.recipes.cases.image_stems import FigurePlacement, image_stem
from hoofbeat.recipes.cases.redaction import RedactedSpan, Redaction, redact
from hoofbeat.recipes.cases.rewording import RewordingDoubts, corrected, lost_numbers, rewording_doubts, vaguer
from hoofbeat.recipes.cases.shown_sentences import choose_shown, no_leaks, shown, with_shown
from hoofbeat.recipes.cases.stems import joined, spans_of, stem_text, with_stem, wordings_of
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.records import Document, Figure
from hoofbeat.retrieval.index.chunking import sentence_spans
from tests.recipes.case_answers import CLEAN, show
from tests.recipes.support import Script, a_context

# The wording of published reports; the patients are invented.
WIRE = (
    "A central line was inserted for septic shock. Ultrasound showed an intraluminal hyperechoic shadow. An X-ray was "
    "ordered which confirmed the position of guidewire, extending from the right internal jugular vein up to inferior "
    "vena cava (Fig. 2). The missed guidewire was removed with the line."
)
WIRE_ANSWER = "Missed guidewire after central line insertion"
GAS = (
    "He vomited for two days and his abdomen was soft. CT images demonstrated diffuse dilation of the stomach without "
    "a transition point, with associated esophageal pneumatosis, extending from the mid-to-distal esophagus into the "
    "proximal stomach (Fig. 1). Lactate was 1.1 mmol/L. Fig. 1 CT axial images on presentation (A, B) demonstrate "
    "circumferential air within the mid-to-distal esophageal mucosa (arrowheads)."
)


def _case(text: str) -> Redaction:
    return redact(Document(id="d", title="", text=text), (0, len(text)))


def _place(case: Redaction, words: str) -> tuple[int, int]:
    text = case.document.text
    return next((a, b) for a, b in sentence_spans(text) if words in text[a:b])


@pytest.mark.parametrize(
    ("text", "of", "words"),
    [
        (
            WIRE,
            "An X-ray",
            "An X-ray was ordered which confirmed the position of a linear metallic object, extending from the right "
            "internal jugular vein up to inferior vena cava.",
        ),
        (
            GAS,
            "CT images",
            "CT images demonstrated diffuse dilation of the stomach without a transition point, with gas in the wall "
            "of the mid-to-distal esophagus, extending into the proximal stomach.",
        ),
        (
            "CT revealed grade IV liver lacerations caused by the mechanical CPR the prior day (Figure 1).",
            "CT revealed",
            "CT revealed an injury of the organ after the mechanical CPR the prior day.",
        ),
        (
            "Cerebrospinal fluid cultures grew C gattii (Figure 1C). The isolate turned CGB agar blue.",
            "The isolate",
            "The organism of the cultures turned CGB agar blue.",
        ),
        (
            "The patient was a 38-year-old woman with SCD (Hb SS) and two crises a year.",
            "The patient",
            "The patient was a 38-year-old woman with an underlying disease (Hb SS) and two crises a year.",
        ),
    ],
)
def test_neutral_words_for_the_name_are_allowed(text: str, of: str, words: str) -> None:
    case = _case(text)
    doubts = rewording_doubts(case, _place(case, of), words)
    assert (doubts.refused, doubts.objection) == ("", "")


@pytest.mark.parametrize(
    ("words", "doubt", "why"),
    [
        ("An X-ray showed a 40 cm object from the right jugular vein to inferior vena cava.", "refused", "number 40"),
        ("An X-ray showed thrombosis extending from the right internal jugular vein.", "objection", "a disease"),
        ("An X-ray confirmed Candida extending from the right internal jugular vein.", "objection", "an organism"),
        ("An X-ray and endoscopy confirmed an object in the internal jugular vein.", "objection", "a test"),
        ("Tacrolimus, the X-ray confirmed, was given from the right jugular vein.", "objection", "a drug"),
        ("An X-ray confirmed gram-negative rods in the right jugular vein.", "objection", "is gram-negative"),
        ("An X-ray showed no object from the right internal jugular vein.", "objection", "it denies"),
        ("Helicopters carried seventeen exotic violinists over mountains.", "remark", "telling words"),
        ("An X-ray was ordered which confirmed the position up to the vena cava. " * 4, "remark", "words, and"),
    ],
)
def test_rules_doubt_facts_and_only_remark_on_words(words: str, doubt: str, why: str) -> None:
    case = _case(WIRE)
    doubts = rewording_doubts(case, _place(case, "An X-ray"), words.strip())
    assert why in getattr(doubts, doubt)
    assert not doubts.refused or doubts.told(3, words).endswith(f"is refused: {doubts.refused}.")


def test_a_number_from_elsewhere_in_the_report_is_doubted_and_one_from_a_caption_is_not() -> None:
    text = f"She was 71. {WIRE} Fig. 2 X-ray with an object of 40 cm."
    start = text.index("Fig. 2 X-ray")
    figures = (Figure(id="f", label="Fig. 2", caption=text[start + 7 :], start=start, end=len(text)),)
    case = redact(Document(id="d", title="", text=text, figures=figures), (0, start))
    new = "An X-ray showed an object of {} cm from the right internal jugular vein up to inferior vena cava."
    assert rewording_doubts(case, _place(case, "An X-ray"), new.format(40)) == RewordingDoubts()
    assert "71 is not in the sentence" in rewording_doubts(case, _place(case, "An X-ray"), new.format(71)).objection


FUNGUS = (
    "A man had fever for 2 months. Anti-interferon-gamma autoantibodies were found. Burkholderia cepacia and "
    "Talaromyces marneffei are discussed below. B. cepacia was cultured from the lymph node. Culture of the skin "
    "lesion yielded T. marneffei."
)


@pytest.mark.parametrize(
    ("of", "words"),
    [
        ("B. cepacia was", "A non-fermenting gram-negative bacillus was cultured from the lymph node."),
        ("B. cepacia was", "An aerobic gram-negative rod was cultured from the lymph node."),
        ("Culture of", "Culture of the skin lesion yielded a dimorphic fungus."),
        ("Culture of", "Culture of the skin lesion yielded a mold that grew as yeast at body temperature."),
        ("Culture of", "Culture from the left side of the skin lesion yielded a fungus."),
    ],
)
def test_what_an_organism_implies_is_not_doubted_wherever_the_report_names_it(of: str, words: str) -> None:
    case = _case(FUNGUS)
    doubts = rewording_doubts(case, _place(case, of), words)
    assert (doubts.refused, doubts.objection) == ("", "")
    assert "gram-positive" in rewording_doubts(case, _place(case, of), "Gram-positive cocci were cultured.").objection


@pytest.mark.parametrize(
    ("sentence", "lost"),
    [
        ("The strain was community-acquired by its resistance (5).", []),
        ("This was a community strain.12,13 The presence of 2 genes is typical.", ["2"]),
        ("It was described elsewhere.14", []),
        ("It carried the gene [5, 6] in all of 3 samples.", ["3"]),
        ("Mucicarmine stain showed the capsule of yeasts (mucicarmine, 200×; scale bar = 50 µ).", []),
        ("Hematoxylin and eosin, original magnification ×400.", []),
        ("Nodes were enlarged (Figs. 2 and 3).", []),
        ("The film in Figure 2A, B showed 12 nodes.", ["12"]),
        ("The white cell count was 5.2 × 10 9 /L and the mass 40 x 30 mm.", ["5.2", "10", "9", "40", "30"]),
    ],
)
def test_marks_and_magnifications_are_no_lost_numbers(sentence: str, lost: list[str]) -> None:
    assert lost_numbers(sentence, "It was seen.", "") == lost


def test_reworded_pieces_are_part_of_the_text_and_lead_back_to_their_sentences() -> None:
    case = _case(WIRE)
    start, end = _place(case, "An X-ray")
    case = case.without(RedactedSpan(end, case.end, "after")).reworded(start, end, "An X-ray showed a line.", "name")
    assert case.text.endswith("hyperechoic shadow. An X-ray showed a line.")
    assert case.pieces()[-1] == (start, end)
    assert start <= case.place(len(case.text) - 1) < end
    assert [each["kind"] for each in case.listed()] == ["reworded", "hidden"]
    assert redact(case.document, (0, case.end), case.listed()) == case, "listed and read again"
    assert "{+An X-ray showed a line.+}" in marked(case)[2]
    assert "X-ray" not in case.without(RedactedSpan(start + 3, start + 8, "rule")).text, "a hole takes all of it"
    assert case.with_back(0, 5) == case


def _run(
    tmp_path: Path,
    text: str,
    answer: str,
    replies: Callable[[str, ChatRequest], Any],
    figures: tuple[Figure, ...] = (),
    synonyms: tuple[str, ...] = (),
) -> tuple[RecipeItem, Script]:
    document = Document(id="d", title="", text=text, figures=figures)
    case = redact(document, (0, len(text)))
    case = case.without(*(RedactedSpan(each.start, each.end, "a figure's caption") for each in figures))
    values = {"diagnosis": answer, "synonyms": list(synonyms)}
    item: Any = with_shown(RecipeItem(id="d", documents=("d",), values=values), case)
    script = Script(replies)
    steps = [
        choose_shown("first", min_words=5, min_match=0.9),
        *cut_check("second", shown=shown, put=with_shown, answer="diagnosis"),
        no_leaks("leaks"),
    ]
    with a_context(tmp_path, [document], RecipeSettings(), {"model": script}) as context:
        for step in steps:
            (item,) = step.run([item], context)
    return item, script


NEW = (
    "An X-ray was ordered which confirmed the position of a linear object, extending from the right internal jugular "
    "vein up to inferior vena cava."
)


def test_the_finding_stays_and_the_rewording_is_recorded(tmp_path: Path) -> None:
    def replies(name: str, request: ChatRequest) -> object:
        if name == "cut-check":
            return CLEAN
        return show(request, last="An X-ray", reword={"An X-ray": NEW})

    item, script = _run(tmp_path, WIRE, WIRE_ANSWER, replies)
    assert item["stem"].endswith(NEW)
    assert len(script.requests) == 2
    (row,) = [each for each in cuts_table([item]).rows if each[1] == "reworded"]
    assert str(row[5]).startswith("An X-ray was ordered which confirmed the position of guidewire")
    assert row[6] == NEW
    assert [step.note for step in item.lineage if step.note] == ["1 sentence reworded"]
    start, end = spans_of(item)[-1]
    assert WIRE[start:end].endswith("(Fig. 2)."), "evidence is the source's sentence"
    document = Document(id="d", title="", text=WIRE)
    assert stem_text(document, spans_of(item), wordings_of(item)) == item["stem"]
    more = joined((*spans_of(item), (0, 9)), wordings_of(item))
    assert with_stem(item, document, more)["stem"] == item["stem"]


def test_a_doubted_rewording_is_shown_and_flagged_when_the_model_insists(tmp_path: Path) -> None:
    new = "An X-ray showed thrombosis extending from the right internal jugular vein up to inferior vena cava."

    def replies(name: str, request: ChatRequest) -> object:
        return CLEAN if name == "cut-check" else show(request, last="An X-ray", reword={"An X-ray": new})

    item, script = _run(tmp_path, WIRE, WIRE_ANSWER, replies)
    assert "thrombosis" in script.requests[1][1].messages[-1].content.partition("is doubted")[2]
    assert item["stem"].endswith(new)
    assert any("that the report does not have" in flag for flag in item["flags"])


@pytest.mark.parametrize("first", [True, False])
def test_a_refused_rewording_is_listed_with_its_reason(tmp_path: Path, first: bool) -> None:
    new = "An X-ray showed a 40 cm object extending from the right internal jugular vein up to inferior vena cava."
    wanted = {**CLEAN, "reworded": [{"sentence": 3, "text": new, "why": "the object is the finding"}]}

    def replies(name: str, request: ChatRequest) -> object:
        if name == "cut-check":
            return CLEAN if first else wanted
        return show(request, last="An X-ray", reword={"An X-ray": new}) if first else show(request, last="hyperechoic")

    item, script = _run(tmp_path, WIRE, WIRE_ANSWER, replies)
    assert "X-ray" not in item["stem"]
    assert any("the number 40 is not in the report" in flag for flag in item["flags"])
    assert any("was refused: the number 40 is not in the report" in str(row[4]) for row in cuts_table([item]).rows)
    if first:
        assert "{!its rewording was refused: the number 40" in script.requests[2][1].messages[-1].content


def test_a_refused_rewording_of_a_caption_is_listed_as_well(tmp_path: Path) -> None:
    start = GAS.index("Fig. 1 CT axial")
    figure = Figure(id="f1", label="Fig. 1", caption=GAS[start + 7 :], start=start, end=len(GAS))
    new = "CT axial images on presentation demonstrate 35 mm of air within the esophageal mucosa."

    def replies(name: str, request: ChatRequest) -> object:
        return CLEAN if name == "cut-check" else show(request, reword={"[caption] Fig. 1 CT axial": new})

    item, _ = _run(tmp_path, GAS, "Ileus", replies, (figure,))
    assert any("the number 35 is not in the report" in str(row[4]) for row in cuts_table([item]).rows)


def test_a_rewording_that_loses_a_number_is_asked_for_again_and_flagged(tmp_path: Path) -> None:
    text = "He had fever. CT showed a liver laceration of 7 cm with 1700 mL of blood (Fig. 1). He was pale and cold."
    new = "CT showed an injury of 7 cm with blood."

    def replies(name: str, request: ChatRequest) -> object:
        return CLEAN if name == "cut-check" else show(request, reword={"CT showed": new})

    item, script = _run(tmp_path, text, "Liver laceration", replies)
    assert "lacks the number 1700" in script.requests[1][1].messages[-1].content
    assert new in item["stem"]
    assert item["flags"] == ["The rewording of sentence 2 lacks the number 1700 of its sentence."]
    assert f"→ {new}" in with_flags(item, {})["reworded"], "reviewers see both"


def test_a_rewording_with_the_answers_name_is_not_shown(tmp_path: Path) -> None:
    told = "An X-ray confirmed a missed guidewire, extending from the right internal jugular vein up to vena cava."

    def replies(name: str, request: ChatRequest) -> object:
        return CLEAN if name == "cut-check" else show(request, last="An X-ray", reword={"An X-ray": told})

    item, _ = _run(tmp_path, WIRE, WIRE_ANSWER, replies)
    assert "guidewire" not in item["stem"]


def test_the_second_pass_brings_a_hidden_finding_back_in_other_words(tmp_path: Path) -> None:
    wanted = {**CLEAN, "reworded": [{"sentence": 3, "text": NEW, "why": "the object is the finding"}]}
    second = iter([wanted, CLEAN])

    def replies(name: str, request: ChatRequest) -> object:
        return next(second) if name == "cut-check" else show(request, last="hyperechoic")

    item, script = _run(tmp_path, WIRE, WIRE_ANSWER, replies)
    assert item["stem"].endswith(NEW)
    assert "{+An X-ray was ordered" in script.requests[-1][1].messages[-1].content, "shown beside the original"
    assert [each["what"] for each in item["cut_check"]["changes"]] == ["reworded"]


def test_the_second_pass_may_not_name_the_answer_either(tmp_path: Path) -> None:
    told = "An X-ray confirmed a missed guidewire, extending from the right internal jugular vein up to vena cava."
    wanted = {**CLEAN, "reworded": [{"sentence": 3, "text": told, "why": "the object is the finding"}]}

    def replies(name: str, request: ChatRequest) -> object:
        return wanted if name == "cut-check" else show(request, last="hyperechoic")

    item, script = _run(tmp_path, WIRE, WIRE_ANSWER, replies)
    assert "it names the answer" in script.requests[-1][1].messages[-1].content
    assert item["stem"].endswith("hyperechoic shadow.")
    (flag,) = item["flags"]
    assert flag.startswith(f"the case lacks a change that the model wants: {told} (it names the answer")


def test_a_reworded_sentence_is_not_put_back_in_parts(tmp_path: Path) -> None:
    part = "extending from the right internal jugular vein"
    wanted = {**CLEAN, "lost": [{"sentence": 3, "words": part, "why": "its course"}]}
    second = iter([wanted, CLEAN])

    def replies(name: str, request: ChatRequest) -> object:
        return next(second) if name == "cut-check" else show(request, last="An X-ray", reword={"An X-ray": NEW})

    item, script = _run(tmp_path, WIRE, WIRE_ANSWER, replies)
    assert "can only be changed under `reworded`" in script.requests[-1][1].messages[-1].content
    assert item["stem"].endswith(NEW)


def test_a_caption_is_offered_and_shown_only_when_reworded(tmp_path: Path) -> None:
    start = GAS.index("Fig. 1 CT axial")
    figure = Figure(id="f1", label="Fig. 1", caption=GAS[start + 7 :], start=start, end=len(GAS))
    new = "CT axial images on presentation demonstrate circumferential air within the mid-to-distal esophageal mucosa."
    told = "CT images demonstrated diffuse dilation of the stomach without a transition point."

    def replies(name: str, request: ChatRequest) -> object:
        if name == "cut-check":
            return CLEAN
        return show(request, reword={"CT images": told, "[caption] Fig. 1 CT axial": new})

    item, _ = _run(tmp_path, GAS, "Esophageal pneumatosis due to ileus", replies, (figure,))
    assert item["stem"].endswith(f"Lactate was 1.1 mmol/L. {new}")
    plain, _ = _run(tmp_path / "b", GAS, "Ileus", lambda n, r: CLEAN if n == "cut-check" else show(r), (figure,))
    assert "circumferential" not in plain["stem"]


def test_a_caption_that_names_the_answer_may_be_reworded_as_well(tmp_path: Path) -> None:
    text = (
        f"{WIRE.partition(' The missed')[0]} Fig. 2 X-ray with the missed guidewire as a bright line in the vena cava."
    )
    start = text.index("Fig. 2 X-ray")
    figure = Figure(id="f", label="Fig. 2", caption=text[start + 7 :], start=start, end=len(text))
    new = "The X-ray had a bright line in the vena cava."

    def replies(name: str, request: ChatRequest) -> object:
        told = {"An X-ray": NEW, "[caption] Fig. 2": new}
        return CLEAN if name == "cut-check" else show(request, reword=told)

    item, _ = _run(tmp_path, text, WIRE_ANSWER, replies, (figure,))
    assert item["stem"].endswith(f"{NEW} {new}")


NEC = (
    "She had fever with neutropenia and abdominal pain. Blood culture grew Gram-negative bacilli. CT showed thickening "
    "of the wall of the ileum. Gram-negative bacilli were found in all layers of the ileum."
)


@pytest.mark.parametrize(
    ("derivable", "answer"),
    [
        ("Neutropenic enterocolitis", "Neutropenic enterocolitis"),
        (
            "Neutropenic enterocolitis due to gram-negative bacilli",
            "Neutropenic enterocolitis due to gram-negative bacilli",
        ),
        ("Cytomegalovirus colitis", "Neutropenic enterocolitis due to Stenotrophomonas maltophilia"),
        ("", "Neutropenic enterocolitis due to Stenotrophomonas maltophilia"),
    ],
)
def test_the_answer_is_as_specific_as_what_is_shown(tmp_path: Path, derivable: str, answer: str) -> None:
    full = "Neutropenic enterocolitis due to Stenotrophomonas maltophilia"
    said = {**CLEAN, "derivable": derivable}
    item, script = _run(tmp_path, NEC, full, lambda n, r: said if n == "cut-check" else show(r))
    assert item["diagnosis"] == answer
    if answer != full:
        assert item["answer_in_report"] == full
        assert full in item["synonyms"]
        assert f"the answer is less specific than in the report: {full}" in item["flags"]
    elif derivable:
        assert "can't be used in place of" in str(script.requests)
        assert item["flags"] == ["what is shown carries only, says the model: Cytomegalovirus colitis"]


MRSA = (
    "He had influenza and then coughed up blood. A film showed cavities in both lungs. Sputum culture grew MRSA. "
    "Pneumonia due to MRSA was treated with linezolid."
)
COCCI = "Sputum culture grew gram-positive cocci in clusters, resistant to oxacillin."


def test_what_the_name_of_an_organism_implies_may_be_shown_in_its_place(tmp_path: Path) -> None:
    def replies(name: str, request: ChatRequest) -> object:
        return CLEAN if name == "cut-check" else show(request, "Sputum", reword={"Sputum": COCCI})

    item, script = _run(tmp_path, MRSA, "Community-acquired MRSA pneumonia", replies)
    assert item["stem"].endswith(COCCI)
    assert item["diagnosis"] == "Community-acquired MRSA pneumonia"
    assert len(script.requests) == 2
    case = _case(MRSA)
    wrong = "Sputum culture grew rods."
    assert "'rods'" in rewording_doubts(case, _place(case, "Sputum"), wrong).objection


@pytest.mark.parametrize(
    ("derivable", "answer", "asked"),
    [
        ("Staphylococcal pneumonia", "Staphylococcal pneumonia", False),
        ("Bacterial pneumonia", "Bacterial pneumonia", False),
        ("Necrotizing pneumonia", "Necrotizing pneumonia", True),  # the model insists
        ("Pneumococcal pneumonia", "", True),
        ("Viral pneumonia", "", True),
        ("Lung abscess", "", True),
        ("Influenza", "", True),
    ],
)
def test_an_answer_is_widened_to_the_same_disease_only(
    tmp_path: Path, derivable: str, answer: str, asked: bool
) -> None:
    full = "Community-acquired MRSA pneumonia"
    said = {**CLEAN, "derivable": derivable}
    item, script = _run(tmp_path, MRSA, full, lambda n, r: said if n == "cut-check" else show(r, "A film"))
    assert item["diagnosis"] == (answer or full)
    assert ("can't be used in place of" in str(script.requests)) is asked
    assert item["flags"]


def test_an_answer_that_the_case_names_is_not_the_answer(tmp_path: Path) -> None:
    text = MRSA.replace("He had influenza and", "He was treated for community-acquired pneumonia")
    said = {**CLEAN, "derivable": "Community-acquired pneumonia"}
    full = "Community-acquired MRSA pneumonia"
    item, script = _run(tmp_path, text, full, lambda n, r: said if n == "cut-check" else show(r, "A film"))
    assert item["diagnosis"] == full
    assert "what is shown names it, 'community-acquired pneumonia'" in str(script.requests)


def test_the_image_edition_shows_the_new_words_or_none() -> None:
    figure = Figure(id="f", label="Fig. 5", caption="Chest film", start=0, end=0)
    document = Document(id="d", title="", text=WIRE, figures=(figure,))
    spans = tuple(sentence_spans(WIRE)[:3])
    wordings = {spans[2]: NEW}
    placed = [FigurePlacement(figure="f", marker="[Figure 1]", files=("a.png",), place=0)]
    text = image_stem(document, spans, placed, wordings=wordings).text
    assert NEW in text
    assert "guidewire" not in text
    gone = image_stem(document, spans, placed, (NEW,), wordings=wordings).text
    assert "X-ray" not in gone


def test_sentences_are_not_split_at_a_figure() -> None:
    text = "There was gas in the axillary areas.(Fig. 2) He was stable (Fig. 1) and awake. He left."
    assert [text[a:b] for a, b in sentence_spans(text)][-1] == "He left."
    assert not any(text[a:b].startswith(("2)", "1)")) for a, b in sentence_spans(text))


@pytest.mark.parametrize(
    ("source", "words", "answer", "vague"),
    [
        (
            "Mitochondria under the sarcolemma and between myofibrils increase and accumulate.",
            "Organelles under the sarcolemma and between myofibrils increase and accumulate.",
            "Mitochondrial myopathy",
            "'Organelles' where the report names 'Mitochondria'",
        ),
        (
            "It is an infection by gas-forming bacteria such as Clostridium perfringens.",
            "Cultures of the bile grew a gas-forming bacterium.",
            "Emphysematous cholecystitis",
            "'bacterium' where the report names 'Clostridium perfringens'",
        ),
        (
            "Beta-haemolytic Group A Streptococcus was isolated from the blood.",
            "Beta-haemolytic streptococci were isolated from the blood.",
            "Necrotizing fasciitis",
            "'Group A'",
        ),
        ("There was a thrombus in the portal vein.", "There was a thrombus in a vessel.", "Pylephlebitis", "'portal'"),
        ("Anti-MuSK antibodies were found.", "A specific antibody was found.", "Myasthenia gravis", "'Anti-MuSK'"),
        ("E. coli grew in the blood.", "Gram-negative rods grew in the blood.", "Pylephlebitis", "'E. coli'"),
        # What the answer is named after is hidden by right, and words that are kept are not vaguer.
        ("Cultures grew Clostridium perfringens.", "Cultures grew rods.", "Clostridium perfringens cholecystitis", ""),
        ("Entamoeba histolytica was seen.", "An organism was seen.", "Fulminant amoebic colitis", ""),
        ("Sputum grew Staphylococcus aureus.", "Sputum grew gram-positive cocci.", "MRSA pneumonia", ""),
        ("E. coli grew in the blood.", "The blood grew E. coli, no other organism.", "Pylephlebitis", ""),
        ("Group A Streptococcus grew.", "A group A Streptococcus grew.", "Necrotizing fasciitis", ""),
    ],
)
def test_words_that_are_vaguer_than_the_report_are_doubted(source: str, words: str, answer: str, vague: str) -> None:
    said = vaguer(source, words, (answer,))
    assert vague in said
    assert bool(said) == bool(vague)


def test_a_finding_made_vague_is_asked_about_once_and_flagged(tmp_path: Path) -> None:
    text = (
        "He had been weak for two years. Mitochondria under the sarcolemma were increased, consistent with "
        "mitochondrial myopathy. He was pale and cold."
    )
    new = "Organelles under the sarcolemma were increased."
    own = "Mitochondria under the sarcolemma were increased."
    said = iter([new, own])

    def replies(name: str, request: ChatRequest) -> object:
        return CLEAN if name == "cut-check" else show(request, reword={"Mitochondria": next(said, own)})

    item, script = _run(tmp_path / "mended", text, "Mitochondrial myopathy", replies)
    assert "a finding keeps the report's words" in script.requests[1][1].messages[-1].content
    assert own in item["stem"]
    assert not item.get("flags")
    said = iter([new, new])
    item, _ = _run(tmp_path / "insisted", text, "Mitochondrial myopathy", replies)
    assert new in item["stem"]
    assert any("where the report names 'Mitochondria'" in flag for flag in item["flags"])


def test_a_finding_that_shares_words_with_a_synonym_is_flagged_and_not_masked(tmp_path: Path) -> None:
    text = "He had fever. The marrow showed red cells within activated macrophages. Ferritin was 9000 and rising."
    names = ("macrophage activation syndrome",)

    def replies(name: str, request: ChatRequest) -> object:
        return CLEAN if name == "cut-check" else show(request)

    item, script = _run(tmp_path, text, "Hemophagocytic lymphohistiocytosis", replies, synonyms=names)
    assert len(script.requests) == 2, "no rule asks to mask it"
    assert "words shared with the answer, to keep in a finding: 2 (activated macrophages)" in str(script.requests[0])
    assert "activated macrophages" in item["stem"]
    assert any(flag.startswith("doubtful: ") and "activated macrophages" in flag for flag in item["flags"])


def test_an_organism_that_is_gone_from_its_sentence_is_doubted() -> None:
    case = _case("He had fever. Blood and bile grew Klebsiella pneumoniae on the second day. He was pale.")
    place = _place(case, "Klebsiella")
    lost = rewording_doubts(case, place, "Blood and bile were drawn on the second day.", names=("Pylephlebitis",))
    assert "'Klebsiella pneumoniae'" in lost.objection
    hidden = ("Klebsiella pneumoniae liver abscess",)
    assert not rewording_doubts(case, place, "Blood and bile grew bacteria on the second day.", names=hidden).objection


@pytest.mark.parametrize(
    ("source", "words", "change"),
    [
        ("Hemoglobin was 90 mg/dL.", "Hemoglobin was 90 g/L.", "90 mg/dL became 90 g/L"),
        ("Platelets were 119 000 K/dL.", "Platelets were 119 000/μL.", "119 000 K/dL became 119 000/μL"),
        ("The count was 16×109/L.", "The count was 16 × 10^9/L.", ""),
        ("CRP was 560 mg/l, Hb 15 g/dL.", "CRP was 560 mg/L and Hb 15 g/dl.", ""),
    ],
)
def test_a_corrected_unit_is_told(source: str, words: str, change: str) -> None:
    assert change in corrected(source, words)
    assert bool(corrected(source, words)) == bool(change)
