"""Where an output states an option: in marks made for it, after and before cues, on separate lines, at its beginning.

Each reader looks for one habit and returns the places where it found it; what they mean together is settled in
`hoofbeat.answering.choice_reader`.

The words by which outputs choose, deny and take back an option are data (`data/wording.toml`). Markup is taken away
first, and what only an answer is written in (a box, a tag) becomes a mark.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files

from msgspec import Struct, convert, field, structs

from hoofbeat.answering.option_names import OptionMention, OutputText, QuestionOptions

_NAME = re.compile(r"<([a-z_]+)>")
_NEEDS = re.compile(r"\{([^{}]+)\}")


class _List(Struct, frozen=True):
    """One list of the file, with the fragments that only it uses."""

    words: list[str]
    weight: int = 0
    until: str = ""
    gap: str = ""
    may: str = ""
    much: str = ""
    bad: str = ""
    rest: str = ""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    fragments: dict[str, str]
    before: list[_List]
    after: list[_List]
    lead: _List
    verdict_yes: _List
    verdict_no: _List
    denied_before: _List
    denied_after: _List
    hypothetical: _List
    revised: _List
    framed: _List
    passing: _List
    none_fits: _List
    next_question: _List
    unfinished: _List
    reported: _List
    decoy: _List
    conditional: _List
    withdrawn: _List
    weighed: _List
    unsure: _List


class Cues(Struct, frozen=True):
    """The entries of a list one by one, each with what must stand in a text for it to be worth looking for."""

    weight: int
    entries: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]

    def find(self, text: str, lowered: str) -> Iterator[re.Match[str]]:
        """Every match, as one pattern of all entries would find them: the first from the left, none in another."""
        position, waiting = 0, []
        for needs, pattern in self.entries:
            if not needs or any(map(lowered.__contains__, needs)):
                waiting.append((pattern, pattern.search(text)))
        while True:
            waiting = [
                (pattern, match if match.start() >= position else pattern.search(text, position))
                for pattern, match in waiting
                if match
            ]
            match = min((match for _, match in waiting if match), key=lambda match: match.start(), default=None)
            if match is None:
                return
            yield match
            position = max(match.end(), match.start() + 1)


class Wording(Struct, frozen=True, kw_only=True):
    """Every list of the file as one pattern; what stands before and after an option comes with its weight."""

    before: tuple[Cues, ...]
    after: tuple[tuple[int, re.Pattern[str]], ...]
    lead: re.Pattern[str]
    verdict_yes: re.Pattern[str]
    verdict_no: re.Pattern[str]
    denied_before: re.Pattern[str]
    denied_after: re.Pattern[str]
    hypothetical: re.Pattern[str]
    revised: re.Pattern[str]
    framed: re.Pattern[str]
    passing: re.Pattern[str]
    none_fits: re.Pattern[str]
    next_question: re.Pattern[str]
    unfinished: re.Pattern[str]
    reported: re.Pattern[str]
    decoy: re.Pattern[str]
    conditional: re.Pattern[str]
    withdrawn: re.Pattern[str]
    weighed: re.Pattern[str]
    unsure: re.Pattern[str]
    source: str = field(default="data/wording.toml")


@cache
def load_wording() -> Wording:
    """The wording, read once."""
    raw = (files("hoofbeat.answering") / "data" / "wording.toml").read_text(encoding="utf-8")
    file = convert(tomllib.loads(raw), _File)

    def filled(entry: _List, words: str) -> str:
        own = {name: getattr(entry, name) for name in ("until", "gap", "may", "much", "bad", "rest")}
        return _filled(words, {**file.fragments, **own})

    def cues(entry: _List) -> Cues:
        entries = []
        for words in entry.words:
            needs = _NEEDS.match(words)
            wanted = words[needs.end() :] if needs else words
            found = re.compile(filled(entry, wanted), re.IGNORECASE)
            entries.append((tuple(needs[1].split("|")) if needs else (), found))
        return Cues(entry.weight, tuple(entries))

    def pattern(entry: _List, *, repeated: bool = False) -> re.Pattern[str]:
        joined = "|".join(f"(?:{filled(entry, words)})" for words in entry.words)
        return re.compile(f"(?:{joined}){{0,20}}" if repeated else joined, re.IGNORECASE)

    return Wording(
        before=tuple(map(cues, file.before)),
        after=tuple((entry.weight, pattern(entry)) for entry in file.after),
        lead=pattern(file.lead, repeated=True),
        verdict_yes=pattern(file.verdict_yes),
        verdict_no=pattern(file.verdict_no),
        denied_before=pattern(file.denied_before),
        denied_after=pattern(file.denied_after),
        hypothetical=pattern(file.hypothetical),
        revised=pattern(file.revised),
        framed=pattern(file.framed),
        passing=pattern(file.passing),
        none_fits=pattern(file.none_fits),
        next_question=pattern(file.next_question),
        unfinished=pattern(file.unfinished),
        reported=pattern(file.reported),
        decoy=pattern(file.decoy),
        conditional=pattern(file.conditional),
        withdrawn=pattern(file.withdrawn),
        weighed=pattern(file.weighed),
        unsure=pattern(file.unsure),
    )


def _filled(words: str, fragments: dict[str, str]) -> str:
    """An entry with its fragments in place; fragments may name fragments."""
    while _NAME.search(words):
        words = _NAME.sub(lambda match: fragments[match.group(1)], words)
    return words


_BOX, _TAG, _FIELD = "\ue000", "\ue001", "\ue002"
MARKS = {_BOX: "boxed", _TAG: "answer-tag", _FIELD: "json"}
"""The marks before what stood in a LaTeX box, an answer tag, or an answer's field of a JSON object."""

