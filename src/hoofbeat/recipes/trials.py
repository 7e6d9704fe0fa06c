"""Every question is tried before it is kept.

A solver that sees what an examinee sees answers it. A solver that sees the options alone, or an open question without
its case, guesses. A call that sees the case, the answer and all options compares them. Of an open question the solver
also names what colleagues would answer, and a call grades these answers by the key and the note for the grader: a note
that leaves a common answer open was the fault that readers of finished items found most. A referee who sees the report
and the finished question says whether it may be published as it is. What they find is stored with
the question (the item's `trials` and the facet `doubts`), doubtful questions come first in the review, and the report
counts them. A trial never edits: an option that is also right is replaced by the recipe, which lists it, or rejects the
question.

The calls of a question do not depend on each other, so that a batch folder takes them in one round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import ascii_uppercase
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from hoofbeat.errors import UsageError
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.context import RecipeContext, RecipeSettings, fit_all
from hoofbeat.recipes.guards.text_checks import numbered_whole
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import (
    CASE_TELLS,
    NO_DOUBT,
    NOT_ANSWERABLE,
    RIVAL,
    TOLD,
    UNGRADED,
)
from hoofbeat.recipes.steps import PartReply, RecipeStep, Schema, Values, ask_each, check, together, whole
from hoofbeat.recipes.trial_findings import (
    BY_QUESTION,
    AnswerTrial,
    GradedAnswer,
    GradingTrial,
    GuessTrial,
    OptionVerdict,
    QuestionTrials,
    RefereeTrial,
    trial_counts,
    trial_findings,
    trials_of,
)
from hoofbeat.window import size

CHOICE, GUESS, COMPARE, OPEN, MATCH = (f"trial-{each}" for each in ("choice", "options", "compare", "open", "match"))
QUESTION, GRADING, REFEREE = "trial-question", "trial-grading", "trial-referee"
SOLVER = "second"
"""The role that answers as an examinee: a second model where one is given."""

_NO_CASE = "(none)"
_FENCES = 600  # bytes kept free for the fences around what a referee sees


class OpenTrialSettings(RecipeSettings, frozen=True, kw_only=True):
    """The parameter of a recipe whose questions have no options."""

    try_answer: Annotated[bool, Meta(description="A model answers each question as an examinee would.")] = True


class ChoiceTrialSettings(OpenTrialSettings, frozen=True, kw_only=True):
    """The parameters of a recipe whose questions have options."""

    try_options: Annotated[bool, Meta(description="A model guesses each answer from the options alone.")] = True
    compare_options: Annotated[bool, Meta(description="A model compares the options with the answer and the case.")] = (
        True
    )


class TriedQuestion(Struct, frozen=True, kw_only=True):
    """What an examinee is shown, the answer, and what a grader is given beside it."""

    question: str
    answer: str
    case: str = ""
    options: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    note: str = ""


Show = Callable[[RecipeItem], TriedQuestion]
Replace = Callable[[RecipeItem, Mapping[str, str], RecipeContext], Outcome]
"""Takes options that are also right, with why, out of an item and puts others in their place; lists what it took."""


# Steps


def choice_trials(
    s: ChoiceTrialSettings, show: Show, replace: Replace | None = None, *, review: RecipeStep | None = None
) -> list[RecipeStep]:
    """The trials of questions with options, those that the settings leave on.

    `review` is a step that may edit what the trials doubt. Where the comparing call finds an option that is also right
    and the review leaves it, `replace` may put others in its place. What is new is tried as well, once. Where it is no
    better, the question is rejected.
    """
    steps = together(*_choice_steps(s, show, ""))
    change = [review] if review is not None and steps else []
    if replace is not None and s.compare_options:
        change.append(_replacing("replace options", replace))
    if change:
        steps += [*change, *together(*_choice_steps(s, show, ", again"))]
    return [*steps, account_for_trials("trials", show)] if steps else []


def _choice_steps(s: ChoiceTrialSettings, show: Show, which: str) -> list[RecipeStep]:
    """The three calls, for questions that were not tried with the options they have now."""
    return [
        *([_try_choice(f"try the question{which}", show)] if s.try_answer else ()),
        *([_guess(f"guess from the options{which}", show)] if s.try_options else ()),
        *([_compare(f"compare the options{which}", show)] if s.compare_options else ()),
    ]


class OpenTrial(NamedTuple):
    """The calls that try a question without options, in two rounds.

    They are apart so that a recipe may let each travel with other steps of its round; `account_for_trials` ends them.
    """

    solve: tuple[RecipeStep, ...] = ()
    compare: tuple[RecipeStep, ...] = ()


def open_trial(show: Show, which: str = "", *, guess: bool = False, referee: bool = False) -> OpenTrial:
    """A solver answers, and its answer is compared; what colleagues might answer is graded where there is a note.

    With `guess`, a solver also guesses from the question without the case. With `referee`, a call that sees the report
    says whether the question may be published as it is. `which` is what the names of a later trial end with.
    """
    guessing = (_guess_question(f"guess from the question{which}", show),) if guess else ()
    reading = (_referee(f"referee{which}", show, second=bool(which)),) if referee else ()
    return OpenTrial(
        (_try_open(f"try the question{which}", show), *guessing),
        (_match(f"compare the answer{which}", show), _grade(f"grade other answers{which}", show), *reading),
    )


def every_trial(s: ChoiceTrialSettings, show: Show) -> list[RecipeStep]:
    """The trials of a benchmark with questions of both kinds; each step passes by those of the other kind."""
    opened = open_trial(show, " without options", guess=s.try_options) if s.try_answer else OpenTrial()
    return [*together(*_choice_steps(s, show, ""), *opened.solve), *together(*opened.compare)]


def account_for_trials(name: str, show: Show) -> RecipeStep:
    """Write the doubts into the facets and count them; a question with a second right option is rejected.

    So is one that was edited because of a trial (`retried`) and that still has a rival answer, can't be answered, is
    given away by its question or its case, or has a note that leaves an answer open that an expert can defend; and one
    that a second referee holds back.
    """

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        outcomes = [_verdict(item) for item in items]
        kept = [out for out in outcomes if isinstance(out, RecipeItem)]
        context.metrics["trials"] = trial_counts(
            [trials_of(item) for item in kept], [len(show(item).options) for item in kept]
        )
        return outcomes

    return whole(name, judge)


_GRAVE = frozenset({RIVAL, NOT_ANSWERABLE, TOLD, CASE_TELLS})


def _grave(trials: QuestionTrials) -> dict[str, str]:
    """The doubts that reject an edited question; an open grade of an answer that hardly anybody gives is none."""
    grading = trials.grading or GradingTrial()
    grave = _GRAVE | {UNGRADED} if any(each.is_undecided for each in grading.grades) else _GRAVE
    return {doubt: why for doubt, why in trial_findings(trials).items() if doubt in grave}


def _verdict(item: RecipeItem) -> Outcome:
    trials = trials_of(item)
    if trials.faults:
        details = "; ".join(f"{option} {why}" for option, why in trials.faults.items())
        return ItemRejection(reason="a wrong option is also right", details=details)
    grave = _grave(trials)
    if item.get("retried") and grave:
        details = "; ".join(f"{doubt}: {why}" for doubt, why in grave.items())
        return ItemRejection(reason="it fails its trial again after an edit", details=details)
    if trials.referee is not None and trials.referee.second and trials.referee.faults:
        return ItemRejection(reason="a second referee holds it back", details="; ".join(trials.referee.faults))
    return item.labelled(doubts=list(trials.doubts) or NO_DOUBT)


def _replacing(name: str, replace: Replace) -> RecipeStep:
    """The recipe replaces options that are also right; what was said of them is kept apart, and trials begin anew."""

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        trials = trials_of(item)
        if not trials.faults:
            return item
        outcome = replace(item, trials.faults, context)
        if not isinstance(outcome, RecipeItem):
            return outcome
        left = tuple(each for each in trials.comparison if not each.fault)
        replaced = [{"option": option, "why": why} for option, why in trials.faults.items()]
        # The solver answered and guessed with other options: both are asked again.
        return _with(outcome, comparison=left, answer=None, guess=None).put(replaced=replaced)

    return check(name, judge)


# One call each


def _trial(
    name: str,
    prompt: str,
    *,
    values: Callable[[RecipeItem, RecipeContext], Values],
    read: Callable[[RecipeItem, dict[str, Any], RecipeContext], RecipeItem | AskAgain],
    failed: Callable[[RecipeItem, str], RecipeItem],
    when: Callable[[RecipeItem], bool],
    role: str = "model",
    schema: Callable[[RecipeItem], Schema] | None = None,
    fits: Callable[[RecipeItem, RecipeContext], bool] = lambda _item, _context: True,
) -> RecipeStep:
    """A call whose failure is written down and does not fail the question: a trial that fails proves nothing."""

    def read_reply(item: RecipeItem, replies: Sequence[PartReply], context: RecipeContext) -> Outcome | AskAgain:
        if not replies:
            return failed(item, "the model's window is too small")
        (reply,) = replies
        if reply.value is None:
            return failed(item, f"{reply.failure.kind}: {reply.failure.message}" if reply.failure else "no reply")
        return read(item, reply.value, context)

    return ask_each(
        name,
        prompt,
        parts=lambda item, context: (None,) if fits(item, context) else (),
        values=lambda item, _part, context: values(item, context),
        read=read_reply,
        role=role,
        schema=(lambda item, _part, _context: schema(item)) if schema else None,
        when=when,
    )


def _with(item: RecipeItem, **found: Any) -> RecipeItem:
    """The item with what a trial found, besides what others did."""
    return item.put(trials=msgspec.to_builtins(msgspec.structs.replace(trials_of(item), **found)))


def _order(item: RecipeItem, options: Sequence[str], context: RecipeContext, trial: str) -> dict[str, str]:
    """The options by letter, in an order that the seed draws for this trial: the right one's place tells nothing."""
    ordered = sorted(options)
    context.rng("trial", trial, item.id).shuffle(ordered)
    return dict(zip(ascii_uppercase, ordered, strict=False))


