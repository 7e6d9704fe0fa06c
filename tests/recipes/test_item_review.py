"""The final review: an editor signs, edits or rejects a finished item, in the words of editors who judged real ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.models import ChatRequest, Model
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.case_editor import CaseEditor
from hoofbeat.recipes.cases.redaction import RedactedSpan, redact
from hoofbeat.recipes.cases.shown_sentences import with_shown
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.papers import cupcase, ogcare
from hoofbeat.recipes.recipe_items import RecipeItem, RejectedItem
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.recipes.steps import RecipeStep
from hoofbeat.recipes.trials import TriedQuestion
from hoofbeat.records import Document, Section
from hoofbeat.store import Artefact, Ledger
from hoofbeat.store.tables import read_jsonl, read_tsv
from hoofbeat.window import ContextWindow
from tests.recipes.case_answers import material
from tests.recipes.papers.ogcare_case import CONTEXT, GOOD, REPORT, says
from tests.recipes.support import Script, a_context, a_corpus, build, passing_trial

# An invented case with the faults that judges found in real ones.
_CASE = (
    "A 61-year-old man collapsed at a bus stop. Mechanical chest compressions with a piston device went on "
    "for 15 minutes. Cannulas for extracorporeal support were placed within 10 minutes of the call. In the evening his "
    "hemoglobin fell from 11.2 to 6.4 g/dL and the abdomen was distended. Bladder pressure was 16 cmH2O. "
    "Ultrasound of the groin found no hematoma. Computed tomography showed free blood around a grade IV liver "
    "laceration. He was taken to theatre and the right lobe was resected. He went home after 30 days."
)
_DISCUSSION = "The film showed no rib fracture. Liver laceration after chest compressions is rare."
_DIAGNOSIS = "Grade IV liver laceration"


def _document() -> Document:
    text = f"Case presentation\n\n{_CASE}\n\nDiscussion\n\n{_DISCUSSION}"
    at = text.index("Discussion\n")
    case = Section(heading="Case presentation", level=1, start=0, body=19, end=at - 2, role="case")
    discussion = Section(heading="Discussion", level=1, start=at, body=at + 12, end=len(text), role="discussion")
    return Document(id="case", title="An invented case", text=text, sections=(case, discussion))


def _finished(context: RecipeContext) -> list[RecipeItem]:
    """The item as it is before the final review: the compressions were cut with what followed from them."""
    document = context.document("case")
    start, end = document.text.index("A 61"), document.text.index("Computed")
    cut = document.text.index("Mechanical")
    holes = (RedactedSpan(cut, document.text.index("Cannulas"), "tells of its treatment"),)
    values = {
        "diagnosis": _DIAGNOSIS,
        "synonyms": [],
        "diagnosis_quote": "a grade IV liver laceration",
        "distractors": ["Injury of the spleen", "Retroperitoneal hematoma", "Ruptured aortic aneurysm"],
        "distractor_codes": ["S36.0", "", "I71"],
    }
    item = RecipeItem(id="case", documents=("case",), values=values)
    item = with_shown(item, redact(document, (start, end)).without(*holes))
    return [item.put(first_stem=item["stem"])]


def _last_steps(settings: cupcase.CupcaseSettings) -> list[RecipeStep]:
    steps = list(cupcase.RECIPE.steps(settings))
    names = [step.name for step in steps]
    return steps[names.index("distractors") + 1 :]


RECIPE = msgspec.structs.replace(cupcase.RECIPE, begin=_finished, steps=_last_steps)


SIGN = {"problems": [], "verdict": "sign", "reason": "fit to be published", "edits": []}
NOTHING = {"new_question": "", "new_answer": "", "new_options": [], "accepted": [], "grading_note": ""} | {
    "requirements": [],
    "exclusions": [],
    "answer_check": [],
}


def _edits(*edits: dict[str, object], kind: str = "fact_lost", **more: object) -> dict[str, object]:
    problems = [{"kind": kind, "problem": "the compressions are gone"}]
    return {**NOTHING, "problems": problems, "verdict": "edit", "reason": "can be mended", "edits": list(edits), **more}


_KEY = str(GOOD["ogcare-question"]["answer"])
_ASKED = "next step to close the tract"


def _graded(*accepted: str, note: str = "", asked: str = _ASKED, **more: Any) -> dict[str, Any]:
    """Accepted answers and a note that agree with the question of the invented ogcare item."""
    checked = [{"answer": each, "satisfies": "yes", "lacks": ""} for each in (_KEY, *accepted)]
    requirements = [{"requirement": "close the tract with an occluder", "question_words": asked}]
    lists = {"requirements": requirements, "exclusions": [], "answer_check": checked}
    return {"accepted": list(accepted), "grading_note": note, **lists, **more}


def _edit(do: str, sentence: int, text: str = "", sources: tuple[int, ...] = ()) -> dict[str, object]:
    return {"do": do, "sentence": sentence, "text": text, "sources": list(sources), "why": "it is needed"}


class Editor:
    """What the review says, call by call; the last answer is repeated. Trials pass, or say what a test wants."""

    def __init__(self, *replies: object, trials: Callable[[str, ChatRequest], object] = passing_trial) -> None:
        self.requests: list[ChatRequest] = []
        self._replies: Iterator[object] = iter(replies)
        self._last: object = {**SIGN, **NOTHING}
        self._trials = trials

    def __call__(self, name: str, request: ChatRequest) -> object:
        if name != "item-review":
            return self._trials(name, request)
        self.requests.append(request)
        self._last = next(self._replies, self._last)
        wanted: Any = (request.schema or {})["properties"]
        return {field: each for field, each in dict(self._last).items() if field in wanted}  # type: ignore[call-overload]


def _right(name: str, request: ChatRequest) -> object:
    """Trials in which the solver finds the key."""
    said: Any = passing_trial(name, request)
    if name != "trial-choice":
        return said
    found = re.search(r"^([A-D])\) .*liver laceration", material(request)["options"], re.MULTILINE | re.IGNORECASE)
    return {**said, "choice": found[1] if found else "A"}


def _built(folder: Path, editor: Editor, **settings: Any) -> Artefact:
    script = {"model": Script(lambda _name, _request: None, trials=editor)}
    made = cupcase.CupcaseSettings(review_share=1.0, **settings)
    return build(folder, RECIPE, [_document()], made, script)


def _editor(*replies: object) -> Editor:
    return Editor(*replies, {**SIGN, **NOTHING}, trials=_right)


def _item(artefact: Artefact) -> RecipeItem:
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    return item


RESTORED = _edit("insert", 1, "Mechanical chest compressions with a piston device went on for 15 minutes.", (2,))


def test_a_signed_item_is_kept_as_it_is(tmp_path: Path) -> None:
    editor = _editor()
    artefact = _built(tmp_path, editor)
    (question,) = Benchmark(artefact).questions
    assert "bus stop. Cannulas" in question.context
    assert len(editor.requests) == 1
    assert not list(read_tsv(artefact.file("edits.tsv")))


def test_the_review_sees_report_and_item_whole(tmp_path: Path) -> None:
    editor = _editor()
    _built(tmp_path, editor)
    seen = material(editor.requests[0])
    report = seen["case report, numbered sentences"]
    assert "[Case presentation]\n1. A 61-year-old man" in report
    assert "[Discussion]\n10. The film showed no rib fracture." in report
    assert "2. Cannulas for extracorporeal support" in seen["case as the examinee reads it, numbered sentences"]
    assert f"{_DIAGNOSIS}  [key]" in seen["options"]
    system = editor.requests[0].messages[0].content
    assert "the authors' reasons" not in system.lower()
    assert "wider name of it" in system


def test_an_edit_puts_the_lost_fact_back_and_is_reviewed_again(tmp_path: Path) -> None:
    editor = _editor(_edits(RESTORED))
    artefact = _built(tmp_path, editor)
    (question,) = Benchmark(artefact).questions
    assert "bus stop. Mechanical chest compressions with a piston device went on for 15 minutes. Cannulas" in (
        question.context
    )
    assert len(editor.requests) == 2
    assert "an edit of an earlier review, made" in material(editor.requests[1])["remarks"]
    row, *_ = read_tsv(artefact.file("edits.tsv"))
    assert (row["review"], row["part"]) == ("final review", "case")
    assert row["sources"].startswith("Mechanical chest compressions")
    assert [step.name for step in question.lineage if "final" in step.name] == ["final review", "final review, second"]
    item = _item(artefact)
    assert item["item_review"]["state"] == "signed"
    reworded = [(each["text"], each["shown"]) for each in item["removed"] if each.get("shown")]
    assert reworded == [(" ", RESTORED["text"])]  # its neighbours stay word for word
    tasks = read_jsonl(artefact.file("review.jsonl"), ReviewTask)
    assert any("Mechanical chest compressions" in task.shown.get("edits", "") for task in tasks)


def test_a_sentence_that_was_edited_can_be_edited_again(tmp_path: Path) -> None:
    second = _edit("replace", 2, "Chest compressions went on for 15 minutes.", (2,))
    artefact = _built(tmp_path, _editor(_edits(RESTORED), _edits(second, _edit("delete", 6))))
    (question,) = Benchmark(artefact).questions
    assert "bus stop. Chest compressions went on for 15 minutes. Cannulas" in question.context
    assert question.context.endswith("distended. Bladder pressure was 16 cmH2O.")
    assert "piston" not in question.context


def test_sentences_go_in_at_the_beginning_and_at_the_end(tmp_path: Path) -> None:
    first = _edit("insert", 0, "The film showed no rib fracture.", (10,))
    last = _edit("insert", 5, "Bladder pressure was 16 cmH2O again.", (5,))
    (question,) = Benchmark(_built(tmp_path, _editor(_edits(first, last)))).questions
    assert question.context.startswith("The film showed no rib fracture. A 61-year-old man")
    assert question.context.endswith("found no hematoma. Bladder pressure was 16 cmH2O again.")


def test_a_number_without_a_source_is_asked_about_and_not_taken(tmp_path: Path) -> None:
    wrong = _edit("insert", 1, "Compressions went on for 25 minutes.", (2,))
    editor = _editor(_edits(wrong), _edits(wrong))
    artefact = _built(tmp_path, editor)
    (question,) = Benchmark(artefact).questions
    assert "25 minutes" not in question.context
    assert "25 is not in its sources" in editor.requests[1].messages[-1].content
    (edit,) = _item(artefact)["edits"]
    assert edit["refused"] == "the number 25 is not in the report"
    assert artefact.manifest.metrics["asked again"] == {"final review": {"items": 1, "kept": 1}}


def test_an_edit_may_not_name_the_answer(tmp_path: Path) -> None:
    telling = _edit("insert", 5, "Computed tomography showed free blood around a liver laceration.", (7,))
    artefact = _built(tmp_path, _editor(_edits(telling), _edits(telling)))
    assert "laceration" not in Benchmark(artefact).questions[0].context
    assert "names the answer" in _item(artefact)["edits"][0]["refused"]


def test_an_edit_that_denies_what_its_source_says_is_taken_only_if_insisted_on(tmp_path: Path) -> None:
    turned = _edit("replace", 5, "Ultrasound of the groin found a hematoma.", (6,))
    editor = _editor(_edits(turned), _edits(turned))
    artefact = _built(tmp_path, editor)
    assert "denies what its sources say" in editor.requests[1].messages[-1].content
    assert any("denies what its sources say" in flag for flag in _item(artefact)["flags"])


_ULTRASOUND = (
    "Abdominal USG was evaluated as normal (liver size, parenchyma echo was normal) and there was no acute fatty liver "
    "of pregnancy."
)
_TABLE = (
    "Timeline Day | Huddle Decisions | Respiratory Rate 2 | Poor feeding infant NG feeding tube inserted | 31 | 4 | "
    "Feeding improved NG feeding tube removed | 32 | 9 | Maternal negative HIV PCR test result | 10 | Infant "
    "required no further morphine | Not recorded"
)
_LIST = "He had no fever, chills or rash, and the groin was soft."


@pytest.mark.parametrize(
    ("source", "words", "turned"),
    [
        (_ULTRASOUND, "Abdominal USG was evaluated as normal (liver size, parenchyma echo was normal).", False),
        (_ULTRASOUND, "There was acute fatty liver of pregnancy.", True),
        (_TABLE, "Feeding improved, and the nasogastric tube was removed on day 4.", False),
        (_TABLE, "The infant required further morphine.", True),
        (_LIST, "The groin was soft.", False),
        (_LIST, "He had chills.", True),
        ("Cultures grew MRSA.", "Cultures grew no MRSA.", True),
    ],
)
def test_a_denial_counts_in_the_clause_that_an_edit_is_taken_from(
    tmp_path: Path, source: str, words: str, turned: bool
) -> None:
    document = _document()
    report = msgspec.structs.replace(document, text=document.text.replace("Liver laceration after", f"{source} It"))
    end = len(report.text)
    sections = (document.sections[0], msgspec.structs.replace(document.sections[1], end=end))
    edit = _edit("insert", 5, words, (11,))
    editor = _editor(_edits(edit), _edits(edit))
    script = {"model": Script(lambda _name, _request: None, trials=editor)}
    report = msgspec.structs.replace(report, sections=sections)
    artefact = build(tmp_path, RECIPE, [report], cupcase.CupcaseSettings(review_share=1.0), script)
    assert words in Benchmark(artefact).questions[0].context
    assert any("denies what its sources say" in flag for flag in _item(artefact).get("flags", ())) == turned


def test_the_key_becomes_what_the_case_supports_and_its_full_name_stays_a_leak(tmp_path: Path) -> None:
    telling = _edit("insert", 5, "A grade IV liver laceration was seen.", (7,))
    editor = _editor(_edits(new_answer="Liver laceration"), _edits(telling), _edits(telling))
    artefact = _built(tmp_path, editor)
    (question,) = Benchmark(artefact).questions
    assert question.answer == "Liver laceration"
    assert "Liver laceration" in question.options
    assert _DIAGNOSIS not in question.options
    assert _item(artefact)["answer_in_report"] == _DIAGNOSIS
    assert "laceration" not in question.context


def test_a_distractor_is_replaced_unless_it_means_the_key(tmp_path: Path) -> None:
    editor = _editor()
    _built(tmp_path / "before", editor)
    rows = re.findall(r"^([A-D])\) (.*)$", material(editor.requests[0])["options"], re.MULTILINE)
    first, second = (row for row in rows if "[key]" not in row[1]), None
    (letter, old), (other, second) = list(first)[:2]
    options = [{"option": letter, "text": "Splenic rupture"}, {"option": other, "text": "Laceration of liver"}]
    reply = _edits(new_options=options, kind="second_right")
    artefact = _built(tmp_path / "after", _editor(reply, reply))
    (question,) = Benchmark(artefact).questions
    assert "Splenic rupture" in question.options
    assert old not in question.options
    assert second in question.options
    assert [edit["refused"] != "" for edit in _item(artefact)["edits"]] == [False, True]


def test_the_question_asks_for_what_the_key_is(tmp_path: Path) -> None:
    asked = "What best explains the fall in hemoglobin and the distended abdomen?"
    artefact = _built(tmp_path, _editor(_edits(new_question=asked, kind="question")))
    assert Benchmark(artefact).questions[0].text == asked


def test_a_new_option_in_the_place_of_the_key_is_recorded_with_the_reason(tmp_path: Path) -> None:
    editor = _editor()
    _built(tmp_path / "before", editor)
    (letter,) = re.findall(r"^([A-D])\) .*\[key\]$", material(editor.requests[0])["options"], re.MULTILINE)
    reply = _edits(new_options=[{"option": letter, "text": "Liver laceration"}], kind="style")
    artefact = _built(tmp_path / "after", _editor(reply, reply))
    (edit,) = _item(artefact)["edits"]
    assert (edit["after"], edit["refused"]) == ("Liver laceration", "the key is changed in `new_answer` alone")


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        (
            "Disseminated Talaromyces marneffei and bacterial infection",
            "Disseminated Talaromyces marneffei infection",
            1,
        ),
        (
            "Disseminated Talaromyces marneffei and Burkholderia cepacia infection",
            "Disseminated Talaromyces marneffei infection",
            1,
        ),
        ("Disseminated Talaromyces marneffei and bacterial infection", "Disseminated Talaromyces marneffei", 0),
        ("Disseminated Talaromyces marneffei infection", "Disseminated Histoplasma capsulatum infection", 0),
    ],
)
def test_an_infection_with_an_organism_is_a_disease(tmp_path: Path, old: str, new: str, fits: int) -> None:
    item = RecipeItem(id="case", documents=("case",), values={"diagnosis": old})
    editor = CaseEditor(lambda _item: TriedQuestion(question="", answer=old, case=""), max_words=20)
    with a_context(tmp_path, [_document()], cupcase.CupcaseSettings(), says()) as context:
        assert (not editor.wrong_answer(item, new, context)) == bool(fits)


def test_what_an_edit_takes_out_of_the_key_is_a_doubtful_leak_only(tmp_path: Path) -> None:
    old, new = "Clostridium perfringens emphysematous cholecystitis", "Emphysematous cholecystitis"
    first = {"diagnosis": old, "synonyms": ["Clostridium perfringens"]}
    item = RecipeItem(id="case", documents=("case",), values=first)
    editor = CaseEditor(lambda _item: TriedQuestion(question="", answer=old, case=""), max_words=20)
    isolated = "Cultures of the bile grew Clostridium perfringens."
    with a_context(tmp_path, [_document()], cupcase.CupcaseSettings(), says()) as context:
        assert editor.leak(item, isolated, context) == ("Clostridium perfringens", True)
        wider = editor.with_answer(item, new)
        assert editor.leak(wider, isolated, context) == ("Clostridium perfringens", False)
        assert editor.leak(wider, "It was an emphysematous cholecystitis.", context) == (
            "emphysematous cholecystitis",
            True,
        )


def _reason(artefact: Artefact) -> tuple[str, str]:
    (rejected,) = read_jsonl(artefact.file("rejected.jsonl"), RejectedItem)
    return rejected.step, rejected.reason


def test_what_can_not_be_mended_is_rejected_with_the_problem(tmp_path: Path) -> None:
    reply = {**_edits(kind="second_right"), "verdict": "reject", "reason": "the rival can't be excluded"}
    assert _reason(_built(tmp_path, _editor(reply))) == ("final review", "final review: another answer is as good")


def test_a_rejection_names_every_kind_of_problem(tmp_path: Path) -> None:
    problems = [{"kind": kind, "problem": "equal rivals"} for kind in ("second_right", "leak", "leak")]
    reply = {**_edits(), "verdict": "reject", "problems": problems}
    told = "final review: the item gives the answer away; another answer is as good"
    assert _reason(_built(tmp_path, _editor(reply))) == ("final review", told)


def test_what_is_not_signed_after_two_edits_is_rejected(tmp_path: Path) -> None:
    editor = _editor(
        _edits(RESTORED), _edits(_edit("delete", 6)), _edits(_edit("delete", 5)), _edits(_edit("delete", 5))
    )
    assert _reason(_built(tmp_path, editor)) == ("final review, third", "final review: not signed after two edits")
    assert len(editor.requests) == 3


def test_the_third_review_of_an_open_question_may_edit_and_the_trials_decide(tmp_path: Path) -> None:
    """Another reviewer always has another wish; the edits are kept, the item says that nobody looked at them again."""
    edits = [_edits(_edit("insert", 2, said, (4,)), kind="fact_lost") for said in ("He had no fever.", "He was well.")]
    last = _edits(new_question="How should the tract be closed now?", kind="second_right")
    artefact = _ogcare(tmp_path, Editor(*edits, last))
    (question,) = Benchmark(artefact).questions
    assert question.text == "How should the tract be closed now?"
    assert "final review: the last edits of the final review were not reviewed again" in _item(artefact)["flags"]


@pytest.mark.parametrize("again", [False, True])
def test_a_case_that_tells_the_answer_is_edited_or_the_item_is_rejected(tmp_path: Path, again: bool) -> None:
    left = [2 if again else 1]

    def trials(name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        if name == "trial-open" and left[0]:
            left[0] -= 1
            return {**said, "told": "Nobody has closed the tract yet."}
        return said

    editor = Editor({**SIGN, **NOTHING}, _edits(_edit("delete", 3), kind="leak"), trials=trials)
    artefact = _ogcare(tmp_path, editor, distraction=False)
    remarks = material(editor.requests[1])["remarks"]
    assert "given away by the case: nothing is left to decide, says a solver, after “Nobody has closed" in remarks
    if again:
        assert _reason(artefact) == ("trials", "it fails its trial again after an edit")
    else:
        assert Benchmark(artefact).questions[0].facets["doubts"] == "none"


def test_light_edits_of_the_last_review_are_kept_and_flagged(tmp_path: Path) -> None:
    editor = _editor(_edits(RESTORED), _edits(_edit("delete", 6)), _edits(_edit("delete", 5), kind="residue"))
    artefact = _built(tmp_path, editor)
    assert any("not reviewed again" in flag for flag in _item(artefact)["flags"])


def test_an_edit_without_edits_is_asked_about(tmp_path: Path) -> None:
    editor = _editor(_edits(), _edits(RESTORED))
    assert "piston" in Benchmark(_built(tmp_path, editor)).questions[0].context
    assert "there is no edit" in editor.requests[1].messages[-1].content


def test_the_review_can_be_switched_off(tmp_path: Path) -> None:
    editor = _editor()
    artefact = _built(tmp_path, editor, item_review=False)
    assert not editor.requests
    assert not artefact.has("edits.tsv")


def _doubting(wrong: dict[str, object], *, times: int = 1) -> Callable[[str, ChatRequest], object]:
    """Trials in which the comparison finds this of the first wrong option, so often."""
    left = [times]

    def trials(name: str, request: ChatRequest) -> object:
        said: Any = _right(name, request)
        if name == "trial-compare" and left[0]:
            left[0] -= 1
            first, *others = said["options"]
            return {"options": [{**first, **wrong}, *others]}
        return said

    return trials


def test_what_a_trial_finds_is_edited_and_tried_again(tmp_path: Path) -> None:
    trials = _doubting({"also_right": "yes", "reason": "blood in the belly fits it"})
    reply = _edits(new_options=[{"option": letter, "text": text} for letter, text in _NEW.items()], kind="second_right")
    editor = Editor({**SIGN, **NOTHING}, reply, trials=trials)
    artefact = _built(tmp_path, editor)
    assert "second right option" in material(editor.requests[1])["remarks"]
    (question,) = Benchmark(artefact).questions
    assert "Rupture of the bladder" in question.options
    assert question.facets["doubts"] == "none"


_NEW = {
    "A": "Splenic rupture",
    "B": "Perforation of the stomach",
    "C": "Rupture of the bladder",
    "D": "Injury of the iliac artery",
}


@pytest.mark.parametrize("spare", [[], ["Rupture of the bladder"]])
def test_a_second_right_option_that_the_review_leaves_is_replaced_or_rejected(tmp_path: Path, spare: list[str]) -> None:
    trials = _doubting({"also_right": "yes", "reason": "it fits"})
    begun = msgspec.structs.replace(
        RECIPE, begin=lambda context: [item.put(spare=spare) for item in _finished(context)]
    )
    script = {"model": Script(lambda _name, _request: None, trials=Editor({**SIGN, **NOTHING}, trials=trials))}
    artefact = build(tmp_path, begun, [_document()], cupcase.CupcaseSettings(), script)
    if spare:
        assert "Rupture of the bladder" in Benchmark(artefact).questions[0].options
    else:
        assert _reason(artefact) == ("replace options", "too few distractors that exclude the diagnosis")


@pytest.mark.parametrize("window", [4096, 7600])
def test_a_small_window_cuts_the_report_or_leaves_the_review_out(tmp_path: Path, window: int) -> None:
    """Sources count as the prompt showed them; what can't be reviewed goes on and says so."""
    editor = _editor()
    script = Script(lambda _name, _request: None, trials=editor)
    corpus, settings = a_corpus(tmp_path, [_long_document()]), cupcase.CupcaseSettings()
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        size = ContextWindow(tokens=window, source="known")
        model = Model(spec="scripted", backend=script, ledger=ledger, window=size)
        context = RecipeContext(corpus, settings, models={"model": model})
        (outcome,) = _last_steps(settings)[0].run(_finished(context), context)
    assert isinstance(outcome, RecipeItem)
    if window == 4096:
        assert not editor.requests
        assert any("not reviewed" in flag for flag in outcome["flags"])
    else:
        assert "The rest does not fit" in material(editor.requests[0])["case report, numbered sentences"]


