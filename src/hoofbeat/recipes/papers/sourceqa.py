"""sourceqa: patients' questions that sources answer differently, as in TransplantQA.

Harvested questions (or, without a harvest, questions that a model proposes from the sources' sections) lose duplicates,
are checked for relevance and quality, anonymised and rewritten to stand alone, and labelled by group and topics.
There is no gold answer: `hoofbeat audit` asks general questions of every source and the others of their group's.

What tells who asked is removed by rules before a model sees a message, and by a model that looks for what the rules
left. Until both have looked, a message is kept in memory only: no file holds it. A reply or a failure that may repeat
what was removed loses it before it is written.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from hoofbeat.progress import Named
from hoofbeat.prompts import Pack, load_pack, load_prompt
from hoofbeat.recipes.context import RecipeContext, RecipeSettings, TableFile
from hoofbeat.recipes.guards.text_checks import new_numbers, sound
from hoofbeat.recipes.messages.anonymisation import (
    WordRange,
    anonymise,
    find_identifiers,
    in_plain_words,
    kinds,
    mask_words,
    numbered_words,
    possible_names,
    returned,
    tells_who,
    tidy,
    words_in,
)
from hoofbeat.recipes.messages.harvest import (
    BadRow,
    HarvestedQuestion,
    HarvestLimits,
    read_harvest,
    stands_alone,
    well_formed,
)
from hoofbeat.recipes.messages.question_duplicates import CRITERION, duplicate_tasks, exact_step, near_step, same_step
from hoofbeat.recipes.messages.question_topics import (
    GENERAL,
    absent_groups,
    group_doubt,
    group_step,
    groups_of,
    routing,
    same_group,
    subtopic_step,
    topic_step,
)
from hoofbeat.recipes.recipe import Recipe, RecipeOutput
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel, ReviewTask, drawn_for_review, known_labels, reviewed, says_yes
from hoofbeat.recipes.steps import RecipeStep, ask, check, sample, together, whole
from hoofbeat.records import Document, Failure, Question, Section, Step

CRITERIA = ("relevant", "anonymous", "stands alone")
_WORD = re.compile(r"[^\W\d_]+")
_MARK = re.compile(r"\[(\w+)\]")
_UNSAID = "the model's text is not kept here: it may tell who asked"
_MAX_MARKED = 0.5  # of a message's words: whoever marks more has not understood the task
REMOVED = ("item", "kind", "count", "where")


class SourceqaSettings(RecipeSettings, frozen=True, kw_only=True):
    """Parameters of the recipe; the defaults are the paper's where it names one."""

    FILES: ClassVar[tuple[str, ...]] = ("harvest", "reviews")
    harvest: Annotated[
        str | tuple[str, ...], Meta(description="Harvested questions, CSV or JSONL; [a.csv, b.jsonl] for several.")
    ] = ""
    harvest_bytes: Annotated[int, Meta(description="Maximum bytes of a harvest file.", ge=1)] = 100_000_000
    harvest_rows: Annotated[int, Meta(description="Maximum rows of all harvest files.", ge=1)] = 200_000
    harvest_characters: Annotated[int, Meta(description="Maximum characters of a message.", ge=1, le=100_000)] = 20_000
    identifiers: Annotated[
        Literal["model", "rule"],
        Meta(description="What finds names and places: only rules, or also a model."),
    ] = "model"
    site_questions: Annotated[int, Meta(description="Minimum messages from a site before it is named.", ge=1)] = 3
    propose: Annotated[
        int, Meta(description="Questions a model proposes for a section, where there is no harvest.", ge=1, le=10)
    ] = 2
    sections: Annotated[
        int, Meta(description="Sections of a source that questions are proposed for; 0 takes all.", ge=0)
    ] = 3
    section_words: Annotated[int, Meta(description="Minimum words of such a section.", ge=1)] = 40
    pack: Annotated[str, Meta(description="Domain pack: groups, topics and words of the domain.")] = "transplant"
    cosine: Annotated[float, Meta(description="Questions more alike than this are duplicates.", ge=0, le=1)] = 0.85
    duplicates: Annotated[
        Literal["model", "cosine"],
        Meta(description="What decides on duplicates: a model that sees the nearest questions, or only the cosine."),
    ] = "model"
    paraphrase: Annotated[
        float, Meta(description="Minimum cosine of rewritten questions that this model sees.", ge=0, le=1)
    ] = 0.5
    min_words: Annotated[int, Meta(description="Minimum words of a candidate.", ge=1)] = 3
    max_words: Annotated[int, Meta(description="Maximum words of a candidate.", ge=1)] = 400
    language: Annotated[str, Meta(description="Language of the questions; empty takes any.")] = "en"
    double_check: Annotated[bool, Meta(description="Also ask the second model about relevance.")] = True
    question_words: Annotated[int, Meta(description="Maximum words of a rewritten question.", ge=5)] = 60
    alike: Annotated[
        float, Meta(description="Minimum cosine of a rewritten question with its message.", ge=0, le=1)
    ] = 0.4
    verify: Annotated[bool, Meta(description="Ask the second model whether a rewritten question asks the same.")] = True
    max_topics: Annotated[int, Meta(description="Maximum topics of a question.", ge=1)] = 3
    draw: Annotated[int, Meta(description="Questions drawn at the end; 0 keeps all.", ge=0)] = 0
    review_share: Annotated[float, Meta(description="Share of the questions that people review.", ge=0, le=1)] = 0.1
    reviews: Annotated[str, Meta(description="Reviewers' labels (JSONL or CSV) to apply.")] = ""  # fmt: skip