def _line(text: object) -> str:
    return " ".join(str(text).split())


def _lines(options: Mapping[str, str]) -> str:
    return "\n".join(f"{letter}) {text}" for letter, text in options.items())


def _letters(prompt: str, show: Show) -> Callable[[RecipeItem], Schema]:
    """The prompt's contract with the letters there are."""

    def schema(item: RecipeItem) -> Schema:
        contract: Any = load_prompt(prompt).schema
        choice = {"type": "string", "enum": list(ascii_uppercase[: len(show(item).options)])}
        return {**contract, "properties": {**contract["properties"], "choice": choice}}

    return schema


def _is_due(trial: AnswerTrial | GuessTrial | None, options: Sequence[str]) -> bool:
    """Whether a question with options is still to be tried: not yet, or the option that was chosen is gone."""
    return bool(options) and (trial is None or (bool(trial.said) and trial.said not in options))


def _try_choice(name: str, show: Show) -> RecipeStep:
    def values(item: RecipeItem, context: RecipeContext) -> Values:
        exam = show(item)
        options = _lines(_order(item, exam.options, context, "answer"))
        shown = {"case": exam.case or _NO_CASE, "question": exam.question, "options": options}
        return fit_all(shown, load_prompt(CHOICE), context, SOLVER)

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> RecipeItem:
        exam = show(item)
        said = _order(item, exam.options, context, "answer")[value["choice"]]
        answerable = value["answerable"] == "yes"
        return _with(
            item,
            answer=AnswerTrial(
                said=said,
                match="yes" if said == exam.answer else "no",
                answerable=answerable,
                missing="" if answerable else str(value["missing"]),
                reason=str(value["reason"]),
            ),
        )

    return _trial(
        name,
        CHOICE,
        values=values,
        read=read,
        failed=lambda item, why: _with(item, answer=AnswerTrial(failure=why)),
        when=lambda item: _is_due(trials_of(item).answer, show(item).options),
        role=SOLVER,
        schema=_letters(CHOICE, show),
    )


