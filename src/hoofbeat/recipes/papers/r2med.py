"""R2MED: questions whose documents are found by reasoning, not by words in common.

A question, its answer, documents that answer it and documents that don't are refined in stages: collected by task,
filtered, joined by a path of reasoning, completed by mining, graded on two scales, reviewed, labelled. What is searched
stands in `collection.tsv`: passages (or cases) of the corpus under ids of their own, which the judgments name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from string import ascii_uppercase
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from hoofbeat.corpus.terms import content_forms
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.case_diagnosis import name_diagnosis, with_flags
from hoofbeat.recipes.cases.cut_check import cut_check, cuts_table
from hoofbeat.recipes.cases.shown_sentences import choose_shown, drop_call_outs, no_leaks, shown, take_case, with_shown
from hoofbeat.recipes.context import CUT_MARK, RecipeContext, fit_all
from hoofbeat.recipes.corpus_steps import label_step
from hoofbeat.recipes.guards.text_checks import sound
from hoofbeat.recipes.pools.diagnosis_groups import choose_queries, group_cases
from hoofbeat.recipes.pools.document_pool import Contradictory, GradeThresholds, grade_step, mine_step, searched_step
from hoofbeat.recipes.pools.exam_questions import difficult, open_steps
from hoofbeat.recipes.pools.pool_sources import PieceCollection, asked_items, cited, readable
from hoofbeat.recipes.recipe import Recipe, RecipeOutput, from_documents
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import doubtful_first, review_tasks, two_stage
from hoofbeat.recipes.steps import UNLIMITED, RecipeStep, ask, check, sample, together
from hoofbeat.recipes.trials import OpenTrialSettings, TriedQuestion, account_for_trials, open_trial
from hoofbeat.records import Question
from hoofbeat.retrieval.index.chunking import sentence_spans

Task = Literal["qa-reference", "clinical-evidence", "clinical-case"]
CRITERIA = ("query", "reasoning", "support")
QUESTION = "What is the most likely diagnosis?"
_SCENARIOS = {"qa-reference": "question and answer", "clinical-case": "similar case"}
_GRADED_BY = {"qa-reference": "reference", "clinical-evidence": "evidence", "clinical-case": "case"}
_MEASURED = re.compile(
    r"[<>≤≥~±]?\s*\d[\d.,\s–-]*(?:to\s*\d[\d.,]*\s*)?"
    r"(?:%|[µμm]?(?:g|l|mol|eq)|kg|[cmk]?m|mmhg|iu|u|hours?|days?|weeks?|months?|years?)?(?:\s*/\s*\w+)?\.?",
    re.IGNORECASE,
)


class R2medSettings(OpenTrialSettings, frozen=True, kw_only=True):
    """Every threshold of the paper; where it prints none, the default is ours."""

    FILES: ClassVar[tuple[str, ...]] = ("posts", "questions", "reviews")

    task: Annotated[Task, Meta(description="The retrieval task: qa-reference, clinical-evidence or clinical-case.")] = (
        "clinical-case"
    )
    posts: Annotated[str, Meta(description="File of posts with accepted answers (task qa-reference).")] = ""
    questions: Annotated[str, Meta(description="File of exam or open questions (task clinical-evidence).")] = ""
    min_votes: Annotated[int, Meta(description="Minimum votes of a post's answer, if known.", ge=0)] = 4
    max_pages: Annotated[int, Meta(description="Maximum cited pages of a post; 0 takes all.", ge=0)] = 2
    passages: Annotated[str, Meta(description="How documents are cut into passages.")] = "sentences:128"
    types: Annotated[
        tuple[Literal["examination", "diagnosis", "treatment"], ...],
        Meta(description="Decisions that questions may ask for."),
    ] = ("examination", "diagnosis", "treatment")
    max_correct: Annotated[int, Meta(description="Maximum models of the committee that may know the answer.", ge=0)] = 1
    max_members: Annotated[int, Meta(description="Maximum models in the committee.", ge=1)] = 8
    entity_words: Annotated[int, Meta(description="Maximum words of an answer that is one medical entity.", ge=1)] = 8
    open_words: Annotated[
        int, Meta(description="Maximum words of an open question made from multiple choice.", ge=5)
    ] = 60
    open_new_words: Annotated[int, Meta(description="Maximum content words that such a question may add.", ge=0)] = 1
    quote_match: Annotated[float, Meta(description="Minimum similarity of a quote and its source.", gt=0, le=1)] = 0.9
    diagnosis_words: Annotated[int, Meta(description="Maximum words of a diagnosis.", ge=1)] = 15
    check_cuts: Annotated[
        bool, Meta(description="A model compares each case before and after the cuts to its presentation.")
    ] = True
    sharing: Annotated[
        Literal["same", "kinds"],
        Meta(description="Compare only cases of the same diagnosis, or also its subtypes, on which a model decides."),
    ] = "kinds"
    min_group: Annotated[int, Meta(description="Minimum cases of one diagnosis.", ge=2)] = 2
    compared_names: Annotated[
        int, Meta(description="Maximum diagnoses that are compared because they share a word.", ge=2)
    ] = 400
    queries_per_group: Annotated[
        int, Meta(description="Maximum cases of one diagnosis that become questions.", ge=1)
    ] = 3
    min_words: Annotated[int, Meta(description="Minimum words of a case's presentation.", ge=1)] = 50
    leak_match: Annotated[
        float, Meta(description="Minimum similarity of a word that counts as a leak.", gt=0, le=1)
    ] = 0.9
    leak_negated: Annotated[bool, Meta(description="Whether a denied mention of the diagnosis is a leak.")] = True
    fellows: Annotated[
        int, Meta(description="Maximum other cases of its diagnosis that a case is compared with.", ge=1, le=8)
    ] = 3
    fellow_shown: Annotated[int, Meta(description="Characters of another case that the model sees.", ge=200)] = 8000
    min_focus: Annotated[int, Meta(description="Lowest diagnostic focus of a case, 0 to 10.", ge=0, le=10)] = 6
    min_completeness: Annotated[int, Meta(description="Lowest completeness of a case, 0 to 10.", ge=0, le=10)] = 6
    min_similarity: Annotated[int, Meta(description="Lowest similarity to another case, 0 to 10.", ge=0, le=10)] = 6
    vocabularies: Annotated[tuple[str, ...], Meta(description="Vocabularies that know diagnoses and answers.")] = (
        "icd10cm",
        "rare-diseases",
    )
    draw: Annotated[int, Meta(description="How many items to use after the filters; 0 takes all.", ge=0)] = 0
    max_reasoning_words: Annotated[int, Meta(description="Maximum words of a path of reasoning.", ge=10)] = 400
    answer_share: Annotated[
        float, Meta(description="Minimum share of a short answer's words in a conclusion.", gt=0, le=1)
    ] = 0.6
    long_answer: Annotated[int, Meta(description="An answer with more content words than this is long.", ge=1)] = 8
    answer_words: Annotated[int, Meta(description="Minimum words of a long answer in a conclusion.", ge=1)] = 3
    retrievers: Annotated[tuple[str, ...], Meta(description="Retriever lines of the mining committee.")] = (
        "bm25",
        "dense",
    )
    depth: Annotated[int, Meta(description="How deep each ranking is read in mining.", ge=1)] = 100
    mined: Annotated[int, Meta(description="Number of mined documents in the pool.", ge=0)] = 10
    max_known: Annotated[int, Meta(description="Maximum known documents that are graded; 0 grades all.", ge=0)] = 30
    keep: Annotated[int, Meta(description="Minimum of both grades for a positive.", ge=1, le=10)] = 8
    reject: Annotated[int, Meta(description="Maximum of both grades for a negative.", ge=0, le=9)] = 4
    contradictory: Annotated[Contradictory, Meta(description="What to do with one high and one low grade.")] = (
        "discarded"
    )
    body_system: Annotated[Literal["rule", "model"], Meta(description="What labels the body system.")] = "model"
    label_posts: Annotated[bool, Meta(description="Also label the body system of posts; the paper does not.")] = False
    reviews: Annotated[str, Meta(description="Labels of annotator and expert, to be applied.")] = ""
    compare_with: Annotated[tuple[str, ...], Meta(description="Other corpora to measure the overlap with.")] = ()
    overlap_by: Annotated[Literal["tokens", "words"], Meta(description="Unit in which overlap is counted.")] = "tokens"


def _begin(context: RecipeContext) -> Iterable[RecipeItem]:
    if context.settings.task == "clinical-case":
        return from_documents(context)
    posts = context.settings.task == "qa-reference"
    return asked_items(
        context.settings.posts if posts else context.settings.questions, "posts" if posts else "questions"
    )


def _steps(s: R2medSettings) -> list[RecipeStep]:
    shelf = PieceCollection(chunking=s.passages, cases=s.task == "clinical-case")
    return [
        *_COLLECT[s.task](s, shelf),
        sample("draw", s.draw),
        *_reasoning_steps(s),
        mine_step("mine", shelf, lines=s.retrievers, depth=s.depth, top=s.mined, max_known=s.max_known),
        grade_step(
            "grade",
            f"r2med-grade-{_GRADED_BY[s.task]}",
            text=shelf.case_text if s.task == "clinical-case" else shelf.text,
            limits=GradeThresholds(keep=s.keep, reject=s.reject, contradictory=s.contradictory),
            maximum=s.mined + (s.max_known or UNLIMITED),
        ),
        check("scenario", _scenario),
        *_body_system(s),
        two_stage("review", s.reviews, criteria=CRITERIA, forgiven=("reasoning",)),
        searched_step("collection", shelf, compare_with=s.compare_with, by=s.overlap_by),
    ]


def _reasoning_steps(s: R2medSettings) -> list[RecipeStep]:
    """The path from query to answer, and a solver that sees the query alone: what it finds orders the review.

    A post's answer is a free text, which no solver can be expected to write; posts are not tried.
    """
    reasoning = ask("reasoning", "r2med-reasoning", values=_reasoning_values, read=_read_reasoning, role="second")
    if not s.try_answer or s.task == "qa-reference":
        return [reasoning]
    exam = _exam_of_case if s.task == "clinical-case" else _exam_of_question
    tried = open_trial(exam)
    return [*together(reasoning, *tried.solve), *together(*tried.compare), account_for_trials("trials", exam)]


def _exam_of_case(item: RecipeItem) -> TriedQuestion:
    return TriedQuestion(question=QUESTION, answer=str(item["answer"]), case=str(item["query"]))


def _exam_of_question(item: RecipeItem) -> TriedQuestion:
    return TriedQuestion(question=str(item["query"]), answer=str(item["answer"]))


# Collecting and filtering, by task


def _reference_steps(s: R2medSettings, shelf: PieceCollection) -> list[RecipeStep]:
    return [
        readable("accepted posts", min_votes=s.min_votes),
        cited("cited pages", shelf, maximum=s.max_pages),
    ]


def _evidence_steps(s: R2medSettings, shelf: PieceCollection) -> list[RecipeStep]:
    can_be_asked, *opened = open_steps("open question", "r2med-open", max_words=s.open_words, max_new=s.open_new_words)
    return [
        readable("questions"),
        cited("cited documents", shelf, required=False),
        can_be_asked,
        check("answer", _one_thing),
        ask("task type", "r2med-type", values=_question_values("r2med-type"), read=_read_type),
        ask("rules", "r2med-rules", values=_question_values("r2med-rules"), read=_read_rules),
        difficult(
            "difficulty",
            max_correct=s.max_correct,
            max_members=s.max_members,
            choose="r2med-try",
            write="r2med-try-open",
        ),
        *opened,
    ]


def _case_steps(s: R2medSettings, shelf: PieceCollection) -> list[RecipeStep]:
    return [
        take_case("case"),
        name_diagnosis("diagnosis", max_words=s.diagnosis_words, min_match=s.quote_match),
        group_cases(
            "shared diagnosis",
            shelf,
            minimum=s.min_group,
            vocabularies=s.vocabularies,
            max_together=s.compared_names,
            kinds=s.sharing == "kinds",
        ),
        choose_shown("presentation", min_words=s.min_words, min_match=s.quote_match, negated=s.leak_negated),
        *(
            cut_check("cuts checked", shown=shown, put=with_shown, answer="diagnosis", question=QUESTION)
            if s.check_cuts
            else ()
        ),
        drop_call_outs("call-outs"),
        no_leaks("leak check", min_match=s.leak_match, negated=s.leak_negated),
        check("query", _query),
        ask(
            "case quality",
            "r2med-quality",
            values=lambda i, context: _quality_values(i, shelf, context),
            read=_read_quality,
            schema=_quality_schema,
        ),
        choose_queries("queries", shelf, maximum=s.queries_per_group),
    ]


_COLLECT: dict[str, Callable[[R2medSettings, PieceCollection], list[RecipeStep]]] = {
    "qa-reference": _reference_steps,
    "clinical-evidence": _evidence_steps,
    "clinical-case": _case_steps,
}


def _question_values(prompt: str) -> Callable[[RecipeItem, RecipeContext], dict[str, object]]:
    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        texts = {"question": str(item["query"]), "answer": str(item["answer"])}
        return {**fit_all(texts, load_prompt(prompt), context)}

    return values


def _one_thing(item: RecipeItem, context: RecipeContext) -> Outcome:
    """What can be told without a model: a number with its unit, and a sentence, are no medical entity."""
    answer = str(item["answer"]).strip()
    told = len(answer.split()) > context.settings.entity_words and not _known(answer, context)
    if told or _MEASURED.fullmatch(answer):
        return ItemRejection(reason="the answer is not a single medical entity", details=answer[:200])
    return item


def _known(answer: str, context: RecipeContext) -> bool:
    return any(context.vocabulary(name).lookup(answer) for name in context.settings.vocabularies)


def _read_type(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
    if value["type"] not in context.settings.types:
        return ItemRejection(
            reason="it asks for another kind of decision", details=f"{value['type']}: {value['reason']}"
        )
    return item.put(type=value["type"])


def _read_rules(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
    """Where a vocabulary knows the answer as a medical entity, the model is told so before its "no" counts."""
    if value["reasoning"] != "yes":
        return ItemRejection(reason="it can be answered without reasoning", details=str(value["reason"]))
    if value["entity"] != "yes":
        answer = str(item["answer"])
        rejection = ItemRejection(reason="the answer is not a single medical entity", details=answer[:200])
        if _known(answer, context):
            return rejection.again(f"A medical vocabulary has {answer!r} as the name of one condition.")
        return rejection
    return item


def _query(item: RecipeItem, context: RecipeContext) -> Outcome:
    """The presentation as a query; the diagnosis is its answer."""
    query = str(item["stem"])
    if (words := len(query.split())) < context.settings.min_words:
        return ItemRejection(reason="too few words of the case before its diagnosis", details=f"{words} words")
    return item.put(query=query, answer=item["diagnosis"])


def _compared(item: RecipeItem, context: RecipeContext) -> dict[str, str]:
    """The other cases that are compared, by letter."""
    return dict(zip(ascii_uppercase, item["fellows"][: context.settings.fellows], strict=False))


def _quality_values(item: RecipeItem, shelf: PieceCollection, context: RecipeContext) -> dict[str, object]:
    prompt = load_prompt("r2med-quality")
    fellows = "\n\n".join(
        f"Case {letter}\n{_whole_sentences(shelf.case_text(id, context), context.settings.fellow_shown)}"
        for letter, id in _compared(item, context).items()
    )
    texts = {"presentation": str(item["query"]), "fellows": fellows, "diagnosis": str(item["diagnosis"])}
    return {**fit_all(texts, prompt, context)}


def _whole_sentences(text: str, characters: int) -> str:
    """The sentences of a text that this many characters hold; one that is cut says so."""
    if len(text) <= characters:
        return text
    ends = [end for _, end in sentence_spans(text) if end <= characters]
    return text[: ends[-1] if ends else text.rfind(" ", 0, characters)] + CUT_MARK


def _quality_schema(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
    """The prompt's contract with a grade for each of the cases that are shown."""
    schema = dict(load_prompt("r2med-quality").schema or {})
    grade = {"type": "integer", "minimum": 0, "maximum": 10}
    letters = list(_compared(item, context))
    similarity = {
        "type": "object",
        "properties": dict.fromkeys(letters, grade),
        "required": letters,
        "additionalProperties": False,
    }
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return {**schema, "properties": {**properties, "similarity": similarity}}