# -- candidates


def _candidates(context: RecipeContext) -> list[tuple[str, HarvestedQuestion | BadRow]]:
    s = context.settings
    paths = [s.harvest] if isinstance(s.harvest, str) else list(s.harvest)
    limits = HarvestLimits(bytes=s.harvest_bytes, rows=s.harvest_rows, characters=s.harvest_characters)
    rows = read_harvest((Path(path) for path in paths if path), limits)
    return [(f"q{number:05d}", row) for number, row in enumerate(rows, start=1)]


def _begin(context: RecipeContext) -> Iterator[RecipeItem]:
    """The harvest's rows, anonymised; without a harvest, places for questions to be proposed."""
    context.tables["anonymised"] = TableFile(REMOVED, [])
    if not context.settings.harvest:
        yield from _slots(context)
        return
    pack = load_pack(context.settings.pack)
    present = groups_of(context.corpus, pack)
    groups = {*present, *absent_groups(present, pack), GENERAL}
    rows = _candidates(context)
    sites = Counter(row.site for _, row in rows if isinstance(row, HarvestedQuestion) and row.site)
    for name, row in rows:
        origin = Step(name="harvest", note=f"{row.file}, line {row.line}")
        if isinstance(row, BadRow):
            yield RecipeItem(id=name, values={"unusable": row.why}, lineage=(origin,))
            continue
        context.unwritten[name] = anonymise(row.text).text
        values: dict[str, Any] = {"group": group} if (group := same_group(row.group, groups)) else {}
        site = {"site": row.site} if sites[row.site] >= context.settings.site_questions else {}
        year = {"year": row.year} if row.year else {}
        yield RecipeItem(id=name, values=values, facets={"origin": "harvested", **site, **year}, lineage=(origin,))


def _slots(context: RecipeContext) -> Iterator[RecipeItem]:
    number = 0
    for document in context.corpus.documents():
        for place, section in _sections(document, context):
            for slot in range(context.settings.propose):
                number += 1
                yield RecipeItem(
                    id=f"q{number:05d}",
                    documents=(document.id,),
                    values={"section": place, "slot": slot},
                    facets={"origin": "proposed"},
                    lineage=(Step(name="section", note=f"{document.id}: {section.heading}"),),
                )


def _sections(document: Document, context: RecipeContext) -> list[tuple[int, Section]]:
    """Sections with enough words, a sample of them drawn by the seed, in their order."""
    fit = [
        (place, section)
        for place, section in enumerate(document.sections)
        if len(document.section_text(section).split()) >= context.settings.section_words
    ]
    maximum = context.settings.sections
    return sorted(context.rng("sections", document.id).sample(fit, maximum)) if 0 < maximum < len(fit) else fit


def _anonymous(item: str, text: str, what: str, context: RecipeContext) -> str:
    """A text without what identifies people; its marks are noted by kind and place, never what stood there."""
    clean = anonymise(text).text
    _note_marks(item, clean, what, context)
    return clean


def _note_marks(item: str, text: str, what: str, context: RecipeContext) -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for mark in _MARK.finditer(text):
        if mark[1] in kinds():
            places[mark[1]].append(f"{mark.start()}-{mark.end()}")
    rows = context.tables["anonymised"].rows
    assert isinstance(rows, list)
    rows += [(item, kind, len(where), f"{what} {', '.join(where)}") for kind, where in sorted(places.items())]