def _guess(name: str, show: Show) -> RecipeStep:
    def values(item: RecipeItem, context: RecipeContext) -> Values:
        exam = show(item)
        options = _lines(_order(item, exam.options, context, "guess"))
        return fit_all({"question": exam.question, "options": options}, load_prompt(GUESS), context, SOLVER)

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> RecipeItem:
        exam = show(item)
        said = _order(item, exam.options, context, "guess")[value["choice"]]
        right = said == exam.answer
        return _with(item, guess=GuessTrial(said=said, right=right, basis=value["basis"], reason=value["reason"]))

    return _trial(
        name,
        GUESS,
        values=values,
        read=read,
        failed=lambda item, why: _with(item, guess=GuessTrial(failure=why)),
        when=lambda item: _is_due(trials_of(item).guess, show(item).options),
        role=SOLVER,
        schema=_letters(GUESS, show),
    )


def _compare(name: str, show: Show) -> RecipeStep:
    def wrong(item: RecipeItem) -> list[str]:
        exam = show(item)
        return [option for option in exam.options if option != exam.answer]

    def values(item: RecipeItem, context: RecipeContext) -> Values:
        exam = show(item)
        shown = {"case": exam.case or _NO_CASE, "question": exam.question, "answer": exam.answer}
        shown["options"] = _lines(_order(item, wrong(item), context, "compare"))
        return fit_all(shown, load_prompt(COMPARE), context)

    def schema(item: RecipeItem) -> Schema:
        contract: Any = load_prompt(COMPARE).schema
        listed, count = contract["properties"]["options"], len(wrong(item))
        letter = {"type": "string", "enum": list(ascii_uppercase[:count])}
        each = {**listed["items"], "properties": {**listed["items"]["properties"], "option": letter}}
        return {**contract, "properties": {"options": {**listed, "items": each, "minItems": count, "maxItems": count}}}

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> RecipeItem | AskAgain:
        options = _order(item, wrong(item), context, "compare")
        verdicts = {
            options[each["option"]]: OptionVerdict(
                option=options[each["option"]],
                relation=each["relation"],
                also_right=each["also_right"] == "yes",
                absurd=each["absurd"] == "yes",
                other_style=each["style"] == "other",
                reason=each["reason"],
            )
            for each in value["options"]
        }
        done = _with(item, comparison=tuple(verdicts[each] for each in wrong(item) if each in verdicts))
        left_out = [letter for letter, text in options.items() if text not in verdicts]
        if left_out:
            said = f"There must be one entry for each wrong option; there is none for {', '.join(left_out)}."
            failure = f"nothing is said of {len(left_out)} options"
            return AskAgain(reason=failure, say=said, otherwise=_with(done, comparison_failure=failure))
        return done

    def new(item: RecipeItem) -> bool:
        trials = trials_of(item)
        judged = {each.option for each in trials.comparison}
        return not trials.comparison_failure and any(option not in judged for option in wrong(item))

    return _trial(
        name,
        COMPARE,
        values=values,
        read=read,
        failed=lambda item, why: _with(item, comparison=(), comparison_failure=why),
        when=new,
        schema=schema,
    )