_KEYS = (
    r"final_?answer|answer(?:_?(?:choice|letter|text|option|key))?|choice|chosen|selected(?:_?(?:option|answer))?|"
    r"correct_?(?:option|answer|choice)|option|prediction|predicted|letter"
)
_VALUE = r"""(?:"([^"\n]*)"|'([^'\n]*)'|\[([^\]\n]*)\]|(\w+)(?=\s*[,}\n]))"""
_MARKUP: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[\ue000-\ue00f]|[^\S\n]+"), " "),
    (re.compile(r"\n(?: ?\n)+"), "\n\n"),
    (re.compile(r"[\u2018\u2019\u02bc]"), "'"),
    (re.compile(r"[\u201c\u201d\u00ab\u00bb「」]"), '"'),
    (re.compile(r"[\ufe0f\u200b-\u200d\ufeff]"), ""),
    (re.compile(r"<\|[^|<>]{1,40}\|>|\[/?INST\]|~~[^~\n]*~~"), " "),
    (re.compile(r"🅰"), "A"),
    (re.compile(r"🅱"), "B"),
    (re.compile(r"\\(?:text|textbf|mathbf|mathrm|textrm|mathit|bf|rm)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]{0,200}\}){0,400})\}"), rf"\n{_BOX}\1\n"),
    (
        re.compile(r"<(final_?answer|answer|choice|option)>(.{0,2000}?)</\1>", re.DOTALL | re.IGNORECASE),
        rf"\n{_TAG}\2\n",
    ),
    (re.compile(rf"""["'](?:{_KEYS})["']\s*:\s*{_VALUE}""", re.IGNORECASE), rf"\n{_FIELD}\1\2\3\4\n"),
    (re.compile(r"\\[()\[\]]|\$"), " "),
    (re.compile(r"^\s*```\w*\s*$", re.MULTILINE), ""),
    (re.compile(r"<(?![A-Z]>)/?[A-Za-z][^<>]{0,60}>"), " "),
    (re.compile(r"\*{1,3}|_{2,3}|`"), ""),
    (re.compile(r"^\s*(?:#{1,6}(?!#)\s+|>\s?(?![\s\d]))", re.MULTILINE), ""),
)