# -- steps


def _steps(settings: SourceqaSettings) -> list[RecipeStep]:
    pack = load_pack(settings.pack)
    labels = _labels(settings.reviews)
    again = [_relevance("relevance, second reader", pack, "second")] if settings.double_check else []
    removed = _Removed()
    return [
        check("read", _usable),
        _identifiers(removed, pack, by=settings.identifiers),
        _private(
            ask(
                "propose", "sourceqa-propose", values=_proposal(pack), read=_proposed, when=lambda i: "slot" in i.values
            ),
            removed,
        ),
        exact_step("exact duplicates", "message"),
        _duplicates("near-duplicates", "message", settings.cosine, settings, labels),
        check("form", _form),
        *together(_relevance("relevance", pack, "model"), *again),
        _private(ask("rewrite", "sourceqa-rewrite", values=_message(pack), read=_rewriting(removed)), removed),
        whole("faithfulness", _faithful),
        *([_private(_same_question(), removed)] if settings.verify else []),
        _duplicates("near-duplicates, rewritten", "question", settings.paraphrase, settings, labels),
        group_step("group", "question", pack),
        topic_step("topics", "question", pack, settings.max_topics),
        subtopic_step("sub-topics", "question", pack, settings.max_topics),
        sample("draw", settings.draw),
        reviewed("review", settings.reviews, _verdict(settings.reviews), criteria=CRITERIA, others=(CRITERION,)),
    ]


def _duplicates(
    name: str, value: str, minimum: float, s: SourceqaSettings, labels: Mapping[str, Sequence[ReviewLabel]]
) -> RecipeStep:
    """The paper's rule, or a model that decides about everything at least so much alike."""
    if s.duplicates == "cosine":
        return near_step(name, value, s.cosine, labels, where=s.reviews)
    return same_step(name, value, minimum=min(minimum, s.cosine), sure=s.cosine, labels=labels, where=s.reviews)