def _try_open(name: str, show: Show) -> RecipeStep:
    def values(item: RecipeItem, context: RecipeContext) -> Values:
        exam = show(item)
        shown = {"case": exam.case or _NO_CASE, "question": exam.question}
        return fit_all(shown, load_prompt(OPEN), context, SOLVER)

    def read(item: RecipeItem, value: dict[str, Any], _context: RecipeContext) -> RecipeItem:
        answerable = value["answerable"] == "yes"
        answer = AnswerTrial(
            said=_line(value["answer"]),
            answerable=answerable,
            missing="" if answerable else str(value["missing"]),
            reason=str(value["reason"]),
            others=tuple(_line(each) for each in value["others"]),
            told=_line(value["told"]) if show(item).case else "",
        )
        return _with(item, answer=answer)

    return _trial(
        name,
        OPEN,
        values=values,
        read=read,
        failed=lambda item, why: _with(item, answer=AnswerTrial(failure=why)),
        when=lambda item: not show(item).options and trials_of(item).answer is None,
        role=SOLVER,
    )


def _match(name: str, show: Show) -> RecipeStep:
    def values(item: RecipeItem, context: RecipeContext) -> Values:
        exam, answer = show(item), trials_of(item).answer or AnswerTrial()
        shown = {"case": exam.case or _NO_CASE, "question": exam.question, "answer": exam.answer}
        return fit_all({**shown, "attempt": answer.said}, load_prompt(MATCH), context)

    def read(item: RecipeItem, value: dict[str, Any], _context: RecipeContext) -> RecipeItem:
        """Who knows the answer says whether the case leads to it; a solver that is right may still have missed it."""
        supported = value["supported"] == "yes"
        answer = msgspec.structs.replace(
            trials_of(item).answer or AnswerTrial(),
            match=value["match"],
            answerable=supported,
            missing="" if supported else str(value["missing"]),
            rival=_line(value["rival"]),
            reason=str(value["reason"]),
        )
        return _with(item, answer=answer)

    def failed(item: RecipeItem, why: str) -> RecipeItem:
        return _with(item, answer=msgspec.structs.replace(trials_of(item).answer or AnswerTrial(), failure=why))

    def answered(item: RecipeItem) -> bool:
        answer = trials_of(item).answer
        return answer is not None and bool(answer.said) and not answer.match

    return _trial(name, MATCH, values=values, read=read, failed=failed, when=answered)