def without_markup(text: str) -> str:
    """The output without markup, up to where the model goes on to ask itself another question."""
    plain = unicodedata.normalize("NFKC", text)
    for pattern, replacement in _MARKUP:
        plain = pattern.sub(replacement, plain)
    plain = plain.strip()
    following = load_wording().next_question.search(plain, 1)
    return plain[: following.start()] if following else plain


_SAYS = load_wording()
_SHORT = 400  # characters in which an option that is merely stated counts
_FEW_LINES = 3
_FEW = 10  # words that need no full stop


class OptionStatement(Struct, frozen=True, kw_only=True):
    """One place of the output that states an option, and how strongly (3: closes the answer; 1: in passing)."""

    at: int
    weight: int
    named: OptionMention
    how: str


def _marked(output: OutputText, names: QuestionOptions) -> list[OptionStatement]:
    """What stands in a box, an answer tag or an answer's field of an object."""
    claims = []
    for match in re.finditer(f"[{''.join(MARKS)}]", output.text):
        start = _lead(output.text, match.end())
        named = names.at(output, match.end()) or names.at(output, start, loose=True)
        if named:
            claims.append(OptionStatement(at=match.start(), weight=3, named=named, how=MARKS[match.group()]))
    return claims


def _lead(text: str, position: int) -> int:
    """Past the words that may stand between a cue and an option, but not past the option's own brackets."""
    lead = _SAYS.lead.match(text, position)
    end = lead.end() if lead else position
    while end > position and text[end - 1] in "([{\"'":
        end -= 1
    return end


_ASKED = re.compile(r"[)\]\"'.]*\?")


def _after_cues(output: OutputText, names: QuestionOptions) -> list[OptionStatement]:
    """ "The answer is …", in several languages."""
    claims: dict[int, OptionStatement] = {}
    for cues in _SAYS.before:
        weight = cues.weight
        for match in cues.find(output.text, output.lowered):
            start = _lead(output.text, match.end())
            named = names.at(output, match.end()) or names.at(output, start, loose=True)
            if named is None or (weight == 1 and not named.options):
                continue
            if _SAYS.hypothetical.search(output.text[max(0, match.start() - 120) : named.start]):
                continue
            if weight == 1 and _SAYS.denied_after.match(output.text[named.end : named.end + 120]):
                continue
            if "\n" in output.text[match.end() : named.start] and _begins_list(output, names, named):
                continue
            if _ASKED.match(output.text, named.end) or _SAYS.denied_before.search(
                output.text[match.start() : named.start]
            ):
                continue
            kept = claims.get(named.start)
            if kept is None or kept.weight < weight:
                claims[named.start] = OptionStatement(
                    at=named.start, weight=weight, named=named, how="closing-statement"
                )
    return list(claims.values())


def _begins_list(output: OutputText, names: QuestionOptions, named: OptionMention) -> bool:
    """Whether the next line goes on with the next option: what looks stated is only the first of a list."""
    line = re.compile(r"[^\n]*\n\s*").match(output.text, named.end)
    following = names.at(output, line.end()) if line else None
    return following is not None and following.by != "text" and following.options > named.options


_BARE = re.compile(r"(?<![\w'-])[A-Z](?=\s+(?:is|it is|would|remains|must|best|seems|looks|sounds|appears)\b)")
_JOINED_BEFORE = re.compile(r"(?<![\w'-])[A-Z][)\]]?\s*(?:or|and/or|and|/)\s*$")


def _first_joined(text: str, position: int) -> int:
    """Where the letters begin that are joined to the one here: "Either B or C would be …"."""
    before = _JOINED_BEFORE.search(text, max(0, position - 12), position)
    return before.start() if before else position


