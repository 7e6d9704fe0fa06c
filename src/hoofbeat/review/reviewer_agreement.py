"""How far reviewers agree, field by field, from what they have said so far.

Only labels that are done count. People appear as Reviewer 1, 2, … in an order that tells nothing. Figures are those of
`findings`: κ of every two who share items (linearly weighted where the answers have an order), Krippendorff's α of all
with an interval from resampling items, and the plain share of agreement.

Progress says how far a study has come: by person, by stratum, and in all.
"""

from __future__ import annotations

import hashlib
import statistics
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from msgspec import Struct

from hoofbeat.findings.agreement import Alpha, Kappa, krippendorff_alpha, weighted_kappa
from hoofbeat.findings.intervals import Interval, wilson
from hoofbeat.review.forms import AgreementField, Form, agreement_fields, form_for, load_form
from hoofbeat.review.review_records import Assignment, ItemLabel, Person, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore

if TYPE_CHECKING:
    from hoofbeat.review.review_store import ReviewStore

SEED = 0
SAMPLES = 1000
_FEW = 20
_RELIABLE, _TENTATIVE = 0.8, 0.667


class ReviewerPair(Struct, frozen=True, kw_only=True):
    """Two reviewers: how many items both labelled, on how many they agree, and κ."""

    a: str
    b: str
    n: int
    agree: int
    share: float
    share_interval: Interval
    kappa: Kappa


class FieldAgreement(Struct, frozen=True, kw_only=True):
    """Agreement on a field: `agree` of `compared` pairs of labels are the same; `words` says what it means."""

    form: str
    field: str
    title: str
    labels: tuple[str, ...]
    ordered: bool
    items: int
    people: int
    compared: int
    agree: int
    share: float | None
    alpha: Alpha
    pairs: tuple[ReviewerPair, ...]
    words: str


class StudyAgreement(Struct, frozen=True, kw_only=True):
    """Agreement in a study as of a place in its trail; `seed` and `samples` are of the intervals."""

    study: str
    position: int
    fields: tuple[FieldAgreement, ...]
    seed: int = SEED
    samples: int = SAMPLES


def pseudonyms(study: str, people: Iterable[str], purpose: str = "") -> dict[str, str]:
    """Reviewer 1, 2, … for these people, in an order of chance that hangs on the study and the purpose alone.

    For numbers that mean the same on every page, give everybody who has items of the study.
    """

    def number(person: str) -> str:
        return hashlib.blake2b(f"{study}\x1f{purpose}\x1f{person}".encode(), digest_size=8).hexdigest()

    return {person: f"Reviewer {place}" for place, person in enumerate(sorted(set(people), key=number), start=1)}


def form_finder(study: Study) -> Callable[[ReviewItem], Form]:
    """The form of each item of a study, each form made once."""
    known: dict[str, Form] = {}

    def form(item: ReviewItem) -> Form:
        if item.stage not in known:
            known[item.stage] = form_for(study, item)
        return known[item.stage]

    return form


def values_by_field(
    study: Study, items: Iterable[ReviewItem], labels: Iterable[ItemLabel]
) -> dict[tuple[str, str], dict[str, dict[str, str]]]:
    """What people said: by form and measured field, then by person and item. Labels that are not done are left out."""
    known = {item.id: item for item in items}
    form_of = form_finder(study)
    measured: dict[str, tuple[AgreementField, ...]] = {}
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for label in labels:
        item = known.get(label.item)
        if item is None or label.state != "done":
            continue
        form = form_of(item)
        if form.name not in measured:
            measured[form.name] = agreement_fields(form)
        for field in measured[form.name]:
            value = label.values.get(field.name)
            if isinstance(value, str) and value in field.labels:
                said = found.setdefault((form.name, field.name), defaultdict(dict))
                said[label.person][item.known_code] = value  # in the order of exports: intervals depend on it
    return found


def agreement_of(
    study: Study,
    items: Sequence[ReviewItem],
    labels: Iterable[ItemLabel],
    *,
    people: Iterable[str] = (),
    position: int = 0,
) -> StudyAgreement:
    """The agreement on every measured field of the study's forms; `people` are all who have items of it."""
    said = values_by_field(study, items, labels)
    names = pseudonyms(study.id, {*people, *(person for by_person in said.values() for person in by_person)})
    form_of = form_finder(study)
    forms = {form.name: form for form in map(form_of, items)}
    fields = [
        _field(form.name, field, said.get((form.name, field.name), {}), names)
        for form in forms.values()
        for field in agreement_fields(form)
    ]
    return StudyAgreement(study=study.id, position=position, fields=tuple(fields))