def _long_document() -> Document:
    document = _document()
    text = document.text + " Chest compressions injure ribs more often than the liver." * 400
    last = msgspec.structs.replace(document.sections[-1], end=len(text))
    return msgspec.structs.replace(document, text=text, sections=(document.sections[0], last))


# Questions without options


def _ogcare(folder: Path, editor: Editor, script: Any = None, **settings: Any) -> Artefact:
    made = ogcare.OgcareSettings(**settings)
    scripts = {"model": Script(script or says(), trials=editor)}
    return build(folder, ogcare.RECIPE, [REPORT], made, scripts, window=ContextWindow(tokens=32_000, source="known"))


_REASON = "Surgery was ruled out because of portal hypertension, and fibrin glue was washed away twice."


def test_the_authors_reasons_become_plain_facts_before_the_trial(tmp_path: Path) -> None:
    cases: list[str] = []

    def trials(name: str, request: ChatRequest) -> object:
        if name == "trial-open":
            cases.append(material(request)["case"])
        return passing_trial(name, request)

    plain = _edit("replace", 5, "He had portal hypertension, and fibrin glue was washed away twice.", (7,))
    editor = Editor(_edits(plain, kind="leak"), {**SIGN, **NOTHING}, trials=trials)
    artefact = _ogcare(tmp_path, editor, distraction=False)
    (question,) = Benchmark(artefact).questions
    assert "ruled out" not in question.context
    assert "He had portal hypertension" in question.context
    assert cases == [question.context]
    assert "authors' reasons" in editor.requests[0].messages[0].content
    report = material(editor.requests[0])["case report, numbered sentences"]
    assert "\n3. A 54-year-old man" in report  # as in the requests before
    assert "[Legends, tables and headings]\n11. Introduction" in report
    schema = str(editor.requests[0].schema)
    assert "second_right" in schema
    assert not any(word in schema for word in ("new_options", "absurd_option", "style"))