def _before_verdicts(output: OutputText, names: QuestionOptions) -> list[OptionStatement]:
    """ "B is the correct answer"; "Pericarditis is the most likely diagnosis"."""
    claims = []
    bare = (names.at(output, _first_joined(output.text, match.start())) for match in _BARE.finditer(output.text))
    for named in [*names.mentions(output), *(each for each in bare if each)]:
        rest = output.text[named.end : named.end + 160]
        weight = next((weight for weight, cue in _SAYS.after if cue.match(rest)), 0)
        if not weight or re.search(r"\bnot\b", rest[:30]):
            continue
        before = output.text[max(0, named.start - 120) : named.start]
        if not (_SAYS.denied_before.search(before[-40:]) or _SAYS.hypothetical.search(before)):
            claims.append(OptionStatement(at=named.start, weight=weight, named=named, how="closing-statement"))
    return claims


_YES_SIGNS, _NO_SIGNS = "✅✔☑✓🟢", "❌✗✘✖🚫🔴"
_LINE = re.compile(r"[^\n]+")
_BULLET = re.compile(rf"[\s|>•·*–—{_YES_SIGNS}{_NO_SIGNS}-]*(?:\d{{1,2}}[.)]\s+(?=[(\[]?[A-Za-z][)\].:]))?")


class _OnLine(Struct, frozen=True):
    """A line that begins with an option: its number, the option, and what else is on the line."""

    number: int
    named: OptionMention
    rest: str

    @property
    def alone(self) -> bool:
        """Whether nothing else is on the line."""
        return not re.search(rf"[\w?{_YES_SIGNS}{_NO_SIGNS}]", self.rest)

    @property
    def approved(self) -> bool:
        """Whether the line says that the option is right."""
        if len(self.named.options) != 1 or _SAYS.verdict_no.search(self.rest):
            return False
        return any(map(_SAYS.verdict_yes.match, self.rest.split("|"))) or any(sign in self.rest for sign in _YES_SIGNS)


def _lines(output: OutputText, names: QuestionOptions) -> list[OptionStatement]:
    """Lines that are nothing but an option, lists with a verdict on each option, and the output's beginning."""
    found, total = [], 0
    for number, line in enumerate(_LINE.finditer(output.text)):
        total += 1
        bullet = _BULLET.match(output.text, line.start(), line.end())
        start = bullet.end() if bullet else line.start()
        named = names.at(output, start)
        if named is not None and named.end <= line.end() and len(named.options) <= 2:
            rest = output.text[line.start() : start] + output.text[named.end : line.end()]
            found.append(_OnLine(number, named, rest))
    approved = [each for each in found if each.approved]
    claims = [
        OptionStatement(at=each.named.start, weight=2, named=each.named, how="verdict-in-list") for each in approved
    ]
    alone = _outside_lists([each for each in found if each.alone])
    ends = [each for each in alone if each.number in (0, total - 1) or total <= _FEW_LINES]
    between = [each for each in alone if each not in ends]
    if len({each.named.options for each in between} - {each.named.options for each in ends}) == 1:
        ends += between  # one other option by itself is a second answer; several are headings of a discussion
    claims += [
        OptionStatement(at=each.named.start, weight=2, named=each.named, how=_how_alone(each.named, total))
        for each in (ends if any(each.number in (0, total - 1) for each in ends) else [])
    ]
    labelled = {each.named.options for each in found if each.named.by != "text"}
    return claims if claims or len(labelled) > 1 else _opening(output, names)


def _how_alone(named: OptionMention, total: int) -> str:
    if total > 1:
        return "line-of-its-own"
    return {"letter": "only-letter", "text": "option-text"}.get(named.by, named.by)


def _outside_lists(alone: list[_OnLine]) -> list[_OnLine]:
    """The lines left when lists of options, one after the other, are taken out."""
    runs: list[list[_OnLine]] = []
    for each in alone:
        last = runs[-1][-1] if runs else None
        if last and each.number == last.number + 1 and each.named.options > last.named.options:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [run[0] for run in runs if len(run) == 1]


_STOPS = re.compile(
    r"[\"')\]]*\s*(?:$|[.,;:!\n(–—-]|(?:because|since|as|for|due to|given|rather than|over|and not|not)\b"
    r"|with (?:high|low|moderate|medium)\b)"
)