def _identifiers(removed: _Removed, pack: Pack, *, by: str) -> RecipeStep:
    """Give harvested items their `message`: by rules, and by a model that names the words that rules left.

    The model names words by their numbers, so that its reply repeats nothing. Rules object to words that it passes
    over though they look like a name, and to words that it marks though the sources use them; it decides.
    """
    latest: dict[str, list[WordRange]] = {}
    source_words: set[str] = set()

    def read(item: RecipeItem, said: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        text = context.unwritten[item.id]
        count = len(text.split())
        found = [WordRange(each["first"], each["last"], each["kind"]) for each in said["found"]]
        wrong = [each for each in found if not 1 <= each.first <= each.last <= count]
        found = latest[item.id] = _apart([each for each in found if each not in wrong])
        done = item.put(message=mask_words(text, found))
        objections = [f"There is no word {each.first} to {each.last}: the message has {count}." for each in wrong]
        if sum(each.last - each.first + 1 for each in found) > _MAX_MARKED * count:
            latest[item.id] = []
            done = item.put(message=text)
            objections.append("More than half of the words are marked. Mark only what tells who or where somebody is.")
        else:
            objections += _doubts(text, found, source_words)
        if not objections:
            return done
        return AskAgain(
            reason="a rule doubts which words identify someone",
            say=" ".join(objections),
            otherwise=done.put(identifiers_doubt=True),
        )

    asked = ask(
        "identifiers",
        "sourceqa-identifiers",
        values=lambda item, context: {
            "reader": pack.reader,
            "message": context.fit(numbered_words(context.unwritten[item.id]), load_prompt("sourceqa-identifiers")),
        },
        read=read,
        schema=lambda _item, _context: _identifier_schema(),
        when=lambda item: "slot" not in item.values,
    )

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> Sequence[Outcome]:
        latest.clear()
        if by == "rule":
            found: Sequence[Outcome] = [
                item.put(message=context.unwritten[item.id]) if item.id in context.unwritten else item for item in items
            ]
        else:
            source_words.update(_source_words(context))
            found = asked.run(items, context)
        for item, outcome in zip(items, found, strict=True):
            if isinstance(outcome, RecipeItem) and item.id in context.unwritten:
                removed.add(item.id, words_in(context.unwritten[item.id], latest.get(item.id, ())))
                _note_marks(item.id, str(outcome["message"]), "message", context)
        return found

    calls = asked.calls if by == "model" else 0
    return _private(RecipeStep(name="identifiers", run=run, prompts=asked.prompts, calls=calls), removed)


def _apart(found: Sequence[WordRange]) -> list[WordRange]:
    """The ranges in order, without those that overlap an earlier one."""
    kept: list[WordRange] = []
    for each in sorted(found, key=lambda one: (one.first, -one.last)):
        if not kept or each.first > kept[-1].last:
            kept.append(each)
    return kept


@cache
def _identifier_schema() -> dict[str, object]:
    schema = msgspec.json.decode(msgspec.json.encode(load_prompt("sourceqa-identifiers").schema))
    schema["properties"]["found"]["items"]["properties"]["kind"]["enum"] = list(kinds())
    assert isinstance(schema, dict)
    return schema


def _doubts(text: str, found: Sequence[WordRange], known: set[str]) -> list[str]:
    """What rules object to: words passed over that look like names, and marked words that the sources know."""
    marked = {number for each in found for number in range(each.first, each.last + 1)}
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    passed = {
        max(number for number, start in enumerate(starts, 1) if start <= each.start): text[each.start : each.end]
        for each in possible_names(text, known)
    }
    missed = [f"{number} ({word})" for number, word in passed.items() if number not in marked]
    usual = [
        f"{each.first} to {each.last} ({words})"
        for each, words in zip(found, words_in(text, found), strict=True)
        if each.kind in ("name", "place", "hospital", "institution") and known.issuperset(_WORD.findall(words.lower()))
    ]
    doubts = []
    if missed:
        doubts.append(
            f"These words are capitalised and in no word list: {', '.join(missed)}. Mark those that name a person, a "
            "place, a hospital, a school or another institution. Leave those that name a medicine, a food or a thing."
        )
    if usual:
        doubts.append(
            f"The sources use these words as ordinary words: {', '.join(usual)}. Mark them only where they name "
            "somebody or a place of somebody's."
        )
    return doubts


def _source_words(context: RecipeContext) -> frozenset[str]:
    """The words that the sources write in lower case: they name nobody."""
    found = (word for document in context.corpus.documents() for word in _WORD.findall(document.text))
    return frozenset(word for word in found if word.islower())


def _private(step: RecipeStep, removed: _Removed) -> RecipeStep:
    """The step, but what it rejects or fails is written without what was removed from the item's message."""

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        outcomes = step.run(items, context)
        return [_scrubbed(out, removed.of(item, context)) for item, out in zip(items, outcomes, strict=True)]

    return msgspec.structs.replace(step, run=run)


def _scrubbed(outcome: Outcome, words: Sequence[str]) -> Outcome:
    if isinstance(outcome, Failure):
        return msgspec.structs.replace(outcome, message=_UNSAID)
    if not isinstance(outcome, ItemRejection) or not outcome.details:
        return outcome
    details = anonymise(outcome.details).text
    for each in sorted(returned(details, words), reverse=True):
        details = f"{details[: each.start]}[removed]{details[each.end :]}"
    return msgspec.structs.replace(outcome, details=details)


def _labels(path: str) -> Mapping[str, Sequence[ReviewLabel]]:
    """What reviewers said, by item; a label that can't be read is refused, also one that no step would look at."""
    by_item: defaultdict[str, list[ReviewLabel]] = defaultdict(list)
    for each in known_labels(path, (*CRITERIA, CRITERION), several=(CRITERION,)):
        says_yes(each, path)
        by_item[each.item].append(each)
    return by_item


def _usable(item: RecipeItem, _context: RecipeContext) -> Outcome:
    why = item.get("unusable")
    return ItemRejection(reason=str(why), details=item.lineage[0].note) if why else item


def _proposal(pack: Pack) -> Any:
    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        document = context.document(item.documents[0])
        section = document.sections[item["section"]]
        text = context.fit(document.section_text(section), load_prompt("sourceqa-propose"))
        return {
            "reader": pack.reader,
            "source_word": pack.source_word,
            "count": context.settings.propose,
            "heading": section.heading,
            "text": text,
        }

    return values


def _proposed(item: RecipeItem, said: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
    questions = [str(each) for each in said["questions"]]
    if item["slot"] >= len(questions):
        return ItemRejection(
            reason="fewer questions were proposed than asked for", details=f"{len(questions)} were proposed"
        )
    document = context.document(item.documents[0])
    text = _anonymous(item.id, questions[item["slot"]], "proposal", context)
    section = document.section_text(document.sections[item["section"]])
    maximum = context.settings.question_words
    wrong = sound(text, what="proposed question", source=section, max_words=maximum)
    if wrong is None:
        return item.put(message=text)
    return wrong.again(
        f"A rule objects to question {item['slot'] + 1} of your list: {wrong.reason}. Write one question of at most "
        f"{maximum} words in its place, in the language of the text."
    )


def _form(item: RecipeItem, context: RecipeContext) -> Outcome:
    s = context.settings
    return well_formed(item["message"], minimum=s.min_words, maximum=s.max_words, language=s.language) or item


def _relevance(name: str, pack: Pack, role: str) -> RecipeStep:
    def read(item: RecipeItem, said: dict[str, Any], _context: RecipeContext) -> Outcome:
        reason = anonymise(str(said["reason"])).text
        if said["verdict"] == "good":
            return item.put(relevance=reason)
        return ItemRejection(reason=f"judged {said['verdict']}", details=reason)

    return ask(
        name,
        "sourceqa-relevance",
        values=lambda item, _context: {
            "domain": pack.title,
            "reader": pack.reader,
            "source_word": pack.source_word,
            "message": in_plain_words(item["message"]),
        },
        read=read,
        role=role,
    )


def _message(pack: Pack) -> Any:
    return lambda item, context: {
        "reader": pack.reader,
        "message": in_plain_words(item["message"]),
        "most": min(context.settings.question_words, 40),
    }


class _Removed:
    """What was removed from the harvest's messages, read again when it is first asked for and kept in memory only."""

    def __init__(self) -> None:
        self._words: dict[str, list[str]] | None = None
        self._by_model: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, item: str, words: Sequence[str]) -> None:
        """Words that a model found in a message besides."""
        self._by_model[item] = [each.strip(".,;:!?()[]\"'“”‘’ ") for each in words]

    def of(self, item: RecipeItem, context: RecipeContext) -> list[str]:
        """The words that were removed from one message."""
        if self._words is None:
            self._words = {
                name: [clean[each.start : each.end] for each in find_identifiers(clean)]
                for name, row in _candidates(context)
                if isinstance(row, HarvestedQuestion) and (clean := tidy(row.text))
            }
        return [*self._words.get(item.id, []), *self._by_model.get(item.id, [])]


def _rewriting(removed: _Removed) -> Callable[[RecipeItem, dict[str, Any], RecipeContext], Outcome | AskAgain]:
    def read(item: RecipeItem, said: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        text = " ".join(tidy(str(said["question"])).split()).strip("\"'“”‘’ ")
        # Checked before the text is put down: one that tells who asked must not reach any file.
        wrong = tells_who(text, removed.of(item, context)) or sound(
            text, what="rewritten question", source=item["message"], max_words=context.settings.question_words
        )
        wrong = wrong or stands_alone(text, context.settings.language) or _new_number(text, item["message"])
        if wrong is None:
            return item.put(question=text)
        return wrong.again(
            f"A rule objects to the question: {wrong.reason}{f' ({wrong.details})' if wrong.details else ''}. Write "
            "one question that can be understood without the message, names nobody, no place and no institution, and "
            "has no number that the message does not have."
        )

    return read


def _new_number(question: str, message: str) -> ItemRejection | None:
    strange = new_numbers(question, in_plain_words(message))
    if not strange:
        return None
    return ItemRejection(reason="the rewritten question has a new number", details=", ".join(strange))


def _report(
    questions: Sequence[Question], removed: _Removed, items: Sequence[RecipeItem], context: RecipeContext
) -> dict[str, object]:
    """What was removed in all, and a last look at every question."""
    kinds: Counter[str] = Counter()
    for _, kind, count, _ in context.tables["anonymised"].rows:
        kinds[str(kind)] += int(str(count))
    left = [q for q, item in zip(questions, items, strict=True) if tells_who(q.text, removed.of(item, context))]
    assert not left, f"{left[0].id} tells who asked"
    return {
        "removed": dict(sorted(kinds.items())),
        "candidates_with_identifiers": len({row[0] for row in context.tables["anonymised"].rows}),
        "questions_checked": len(questions),
        "questions_with_identifiers": len(left),
    }


def _faithful(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
    """Whether a rewritten question is near its message in meaning; a reader that compares the two decides, if any."""
    if not items:
        return []
    s, encoder = context.settings, context.encoder()
    asked = encoder.encode([item["question"] for item in items], Named(context.progress, "encoding questions"))
    written = encoder.encode(
        [in_plain_words(item["message"]) for item in items], Named(context.progress, "encoding messages")
    )
    outcomes: list[Outcome] = []
    for item, cosine in zip(items, (asked * written).sum(axis=1).round(4).tolist(), strict=True):
        if cosine < s.alike and not s.verify:
            reason = "the rewritten question asks something else"
            outcomes.append(ItemRejection(reason=reason, details=f"cosine {cosine}"))
        else:
            outcomes.append(item.put(alike=cosine))
    return outcomes


def _same_question() -> RecipeStep:
    """A second reader compares message and question: a changed substance or a turned question keeps its words."""

    def read(item: RecipeItem, said: dict[str, Any], _context: RecipeContext) -> Outcome:
        reason = anonymise(str(said["reason"])).text
        if said["verdict"] == "same":
            return item.put(compared=reason)
        return ItemRejection(reason="a reader says that the rewritten question asks something else", details=reason)

    return ask(
        "same question",
        "sourceqa-same",
        values=lambda item, _context: {"message": in_plain_words(item["message"]), "question": item["question"]},
        read=read,
        role="second",
    )


def _verdict(path: str) -> Any:
    def rule(_item: RecipeItem, labels: Mapping[str, Sequence[ReviewLabel]]) -> ItemRejection | None:
        for criterion in CRITERIA:
            against = [not says_yes(label, path) for label in labels.get(criterion, ())]
            if sum(against) * 2 > len(against):
                return ItemRejection(reason=f"reviewers: not {criterion}", details=f"{sum(against)} of {len(against)}")
        return None

    return rule


# -- questions


def _finish(items: Sequence[RecipeItem], context: RecipeContext) -> RecipeOutput:
    pack = load_pack(context.settings.pack)
    questions = tuple(
        Question(id=item.id, text=item["question"], facets=item.facets, lineage=item.lineage) for item in items
    )
    context.metrics["pack"] = f"{pack.name}@{pack.fingerprint}"
    context.metrics["routing"] = routing(questions, context.corpus, pack)
    context.metrics["without a source"] = sum(bool(item.get("without_source")) for item in items)
    context.metrics["anonymity"] = _report(questions, _Removed(), items, context)
    words = [len(question.text.split()) for question in questions]
    context.metrics["question_words"] = round(sum(words) / max(1, len(words)), 1)
    groups = groups_of(context.corpus, pack)
    vocabulary = _source_words(context)
    waiting = [item for item in items if item.get("review") == "waiting"]
    drawn = drawn_for_review(waiting, context, "questions", context.settings.review_share)
    look = [
        *((item, "drawn") for item in drawn),
        *((item, why) for item in waiting if (why := group_doubt(item["question"], _group(item), groups, pack))),
        *((item, f"no source is about {_group(item)}") for item in waiting if item.get("without_source")),
        *((item, "names a group without a source") for item in waiting if item.get("names_absent_group")),
        *((item, "a word may be a name") for item in waiting if possible_names(item["question"], vocabulary)),
        *((item, "rule and model differ on a name") for item in waiting if item.get("identifiers_doubt")),
        *((item, "little like its message") for item in waiting if item["alike"] < context.settings.alike),
    ]
    labels = _labels(context.settings.reviews)
    tasks = (_task(item, why, labels.get(item.id, ())) for item, why in look)
    return RecipeOutput(questions=questions, review=(*duplicate_tasks(context), *tasks))


def _task(item: RecipeItem, why: str, labels: Sequence[ReviewLabel]) -> ReviewTask:
    left = tuple(each for each in CRITERIA if each not in {label.criterion for label in labels})
    shown = {"message": str(item["message"]), "group": _group(item)}
    return ReviewTask(item=item.id, kind="question", criteria=left, why=why, question=item["question"], shown=shown)


def _group(item: RecipeItem) -> str:
    return str(item.facets.get("group", GENERAL))


RECIPE = Recipe(
    name="sourceqa",
    title="Patients' questions for an audit of sources",
    about="Harvested questions, anonymous and without duplicates, for every source or for a group of sources.",
    settings=SourceqaSettings,
    begin=_begin,
    steps=_steps,
    finish=_finish,
    encodes=True,
)