@pytest.mark.parametrize(("asks", "options"), [("step", ""), ("diagnosis", "A) gout")])
def test_every_kind_of_problem_begins_a_line(asks: str, options: str) -> None:
    """A condition at the end of a line takes the line's end away with it."""
    values = {"report": "r", "case": "c", "question": "q", "answer": "a", "remarks": "", "asks": asks}
    system, _ = load_prompt("item-review").fill({**values, "options": options})
    listed = [line.split("`")[1] for line in system.splitlines() if line.startswith("- `")]
    assert {"fact_lost", "leak", "key", "second_right", "altered", "residue", "question", "other"} <= set(listed)
    assert ("accepted" in listed) == (not options)
    assert ("new_options" in listed) == bool(options)


def test_what_earns_credit_is_stored_with_the_question_and_shown(tmp_path: Path) -> None:
    """Accepted variants and a note for the grader: judges and reviewers see them, and the last review counts."""
    note = "Follow-up is optional. A covered stent does not count."
    first = _edits(_edit("delete", 2), kind="residue", **_graded("close it", note="none"))
    last = {**SIGN, **NOTHING, **_graded("septal occluder", "device closure of the tract", note=note)}
    artefact = _ogcare(tmp_path, Editor(first, last), distraction=False)
    (question,) = Benchmark(artefact).questions
    assert [(each.text, each.by, each.note) for each in question.accepted] == [
        ("septal occluder", ("final review",), note),
        ("device closure of the tract", ("final review",), ""),
    ]
    assert question.reference.endswith(f"\n2. septal occluder ({note})\n3. device closure of the tract")
    (task,) = read_jsonl(artefact.file("review.jsonl"), ReviewTask)
    assert task.shown["accepted"] == f"septal occluder ({note})\ndevice closure of the tract"


