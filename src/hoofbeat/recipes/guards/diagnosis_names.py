"""What names of diagnoses mean: whether two mean the same, and which name a procedure or an organism instead.

Options of one question must exclude each other. Two names are the same when their words are (whatever their order,
inflection, spelling and filling words), when one names a wider condition that the other is a kind of or has with it,
when one abbreviates the other, when a vocabulary has them under one code, when one organism causes both in one place,
and when they differ by a slip of the pen. They are never the same when words exclude each other: type 1 and type 2,
left and right, acute and chronic, with and without. The words are data (`sameness.toml`).

A procedure is neither a diagnosis nor an option beside one. Its name is recognised by its last word of weight: a
hernia repair is a procedure, a complication of a repair is not (`procedures.toml`). Genera are in `organisms.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from itertools import pairwise

import msgspec
from msgspec import Struct
from rapidfuzz.distance import DamerauLevenshtein

from hoofbeat.corpus.terms import COMMA, is_candidate, tokens, well_known_abbreviations
from hoofbeat.corpus.vocabulary import Vocabulary
from hoofbeat.recipes.guards.leak_patterns import main_part
from hoofbeat.recipes.guards.leak_words import forms_of, is_disease, worth
from hoofbeat.recipes.wordlists import word_data

_WORD = re.compile(r"[^\W\d_]+")
_PROCEDURE_BRACKET = re.compile(r"[(\[][^()\[\]]*[)\]]")
_BEHIND = re.compile(
    r"\s(?:of|for|with|under|using|via|by|in|on|at|from|due to|after|following|during|secondary to)\s", re.IGNORECASE
)
_MEASURE = re.compile(r"\d\s*(?:%|percent\b|mm\s?Hg\b|m[gl]/|g/d?l\b|/min\b|bpm\b|°)", re.IGNORECASE)


@cache
def _procedure_data() -> tuple[frozenset[str], tuple[str, ...]]:
    data = word_data("procedures")
    return frozenset(data["procedures"]), (*data["operations"], *data["procedure_endings"])


def names_procedure(text: str) -> bool:
    """Whether a name is that of an operation, a treatment or a specialty: pediatric surgery, splenectomy."""
    words, endings = _procedure_data()
    head = _BEHIND.split(_PROCEDURE_BRACKET.sub(" ", text), maxsplit=1)[0]
    named = _WORD.findall(head.lower())
    return bool(named) and (named[-1] in words or named[-1].endswith(endings))


def names_measure(text: str) -> bool:
    """Whether a name is a measured value: an ejection fraction of 30%."""
    return bool(_MEASURE.search(text))


_SPECIES = re.compile(r"^[a-z]{4,}(?:ae?|ii?|is|us|um|ens|ans|es?|ix|er|or)$")
_AGENT = re.compile(r"(?:virus|cov)$")
_SHORT_GENUS = re.compile(r"^\s*[A-Z](?:\.\s*|\s+)(?=[a-z])")
_SHORT_NAME = re.compile(r"^[A-Z]\.\s*([^\W\d_]{3,})")
_ORGANISM_BRACKET = re.compile(r"[(\[][^()\[\]]*[)\]]")


class _OrganismLists(Struct, frozen=True, forbid_unknown_fields=True):
    genera: str
    species: frozenset[str]
    strains: frozenset[str]
    acronyms: frozenset[str]
    renamed: tuple[str, ...]
    places: dict[str, str]


@cache
def _organism_lists() -> _OrganismLists:
    return msgspec.convert(word_data("organisms"), _OrganismLists)


@cache
def _renamed() -> tuple[tuple[re.Pattern[str], str], ...]:
    pairs = (each.split(" | ") for each in _organism_lists().renamed)
    return tuple((re.compile(rf"\b{old}\b", re.IGNORECASE), new) for old, new in pairs)


@lru_cache(maxsize=4096)
def _with_new_names(text: str) -> str:
    """A text with species that got another genus under their new name: Clostridioides difficile."""
    for old, new in _renamed():
        text = old.sub(new, text)
    return text


@cache
def _genera() -> frozenset[str]:
    return frozenset(form for form in tokens(_organism_lists().genera).forms if form)


def begins_with_genus(text: str) -> bool:
    """Whether a text begins with the letter of an organism's genus ("C. difficile"), not with a label ("C. Gout")."""
    short = _SHORT_NAME.match(text)
    return short is not None and (short[1][0].islower() or short[1].casefold() in _organism_lists().species)