def _read_quality(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
    """Focus and completeness of the case; of its fellows those stay that show the same condition."""
    s = context.settings
    for grade, lowest in {"focus": s.min_focus, "completeness": s.min_completeness}.items():
        if value[grade] < lowest:
            why = f"{value[grade]}, at least {lowest}: {value['reason']}"
            return ItemRejection(reason=f"the case's {grade} is too low", details=why)
    compared = _compared(item, context)
    grades = {id: int(value["similarity"][letter]) for letter, id in compared.items()}
    alike = [id for id, grade in grades.items() if grade >= s.min_similarity]
    if not alike:
        told = ", ".join(f"{id}: {grade}" for id, grade in grades.items())
        why = f"{told}, at least {s.min_similarity}: {value['reason']}"
        return ItemRejection(reason="no other case shows the same condition", details=why)
    # What was not compared stays where its diagnosis is the same: the pool's grades decide about it.
    unseen = [id for id in item["fellows"] if id not in grades and id not in item["near"]]
    quality = {"focus": value["focus"], "completeness": value["completeness"], "similarity": grades}
    return item.put(quality=quality, fellows=[*alike, *unseen])


# Reasoning


def _reasoning_values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
    texts = {"query": str(item["query"]), "answer": str(item["answer"])}
    return {**fit_all(texts, load_prompt("r2med-reasoning"), context, "second")}


def _read_reasoning(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
    steps = [" ".join(str(step).split()) for step in value["steps"]]
    conclusion = " ".join(str(value["conclusion"]).split())
    path = "\n".join([*steps, conclusion])
    source = f"{item['query']}\n{item['answer']}"
    maximum = context.settings.max_reasoning_words
    wrong = sound(path, what="path of reasoning", source=source, max_words=maximum)
    if wrong is not None:
        return wrong.again(f"A rule objects: {wrong.reason}. At most {maximum} words, in the language of the question.")
    if not all(steps) or not conclusion:
        return ItemRejection(reason="a step of the reasoning is empty", details=path[:200]).again(
            "A step or the conclusion is empty. Every step says something, and the conclusion names the answer."
        )
    if not _mentions(conclusion, str(item["answer"]), context.settings):
        return ItemRejection(reason="the reasoning does not end at the answer", details=conclusion[:200]).again(
            f"The conclusion does not name the answer. Name it in its own words: {item['answer']!r}."
        )
    return item.put(reasoning=path)


def _mentions(conclusion: str, answer: str, s: R2medSettings) -> bool:
    """Whether a conclusion names the answer: most of a short one's words, some of a long one's."""
    wanted, said = set(content_forms(answer)), set(content_forms(conclusion))
    if not wanted:
        return answer.strip().lower() in conclusion.lower()
    shared = len(wanted & said)
    return shared >= s.answer_words if len(wanted) > s.long_answer else shared / len(wanted) >= s.answer_share


# Grading and labels


def _scenario(item: RecipeItem, context: RecipeContext) -> Outcome:
    """The paper's five scenarios: three kinds of decision, and the two tasks that are one by themselves."""
    task = context.settings.task
    return item.labelled(task=task, scenario=_SCENARIOS.get(task) or str(item["type"]))


def _body_system(s: R2medSettings) -> list[RecipeStep]:
    if s.task == "qa-reference" and not s.label_posts:
        return []
    return [
        label_step(
            "body system",
            "body-systems",
            facet="body_system",
            by=s.body_system,
            text=lambda item, _context: f"{item['query']}\n\n{item['answer']}",
        )
    ]


def _finish(items: Sequence[RecipeItem], context: RecipeContext) -> RecipeOutput:
    if context.settings.task == "clinical-case":
        context.tables["cuts"] = cuts_table(items)
    questions = tuple(
        Question(
            id=item.id,
            text=item["query"],
            answer=item["answer"],
            documents=tuple(item["positive_documents"]),
            evidence=item.evidence,
            facets=item.facets,
            lineage=item.lineage,
        )
        for item in items
    )
    return RecipeOutput(
        questions=questions,
        qrels={item.id: item["qrels"] for item in items},
        review=tuple(
            doubtful_first(review_tasks(items, kind="three-criteria", criteria=CRITERIA, shown=_for_review), items)
        ),
    )


def _for_review(item: RecipeItem) -> dict[str, str]:
    positives = ", ".join(id for id, grade in item["qrels"].items() if grade)
    told = {"answer": item["answer"], "reasoning": item["reasoning"], "positives": positives}
    return with_flags(item, told)


RECIPE = Recipe(
    name="r2med",
    title="R2MED: reasoning-driven medical retrieval",
    about=(
        "Questions, answers, and documents that answer them by way of reasoning: collected by task, filtered, mined by "
        "a committee of retrievers, graded on two scales, reviewed. The searched passages are in collection.tsv."
    ),
    settings=R2medSettings,
    begin=_begin,
    steps=_steps,
    finish=_finish,
    vocabularies=("icd10cm", "rare-diseases"),
    encodes=True,
)