def test_a_grading_note_alone_belongs_to_the_key(tmp_path: Path) -> None:
    signed = {**SIGN, **NOTHING, **_graded(note="The size of the device is optional.")}
    (question,) = Benchmark(_ogcare(tmp_path, Editor(signed), distraction=False)).questions
    assert question.right_answers == (question.answer,)
    assert question.reference == f"{question.answer} (The size of the device is optional.)"


def _refuted(answer: str, words: str) -> dict[str, str]:
    return {"answer": answer, "defence": "it is at hand and often done", "words": words}


_UNASKED = {"requirement": "the size of the device", "question_words": "Not asked."}
_UNSATISFIED = {"answer": "septal occluder", "satisfies": "no", "lacks": "the size of the device"}


@pytest.mark.parametrize(
    ("wrong", "said", "details"),
    [
        (
            {"requirements": [_UNASKED]},
            "Key or note demand 'the size of the device', and the question does not ask for it",
            "not asked for: the size of the device",
        ),
        (
            {"answer_check": [{"answer": _KEY, "satisfies": "yes", "lacks": ""}, _UNSATISFIED]},
            "'septal occluder' counts as right and does not satisfy the note (the size of the device)",
            "does not satisfy the note: septal occluder (the size of the device)",
        ),
        (
            {"exclusions": [_refuted("a covered stent", "Nothing.")]},
            "Nothing in the case or the question speaks against 'a covered stent'",
            "can be defended and does not count: a covered stent (it is at hand and often done)",
        ),
    ],
)
@pytest.mark.parametrize("mended", ["", "note", "question"])
def test_a_note_that_demands_more_than_the_question_is_mended_or_the_item_rejected(
    tmp_path: Path, wrong: dict[str, Any], said: str, details: str, mended: str
) -> None:
    """Judges held back items whose note demanded what the question did not ask for."""
    first = {**SIGN, **NOTHING, **_graded("septal occluder", note="The size must be named.", **wrong)}
    wider = "Which device should close the tract, and of which size?"
    sized = {"requirement": "the size of the device", "question_words": "of which size"}
    problem = [{"kind": "question", "problem": "it does not ask for the size"}]
    replies = {
        "": first,
        "note": {**first, **_graded("septal occluder", note="The size is optional.")},
        "question": {
            **_edits(**{**_graded("septal occluder of 12 mm", requirements=[sized]), "new_question": wider}),
            "problems": problem,
        },
    }
    last = {**SIGN, **NOTHING, **_graded("septal occluder", requirements=[sized])} if mended == "question" else {}
    editor = Editor(first, replies[mended], *([last] if last else []))
    artefact = _ogcare(tmp_path, editor, distraction=False)
    assert said in editor.requests[1].messages[-1].content
    if mended:
        (question,) = Benchmark(artefact).questions
        assert question.text == (wider if mended == "question" else GOOD["ogcare-question"]["question"])
        assert [each.note for each in question.accepted] == ["The size is optional." if mended == "note" else ""]
        return
    (rejected,) = read_jsonl(artefact.file("rejected.jsonl"), RejectedItem)
    assert rejected.reason == "final review: question and note for the grader demand different things"
    assert rejected.details.startswith(details)


