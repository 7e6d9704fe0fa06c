"""What people are called where their labels and answers go: by name, two of one name told apart, or by pseudonym."""

from __future__ import annotations

from collections import Counter

from hoofbeat.web.review.agreeing import pseudonyms
from hoofbeat.web.review.desk import Desk
from hoofbeat.web.review.records import Study

__all__ = ["names_of"]


def names_of(study: Study, desk: Desk, *, blind: bool = False) -> dict[str, str]:
    """What everybody is called; where `blind`, as the team's pages call those who have items of the study."""
    if blind:
        return pseudonyms(study.id, (row.person for row in desk.assignments(study.id)))
    people = desk.people()
    times = Counter(person.name for person in people)
    return {person.id: person.name if times[person.name] == 1 else f"{person.name} ({person.id})" for person in people}