def _opening(output: OutputText, names: QuestionOptions) -> list[OptionStatement]:
    """An output that begins with its option and goes on to explain it."""
    named = names.at(output, 0) or names.at(output, _lead(output.text, 0))
    if named is None:
        return []
    rest = output.text[named.end : named.end + 80]
    if _SAYS.denied_after.match(rest) or _SAYS.denied_before.search(output.text[: named.start]):
        return []
    if _ASKED.match(rest) or not _STOPS.match(rest):
        return []
    if output.text[named.start] == "I" and named.by == "letter" and re.match(r"\.\s*\w", rest):
        return []  # a Roman number
    others = tuple(_letters_beside(rest, named, len(names.texts)))
    named = structs.replace(named, options=(*named.options, *others))
    return [OptionStatement(at=named.start, weight=1 if named.by == "text" else 2, named=named, how="opening")]


def _letters_beside(rest: str, named: OptionMention, count: int) -> Iterator[int]:
    """Other letters that the beginning's first line names as well: "A (80%), B (20%)"."""
    line = rest.split("\n", 1)[0] if named.by != "text" else ""
    revised = _SAYS.revised.search(line)
    line = line[: revised.start()] if revised else line
    for match in re.finditer(r"(?<![\w'.-])[A-Z](?=\s*(?:[(,;.)%]|$))", line):
        place = ord(match.group()) - ord("A")
        if place < count and place not in named.options and not _SAYS.denied_before.search(line[: match.start()]):
            yield place


READERS: tuple[Callable[[OutputText, QuestionOptions], list[OptionStatement]], ...] = (
    _marked,
    _after_cues,
    _before_verdicts,
    _lines,
)


def bold_options(raw: str, names: QuestionOptions) -> set[int]:
    """The options set in bold type, nothing else with them."""
    found: set[int] = set()
    for match in re.finditer(r"(?:\*\*|__)([^*\n]{1,300})(?:\*\*|__)", raw):
        inner = OutputText(without_markup(match.group(1)))
        named = names.at(inner, _lead(inner.text, 0))
        after = raw[match.end() : match.end() + 120]
        if any(cue.match(after) for cue in (_SAYS.denied_after, _SAYS.decoy, _SAYS.conditional, _SAYS.withdrawn)):
            continue
        if named and not re.search(r"\w", inner.text[named.end :]):
            found.update(named.options)
    return found


_VERB = re.compile(r"\b(?:is|are|was|were|has|had|have|must|should|can|causes?|occurs?|presents?|needs?|requires?)\b")
_SENTENCES = re.compile(r"[.;!?]\s+\w|\n")


def mentioned_options(output: OutputText, names: QuestionOptions) -> set[int]:
    """The options that a short, finished output states without calling them the answer."""
    text = output.text
    brief = len(text.split()) <= _FEW
    finished = brief or re.search(r"[.!)\]\"'。]\s*$", text)
    if len(text) > _SHORT or not finished or _SAYS.unfinished.search(text):
        return set()
    stated: set[int] = set()
    unclear: set[int] = set()
    for named in names.mentions(output):
        opening = max(text.rfind(mark, 0, named.start) for mark in (". ", "\n", "; ", "? ", "! ")) + 1
        before, after = text[opening : named.start], text[named.end : named.end + 120]
        sentence = before + re.split(r"[.;:,\n]", after, maxsplit=1)[0]
        if _SAYS.denied_before.search(before[-40:]) or _SAYS.denied_after.match(after) or _SAYS.decoy.match(after):
            continue
        if _SAYS.hypothetical.search(before) or _SAYS.withdrawn.match(after):
            unclear.update(named.options)
            continue
        if _SAYS.reported.search(before) or _SAYS.conditional.match(after):
            continue
        if _SAYS.passing.search(sentence) or (_SENTENCES.search(text) and _SAYS.passing.search(text)):
            continue
        framed = _SAYS.framed.search(before) or (brief and not _VERB.search(sentence))
        (stated if framed else unclear).update(named.options)
    return stated | unclear if stated else set()
