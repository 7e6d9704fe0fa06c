"""Questions and answers as they stand on the page: the case, the options, what was shown, said, chosen and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from hoofbeat.reports.grids import grid_table
from hoofbeat.reports.model import (
    AnswerView,
    Block,
    GridView,
    JudgmentView,
    Notice,
    OptionView,
    PairView,
    PassageView,
    QuestionView,
    SideView,
    Text,
    TraceView,
    VoteView,
)
from hoofbeat.reports.nodes import Element, Node, element
from hoofbeat.reports.words import written


def block_nodes(block: Block) -> list[Node]:
    """What a block of a viewer's item looks like. Tables and charts stand in the page itself, never here."""
    match block:
        case QuestionView():
            return [element("div.question", *_question(block))]
        case AnswerView():
            return [_answer(block)]
        case Text():
            return [*_labelled(block.label), _prose(block.text)]
        case Notice():
            return [element("p.notice", block.text)]
        case PairView():
            return [element("div.pair", *_pair(block))]
        case GridView():
            return [grid_table(block)]
        case _:
            raise TypeError(f"a {block.kind} can't be packed")


def _question(view: QuestionView) -> Iterator[Node]:
    if view.context:
        yield from _labelled("Case")
        yield _prose(view.context)
    yield from _labelled("Question")
    yield _prose(view.text, "p.prose.asked")
    if view.options:
        items = (_option(OptionView(text=option, gold=option == view.gold)) for option in view.options)
        yield element("ol.options", *items, type="A")
    if view.gold and view.gold not in view.options:
        yield from _labelled("Gold answer")
        yield _prose(view.gold, "p.prose.gold")
    if view.evidence:
        yield from _labelled("Evidence")
        yield from map(_passage, view.evidence)
    if view.facts:
        yield element("p.facts", " · ".join(view.facts), dir="auto")


def _answer(view: AnswerView) -> Element:
    who = (element("span.system", view.system), " ", element(f"span.mark.{view.verdict}", view.verdict_text))
    places = {"data-system": " ".join(map(str, view.places))} if view.places else {}
    if view.folded:
        inside = element("div.inside", *_said(view))
        return Element(f"details.answer.folded.{view.verdict}", (element("summary.who", *who), inside), places)
    return Element(f"div.answer.{view.verdict}", (element("p.who", *who), *_said(view)), places)


def _said(view: AnswerView) -> Iterator[Node]:
    if view.options:
        bars = any(option.share is not None for option in view.options)
        yield element(f"ol.options{'.bars' if bars else ''}", *map(_option, view.options), type="A")
    if view.text:
        yield _prose(view.text)
    if view.reading:
        yield element("p.reading", view.reading, dir="auto")
    if view.failure:
        yield element("p.failure", view.failure, dir="auto")
    for warning in view.warnings:
        yield element("p.warning", warning, dir="auto")
    yield from map(_judgment, view.judgments)
    if view.reasoning:
        yield _folded("Reasoning of the model", [_prose(view.reasoning)])
    if view.trace:
        yield _folded(f"What the agent did ({len(view.trace)} steps)", [element("ol.trace", *map(_step, view.trace))])
    if view.passages:
        yield _folded(f"Passages shown ({len(view.passages)})", map(_passage, view.passages))
    if view.dropped:
        listed = (element("li", name, dir="auto") for name in view.dropped)
        yield _folded(f"Documents that did not fit ({len(view.dropped)})", [element("ul", *listed)])


def _pair(view: PairView) -> Iterator[Node]:
    facts: list[Node] = [element(f"span.mark.tone{view.tone}", view.label)]
    if view.facts:
        facts += [" ", element("span.fact", " · ".join(view.facts))]
    yield element("p.who", *facts, dir="auto")
    if view.reasoning:
        yield _prose(view.reasoning)
    yield element("div.columns", _side(view.a), _side(view.b))


def _side(view: SideView) -> Element:
    parts: list[Node] = [element("p.side", view.name), _prose(view.text)]
    parts += [element("p.warning", warning, dir="auto") for warning in view.warnings]
    parts += map(_passage, view.cited)
    if view.others:
        more = f", {view.unshown:,} more not kept here" if view.unshown else ""
        cited = "Other passages" if view.cited else "Passages"
        parts.append(_folded(f"{cited} the model was shown ({len(view.others)}{more})", map(_passage, view.others)))
    return element("div", *parts)


def _option(option: OptionView) -> Element:
    tags = [name for name, is_so in (("chosen", option.chosen), ("gold", option.gold)) if is_so]
    head = "".join(["li", *(f".{tag}" for tag in tags)])
    marks: list[Node] = [part for tag in tags for part in (" ", element(f"span.tag.{tag}", tag))]
    bar: list[Node] = []
    if option.share is not None:
        share = written(option.share, "share")
        meter = element("meter", share, value=f"{option.share:.4f}", max="1", aria_label=f"probability {share}")
        bar = [element("div.bar", meter, element("span.figure", f"{share} · {option.figure}"))]
    return element(head, option.text, *marks, *bar, dir="auto")


def _judgment(view: JudgmentView) -> Element:
    by = view.aspect if view.judge in ("", view.aspect) else f"{view.aspect}, {view.judge}"
    line: list[Node] = [element("span.by", f"{by}:"), " "]
    line.append(element(f"span.mark.{view.tone}", view.label))
    if view.reasoning:
        line += [" ", view.reasoning]
    said = element("p", *line, dir="auto")
    if not view.votes:
        return element("div.judge", said)
    tally = ", ".join(f"{count} {label}" for label, count in Counter(vote.label for vote in view.votes).items())
    return element("div.judge", said, _folded(f"{len(view.votes)} votes: {tally}", map(_vote, view.votes)))


def _vote(vote: VoteView) -> Element:
    reasoning = f". {vote.reasoning}" if vote.reasoning else None
    return element("p", element("span.by", f"{vote.judge}:"), " ", vote.label, reasoning, dir="auto")


def _step(step: TraceView) -> Element:
    found = element("p.found", f"Found: {', '.join(step.found)}") if step.found else None
    thought = element("p.prose.thought", step.reasoning, dir="auto") if step.reasoning else None
    return element("li", element("span.by", step.what), thought, _prose(step.text) if step.text else None, found)


@lru_cache(maxsize=4096)
def _passage(item: PassageView) -> Element:
    text: list[Node]
    if item.before or item.after:
        text = [item.before, element("mark", item.text), item.after]
    else:
        text, place = [], 0
        for start, end in item.marks:
            text += [item.text[place:start], element("mark", item.text[start:end])]
            place = end
        text.append(item.text[place:])
    parts = [part for part in text if part]
    if item.cited:
        source = element("footer", item.source, " ", element("span.tag.cited", "cited"))
        return element("blockquote.cited", element("p", *parts), source, dir="auto")
    return element("blockquote", element("p", *parts), element("footer", item.source), dir="auto")


def _folded(summary: str, inside: Iterable[Node]) -> Element:
    return element("details.more", element("summary", summary), element("div.inside", *inside))


def _labelled(label: str) -> list[Node]:
    return [element("p.label", label)] if label else []


def _prose(text: str, head: str = "p.prose") -> Element:
    return element(head, text, dir="auto")
