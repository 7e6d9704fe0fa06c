"""Distractors from ICD-10-CM: descriptions near to a diagnosis that are not the diagnosis.

`candidate_step` finds candidates by text search and in the tree of codes: diseases that the report names, the
neighbours of the diagnosis's own code, and descriptions that share its words. They lose coding words ("unspecified",
"initial encounter", "sequela"). What names the diagnosis, a wider or narrower form of it, the same disease elsewhere,
another sex or age, or nothing that can be an option is left out (`distractors.toml`). A model then chooses among them
(`option_choice`). Nothing has to be encoded.

`distractor_step` is the paper's rule. One encoder reads the diagnosis and every description of the classification. The
nearest description is taken to be the diagnosis itself, the next ones (by default ranks 2 to 4) become distractors. A
guard passes over a neighbour that means the same as the diagnosis or as a distractor already taken, and walks on down
the list. What was passed over, and how similar everything was, is kept: the table `similarity` and the metric of that
name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import zip_longest

import msgspec
import numpy as np
from msgspec import Struct

from hoofbeat.corpus.terms import Term, content_forms
from hoofbeat.corpus.vocabulary import Vocabulary
from hoofbeat.models.encoder import Encoder
from hoofbeat.models.encoders.vector_cache import CachedEncoder, cached_encoder
from hoofbeat.progress import SILENT, Named, Progress
from hoofbeat.recipes.cases.option_choice import Candidate
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.guards.diagnosis_names import same, same_as_answer, without_sides
from hoofbeat.recipes.guards.leak_patterns import main_part
from hoofbeat.recipes.guards.leak_words import worth
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, check, whole
from hoofbeat.recipes.wordlists import word_data

SIMILARITY_HEADER = ("item", "rank", "code", "description", "cosine", "use")
NO_DIAGNOSES = ("B95", "B96", "B97", "V", "W", "X", "Y", "Z")
"""ICD-10-CM codes that name an organism, say how an injury came about or why somebody seeks care."""
ITSELF = "taken to be the diagnosis"
_DEEPEST = 200
_BINS = 20
_OPENING = 1500
_IN_A_YEAR = {"month": 12, "week": 52, "day": 365}
_SEARCHED = 120
_MENTIONED = 40
_CATEGORY = 3
_SHORTEST = 6  # letters of a disease's name in a report: shorter ones mean too many things
_SYMPTOMS = "R"
_MAX_CODES = 4


class IcdCodes(Struct, frozen=True):
    """Codes with their descriptions, each description once under its shortest code."""

    codes: tuple[str, ...]
    descriptions: tuple[str, ...]


class Neighbour(Struct, frozen=True, kw_only=True):
    """A description near to a diagnosis: its rank among all, from 1, and the cosine between the two."""

    rank: int
    code: str
    description: str
    cosine: float


class NeighbourOutcome(Struct, frozen=True):
    """A neighbour that was checked and what became of it: empty `why` where it became a distractor."""

    neighbour: Neighbour
    why: str = ""


def code_descriptions(vocabulary: Vocabulary, *, encounters: bool = True) -> IcdCodes:
    """The long descriptions of all codes, categories and leaves, without chapters and blocks.

    `encounters` takes in the codes that only add an encounter (initial, subsequent, sequela) to an injury.
    """
    shortest: dict[str, str] = {}
    for term in vocabulary.terms:
        if "-" in term.code or len(term.code) < 3 or not term.name.strip():
            continue
        if not encounters and len(term.code) == 8 and not term.in_text:
            continue
        known = shortest.get(term.name)
        if known is None or (len(term.code), term.code) < (len(known), known):
            shortest[term.name] = term.code
    return IcdCodes(tuple(shortest.values()), tuple(shortest))


def nearest_codes(
    texts: Sequence[str], codes: IcdCodes, encoder: Encoder, *, count: int = 4, progress: Progress = SILENT
) -> list[list[Neighbour]]:
    """The `count` descriptions nearest to each text by cosine, the nearest first; every description is compared.

    Vectors of descriptions are kept by content: they are computed once for an encoder.
    """
    # Loaded when it searches: listing the recipes needs no index.
    from hoofbeat.retrieval.index.dense_search import DenseSearcher  # noqa: PLC0415

    keeping = encoder if isinstance(encoder, CachedEncoder) else cached_encoder(encoder)
    search = DenseSearcher(keeping.encode(codes.descriptions, Named(progress, "encoding ICD-10-CM descriptions")))
    found = search.search(keeping.encode(texts), min(count, len(search))) if texts else []
    return [
        [
            Neighbour(
                rank=rank, code=codes.codes[at], description=codes.descriptions[at], cosine=round(float(score), 4)
            )
            for rank, (at, score) in enumerate(zip(ranking.indices.tolist(), ranking.scores, strict=True), start=1)
        ]
        for ranking in found
    ]


def choose_distractors(
    diagnosis: str,
    neighbours: Sequence[Neighbour],
    *,
    ranks: tuple[int, int] = (2, 4),
    synonyms: Sequence[str] = (),
    vocabularies: Sequence[Vocabulary] = (),
    leave_out: Sequence[str] = (),
) -> list[NeighbourOutcome]:
    """Walk down the neighbours until there are as many distractors as there are ranks from the first to the last.

    Ranks before the first are taken to be the diagnosis itself. Codes that begin with one of `leave_out` are no
    diagnoses: a family history or a screening can be true beside the right answer.
    """
    wanted = ranks[1] - ranks[0] + 1
    taken: list[str] = []
    walked: list[NeighbourOutcome] = []
    itself: list[str] = []
    names = [diagnosis, *synonyms]
    for neighbour in neighbours:
        if len(taken) == wanted:
            break
        if neighbour.rank < ranks[0]:
            itself.append(neighbour.description)
            if same(diagnosis, neighbour.description, vocabularies).startswith("the same"):
                names.append(neighbour.description)
            walked.append(NeighbourOutcome(neighbour, ITSELF))
            continue
        why = "its code names no diagnosis" if neighbour.code.startswith(tuple(leave_out)) else ""
        why = why or _is_diagnosis(neighbour.description, names, itself, vocabularies)
        why = why or _is_taken(neighbour.description, taken, vocabularies)
        if not why:
            taken.append(neighbour.description)
        walked.append(NeighbourOutcome(neighbour, why))
    return walked


def _is_diagnosis(
    description: str, names: Sequence[str], itself: Sequence[str], vocabularies: Sequence[Vocabulary]
) -> str:
    for name in names:
        if why := same(description, name, vocabularies):
            return f"the diagnosis in other words: {why}"
    for nearest in itself:  # what only lies near is not the diagnosis for sure: only an equal of it is passed over
        if same(without_sides(description), without_sides(nearest)).startswith("the same words"):
            return f"the same as what was taken to be the diagnosis: {nearest}"
    return ""


def _is_taken(description: str, taken: Sequence[str], vocabularies: Sequence[Vocabulary]) -> str:
    for other in taken:
        if why := same(description, other, vocabularies) or same(without_sides(description), without_sides(other)):
            return f"like the distractor {other}: {why}"
    return ""


# Candidates, by text search and the tree of codes


class Patient(Struct, frozen=True):
    """What a case says of its patient: sex (empty where it does not tell), age in years, and whether pregnant."""

    sex: str = ""
    age: float | None = None
    pregnant: bool = False


class _CandidateRules(Struct, frozen=True):
    jargon: re.Pattern[str]
    patterns: dict[str, re.Pattern[str]]
    codes: dict[str, tuple[str, ...]]
    child_until: int
    old_from: int


@cache
def _rules() -> _CandidateRules:
    data = word_data("distractors")
    patterns = ("no_option", "child", "old", "is_female", "is_male", "is_pregnant", "age")
    return _CandidateRules(
        jargon=re.compile("|".join(data["jargon"]), re.IGNORECASE),
        patterns={name: re.compile(data[name], re.IGNORECASE) for name in patterns},
        codes={name: tuple(data[name]) for name in ("female", "male", "pregnant", "newborn")},
        child_until=data["child_until"],
        old_from=data["old_from"],
    )


def patient_of(case: str) -> Patient:
    """Sex, age and pregnancy as the first sentences of a case tell them."""
    found, start = _rules().patterns, case[:_OPENING]
    first = {sex: match.start() for sex in ("female", "male") if (match := found[f"is_{sex}"].search(start))}
    age = found["age"].search(start)
    years = None
    if age:
        years = int(age[1]) / _IN_A_YEAR.get(age[2].lower(), 1)
    return Patient(min(first, key=lambda sex: first[sex], default=""), years, bool(found["is_pregnant"].search(case)))


def fits_patient(code: str, description: str, patient: Patient) -> bool:
    """Whether a patient of this sex and age can have a condition; what a case does not tell excludes nothing."""
    rules = _rules()
    codes, patterns = rules.codes, rules.patterns
    other = {"female": "male", "male": "female"}.get(patient.sex)
    if other and code.startswith(codes[other]):
        return False
    if code.startswith(codes["pregnant"]) and not patient.pregnant:
        return False
    if patient.age is None:
        return True
    if code.startswith(codes["newborn"]) and patient.age >= 1:
        return False
    if patient.age >= rules.child_until and patterns["child"].search(description):
        return False
    return patient.age >= rules.old_from or not patterns["old"].search(description)


def plain_description(description: str) -> str:
    """A description without coding words; empty where it names what is left over in a group, and no disease."""
    rules, plain = _rules(), description
    while (cut := " ".join(rules.jargon.sub(" ", plain).split()).strip(" ,;")) != plain:
        plain = cut
    plain = plain.replace(" ,", ",")
    return "" if not plain or rules.patterns["no_option"].search(plain) else plain[:1].upper() + plain[1:]


def find_candidates(
    diagnosis: str,
    patient: Patient,
    vocabulary: Vocabulary,
    *,
    count: int,
    synonyms: Sequence[str] = (),
    report: str = "",
    case: str = "",
    guards: Sequence[Vocabulary] = (),
    leave_out: Sequence[str] = (),
) -> list[Candidate]:
    """Diseases of ICD-10-CM that lie near to a diagnosis and exclude it and each other.

    Diseases that the report itself names, neighbours in the tree and descriptions that share words take turns. What the
    case shown to the examinee names is put last: it is mostly a finding or an illness that the patient has (30 of 46
    such candidates in a trial on 15 real reports, and 19 of 171 of the others).
    """
    own = _own_codes([diagnosis, *synonyms], vocabulary)
    above = {_plain(term.name) for code in own for term in _ancestors(code, vocabulary)}
    kept: list[Candidate] = []
    seen: set[str] = set()
    near = (_neighbours(own, vocabulary), _alike(diagnosis, vocabulary))
    shown = {match.code for match in vocabulary.find_phrases(case)}
    turns = _in_turns(_mentioned(report, vocabulary), *near)
    for term in sorted(turns, key=lambda term: term.code in shown):
        text = plain_description(term.name)
        if not text or text.casefold() in seen or term.code.startswith((_SYMPTOMS, *leave_out)) or "-" in term.code:
            continue
        seen.add(text.casefold())
        if _plain(text) in above or term.code in own or not fits_patient(term.code, term.name, patient):
            continue
        if same_as_answer(text, diagnosis, synonyms, guards):
            continue
        if _is_elsewhere(text, diagnosis, kin=any(code[:_CATEGORY] == term.code[:_CATEGORY] for code in own)):
            continue
        if any(same(text, other.text, guards) or same(without_sides(text), other.text) for other in kept):
            continue
        kept.append(Candidate(text=text, origin="icd10cm", code=term.code))
        if len(kept) == count:
            break
    return kept


def _alike(diagnosis: str, vocabulary: Vocabulary) -> list[Term]:
    """Terms that share a word of the disease itself, not only of its place, grade or cause ("line", "grade IV").

    The number of COVID-19 is not such a word: it found burns of 10-19% of the body surface.
    """
    words = [word for word in content_forms(main_part(diagnosis)) if not word.isdecimal()]
    heads = {word for word in words if worth(word) in {"disease", "special", "class"}} | set(words[-1:])
    found = vocabulary.search(diagnosis, _SEARCHED)
    return [term for term in found if not heads.isdisjoint(content_forms(term.name))]


def _is_elsewhere(text: str, diagnosis: str, *, kin: bool) -> bool:
    """Whether two names mean one disease in two places: sarcoidosis of heart and of lung; `kin` share a category."""
    one, other = set(content_forms(text)), set(content_forms(diagnosis))
    if not any(worth(word) == "disease" for word in one & other):
        return False
    return {worth(word) for word in one ^ other} <= {"site", *(("qualifier", "modifier") if kin else ())}


def _plain(name: str) -> str:
    return (plain_description(name) or name).casefold()


def _own_codes(names: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """The codes of a diagnosis: by its names, else by the longest term in them."""
    codes = [match.code for name in names for match in vocabulary.lookup(name)]
    if not codes:
        found = sorted(vocabulary.find_in(names[0]), key=lambda match: match.start - match.end)
        codes = [match.code for match in found[:1]]
    return list(dict.fromkeys(codes))


def _ancestors(code: str, vocabulary: Vocabulary) -> list[Term]:
    return [term for each in _lineage(code, vocabulary)[1:] if "-" not in each and (term := vocabulary.term(each))]


def _neighbours(codes: Sequence[str], vocabulary: Vocabulary) -> list[Term]:
    """Terms of the same category, then of the same block: no code above or below the diagnosis."""
    found: dict[str, Term] = {}
    kin = set(codes)
    for code in codes[:_MAX_CODES]:
        lineage = _lineage(code, vocabulary)
        kin.update(lineage)
        for above in lineage[1:-1]:
            for each in vocabulary.below(above):
                found.setdefault(each.code, each)
                for child in vocabulary.below(each.code) if "-" in above else ():
                    found.setdefault(child.code, child)
    return [term for term in found.values() if term.code not in kin and set(codes).isdisjoint(term.parents)]


def _lineage(code: str, vocabulary: Vocabulary) -> list[str]:
    """A code and those above it, the nearest first."""
    term = vocabulary.term(code)
    return [code, *(term.parents if term else ())]


def _mentioned(report: str, vocabulary: Vocabulary) -> list[Term]:
    """The diseases that a report names, the most frequent first."""
    counts = Counter(match.code for match in vocabulary.find_phrases(report) if len(match.text) >= _SHORTEST)
    return [term for code, _ in counts.most_common(_MENTIONED) if (term := vocabulary.term(code))]


def _in_turns(*lists: Sequence[Term]) -> list[Term]:
    turns = [each for row in zip_longest(*lists) for each in row if each is not None]
    return list({term.code: term for term in turns}.values())


def candidate_step(
    name: str,
    *,
    count: int,
    answer: str = "diagnosis",
    synonyms: str = "synonyms",
    leave_out: Sequence[str] = NO_DIAGNOSES,
    guards: Sequence[str] = ("icd10cm", "rare-diseases"),
) -> RecipeStep:
    """Give every item its `candidates` for distractors: at most `count`, the nearest first."""

    def judge(item: RecipeItem, context: RecipeContext) -> RecipeItem:
        case = str(item["stem"])
        found = find_candidates(
            str(item[answer]),
            patient_of(case),
            context.vocabulary("icd10cm"),
            count=count,
            synonyms=tuple(map(str, item.get(synonyms) or ())),
            report=context.document(item.documents[0]).text if item.documents else "",
            case=case,
            guards=[context.vocabulary(each) for each in guards],
            leave_out=leave_out,
        )
        return item.put(candidates=msgspec.to_builtins(found))

    return check(name, judge)


# The step by ranks


def distractor_step(
    name: str,
    *,
    ranks: tuple[int, int] = (2, 4),
    answer: str = "diagnosis",
    synonyms: str = "synonyms",
    encounters: bool = True,
    deepest: int = _DEEPEST,
    leave_out: Sequence[str] = NO_DIAGNOSES,
    guards: Sequence[str] = ("icd10cm", "rare-diseases"),
) -> RecipeStep:
    """Give every item its `distractors`, nearest first; one with too few within `deepest` neighbours is turned away.

    `leave_out` are beginnings of codes that are passed over, `guards` the vocabularies that know wordings of one code.
    """

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        codes = _descriptions(context.vocabulary("icd10cm"), encounters)
        guarding = [context.vocabulary(each) for each in guards]
        texts = [str(item[answer]) for item in items]
        encoder = context.encoder()
        found = nearest_codes(texts, codes, encoder, count=deepest, progress=context.progress)
        outcomes: list[Outcome] = []
        rows: list[tuple[object, ...]] = []
        wanted = ranks[1] - ranks[0] + 1
        for item, near in zip(items, found, strict=True):
            names = tuple(map(str, item.get(synonyms) or ()))
            walked = choose_distractors(
                str(item[answer]), near, ranks=ranks, synonyms=names, vocabularies=guarding, leave_out=leave_out
            )
            rows += _rows(item.id, walked)
            outcomes.append(_outcome(item, walked, wanted, deepest))
        context.tables["similarity"] = TableFile(SIMILARITY_HEADER, rows)
        summary = similarity_summary(found, [row[4] for row in rows if str(row[5]).startswith("distractor")], ranks[1])
        context.metrics["similarity"] = {
            "encoder": encoder.identity,
            "vocabulary": "icd10cm",
            "descriptions": len(codes.descriptions),
            **summary,
        }
        return outcomes

    return whole(name, judge)


@lru_cache(maxsize=2)
def _descriptions(vocabulary: Vocabulary, encounters: bool) -> IcdCodes:
    return code_descriptions(vocabulary, encounters=encounters)


def _outcome(item: RecipeItem, walked: Sequence[NeighbourOutcome], wanted: int, deepest: int) -> Outcome:
    taken = [each.neighbour for each in walked if not each.why]
    if len(taken) < wanted:
        return ItemRejection(
            reason="too few distractors that exclude the diagnosis",
            details=f"{len(taken)} of {wanted} among the {min(deepest, len(walked))} nearest descriptions",
        )
    return item.put(
        distractors=[each.description for each in taken],
        distractor_codes=[each.code for each in taken],
        nearest={"code": walked[0].neighbour.code, "description": walked[0].neighbour.description},
    )


def _rows(item: str, walked: Sequence[NeighbourOutcome]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    number = 0
    for each in walked:
        near = each.neighbour
        number += not each.why
        use = each.why if each.why == ITSELF else f"passed over: {each.why}" if each.why else f"distractor {number}"
        rows.append((item, near.rank, near.code, near.description, f"{near.cosine:.4f}", use))
    return rows


def similarity_summary(
    found: Sequence[Sequence[Neighbour]], distractors: Sequence[object], last: int
) -> dict[str, object]:
    """How similar diagnoses and descriptions are: quartiles and a histogram, by rank and for the distractors.

    `last` is the last rank that is told apart; bins are of equal width from 0 to 1, what is below 0 is in the first.
    """
    by_rank = {str(rank): [near[rank - 1].cosine for near in found if len(near) >= rank] for rank in range(1, last + 1)}
    groups = {**by_rank, "distractors": [float(str(each)) for each in distractors]}
    edges = np.linspace(0, 1, _BINS + 1)
    return {
        "quartiles": {name: _quartiles(values) for name, values in groups.items() if values},
        "histogram": {
            "edges": [round(float(edge), 2) for edge in edges],
            **{
                name: np.histogram(np.clip(values, 0, 1), edges)[0].tolist()
                for name, values in groups.items()
                if values
            },
        },
    }


def _quartiles(values: Sequence[float]) -> dict[str, float]:
    cuts = np.percentile(np.array(values, np.float64), [0, 25, 50, 75, 100])
    names = ("min", "q1", "median", "q3", "max")
    return {name: round(float(cut), 4) for name, cut in zip(names, cuts, strict=True)}
