"""A new study about a folder, as `hoofbeat review` and `hoofbeat.create_study` make it: planned, kept, and assigned."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.errors import UsageError
from hoofbeat.review.assignments import EXAM, AssignmentPlan, Groups, assign_items, coverage, first_round
from hoofbeat.review.exam_items import exam_study
from hoofbeat.review.review_records import ReviewItem, Study
from hoofbeat.review.review_rounds import INSPECTIONS, MIN_PASSED
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.review.study_items import study_from
from hoofbeat.store import open_artefact


class StudyOptions(Struct, frozen=True, kw_only=True):
    """How a study is made.

    `form` says what is asked where several things wait in the folder; `sample` items are drawn by the facet `strata`.
    `per_item` to `max_per_person` are those of `AssignmentPlan`; with `assign`, all invited reviewers get their items
    now. `min_passed` is the share that must pass a two-level check (None: the benchmark's). `exam` asks the benchmark
    as an exam: `questions` per person (0: all), `inside` of them in the person's specialty, `minutes` for all of them
    (0: no limit), the case shown in `stages` of percent.
    """

    form: str | None = None
    title: str = ""
    sample: int | None = None
    strata: str | None = None
    seed: int = 0
    per_item: int = 1
    overlap: float = 0.0
    overlap_by: int = 0
    groups: Groups = "any"
    max_per_person: int = 0
    assign: bool = False
    min_passed: float | None = None
    exam: bool = False
    minutes: float = 0.0
    stages: tuple[int, ...] = ()
    questions: int = 0
    inside: float = 0.5
    edition: str = ""
    literature: bool = True

    @property
    def plan(self) -> AssignmentPlan:
        """The plan of assignments."""
        return AssignmentPlan(
            per_item=self.per_item,
            overlap=self.overlap,
            overlap_by=self.overlap_by,
            max_per_person=self.max_per_person,
            groups=self.groups,
            seed=self.seed,
        )


class StudyCreation(Struct, frozen=True, kw_only=True):
    """A study in the review store: how many items it has, whether it is new, and how many labels were assigned.

    `short` counts the items that have fewer reviewers than the plan asks for, because too few people may see them.
    `same_plan` is false where the study was there with another plan, which it keeps.
    """

    study: Study
    items: int
    made: bool
    assigned: int
    same_plan: bool
    short: int = 0


def plan_study(folder: Path, options: StudyOptions) -> tuple[Study, list[ReviewItem]]:
    """The study that the options ask for, with its items; nothing is kept yet."""
    if options.exam or options.form == "exam":
        return exam_study(
            folder,
            per_person=options.questions,
            inside=options.inside,
            minutes=options.minutes,
            stages=options.stages,
            seed=options.seed,
            title=options.title,
            edition=options.edition,
            literature=options.literature,
        )
    if options.minutes or options.stages or options.questions:
        raise UsageError("--minutes, --stages and --questions are for exams", fix="add --exam")
    if options.overlap and not options.per_item:
        raise UsageError(
            "all reviewers see every item (--per-item 0), so there is nothing to overlap",
            fix="leave --overlap out, or give --per-item 1 or more",
        )
    study, items = study_from(
        folder, form=options.form, sample=options.sample, seed=options.seed, strata=options.strata, title=options.title
    )
    settings = {**study.settings, "plan": options.plan.recorded()}
    if study.form in INSPECTIONS:
        made_with = open_artefact(folder).manifest.settings  # `least_passed` in benchmarks made before the rename
        known = made_with.get("min_passed", made_with.get("least_passed", MIN_PASSED))
        settings["min_passed"] = known if options.min_passed is None else options.min_passed
    return replace(study, settings=settings), items


def create_study(
    store: ReviewStore, study: Study, items: list[ReviewItem], plan: AssignmentPlan, *, assign: bool
) -> StudyCreation:
    """Keep a study in the review store, unless it is there; with `assign`, assign its items to all reviewers."""
    reviewers = [person for person in store.people() if person.active and person.role == "reviewer"]
    if assign and not reviewers:
        raise UsageError(
            "the items can't be assigned: no reviewer is invited yet",
            where=store.where,
            fix="invite reviewers first (hoofbeat review invite NAME), or leave --assign out: then people get items "
            "when they open the study",
        )
    there = store.study(study.id)
    if there is None:
        store.create_study(study, items)
    assigned = len(assign_items(store, there or study, reviewers, plan, by="")) if assign else 0
    kept = store.items(study.id)
    reached = coverage(first_round(kept), reviewers, plan, store.assignments(study.id))
    return StudyCreation(
        study=there or study,
        items=len(kept),
        made=there is None,
        assigned=assigned,
        same_plan=there is None or there.settings.get("plan") == study.settings.get("plan"),
        short=reached.short if assign and study.form != EXAM else 0,
    )