@pytest.mark.parametrize(
    ("wrong", "said", "flag"),
    [
        (
            {"requirements": []},
            "`requirements` is empty",
            "",
        ),
        (
            {"asked": "which device"},
            "The words 'which device' of `requirements` are not in the question",
            "the words 'which device', said to ask for",
        ),
        (
            {"note": "A covered stent does not count."},
            "The note refuses answers and `exclusions` is empty",
            "not checked: whether case and question exclude what the note refuses",
        ),
        (
            {"exclusions": [_refuted("a covered stent", "the vessel is too narrow")]},
            "The words 'the vessel is too narrow' of `exclusions` are not in the case or the question",
            "",
        ),
        (
            {"answer_check": [{"answer": _KEY, "satisfies": "yes", "lacks": ""}]},
            "`answer_check` has no entry for 'septal occluder'",
            "not checked against the note: septal occluder",
        ),
    ],
)
def test_lists_of_the_grading_check_that_do_not_fit_the_item_are_asked_again_and_flagged(
    tmp_path: Path, wrong: dict[str, Any], said: str, flag: str
) -> None:
    editor = Editor({**SIGN, **NOTHING, **_graded("septal occluder", **wrong)})
    item = _item(_ogcare(tmp_path, editor, distraction=False))
    assert len(editor.requests) == 2
    assert said in editor.requests[1].messages[-1].content
    assert flag in str(item.get("flags", "")), item.get("flags")
    assert bool(item.get("flags")) == bool(flag)