def names_organism(text: str) -> bool:
    """Whether a name is that of an organism, not of what it does: Listeria monocytogenes, K. pneumoniae, MRSA."""
    bare = _ORGANISM_BRACKET.sub(" ", text)
    if bare.strip() in _organism_lists().acronyms:
        return True
    short = _SHORT_GENUS.match(bare)
    bare = bare[short.end() :] if short else bare
    words = [word for word in re.findall(r"[^\W_]+", bare.lower()) if word not in _organism_lists().strains]
    if not words:
        return False
    if _AGENT.search(words[-1]):
        return True
    if not short and _form(words[0]) not in _genera():
        return False
    return all(_is_species(word) for word in (words if short else words[1:]))


def names_its_organism(text: str, diagnosis: str) -> bool:
    """Whether a text names the organism that a diagnosis is an infection with: M. hominis, Nocardia for nocardiosis."""
    words = re.findall(r"[^\W\d_]+", diagnosis)
    for genus, species in pairwise(words):
        if names_organism(f"{genus} {species}") or (len(genus) == 1 and _is_species(species.lower())):
            short = rf"\b{re.escape(genus[0])}(?:\.\s*|\s+|{re.escape(genus[1:])}\s+){re.escape(species)}\b"
            if re.search(short, text, re.IGNORECASE):
                return True
    wanted = {form for word in words for form in (_form(word.lower()), *forms_of(_form(word.lower())))}
    return not wanted.isdisjoint(_genera() & set(tokens(text).forms))


def place_of(word: str) -> str:
    """Where an inflammation is, given and told in normal form; any other word as it is."""
    return _organism_lists().places.get(word, word)


def same_infection(
    one: Sequence[str], other: Sequence[str], telling: frozenset[str], other_telling: frozenset[str]
) -> str:
    """Why two names mean what one organism does in one place: Aspergillus pneumonia, pulmonary aspergillosis.

    The names come as their words in order and those that tell something, in normal form.
    """
    for words, first, second in ((one, telling, other_telling), (other, other_telling, telling)):
        for genus in sorted(first & _genera()):
            derived = {word for word in second if word != genus and genus in forms_of(word)}
            if derived and _in_one_place(_beside(words, first, genus), second - derived):
                return "one is a kind of the other: the same organism"
    return ""


def _beside(words: Sequence[str], telling: frozenset[str], genus: str) -> frozenset[str]:
    """What a name says besides the organism, its species left out."""
    after = next((word for before, word in pairwise(words) if before == genus), "")
    return telling - ({genus, after} if _is_species(after) else {genus})


