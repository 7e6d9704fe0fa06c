"""Invented messages with planted identifiers, and innocent sentences: what anonymising is measured on.

Nobody is meant: given and family names come from different authors of the articles beside the project and are put
together by chance, everything else is invented here, apart from the rules and their word lists.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

from msgspec import Struct

__all__ = [
    "Planted", "handwritten_messages", "new_messages", "planted_messages", "planted_words", "real_innocents",
    "tricky_sentences",
]  # fmt: skip

_MARK = re.compile(r"\{(\w+):([^}]+)\}")


class Planted(Struct, frozen=True):
    """A message and the identifier in it."""

    text: str
    value: str
    kind: str


_NAMES = [
    "My name is {full} and I had a kidney transplant last year. Can I eat sushi?",
    "Hi, I'm {given}. How long do I have to wait before I can drive?",
    "my name is {low} and i am on tacrolimus, is grapefruit ok",
    "Dr. {family} said I should stop the mycophenolate. Is that safe?",
    "We saw Dr {given} {family} yesterday and she doubled the dose. Why?",
    "Is it normal that my creatinine goes up? Thanks, {given}",
    "Can I get a flu shot while on prednisone? Thank you so much for your help. {full}",
    "How soon can I swim after surgery?\n{full}",
    "My husband {given} has been on dialysis for two years. Can he travel?",
    "my daughter, {given}, is 12 and just had a liver transplant. When can she go to school?",
    "Our son {given} keeps forgetting his evening dose. What should we do?",
    "Mrs. {family} from the clinic never called back about my lab results. Who do I ask?",
    "I spoke to Professor {family} about my biopsy. How often are they planned?",
    "What are the side effects of sirolimus? Regards, {full}",
    "The nurse, Ms {family}, told me not to lift anything. For how long?",
    "I have a friend named {given} who drinks alcohol-free beer with his new liver. Is it ok?",
    "My transplant coordinator {full} says no pets. Do I have to give away my cat?",
    "Hello doctor, this is {full}. My incision is red, should I worry?",
    "can i take ibuprofen for my back? best wishes, {given} {family}",
    "My donor was my sister {given}. Can she have children later?",
    "Patient name: {full}. Question: which vaccines are allowed?",
    "Mr {family}'s blood sugar is high since the steroids. Is this usual?",
    "Is it safe to garden after a lung transplant? - {given}",
    "Sincerely,\n{full}",
]
_PLACES = [
    "I live in {city} and the nearest centre is hours away. Can I do blood tests at home?",
    "Hi from {city}! Is tap water safe after a transplant?",
    "We just moved to {city}. How do I find a new nephrologist?",
    "I'm in {city}, {state}. Are there limits on sun exposure with azathioprine?",
    "Our family is from {city} and we keep goats. Is that a problem for my lungs?",
    "I was born in {city} and raised on a farm. Does hepatitis B come back?",
    "My address is {number} {street}. Can you send me a leaflet on diet?",
    "I drive from {city} every week for tests. When does this become less?",
    "ZIP code {zip}. Who offers a support group for heart recipients?",
    "Here in {city} it is very hot. How much should I drink per day?",
]
_CITIES = [
    "Oshkosh",
    "Yakima",
    "Basingstoke",
    "Tamale",
    "Dunedin",
    "Aalborg",
    "Tuscaloosa",
    "Saskatoon",
    "Ballarat",
    "Lübeck",
    "Kecskemét",
    "Chiang Mai",
    "Boise",
    "Walla Walla",
    "Fort Wayne",
    "Grimsby",
    "Mysore",
    "Sapporo",
    "Arequipa",
    "Bulawayo",
    "Trois-Rivières",
    "San Marcos",
    "Twin Falls",
    "Milton Keynes",
    "Houston",
    "Leeds",
    "Toronto",
    "Nagpur",
    "Ponte Vedra",
    "Cedar Rapids",
]
_STATES = ["TX", "WI", "OR", "Ohio", "California", "New Jersey", "KY", "Montana"]
_STREETS = ["Wexford Avenue", "Old Mill Road", "Pinecrest Drive", "W. 4th Street", "Birch Lane", "Kingfisher Court"]
_HOSPITALS = [
    "I was treated at {hospital} and they told me to avoid salads. Why?",
    "{hospital} put me on the waiting list. How long does it take for a kidney?",
    "The doctors at {hospital} say no alcohol ever. Is that true for everybody?",
    "I had my surgery in {hospital}. When can I lift my toddler?",
    "My husband is an inpatient at {hospital} with a lung infection. Is visiting safe?",
]
_INVENTED_HOSPITALS = [
    "St. Brannoc's Hospital",
    "Quillmere General Hospital",
    "Harrowgate Valley Medical Center",
    "Northfen University Hospital",
    "Our Lady of Elmsford Hospital",
    "Tarnwick Royal Infirmary",
    "Bexholm Children's Hospital",
    "Ostrava Bay Transplant Center",
    "Veridale Clinic",
    "University of Tarn Health System",
]
_DATES = [
    "I had my transplant on {date}. When may I drive again?",
    "My last biopsy was {date} and it showed mild rejection. What now?",
    "Since {date} my blood pressure is up. Is it the cyclosporine?",
    "DOB {date}. Am I too old for a second kidney?",
    "The stent came out on {date}; how long will it burn?",
    "He was discharged {date} and still has fever. Should we call?",
]
_DATE_FORMATS = [
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%Y-%m-%d",
    "%B %-d, %Y",
    "%-d %B %Y",
    "%b %-d",
    "%-d %b %Y",
    "%m-%d-%y",
    "%A, %B %-d",
    "%B %Y",
    "the %-dth of %B",
    "%m/%d/%y",
]
_EMAILS = [
    "Please write to {email} if you know. Can I eat cheese?",
    "my mail is {email} - what is the rule for a missed dose?",
    "Is herbal tea safe? ({email})",
    "Reach me under {email}, thanks. How long do steroids last?",
]
_URLS = [
    "I wrote about it on {url} but got no answer. Can I ski?",
    "Look at {url} - is this rash normal after cellcept?",
    "My story: {url}. When can I go back to work?",
]
_USERNAMES = [
    "u/{user} said you can never have grapefruit again, true?",
    "@{user} have you tried alcohol-free wine with your new liver? Is that allowed?",
    "Asked before as /u/{user}: how heavy can I lift?",
    "My instagram is {user}, ask me anything. When did you all start running again?",
    "Does anyone else shake from prograf? - {user}",
    "Find me on discord: {user}#4821. Which sunscreen do you use?",
]
_PHONES = [
    "Call me at {phone} please. Is a fever of 38 dangerous?",
    "My number is {phone}. Who can I ask about my diet?",
    "Can someone phone {phone}? I forgot my dose twice.",
    "tel {phone}, when do the stitches come out",
    "You can text me on {phone}. Do I need antibiotics before the dentist?",
]
_RECORDS = [
    "My MRN is {record}. Why were my labs repeated?",
    "Patient ID: {record}. How often is tacrolimus measured?",
    "SSN {ssn}, does Medicare pay for my immunosuppressants?",
    "Insurance number {record} - will a second transplant be covered?",
    "Chart #{record}: what does the biopsy grade mean?",
    "My NHS number is {nhs}. Can I get the shingles vaccine?",
    "Hospital number {record}. When will my drain come out?",
    "Claim no. {record} was refused. Are vitamins allowed?",
    "Member ID {record}, what is the copay for valganciclovir?",
    "Policy number {record}: is a dental check needed before listing?",
]
_AGES = [
    "My {age} year old mother needs dialysis. Is she too old?",
    "I am {age} years old and was told no transplant. Why?",
    "My grandfather, aged {age}, has heart failure. Are there other options?",
    "he is a {age}-year-old with one kidney, can he take ibuprofen?",
    "My aunt turned {age} and is on warfarin. May she eat spinach?",
    "Dad ({age}) has a pacemaker. Is an MRI possible?",
    "my nan is {age} yo and very tired, could it be her kidneys?",
]


def planted_messages(data: Path, seed: int = 11, each: int = 32) -> list[Planted]:
    """So many messages of every kind."""
    rng = random.Random(seed)
    given, family = _authors(data)
    hospitals = [*_INVENTED_HOSPITALS, *_developers(data)]
    makers: dict[str, Callable[[int], Planted]] = {
        "name": lambda n: _name(_NAMES[n % len(_NAMES)], rng.choice(given), rng.choice(family)),
        "place": lambda n: _place(_PLACES[n % len(_PLACES)], rng),
        "hospital": lambda n: _one(_HOSPITALS, n, "hospital", hospitals[n % len(hospitals)]),
        "date": lambda n: _one(_DATES, n, "date", _date(rng).strftime(_DATE_FORMATS[n % len(_DATE_FORMATS)])),
        "email": lambda n: _one(_EMAILS, n, "email", _email(rng, n)),
        "url": lambda n: _one(_URLS, n, "url", _url(rng, n)),
        "username": lambda n: _one(_USERNAMES, n, "username", _user(rng), slot="user"),
        "phone": lambda n: _one(_PHONES, n, "phone", _phone(rng, n)),
        "record": lambda n: _record(_RECORDS[n % len(_RECORDS)], rng),
        "age": lambda n: _one(_AGES, n, "age", str(rng.randint(90, 107))),
    }
    return [make(n) for make in makers.values() for n in range(each)]


def handwritten_messages() -> list[Planted]:
    """Messages written by hand, one entry for each identifier marked in them."""
    lines = (Path(__file__).parent / "handwritten.txt").read_text(encoding="utf-8").splitlines()
    return [
        Planted(_MARK.sub(r"\2", line), value, kind)
        for line in lines
        if not line.startswith("#")
        for kind, value in _MARK.findall(line)
    ]


def _new_lines() -> tuple[list[str], list[str]]:
    """The messages in new wordings: those that were in sight when rules were changed, and those set apart."""
    lines = (Path(__file__).parent / "data" / "identifiers.txt").read_text(encoding="utf-8").splitlines()
    told = [line for line in lines if line and not line.startswith("#")]
    border = next(place for place, line in enumerate(told) if line.startswith("=="))
    return told[:border], told[border + 1 :]


def new_messages(*, set_apart: bool) -> list[Planted]:
    """Messages with nicknames, short names of hospitals, schools and small places, one entry for each identifier."""
    return [
        Planted(_MARK.sub(r"\2", line), value, kind)
        for line in _new_lines()[set_apart]
        for kind, value in _MARK.findall(line)
    ]


def planted_words() -> list[tuple[str, set[str]]]:
    """All those messages, each with the words of its identifiers in lower case."""
    found = []
    for line in (line for part in _new_lines() for line in part):
        words = {word for _, value in _MARK.findall(line) for word in re.findall(r"\w+", value.lower())}
        found.append((_MARK.sub(r"\2", line), words))
    return found


def tricky_sentences() -> list[str]:
    """Sentences that look as if they named somebody, and do not."""
    lines = (Path(__file__).parent / "tricky.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def _one(templates: list[str], n: int, kind: str, value: str, slot: str = "") -> Planted:
    return Planted(templates[n % len(templates)].format(**{slot or kind: value}), value, kind)


def _name(template: str, given: str, family: str) -> Planted:
    full = f"{given} {family}"
    text = template.format(full=full, given=given, family=family, low=given.lower())
    parts = ["{full}" in template or "{given} {family}" in template, "{low}" in template, "{given}" in template]
    value = full if parts[0] else given.lower() if parts[1] else given if parts[2] else family
    return Planted(text, value, "name")


def _place(template: str, rng: random.Random) -> Planted:
    values = {
        "city": rng.choice(_CITIES), "state": rng.choice(_STATES), "number": str(rng.randint(3, 9800)),
        "street": rng.choice(_STREETS), "zip": f"{rng.randint(10000, 99999)}",
    }  # fmt: skip
    slots = re.findall(r"\{(\w+)\}", template)
    value = {"city": values["city"], "number": f"{values['number']} {values['street']}", "zip": values["zip"]}[slots[0]]
    return Planted(template.format(**values), f"{value}, {values['state']}" if "state" in slots else value, "place")


def _record(template: str, rng: random.Random) -> Planted:
    number = rng.choice(["{:07d}", "A{:08d}", "{:06d}-2", "XK-{:05d}", "{:010d}"]).format(rng.randint(10_000, 99_999))
    values = {
        "record": number,
        "ssn": f"{rng.randint(100, 899)}-{rng.randint(10, 99)}-{rng.randint(1000, 9999)}",
        "nhs": f"{rng.randint(400, 499)} {rng.randint(100, 999)} {rng.randint(1000, 9999)}",
    }
    (slot,) = re.findall(r"\{(\w+)\}", template)
    return Planted(template.format(**values), values[slot], "record")


def _date(rng: random.Random) -> date:
    return date(2004, 1, 4) + timedelta(days=rng.randrange(7000))


def _email(rng: random.Random, n: int) -> str:
    user = _user(rng)
    form = ["{}@mailbox.example.com", "{}@gmail.com", "{} at yahoo dot com", "{}(at)outlook.com", "{}@clinic.org.uk"]
    return form[n % len(form)].format(user)


def _url(rng: random.Random, n: int) -> str:
    user = _user(rng)
    form = [
        "https://www.{}.example.org/post?id=7",
        "www.facebook.com/{}",
        "{}.wordpress.com",
        "http://t.co/{}",
        "instagram.com/{}",
        "caringbridge.org/visit/{}",
    ]
    return form[n % len(form)].format(user)


def _user(rng: random.Random) -> str:
    stems = ["kidneykat", "NewLungs", "transplant_mum", "liverlad", "heart2heart", "bean.donor", "renal_rob"]
    return rng.choice(stems) + str(rng.randint(10, 2099))


def _phone(rng: random.Random, n: int) -> str:
    a, b, c = rng.randint(201, 989), rng.randint(200, 999), rng.randint(1000, 9999)
    form = [
        "{a}-{b}-{c}",
        "({a}) {b}-{c}",
        "{a}.{b}.{c}",
        "+1 {a} {b} {c}",
        "+44 7700 900{b}",
        "0{a} {b}{c}",
        "{b}-{c}",
        "1-800-{b}-{c}",
        "+49 30 {b}{c}",
    ]
    return form[n % len(form)].format(a=a, b=b, c=c)


def _authors(data: Path) -> tuple[list[str], list[str]]:
    """Given and family names of authors of the articles, each list by itself."""
    given: set[str] = set()
    family: set[str] = set()
    for path in sorted((data / "jats").iterdir()):
        text = path.read_text(encoding="utf-8", errors="replace")
        given |= set(re.findall(r"<given-names[^>]*>([^<]+)<", text))
        family |= set(re.findall(r"<surname>([^<]+)<", text))
    word = re.compile(r"[A-Z][a-zà-ÿ]{2,}\Z")
    return sorted(filter(word.match, given)), sorted(filter(word.match, family))


def _developers(data: Path) -> list[str]:
    """Hospitals and universities that developed the guidelines, by their names."""
    names = set()
    with gzip.open(data / "guidelines.jsonl.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            name = json.loads(line)["developer"].partition(" - ")[0].strip()
            if re.search(r"\b(?:Hospital|Medical Center|University|Clinic)\b", name) and re.fullmatch(
                r"[\w .'&-]{5,60}", name
            ):
                names.add(name)
    return sorted(names)[:40]


def real_innocents(data: Path) -> Iterator[str]:
    """Consumers' sentences and questions that name nobody: LiveQA-Med and MedQuAD."""
    for line in (data / "retrieval" / "liveqa-med" / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["_id"] not in _NAMING:
            yield from (part for part in re.split(r"(?<=[.?!])\s+", row["message"]) if len(part.split()) > 2)
            yield row["text"]
    seen = set()
    with gzip.open(data / "medquad_multisource.jsonl.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            question = json.loads(line)["question"]
            if question not in seen:
                seen.add(question)
                yield question


_NAMING = {"86"}  # asks for a laboratory in counties that it names