def test_words_that_ask_and_words_that_exclude_are_found_in_the_edited_item(tmp_path: Path) -> None:
    """The words may be of a new sentence or a new question, in other case, and of several places."""
    question = "Beyond drugs and glue, what should be done next for the tract?"
    excluded = [
        _refuted("more glue", "beyond drugs and glue"),
        _refuted("an operation", "Surgery was ruled out … portal hypertension."),
        _refuted("antibiotics", "He was afebrile; no fever"),
    ]
    insert = _edit("insert", 2, "He was afebrile, with no fever.", (4,))
    graded = _graded("septal occluder", asked="What should be done next", exclusions=excluded)
    editor = Editor({**_edits(insert, **graded), "new_question": question}, {**SIGN, **NOTHING, **graded})
    artefact = _ogcare(tmp_path, editor, distraction=False)
    assert len(editor.requests) == 2  # the edited item is reviewed once more, and nothing is asked again
    assert material(editor.requests[1])["question"] == question
    assert _item(artefact)["grading"]["exclusions"] == excluded


def test_accepted_answers_do_not_outlive_a_new_question(tmp_path: Path) -> None:
    first = _edits(_edit("delete", 2), kind="residue", **_graded("septal occluder"))
    second = {**_edits(), "new_question": "What should be done next for the tract?"}
    artefact = _ogcare(tmp_path, Editor(first, second, {**SIGN, **NOTHING}), distraction=False)
    (question,) = Benchmark(artefact).questions
    assert question.accepted == ()


def test_a_report_that_only_hopes_for_a_benefit_is_rejected(tmp_path: Path) -> None:
    problems = [
        {"kind": "key", "problem": "the sheet could potentially minimise transmission; nothing shows that it did"}
    ]
    reply = {**_edits(), "problems": problems, "verdict": "reject", "reason": "no benefit is shown"}
    artefact = _ogcare(tmp_path, Editor(reply), distraction=False)
    (rejected,) = read_jsonl(artefact.file("rejected.jsonl"), RejectedItem)
    assert rejected.reason == "final review: the answer is wrong or more than the case supports"
    assert "nothing shows that it did" in rejected.details


@pytest.mark.parametrize(
    ("key", "doubted"),
    [
        ("Septal occluder.", False),
        ("Close the tract with an occluder.", False),
        ("Inject more fibrin glue.", True),
        ("Yes.", True),
    ],
)
def test_a_shortened_key_is_the_same_answer(tmp_path: Path, key: str, doubted: bool) -> None:
    """A rule counted how much of the old key was left, and objected to every shorter one."""
    editor = Editor(_edits(new_answer=key, kind="key"), {**SIGN, **NOTHING})
    if doubted:
        editor = Editor(*[_edits(new_answer=key, kind="key")] * 2, {**SIGN, **NOTHING})
    artefact = _ogcare(tmp_path, editor, distraction=False)
    assert Benchmark(artefact).questions[0].answer == key
    flags = _item(artefact).get("flags", ())
    assert any("few of its words are in the old key" in flag for flag in flags) == doubted
    assert len(editor.requests) == 2 + doubted


def test_a_pronoun_in_the_key_is_pointed_out(tmp_path: Path) -> None:
    def script(name: str, request: ChatRequest) -> object:
        said: Any = says()(name, request)
        if name != "ogcare-question":
            return said
        return {**said, "answer": "Close his tract with a percutaneous cardiac septal occluder."}

    new = "Close the patient's tract with a percutaneous cardiac septal occluder."
    editor = Editor(_edits(new_answer=new, kind="key"), {**SIGN, **NOTHING})
    artefact = _ogcare(tmp_path, editor, script)
    assert "question or key says 'his'" in material(editor.requests[0])["remarks"]
    assert Benchmark(artefact).questions[0].answer == new