def _guess_question(name: str, show: Show) -> RecipeStep:
    """A solver sees an open question without its case: one that it can answer gives the answer away."""

    def values(item: RecipeItem, context: RecipeContext) -> Values:
        return fit_all({"question": show(item).question}, load_prompt(QUESTION), context, SOLVER)

    def read(item: RecipeItem, value: dict[str, Any], _context: RecipeContext) -> RecipeItem:
        said = _line(value["answer"])
        luck = value["led"] == "no"
        return _with(item, guess=GuessTrial(said=said, by_luck=luck, basis=BY_QUESTION, reason=str(value["reason"])))

    def due(item: RecipeItem) -> bool:
        exam = show(item)
        return not exam.options and bool(exam.case) and trials_of(item).guess is None

    return _trial(
        name,
        QUESTION,
        values=values,
        read=read,
        failed=lambda item, why: _with(item, guess=GuessTrial(failure=why)),
        when=due,
        role=SOLVER,
    )


def _grade(name: str, show: Show) -> RecipeStep:
    """What colleagues might answer is graded by the key and the note, and the guess from the question is compared."""

    def values(item: RecipeItem, context: RecipeContext) -> Values:
        trials = trials_of(item)
        shown = {
            **_graded_by(show(item)),
            "attempts": _lines(_attempts(trials)) or _NO_CASE,
            "guess": (trials.guess or GuessTrial()).said or _NO_CASE,
        }
        return fit_all(shown, load_prompt(GRADING), context)

    def schema(item: RecipeItem) -> Schema:
        contract: Any = load_prompt(GRADING).schema
        listed, letters = contract["properties"]["grades"], list(_attempts(trials_of(item)))
        fields = dict(listed["items"]["properties"])
        if letters:
            fields["attempt"] = {"type": "string", "enum": letters}
        count = {"minItems": len(letters), "maxItems": len(letters)}
        grades = {**listed, **count, "items": {**listed["items"], "properties": fields}}
        return {**contract, "properties": {**contract["properties"], "grades": grades}}

    def read(item: RecipeItem, value: dict[str, Any], _context: RecipeContext) -> RecipeItem:
        trials, told = trials_of(item), show(item)
        graded = {
            each["attempt"]: GradedAnswer(
                answer=_attempts(trials)[each["attempt"]],
                counts=each["counts"] if told.note or told.accepted or each["counts"] != "unclear" else "no",
                defensible=each["defensible"] == "yes",
                reason=each["reason"],
            )
            for each in value["grades"]
        }
        guess = trials.guess
        if guess is not None and guess.said:
            guess = msgspec.structs.replace(guess, right=value["guess"] == "yes")
        return _with(item, guess=guess, grading=GradingTrial(grades=tuple(graded.values())))

    def due(item: RecipeItem) -> bool:
        exam, trials = show(item), trials_of(item)
        if exam.options or trials.grading is not None or trials.answer is None:
            return False
        guessed = trials.guess is not None and bool(trials.guess.said)
        return guessed or bool(trials.answer.others and (exam.accepted or exam.note))

    return _trial(
        name,
        GRADING,
        values=values,
        read=read,
        failed=lambda item, why: _with(item, grading=GradingTrial(failure=why)),
        when=due,
        schema=schema,
    )