def _in_one_place(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether words say nothing but a place, and not two places."""
    places = frozenset(_organism_lists().places.values())
    one, other = (frozenset(place_of(word) for word in words if worth(word) != "modifier") for words in (first, second))
    if any(worth(word) != "site" and word not in places for word in one | other):
        return False
    return not one or not other or one == other


def _is_species(word: str) -> bool:
    form = _form(word)
    if not {word, form}.isdisjoint(_organism_lists().species):
        return True
    return bool(_SPECIES.match(word)) and not is_disease(form) and worth(form) == "special"


def _form(word: str) -> str:
    return next(iter(tokens(word).forms), "")


_BRACKET = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_SQUARE = re.compile(r"\[[^\[\]]*\]")
_SIDES = re.compile(r"\b(?:left|right|bilateral|unspecified)\b(?: (?:side|eye|ear))?,?", re.IGNORECASE)
_ROMAN = {
    "i": "1",
    "ii": "2",
    "iii": "3",
    "iv": "4",
    "v": "5",
    "vi": "6",
    "vii": "7",
    "viii": "8",
    "ix": "9",
    "x": "10",
}
_NUMBERED = frozenset({"type", "stage", "grade", "class", "group", "phase", "factor", "subtype", "level"})
_LONE = frozenset({"ii", "iii", "iv", "vi", "vii", "viii", "ix"})
_NUMBER = re.compile(r"^(?:\d+[a-z]?|[a-z]\d*)$")
_INFLAMED = "itis"
_SAME_WORDS, _CONTAINS, _KIND = "the same words", "one contains the other", "one is a kind of the other"
_KINDS = (_CONTAINS, _KIND)
_SLIP = 7
_LONG_SLIP = 13
_MAX_NAMES = 8


class _Lists(Struct, frozen=True, forbid_unknown_fields=True):
    empty: frozenset[str]
    ends_head: frozenset[str]
    kinds: frozenset[str]
    course: tuple[str, ...]
    opposites: tuple[frozenset[str], ...]
    reversals: tuple[str, ...]
    phrases: dict[str, str]
    words: dict[str, str]
    endings: dict[str, tuple[str, ...]]


class _Name(Struct, frozen=True):
    """A diagnosis as it is compared: its words in order, those that count, those of its head, and its short forms."""

    words: tuple[str, ...]
    telling: frozenset[str]
    head: frozenset[str]
    last: str
    short: tuple[str, ...]
    plain: str


@cache
def _lists() -> _Lists:
    return msgspec.convert(word_data("sameness"), _Lists)


def same(a: str, b: str, vocabularies: Sequence[Vocabulary] = ()) -> str:
    """Why two diagnoses mean the same, or can't be told apart as options; nothing when they exclude each other."""
    a, b = _with_new_names(a), _with_new_names(b)
    one, other = _name(a), _name(b)
    if not one.telling or not other.telling:
        return _SAME_WORDS if one.words == other.words else ""
    if _abbreviates(one, other) or _abbreviates(other, one):
        return "an abbreviation of it"
    if _opposed(one, other) or other_organism(a, b):
        return ""
    return (
        _by_words(one, other)
        or _by_code(one, other, vocabularies)
        or same_infection(one.words, other.words, one.telling, other.telling)
        or _by_slip(one, other, vocabularies)
    )


def same_as_answer(text: str, diagnosis: str, synonyms: Sequence[str], vocabularies: Sequence[Vocabulary] = ()) -> str:
    """Why a text means a diagnosis by any of its names.

    Another organism or type is another disease, whatever wider name of the diagnosis the two share: a necrotizing
    pneumonia due to Klebsiella is not one due to Staphylococcus aureus. A complication that is among the names
    (mediastinitis, of a fasciitis with mediastinitis) does not make other diseases with it the diagnosis.
    """
    return next((why for why, _ in _reasons(text, diagnosis, synonyms, vocabularies)), "")


def only_by_wider_name(
    text: str, diagnosis: str, synonyms: Sequence[str], vocabularies: Sequence[Vocabulary] = ()
) -> bool:
    """Whether a text means a diagnosis only as another kind of a wider name of it: what a rule can't decide.

    Drug-induced and sickle cell intrahepatic cholestasis are two diseases, both called "intrahepatic cholestasis".
    """
    wider = [by_wider for _, by_wider in _reasons(text, diagnosis, synonyms, vocabularies)]
    return bool(wider) and all(wider)


def _reasons(
    text: str, diagnosis: str, synonyms: Sequence[str], vocabularies: Sequence[Vocabulary]
) -> Iterator[tuple[str, bool]]:
    """Why a text means a diagnosis, each reason with whether it rests on a wider name of the diagnosis."""
    if why := same(text, diagnosis, vocabularies):
        yield why, False
    apart = excludes(text, diagnosis) or other_organism(text, diagnosis)
    for each in synonyms:
        why = same(text, each, vocabularies)
        if not why or (apart and why != _SAME_WORDS) or (why in _KINDS and _is_aside(each, diagnosis)):
            continue
        yield why, why in _KINDS and _is_wider_name(each, diagnosis)


def _is_aside(name: str, diagnosis: str) -> bool:
    """Whether a name is only what a diagnosis comes with, follows or is due to, and not the disease itself."""
    words = _name(name).telling
    return words <= _name(diagnosis).telling and words.isdisjoint(_name(main_part(diagnosis)).telling)


def _is_wider_name(name: str, diagnosis: str) -> bool:
    """Whether a diagnosis says all that a name says, and more."""
    words, own = _name(name).telling, _name(diagnosis).telling
    return len(words) < len(own) and all(_among(word, own) for word in words)


def other_organism(a: str, b: str) -> bool:
    """Whether two names name organisms, and different ones: Cryptococcus neoformans and C. gattii."""
    one, other = _organisms(_with_new_names(a)), _organisms(_with_new_names(b))

    def agree(first: tuple[str, str], second: tuple[str, str]) -> bool:
        genus, species = first
        if species and second[1]:
            return species == second[1] and genus[0] == second[0][0]
        return genus == second[0]

    return bool(one and other) and not any(agree(first, second) for first in one for second in other)


@lru_cache(maxsize=4096)
def _organisms(text: str) -> frozenset[tuple[str, str]]:
    """The organisms that a name has, each as genus (or its letter) and species (empty where there is none)."""
    words = [word for word in re.findall(r"[^\W\d_]+", text) if word.lower() != "bacilli"]  # a shape, not the genus
    found = {(word.lower(), "") for word in words if _AGENT.search(word.lower())}
    for word, after in pairwise([*words, ""]):
        species = after.lower() if after.islower() and _is_species(after) else ""
        if _form(word.lower()) in _genera() or (len(word) == 1 and word.isupper() and species):
            found.add((_form(word.lower()) or word.lower(), species))
    return frozenset(found)


def excludes(a: str, b: str) -> bool:
    """Whether words of two names exclude each other: type 1 and type 2, left and right, acute and chronic."""
    return _opposed(_name(a), _name(b))


def without_sides(text: str) -> str:
    """A name without what only says on which side."""
    return " ".join(_SIDES.sub(" ", text).split())


# Names


@lru_cache(maxsize=50_000)
def _name(text: str) -> _Name:
    lists = _lists()
    bare = _SQUARE.sub(" ", text) if _SQUARE.sub("", text).strip() else text
    brackets = [inner.strip() for inner in _BRACKET.findall(text)]
    for inner in brackets:
        if is_candidate(inner) and bare.strip() != f"({inner})":
            bare = bare.replace(f"({inner})", " ")
    plain = _course().sub("", " ".join(bare.split())).strip(" ,.;:")
    words = _joined(_numbered([form for form in tokens(plain).forms if form]))
    kept = [lists.words.get(word, word) for word in words]
    short = tuple(each for each in (plain, *brackets) if is_candidate(each))
    head, last = _head(kept)
    telling = frozenset(word for word in kept if word != COMMA and word not in lists.empty)
    return _Name(tuple(kept), telling, head, last, short, plain)


@cache
def _course() -> re.Pattern[str]:
    return re.compile(r",\s*(?:" + "|".join(_lists().course) + r")$", re.IGNORECASE)


def _numbered(words: list[str]) -> list[str]:
    """Roman numbers as Arabic ones, where they are numbers for sure."""
    return [
        _ROMAN[word] if word in _LONE or (word in _ROMAN and place and words[place - 1] in _NUMBERED) else word
        for place, word in enumerate(words)
    ]


def _joined(words: list[str]) -> list[str]:
    """The words with fixed phrases replaced by their symbols."""
    text = f" {' '.join(words)} "
    for phrase, plain in _lists().phrases.items():
        text = text.replace(f" {phrase} ", f" {plain} ")
    return text.split()


def _head(words: Sequence[str]) -> tuple[frozenset[str], str]:
    """The words of the head noun phrase, and the noun: what stands before the first comma or little word."""
    lists = _lists()
    head: list[str] = []
    for word in words:
        if word == COMMA or word in lists.ends_head:
            if head:
                break
            continue
        if word not in lists.empty:
            head.append(word)
    nouns = [word for word in head if not _NUMBER.match(word)]
    return frozenset(head), nouns[-1] if nouns else ""


# Reasons for and against


def _opposed(one: _Name, other: _Name) -> bool:
    if _apart(_numbers(one), _numbers(other)):
        return True
    for axis in _lists().opposites:
        first, second = axis & set(one.words), axis & set(other.words)
        if first and second and not first & second:
            return True
    return bool(_after(one, "with") & _after(other, "without") or _after(one, "without") & _after(other, "with"))


def _after(name: _Name, little: str) -> frozenset[str]:
    """The telling words that stand next after a little word, each time it comes."""
    words = [word for word in name.words if word == little or word in name.telling]
    return frozenset(after for word, after in pairwise(words) if word == little)


def _numbers(name: _Name) -> frozenset[str]:
    return frozenset(word for word in name.words if _NUMBER.match(word) and word != "a")


def _apart(first: frozenset[str], second: frozenset[str]) -> bool:
    return bool(first and second) and not first <= second and not second <= first


def _by_words(one: _Name, other: _Name) -> str:
    if one.telling == other.telling:
        return _SAME_WORDS
    kinds = _lists().kinds
    first, second = one.telling - kinds, other.telling - kinds
    if first and first == second:
        return "the same words but for disease, syndrome or the like"
    few, many = (one, other) if len(one.telling) < len(other.telling) else (other, one)
    called = any(word == few.last and after in kinds for word, after in pairwise(many.words))
    if few.telling < many.telling and (called or many.last in few.telling):
        return _CONTAINS
    if _wider(one, other) or _wider(other, one) or _held(one, other) or _held(other, one):
        return _KIND
    return ""


def _held(one: _Name, other: _Name) -> bool:
    """Whether all that one says is said by the other, in whatever inflection: diabetic ketoacidosis, diabetes with it.

    A single word is held only where the other condition is "with" it. What is only the cause of the other condition
    ("due to") or is not there ("without") is not held. Inflammations alone hold each of their kinds.
    """
    wanted = one.telling - _lists().kinds
    if not wanted or "without" in one.words:
        return False
    if all(word.endswith(_INFLAMED) for word in wanted) and other.last.endswith(tuple(wanted)):
        return True
    said = other.words[: other.words.index("without")] if "without" in other.words else other.words
    if len(wanted) == 1:
        return any(_among(min(wanted), {after}) for word, after in pairwise(said) if word == "with")
    itself = said[: said.index("due")] if "due" in said else said
    words, own = ({form for word in part for form in (word, place_of(word))} for part in (said, itself))
    return all(_among(word, words) for word in one.telling) and any(_among(word, own) for word in wanted)


def _among(word: str, words: Set[str]) -> bool:
    """Whether a word is among others in some inflection, its own or theirs."""
    return word in words or not forms_of(word).isdisjoint(words) or any(word in forms_of(each) for each in words)


def _wider(one: _Name, other: _Name) -> bool:
    """Whether one is a disease or tumour of what the other names more nearly: disease of liver, cirrhosis of liver."""
    lists = _lists()
    rest = one.telling - lists.kinds - lists.endings.keys()
    if not rest or not rest <= other.telling or one.last in other.telling:
        return False
    if one.last in lists.kinds:
        return len(one.telling - {one.last}) == len(rest) and other.last not in rest
    return other.last.endswith(lists.endings.get(one.last, ("?",)))


def _abbreviates(one: _Name, other: _Name) -> bool:
    """Whether a short form of one means the other: by its letters, or by what it always means."""
    for short in one.short:
        if short in other.short:
            return True
        long = well_known_abbreviations().get(short)
        if long and _by_words(_name(long), other):
            return True
        if _initials_fit(short, other.plain, loosely=short == one.plain):
            return True
    return False


def _initials_fit(short: str, long: str, *, loosely: bool) -> bool:
    """Whether a short form is made of the first letters of a name's words; `loosely`, with a few from inside them."""
    letters = [c for c in short.lower() if c.isalnum()]
    words = re.findall(r"[^\W_]+", long.lower())
    telling = [word for word in words if word not in _lists().empty and word not in _lists().ends_head]
    if len(telling) < 2 or len(letters) < 2 or is_candidate(long):
        return False
    for chosen in (telling, words):
        initials = [word[0] for word in chosen]
        if initials == letters:
            return True
        if loosely and 0 < len(letters) - len(initials) <= len(initials) and _spelled(letters, chosen):
            return True
    return False


def _spelled(letters: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the letters can be read off the words in order, each word giving at least its first."""
    if not words:
        return not letters
    if not letters or letters[0] != words[0][0]:
        return False
    for count in range(1, len(letters) - len(words) + 2):
        if _subsequence(letters[1:count], words[0][1:]) and _spelled(letters[count:], words[1:]):
            return True
    return False


def _subsequence(letters: Sequence[str], word: str) -> bool:
    rest = iter(word)
    return all(letter in rest for letter in letters)


def _by_code(one: _Name, other: _Name, vocabularies: Iterable[Vocabulary]) -> str:
    for vocabulary in vocabularies:
        first, second = _codes(vocabulary, one), _codes(vocabulary, other)
        shared = first.keys() & second.keys()
        if any(_means(vocabulary, code, first[code], second[code]) for code in shared):
            return f"the same code in {vocabulary.name}"
        if _above(vocabulary, first.keys(), second.keys()) or _above(vocabulary, second.keys(), first.keys()):
            return f"one is a kind of the other in {vocabulary.name}"
    return ""


@lru_cache(maxsize=4096)
def _codes(vocabulary: Vocabulary, name: _Name) -> Mapping[str, str]:
    """The codes a name is known under, each with how; a group of numbered subtypes counts as all of them."""
    return {match.code: match.via for match in vocabulary.lookup(name.plain)} if name.plain else {}


def _means(vocabulary: Vocabulary, code: str, first: str, second: str) -> bool:
    """A code for the rest of a group ("Other ...") holds many conditions: two of its inclusion terms are not one."""
    term = vocabulary.term(code)
    rest = term is not None and re.match(r"other\b", term.name, re.IGNORECASE) is not None
    return not rest or "name" in (first, second)


def _above(vocabulary: Vocabulary, upper: Iterable[str], lower: Iterable[str]) -> bool:
    parents = {parent for code in lower if (term := vocabulary.term(code)) for parent in term.parents}
    return any(code in parents and "-" not in code for code in upper if len(code) > 2)


def _by_slip(one: _Name, other: _Name, vocabularies: Sequence[Vocabulary]) -> str:
    """Names whose words pair off, each pair equal or misspelt; two words that a vocabulary knows are no slip."""
    first, second = sorted(one.telling - other.telling), sorted(other.telling - one.telling)
    if not first or len(first) != len(second) or len(first) > _MAX_NAMES:
        return ""
    for a, b in zip(first, second, strict=True):
        if not _slipped(a, b) or any({a, b} <= _words_of(vocabulary) for vocabulary in vocabularies):
            return ""
    return "the same but for spelling"


@lru_cache(maxsize=8)
def _words_of(vocabulary: Vocabulary) -> frozenset[str]:
    return frozenset(form for term in vocabulary.terms if term.in_text for form in tokens(term.name).forms)


def _slipped(a: str, b: str) -> bool:
    minimum = min(len(a), len(b))
    allowed = 2 if minimum >= _LONG_SLIP else 1 if minimum >= _SLIP else 0
    if not allowed or a[0] != b[0] or DamerauLevenshtein.distance(a, b, score_cutoff=allowed) > allowed:
        return False
    return not _contrary(a, b)


def _contrary(a: str, b: str) -> bool:
    """Whether two words differ in what excludes or reverses: hyper- and hypo-, gout and pseudogout."""
    lists = _lists()
    for axis in lists.opposites:
        first, second = _beginning(a, axis), _beginning(b, axis)
        if first and second and first != second:
            return True
    return any(a == f"{prefix}{b}" or b == f"{prefix}{a}" for prefix in lists.reversals)


def _beginning(word: str, axis: Iterable[str]) -> str:
    return max((each for each in axis if word.startswith(each)), key=len, default="")