@pytest.mark.parametrize("again", [False, True])
def test_a_rival_that_a_trial_finds_is_excluded_or_the_item_is_rejected(tmp_path: Path, again: bool) -> None:
    left = [2 if again else 1]

    def trials(name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        if name == "trial-match" and left[0]:
            left[0] -= 1
            return {**said, "rival": "a covered stent"}
        return said

    narrowed = _edits(new_question="Which implant should close the tract?", kind="second_right")
    editor = Editor({**SIGN, **NOTHING}, narrowed, trials=trials)
    artefact = _ogcare(tmp_path, editor)
    assert "a covered stent" in material(editor.requests[1])["remarks"]
    if again:
        assert _reason(artefact) == ("trials", "it fails its trial again after an edit")
        return
    (question,) = Benchmark(artefact).questions
    assert question.text == "Which implant should close the tract?"
    assert question.facets["doubts"] == "none"
    assert CONTEXT in next(e for e in artefact.file("questions-original.jsonl").read_text().splitlines())


@pytest.mark.parametrize("again", [False, True])
def test_a_note_that_leaves_an_answer_open_is_written_anew_and_graded_again(tmp_path: Path, again: bool) -> None:
    """The answers stay: only the note is another. What it leaves open again is a reason to reject."""
    left = [2 if again else 1]

    def trials(name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        if name == "trial-open":
            return {**said, "others": ["a septal occluder through the liver"]}
        if name == "trial-grading" and left[0]:
            left[0] -= 1
            open_one = {"attempt": "B", "counts": "unclear", "defensible": "yes", "reason": "is the route asked for?"}
            return {**said, "grades": [said["grades"][0], open_one]}
        return said

    first = {**SIGN, **NOTHING, **_graded("septal occluder")}
    second = {**first, "grading_note": "The route is optional."}
    editor = Editor(first, second, trials=trials)
    artefact = _ogcare(tmp_path, editor)
    remarks = material(editor.requests[1])["remarks"]
    assert "grading left open: a septal occluder through the liver: is the route asked for?" in remarks
    assert "an earlier review accepts 'septal occluder'" in remarks
    if again:
        assert _reason(artefact) == ("trials", "it fails its trial again after an edit")
        return
    (question,) = Benchmark(artefact).questions
    assert question.accepted[0].note == "The route is optional."
    assert question.facets["doubts"] == "none"


_FAULT = {"kind": "fact", "fault": "The case lacks the fever.", "mend": "Add it."}


def _held(times: int, disputes: list[str]) -> Callable[[str, ChatRequest], object]:
    """Referees of whom so many hold the item back, and what each is told about another one."""
    left = [times]

    def trials(name: str, request: ChatRequest) -> object:
        if name == "trial-referee":
            shown = material(request)
            assert "1. Enterocutaneous fistulas" in shown["case report, numbered sentences"]
            disputes.append(shown["dispute"])
            left[0] -= 1
            if left[0] >= 0:
                return {"faults": [_FAULT], "publish": "no"}
        return passing_trial(name, request)

    return trials


@pytest.mark.parametrize("times", [1, 2])
def test_what_a_referee_holds_back_is_edited_and_a_second_referee_decides(tmp_path: Path, times: int) -> None:
    disputes: list[str] = []
    added = _edits(_edit("insert", 5, "Surgery remains the standard of care.", (10,)))
    editor = Editor({**SIGN, **NOTHING}, added, trials=_held(times, disputes))
    artefact = _ogcare(tmp_path, editor)
    remarks = material(editor.requests[1])["remarks"]
    assert "a trial: held back by a referee: The case lacks the fever. (Add it.)" in remarks
    assert disputes == ["(none)", "(none)"]  # it is another item: the second referee judges it for the first time
    if times == 2:
        assert _reason(artefact) == ("trials", "a second referee holds it back")
        return
    assert _item(artefact)["trials"]["referee"] == {"second": True}
    assert Benchmark(artefact).questions[0].facets["doubts"] == "none"


@pytest.mark.parametrize("times", [1, 2])
def test_an_editor_who_signs_against_a_referee_is_heard_by_a_second_one(tmp_path: Path, times: int) -> None:
    """No text has changed: without the dispute the second call would be the first one again."""
    disputes: list[str] = []
    signed = {**SIGN, **NOTHING, "reason": "sentence 4 denies a fever"}
    artefact = _ogcare(tmp_path, Editor({**SIGN, **NOTHING}, signed, trials=_held(times, disputes)))
    assert disputes[0] == "(none)"
    assert "The case lacks the fever." in disputes[1]
    assert disputes[1].endswith("its editor: sentence 4 denies a fever")
    if times == 2:
        assert _reason(artefact) == ("trials", "a second referee holds it back")
        return
    assert len(Benchmark(artefact).questions) == 1


@pytest.mark.parametrize(("faults", "publish"), [([], "no"), ([_FAULT], "yes")])
def test_a_referee_whose_verdict_and_faults_do_not_agree_is_asked_again_and_the_faults_count(
    tmp_path: Path, faults: list[dict[str, str]], publish: str
) -> None:
    calls: list[ChatRequest] = []

    def trials(name: str, request: ChatRequest) -> object:
        if name != "trial-referee":
            return passing_trial(name, request)
        calls.append(request)
        return {"faults": faults, "publish": publish}

    artefact = _ogcare(tmp_path, Editor(trials=trials), item_review=False)
    assert "list it, or publish" in calls[1].messages[-1].content
    assert Benchmark(artefact).questions[0].facets["doubts"] == (["held back by a referee"] if faults else "none")


def test_without_an_editor_a_referee_only_flags(tmp_path: Path) -> None:
    editor = Editor(trials=_held(2, []))
    artefact = _ogcare(tmp_path, editor, item_review=False)
    assert Benchmark(artefact).questions[0].facets["doubts"] == ["held back by a referee"]


def test_a_distraction_keeps_each_fact_of_the_core_once_and_what_was_added(tmp_path: Path) -> None:
    """A sentence that was moved is not kept twice; an edit elsewhere does not take a core fact away."""
    wish = "the mother strongly wishes for a closure without delay"

    def script(name: str, request: ChatRequest) -> object:
        said: Any = says()(name, request)
        return {**said, "core": [*said["core"], wish]} if name == "ogcare-question" else said

    moved = "He had cirrhosis and no fever."
    plain = "He had portal hypertension. Fibrin glue was washed away twice."
    edits = _edits(_edit("delete", 2), _edit("insert", 4, moved, (4,)), _edit("replace", 5, plain, (7,)), kind="leak")
    added = _edits(_edit("insert", 6, "Surgery remains the standard of care.", (10,)))
    editor = Editor(edits, added, {**SIGN, **NOTHING})
    core = _item(_ogcare(tmp_path, editor, script))["core"]
    assert core[:3] == [*GOOD["ogcare-question"]["core"][:2], wish]
    assert core[3:] == [
        "He had portal hypertension.",
        "Fibrin glue was washed away twice.",
        "Surgery remains the standard of care.",
    ]


def _of_biopsy(folder: Path, *replies: object) -> tuple[Artefact, Editor]:
    """The same item, of a report whose discussion tells what a biopsy and a culture showed."""
    told = "Anti-MuSK antibodies were absent. The drained bile grew Klebsiella pneumoniae. Sodium was 138 mg/L."
    report = _document()
    text = f"{report.text} {told}"
    report = msgspec.structs.replace(report, text=text, sections=(*report.sections[:-1], _to_the_end(report, text)))
    editor = _editor(*replies)
    script = {"model": Script(lambda _name, _request: None, trials=editor)}
    return build(folder, RECIPE, [report], cupcase.CupcaseSettings(review_share=1.0), script), editor


def _to_the_end(report: Document, text: str) -> Section:
    return msgspec.structs.replace(report.sections[-1], end=len(text))


def _number_of(editor: Editor, words: str) -> int:
    (found,) = re.findall(
        rf"^(\d+)\. [^\n]*{words}", material(editor.requests[0])["case report, numbered sentences"], re.M
    )
    return int(found)


def test_an_edit_that_makes_a_finding_vague_is_asked_about_and_flagged(tmp_path: Path) -> None:
    _, first = _of_biopsy(tmp_path / "first")
    number = _number_of(first, "Klebsiella")
    vague = _edit("insert", 5, "The drained bile grew a gas-forming bacterium.", (number,))
    exact = _edit("insert", 5, "The drained bile grew Klebsiella pneumoniae.", (number,))
    artefact, editor = _of_biopsy(tmp_path / "mended", _edits(vague), _edits(exact))
    assert "'bacterium' where the report names 'Klebsiella pneumoniae'" in editor.requests[1].messages[-1].content
    assert "grew Klebsiella pneumoniae" in Benchmark(artefact).questions[0].context
    assert not _item(artefact).get("flags")
    artefact, _ = _of_biopsy(tmp_path / "insisted", _edits(vague), _edits(vague))
    assert "a gas-forming bacterium" in Benchmark(artefact).questions[0].context
    assert any("vaguer than its sources" in flag for flag in _item(artefact)["flags"])


def test_a_correction_of_the_report_is_listed_and_flagged_for_reviewers(tmp_path: Path) -> None:
    _, first = _of_biopsy(tmp_path / "first")
    number = _number_of(first, "Sodium")
    unit = _edit("insert", 5, "Sodium was 138 mmol/L.", (number,))
    word = {**_edit("replace", 1, "A 61-year-old man collapsed at a bus station.", (1,)), "why": "corrected: stop"}
    artefact, _ = _of_biopsy(tmp_path / "edited", _edits(unit, word, kind="residue"))
    flags = "\n".join(_item(artefact)["flags"])
    assert "it corrects a unit of the report: 138 mg/L became 138 mmol/L" in flags
    assert "it corrects the report, says its editor: corrected: stop" in flags
    rows = {row["after"]: row for row in read_tsv(artefact.file("edits.tsv"))}
    assert rows["A 61-year-old man collapsed at a bus station."]["why"] == "corrected: stop"
    task = next(each for each in read_jsonl(artefact.file("review.jsonl"), ReviewTask) if each.kind == "leak")
    assert "138 mg/L became 138 mmol/L" in str(task.shown)


def test_a_new_option_that_the_case_excludes_is_asked_about(tmp_path: Path) -> None:
    editor = _editor()
    _built(tmp_path / "before", editor)
    rows = re.findall(r"^([A-D])\) (.*)$", material(editor.requests[0])["options"], re.MULTILINE)
    letter = next(each for each, text in rows if text == "Retroperitoneal hematoma")
    film = _edits(_edit("insert", 5, "The film showed no rib fracture.", (10,)))
    reply = _edits(new_options=[{"option": letter, "text": "Rib fracture"}], kind="absurd_option")
    better = _edits(new_options=[{"option": letter, "text": "Splenic rupture"}], kind="absurd_option")
    editor = _editor(film, reply, better)
    artefact = _built(tmp_path / "after", editor)
    said = editor.requests[2].messages[-1].content
    assert "the case itself excludes it, 'The film showed no rib fracture.'" in said
    assert "Splenic rupture" in Benchmark(artefact).questions[0].options


def test_an_option_that_the_shown_test_excludes_comes_back_to_the_review(tmp_path: Path) -> None:
    why = "the case excludes it: 'Ultrasound of the groin found no hematoma.'"
    reply = _edits(
        new_options=[{"option": letter, "text": text} for letter, text in _NEW.items()], kind="absurd_option"
    )
    editor = Editor({**SIGN, **NOTHING}, reply, trials=_doubting({"absurd": "yes", "reason": why}))
    artefact = _built(tmp_path, editor)
    assert why in material(editor.requests[1])["remarks"]
    assert "Rupture of the bladder" in Benchmark(artefact).questions[0].options


def test_a_key_that_is_a_part_of_the_reports_diagnosis_is_pointed_out(tmp_path: Path) -> None:
    editor = _editor(_edits(new_answer="Liver laceration", kind="key"))
    _built(tmp_path, editor)
    remarks = material(editor.requests[1])["remarks"]
    assert f"the report's diagnosis is {_DIAGNOSIS!r}; the question must ask for what the key is" in remarks


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("case-shown", "even if it shares a word with the answer"),
        ("cut-check", "even if it shares a word with the answer"),
        ("cut-check", "replaced a finding by vaguer words"),
        ("item-review", "even if a word of the key occurs in them"),
        ("item-review", "a finding replaced by vaguer words"),
        ("item-review", "attributes to the key only findings that the report attributes to it"),
        ("item-review", "still weigh after the facts shown"),
        ("case-options", "still weigh after all the facts shown"),
        ("clinbench-further", "still have to weigh after all the facts"),
        ("trial-compare", "weigh it after the facts shown"),
        ("case-options", "shares the most telling result"),
    ],
)
def test_every_step_says_that_findings_keep_their_words_and_options_are_weighed(prompt: str, told: str) -> None:
    shown: dict[str, object] = {name: "diagnosis" if name == "asks" else "x" for name in load_prompt(prompt).variables}
    system, _ = load_prompt(prompt).fill(shown)
    assert told in " ".join(system.split())
