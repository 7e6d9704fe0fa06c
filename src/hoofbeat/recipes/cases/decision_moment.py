"""What was running, known and closed at the moment of the decision: one call that looks for nothing else.

In fresh draws of real reports every faulty item had lost or mistimed one fact of one kind: nutrition that was running
was left out, a chart that was read afterwards was told as known, measures of different days were one key, text and
legend gave a drug on different days, the report's reason against another operation was left out. The calls that write,
verify and review an item do many things at once and overlook it. This call changes nothing: what it finds goes to the
final review as `remarks`, whose editor looks it up and mends the item or rejects it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from hoofbeat.errors import UsageError
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.text_checks import numbered_whole, pointed
from hoofbeat.recipes.recipe_items import AskAgain, Outcome, RecipeItem, ask_again
from hoofbeat.recipes.steps import PartReply, RecipeStep, ask_each
from hoofbeat.records import Span
from hoofbeat.text import caseless
from hoofbeat.window import size

_PROMPT = "ogcare-moment"
_NO_ROOM = "the moment of the decision is not checked: the model's window is too small"
_BESIDE = 600  # bytes kept free for the fences
_LISTS = ("running", "later", "closed", "conflicts", "measures")
_WHEN = {"before": "it was already running or decided before the step", "later": "it was decided only after the step"}

MomentCheck = Annotated[bool, Meta(description="A model checks what was running, known and ruled out at the decision.")]


def moment_step() -> RecipeStep:
    """Ask what was running, known and ruled out at the decision.

    The items have `step`, `step_at`, `context`, `question` and `answer`. What the call finds is `moment`, each entry
    with the sentences it points at; what the final review has to look up is in `remarks`.
    """

    def values(item: RecipeItem, _part: None, context: RecipeContext) -> dict[str, object]:
        spans, lines = _report(item, context)
        told = [
            f"{number}. {_line(span.quote)}"
            for number, span in spans.items()
            if any(span.start < end and start < span.end for start, end in item["step_at"])
        ]
        return {"report": lines, "told": "\n".join(told) or "(not shown)", **_beside(item)}

    def parts(item: RecipeItem, context: RecipeContext) -> tuple[None, ...]:
        """None where the window does not even hold the item: it goes on, flagged."""
        try:
            _report(item, context)
        except UsageError:
            return ()
        return (None,)

    def read(item: RecipeItem, replies: Sequence[PartReply], context: RecipeContext) -> Outcome | AskAgain:
        if not replies:
            return item.put(flags=[*item.get("flags", ()), _NO_ROOM])
        return replies[0].failure or _found(item, replies[0].value or {}, context)

    return ask_each("moment", _PROMPT, parts=parts, values=values, read=read)


def _beside(item: RecipeItem) -> dict[str, str]:
    """What the prompt shows of the item."""
    return {"step": item["step"], "case": item["context"], "question": item["question"], "answer": item["answer"]}


def _report(item: RecipeItem, context: RecipeContext) -> tuple[dict[int, Span], str]:
    document = context.document(item.documents[0])
    written = sum(map(size, _beside(item).values())) + _BESIDE
    told = sum(size(document.text[start:end]) for start, end in item["step_at"])
    return numbered_whole(document, context, load_prompt(_PROMPT), beside=written + told)


def _found(item: RecipeItem, value: Mapping[str, Any], context: RecipeContext) -> Outcome | AskAgain:
    """The item with what the call found; sentences and words that are not there are asked about once."""
    spans, _ = _report(item, context)
    objections: list[tuple[str, str]] = []
    passed: list[str] = []
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in _LISTS}
    for name in _LISTS:
        for entry in value[name]:
            numbers = [entry["sentence"], entry["other"]] if name == "conflicts" else entry["sentences"]
            wrong: list[str] = []
            quotes = pointed(numbers, spans, f"`{name}`", tolerated=len(numbers), passed_over=wrong)
            passed += wrong
            if isinstance(quotes, list) and not (name == "conflicts" and wrong):
                here = [number for number in dict.fromkeys(numbers) if spans.get(number) in quotes]
                found[name].append({**entry, "at": here, "quotes": [_line(span.quote) for span in quotes]})
    if passed:
        wanted = "; ".join(each.removeprefix("passed over: ") for each in passed)
        say = f"Some numbers can't be used: {wanted}. Point only at sentences of the report that are shown to you."
        objections.append(("a sentence is not in the report", say))
    shown = caseless(f"{item['context']} {item['question']}")
    for entry in found["later"]:
        if caseless(entry["words"]).strip(" .…") not in shown:
            say = f"The words {_line(entry['words'])!r} of `later` are not in the case or the question. Copy them."
            objections.append(("words are not in the case", say))
    flags = [*item.get("flags", ()), *(f"moment: {each}" for each in passed)]
    remarks = [*item.get("remarks", ()), *_remarks(found)]
    return ask_again(objections, item.put(moment=found, remarks=remarks, **({"flags": flags} if passed else {})))


def _remarks(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """What the final review has to look up, with the numbers of the report's sentences."""
    told: list[str] = []
    for each in found["running"]:
        if each["told"] != "yes":
            state = "runs" if each["state"] == "runs" else "was stopped"
            case = "the case does not tell it"
            if each["told"] == "otherwise":
                case = f"the case tells it otherwise: {_line(each['difference'])}"
            told.append(f"{_line(each['what'])} {state} at this moment ({_places(each)}); {case}")
    told += [
        f"{_line(each['words'])!r} was not yet known at this moment ({_places(each)}): {_line(each['why'])}"
        for each in found["later"]
    ]
    told += [
        f"the report rules out {_line(each['way'])!r}: {_line(each['reason'])} ({_places(each)}); "
        "the case does not tell this reason, and the question does not exclude this way"
        for each in found["closed"]
        if each["known"] == "yes" and each["told"] == "no"
    ]
    for each in found["conflicts"]:
        rests = "the key does not rest on it; do not tell it as certain"
        if each["rests"] == "yes":
            rests = "the key rests on it: if you confirm it and the report does not settle it, reject the item"
        told.append(f"the report contradicts itself ({_places(each)}): {_line(each['what'])}; {rests}")
    told += [
        f"the key has {_line(each['measure'])!r}, and {_WHEN[each['when']]} ({_places(each)})"
        for each in found["measures"]
        if each["when"] in _WHEN
    ]
    return [f"the check of the moment of the decision, before any edit: {each}" for each in told]


def _places(entry: Mapping[str, Any]) -> str:
    numbers = ", ".join(map(str, entry["at"]))
    return f"report, {'sentence' if len(entry['at']) == 1 else 'sentences'} {numbers}"


def _line(text: object) -> str:
    return " ".join(str(text).split())