def _graded_by(exam: TriedQuestion) -> dict[str, str]:
    """A question with all that a grader is given."""
    return {
        "case": exam.case or _NO_CASE,
        "question": exam.question,
        "answer": exam.answer,
        "accepted": "\n".join(f"- {each}" for each in exam.accepted) or _NO_CASE,
        "note": exam.note or _NO_CASE,
    }


def _referee(name: str, show: Show, *, second: bool) -> RecipeStep:
    """Somebody who has the report, and took no part in the item, says whether it may be published as it is."""

    def beside(item: RecipeItem) -> dict[str, str]:
        return {**_graded_by(show(item)), "dispute": str(item.get("dispute") or _NO_CASE)}

    def taken(item: RecipeItem) -> int:
        return sum(map(size, beside(item).values())) + _FENCES

    def fits(item: RecipeItem, context: RecipeContext) -> bool:
        try:
            context.room(load_prompt(REFEREE), beside=taken(item))
        except UsageError:
            return False
        return True

    def values(item: RecipeItem, context: RecipeContext) -> Values:
        document = context.document(item.documents[0])
        _, report = numbered_whole(document, context, load_prompt(REFEREE), beside=taken(item))
        return {**beside(item), "report": report}

    def read(item: RecipeItem, value: dict[str, Any], _context: RecipeContext) -> RecipeItem | AskAgain:
        faults = tuple(f"{_line(each['fault'])} ({_line(each['mend'])})" for each in value["faults"])
        done = _with(item, referee=RefereeTrial(faults=faults, second=second))
        if bool(faults) == (value["publish"] == "yes"):
            say = "`publish` is `yes` if there is no fault, and `no` if there is one: list it, or publish."
            return AskAgain(reason="verdict and faults do not agree", say=say, otherwise=done)
        return done

    return _trial(
        name,
        REFEREE,
        values=values,
        read=read,
        failed=lambda item, why: _with(item, referee=RefereeTrial(second=second, failure=why)),
        when=lambda item: not show(item).options and trials_of(item).referee is None,
        fits=fits,
    )


def to_referee_again(item: RecipeItem, why: str) -> RecipeItem:
    """The item for a second referee, who is told what the first one found and why (`why`) it was left as it is."""
    referee = trials_of(item).referee
    if referee is None or not referee.faults:
        return item
    held = "\n".join(f"- {each}" for each in referee.faults)
    return _with(item, referee=None).put(dispute=f"held against it:\n{held}\nits editor: {why}")


def _attempts(trials: QuestionTrials) -> dict[str, str]:
    """What the solver answered and what it expects of colleagues, by letter, each once."""
    answer = trials.answer or AnswerTrial()
    return dict(zip(ascii_uppercase, dict.fromkeys(filter(None, (answer.said, *answer.others))), strict=False))


def to_grade_again(item: RecipeItem) -> RecipeItem:
    """The item as before its answers were compared and graded: another note grades them anew."""
    answer = trials_of(item).answer
    if answer is not None:
        answer = AnswerTrial(said=answer.said, others=answer.others, told=answer.told)
    return _with(item, answer=answer, grading=None, referee=None)