def _field(
    form: str, field: AgreementField, said: Mapping[str, Mapping[str, str]], names: Mapping[str, str]
) -> FieldAgreement:
    by_item: defaultdict[str, list[str]] = defaultdict(list)
    for person in sorted(said):
        for item, value in said[person].items():
            by_item[item].append(value)
    several = {item: values for item, values in by_item.items() if len(values) > 1}
    compared = sum(len(values) * (len(values) - 1) // 2 for values in several.values())
    agree = sum(count * (count - 1) // 2 for values in several.values() for count in Counter(values).values())
    alpha = krippendorff_alpha(
        [by_item[item] for item in sorted(by_item)],
        "ordinal" if field.ordered else "nominal",
        order=field.labels,
        samples=SAMPLES,
        seed=SEED,
    )
    share = agree / compared if compared else None
    return FieldAgreement(
        form=form,
        field=field.name,
        title=field.label,
        labels=field.labels,
        ordered=field.ordered,
        items=len(several),
        people=len(said),
        compared=compared,
        agree=agree,
        share=share,
        alpha=alpha,
        pairs=tuple(_pairs(field, said, names)),
        words=agreement_in_words(alpha, share),
    )


def _pairs(
    field: AgreementField, said: Mapping[str, Mapping[str, str]], names: Mapping[str, str]
) -> list[ReviewerPair]:
    rows = []
    for a, b in combinations(sorted(said, key=lambda person: _place(names[person])), 2):
        both = sorted(said[a].keys() & said[b].keys())
        if not both:
            continue
        agree = sum(said[a][item] == said[b][item] for item in both)
        kappa = weighted_kappa(
            [(said[a][item], said[b][item]) for item in both],
            field.labels,
            "linear" if field.ordered else "none",
            samples=SAMPLES,
            seed=SEED,
        )
        rows.append(
            ReviewerPair(
                a=names[a],
                b=names[b],
                n=len(both),
                agree=agree,
                share=agree / len(both),
                share_interval=wilson(agree, len(both)),
                kappa=kappa,
            )
        )
    return rows


def _place(name: str) -> int:
    return int(name.rpartition(" ")[2])


def agreement_in_words(alpha: Alpha, share: float | None) -> str:
    """What a figure means, in a plain sentence. The bounds are those Krippendorff gives for α (0.8 and 0.667)."""
    if not alpha.items or share is None:
        return "Nobody has labelled the same item as someone else yet, so agreement can't be measured."
    if alpha.value is None:
        return (
            f"All labels on the {_counted(alpha.items)} seen by several are the same. That is agreement, but α has no "
            "value: without any variation nobody knows what chance would give."
        )
    low = alpha.interval.low if alpha.interval else alpha.value
    if alpha.value >= _RELIABLE:
        verdict, bound = "Reviewers agree well: the labels can be relied on", _TENTATIVE
    elif alpha.value >= _TENTATIVE:
        verdict, bound = "Reviewers agree fairly: good enough for tentative conclusions", _TENTATIVE
    elif alpha.value > 0:
        verdict = "Reviewers agree too little to rely on single labels: look at the disagreements and the instructions"
        bound = -1.0
    else:
        verdict, bound = "Reviewers agree no better than by chance: they may read the question differently", -1.0
    doubt = f", though agreement may be as low as {low:.2f} by its interval" if low < bound else ""
    few = f" This rests on {_counted(alpha.items)} only, so it may still change a lot." if alpha.items < _FEW else ""
    return f"{verdict}{doubt}.{few}"


def _counted(items: int) -> str:
    return f"{items} item" if items == 1 else f"{items} items"


class Agreements:
    """Agreement by study, computed again only when something has been added to the study's trail."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, StudyAgreement] = {}

    def of(self, store: ReviewStore, study: Study, items: Sequence[ReviewItem] | None = None) -> StudyAgreement:
        """The agreement as it stands now; `items` are the study's, where they are at hand."""
        with self._lock:
            kept = self._kept.get(study.id)
            position = _end_of_trail(store, study.id)
            if kept is None or kept.position != position:
                kept = agreement_of(
                    study,
                    items or store.items(study.id),
                    store.labels(study.id),
                    people={row.person for row in store.assignments(study.id)},
                    position=position,
                )
                self._kept[study.id] = kept
            return kept


def _end_of_trail(store: ReviewStore, study: str) -> int:
    """The number of the last line of the study's trail, read before labels: what comes between is seen next time."""
    return next((event.id for event in store.trail(study=study, newest=True, limit=1)), 0)


def names_of(study: Study, store: ReviewStore, *, blind: bool = False) -> dict[str, str]:
    """What everybody is called; where `blind`, as the team's pages call those who have items of the study."""
    if blind:
        return pseudonyms(study.id, (row.person for row in store.assignments(study.id)))
    people = store.people()
    times = Counter(person.name for person in people)
    return {person.id: person.name if times[person.name] == 1 else f"{person.name} ({person.id})" for person in people}


class PersonProgress(Struct, frozen=True, kw_only=True):
    """One person: how many items are theirs, what became of them, and the median of seconds spent on a done one."""

    person: str
    name: str
    assigned: int
    done: int
    skipped: int
    draft: int
    median_seconds: float | None
    active: bool = True


class StratumProgress(Struct, frozen=True, kw_only=True):
    """One stratum: its items, how many are assigned, and how many everybody is through with who has them."""

    stratum: str
    items: int
    assigned: int
    complete: int


class StudyProgress(Struct, frozen=True, kw_only=True):
    """A study: labels that are done or skipped of all that are assigned, and the rows behind it."""

    study: str
    items: int
    unassigned: int
    assigned: int
    done: int
    skipped: int
    people: tuple[PersonProgress, ...]
    strata: tuple[StratumProgress, ...]
    closed: bool

    @property
    def share(self) -> float | None:
        """The share of assignments that somebody is through with."""
        return (self.done + self.skipped) / self.assigned if self.assigned else None


def study_progress(
    store: ReviewStore, study: Study, *, names: bool, items: Sequence[ReviewItem] | None = None
) -> StudyProgress:
    """How far a study has come. `items` are the study's, if at hand.

    Without `names` people are Reviewer 1, 2, …, and a blinded study has no strata: they say what the judge said.
    """
    return progress_of(
        study,
        items or store.items(study.id),
        store.people(),
        store.assignments(study.id),
        store.labels(study.id),
        names=names,
    )


def progress_of(
    study: Study,
    items: Sequence[ReviewItem],
    people: Sequence[Person],
    assignments: Sequence[Assignment],
    labels: Sequence[ItemLabel],
    *,
    names: bool,
) -> StudyProgress:
    """The same from what the review store keeps."""
    of_person: Counter[str] = Counter(row.person for row in assignments)
    states: dict[tuple[str, str], ItemLabel] = {(label.item, label.person): label for label in labels}
    by_person: defaultdict[str, list[ItemLabel]] = defaultdict(list)
    for label in labels:
        by_person[label.person].append(label)
    shown = {person.id: person.name for person in people} if names else pseudonyms(study.id, of_person)
    rows = [
        _person(person, shown[person.id], of_person[person.id], by_person[person.id])
        for person in people
        if of_person[person.id]
    ]
    takers: defaultdict[str, list[str]] = defaultdict(list)
    for row in assignments:
        takers[row.item].append(row.person)

    def through(item: str, person: str) -> bool:
        label = states.get((item, person))
        return label is not None and label.state != "draft"

    strata: dict[str, list[ReviewItem]] = {}
    for item in () if _hides_strata(study, names) else items:
        strata.setdefault(item.stratum, []).append(item)
    return StudyProgress(
        study=study.id,
        items=len(items),
        unassigned=sum(not takers[item.id] for item in items),
        assigned=len(assignments),
        done=sum(row.done for row in rows),
        skipped=sum(row.skipped for row in rows),
        people=tuple(rows if names else sorted(rows, key=lambda row: int(row.name.rpartition(" ")[2]))),
        strata=tuple(
            StratumProgress(
                stratum=name,
                items=len(members),
                assigned=sum(bool(takers[item.id]) for item in members),
                complete=sum(
                    bool(takers[item.id]) and all(through(item.id, person) for person in takers[item.id])
                    for item in members
                ),
            )
            for name, members in sorted(strata.items())
        ),
        closed=study.closed,
    )


def _hides_strata(study: Study, names: bool) -> bool:
    return not names and load_form(study.form, study.settings).blinded


def _person(person: Person, name: str, assigned: int, labels: Sequence[ItemLabel]) -> PersonProgress:
    states = Counter(label.state for label in labels)
    times = [label.seconds for label in labels if label.state == "done" and label.seconds > 0]
    return PersonProgress(
        person=person.id,
        name=name,
        assigned=assigned,
        done=states["done"],
        skipped=states["skipped"],
        draft=states["draft"],
        median_seconds=statistics.median(times) if times else None,
        active=person.active,
    )
