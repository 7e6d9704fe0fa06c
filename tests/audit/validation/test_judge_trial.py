"""Trying a judge: which pairs are drawn, what it is asked in both orders, and what is kept of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.table_agreement import CARE, SAME_CARE, Trial, trial_figures
from hoofbeat.audit.pair_judge import comparison_request, fenced_text
from hoofbeat.audit.pair_plan import same_answer_form
from hoofbeat.audit.sample_records import TrialPair
from hoofbeat.audit.validation.judge_trial import estimate_trial, hard_trial_pairs, put_to_judge, trial_pairs
from hoofbeat.errors import BatchPending, UsageError
from hoofbeat.models.requests import request_key
from hoofbeat.prompts import load_pack
from hoofbeat.records import Question
from hoofbeat.teaching import example, example_names, hard_pairs, relations
from tests.audit.trial_judges import Judge, Say, constant, failing, first_is_stricter, perfect, random
from tests.models.support import a_model, ledger_in

PACK = load_pack("transplant")
JUDGED = [label.name for label in PACK.judged]


def tried(folder: Path, say: Say, limit: int = 40) -> tuple[list[TrialPair], Trial]:
    with Judge(say) as server, ledger_in(folder) as ledger:
        pairs = put_to_judge(a_model(server.spec(), ledger), trial_pairs(PACK, limit=limit, seed=3), PACK)
    return pairs, trial_figures(pairs, RelationLabels.of(PACK.labels))


def test_labels_take_turns_and_the_absent_one_is_not_asked() -> None:
    pairs = trial_pairs(PACK, limit=100, seed=0)
    assert Counter(pair.planted for pair in pairs) == dict.fromkeys(JUDGED, 25)
    planted = {(each.question, frozenset((each.a, each.b))): each.label for each in relations()}
    assert all(planted[pair.question, frozenset((pair.a, pair.b))] == pair.planted for pair in pairs)
    gold = {(each.question, each.source): each.answer for each in example("transplant").gold}
    assert all(pair.answer_a == gold[pair.question, pair.a] for pair in pairs)
    assert all(pair.answer_b == gold[pair.question, pair.b] for pair in pairs)
    assert all(same_answer_form(pair.answer_a) != same_answer_form(pair.answer_b) for pair in pairs)


def test_the_draw_follows_its_seed_and_a_larger_one_holds_the_smaller() -> None:
    drawn = trial_pairs(PACK, limit=40, seed=1)
    assert trial_pairs(PACK, limit=40, seed=1) == drawn
    assert trial_pairs(PACK, limit=40, seed=2) != drawn
    larger = trial_pairs(PACK, limit=80, seed=1)
    assert all(pair in larger for pair in drawn)


@pytest.mark.parametrize("name", example_names())
def test_every_pack_has_pairs_of_every_label(name: str) -> None:
    pack = load_pack(name)
    pairs = trial_pairs(pack, limit=10_000, seed=0)
    assert {pair.planted for pair in pairs} == {label.name for label in pack.judged}
    assert len({(pair.question, pair.answer_a, pair.answer_b) for pair in pairs}) == len(pairs)


def test_a_pack_without_an_example_says_so() -> None:
    with pytest.raises(UsageError, match="the pack bakery has no teaching example"):
        trial_pairs(replace(PACK, name="bakery"), limit=10, seed=0)
    other = replace(PACK, labels=PACK.labels[:-1])
    with pytest.raises(UsageError, match="which this pack does not have"):
        trial_pairs(other, limit=10, seed=0)


def test_a_perfect_judge_is_right_on_all_and_is_asked_in_both_orders(tmp_path: Path) -> None:
    drawn = trial_pairs(PACK, limit=40, seed=3)
    with Judge(perfect("transplant")) as server, ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger)
        assert estimate_trial(model, drawn, PACK).calls == 80
        pairs = put_to_judge(model, drawn, PACK)
        assert len(server.seen) == 80
        again = put_to_judge(a_model(server.spec(), ledger), drawn, PACK)
        assert len(server.seen) == 80
        pair = drawn[0]
        question = Question(id=pair.question, text=pair.text)
        shown = comparison_request(question, pair.answer_a, pair.answer_b, PACK)
        other = comparison_request(question, pair.answer_b, pair.answer_a, PACK)
        keys = [request_key(model.identity, "chat", each.content())[0] for each in (shown, other)]
        assert [each.calls for each in (pairs[0].said, pairs[0].exchanged) if each] == [(key,) for key in keys]
    assert again == pairs
    found = trial_figures(pairs, RelationLabels.of(PACK.labels))
    assert (found.right, found.exchanged, found.both, found.n) == (40, 40, 40, 40)
    assert (found.agreement.kappa, found.flips.flips, found.better) == (1.0, 0, True)


def test_a_constant_judge_is_no_better_than_chance(tmp_path: Path) -> None:
    _, found = tried(tmp_path, constant("Divergent"))
    assert (found.right, found.n, found.agreement.kappa, found.flips.flips) == (10, 40, 0.0, 0)
    assert not found.better
    assert (found.two_way_right, found.two_way_share) == (20, 0.5)
    assert {score.label: score.recall for score in found.labels} == {
        "Consistent": 0.0, "Complementary": 0.0, "Divergent": 1.0, "Contradictory": 0.0,
    }  # fmt: skip
    assert "not clearly better" in found.verdict


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_random_judge_is_not_clearly_better(tmp_path: Path, seed: int) -> None:
    _, found = tried(tmp_path, random(seed), limit=100)
    assert not found.better
    assert 10 <= found.right <= 40
    assert found.flips.flips > 50


def test_a_judge_that_goes_by_the_order_is_seen(tmp_path: Path) -> None:
    pairs, found = tried(tmp_path, first_is_stricter)
    assert found.flips.flips == sum(
        pair.said.label != pair.exchanged.label for pair in pairs if pair.said and pair.exchanged
    )
    assert found.flips.crossing == found.flips.flips > 5


def test_a_failing_judge_has_failures_and_no_score(tmp_path: Path) -> None:
    pairs, found = tried(tmp_path, failing, limit=8)
    assert all(pair.said and pair.said.failure and pair.said.failure.kind == "unreadable" for pair in pairs)
    assert all(pair.exchanged and pair.exchanged.failure for pair in pairs)
    assert (found.right, found.agreement.unscored, found.agreement.kappa) == (0, 8, None)
    assert (found.flips.n, found.flips.unscored, found.better) == (0, 8, False)


def test_a_batch_holds_both_orders_at_once(tmp_path: Path) -> None:
    with ledger_in(tmp_path) as ledger:
        model = a_model(f"batch:{tmp_path / 'waiting'}#m", ledger)
        with pytest.raises(BatchPending, match="16 requests were written"):
            put_to_judge(model, trial_pairs(PACK, limit=8, seed=0), PACK)


CLINICIANS = load_pack("clinicians")
KINDS = ["negation", "unit", "population", "strength", "silence", "list order"]


def test_hard_pairs_are_ten_of_each_kind_and_half_of_them_the_same_care() -> None:
    pairs = hard_pairs()
    assert all(pair.invented for pair in pairs)
    assert Counter(pair.kind for pair in pairs) == dict.fromkeys(KINDS, 10)
    assert Counter((pair.kind, pair.care == SAME_CARE) for pair in pairs) == {
        (kind, same): 5 for kind in KINDS for same in (True, False)
    }
    assert {pair.care for pair in pairs} == set(CARE.order)
    assert all((pair.care == "silent") <= (pair.kind == "silence") for pair in pairs)
    assert len({pair.id for pair in pairs}) == len({(pair.question, pair.a, pair.b) for pair in pairs}) == 60
    drawn = hard_trial_pairs(limit=24, seed=5)
    assert Counter((pair.kind, pair.planted == SAME_CARE) for pair in drawn) == {
        (kind, same): 2 for kind in KINDS for same in (True, False)
    }
    assert [pair.question for pair in hard_trial_pairs(limit=100, seed=5)] == [pair.id for pair in pairs]


def hard_trial(folder: Path, say: Say) -> Trial:
    with Judge(say) as server, ledger_in(folder) as ledger:
        pairs = put_to_judge(a_model(server.spec(), ledger), hard_trial_pairs(limit=100, seed=0), CLINICIANS)
    return trial_figures(pairs, RelationLabels.of(CLINICIANS.labels))


def test_a_constant_judge_gets_half_of_the_hard_pairs(tmp_path: Path) -> None:
    found = hard_trial(tmp_path, constant("Consistent"))
    assert (found.n, found.right, found.commonest_share, found.better) == (60, 30, 0.5, False)
    assert [(row.kind, row.n, row.right, row.both, row.missed, row.invented) for row in found.kinds] == [
        (kind, 10, 5, 5, 5, 0) for kind in KINDS
    ]
    assert all(row.interval.low < 0.5 < row.interval.high for row in found.kinds)


def test_labels_of_any_pack_count_by_care(tmp_path: Path) -> None:
    care = {"care differs": "Insufficient", "same care": "Complementary", "silent": "Absent"}
    known = hard_trial_pairs(limit=60, seed=0)

    def say(text: str) -> str:
        fitting = [
            pair
            for pair in known
            if all(f"\n{fenced_text(each)}\n" in text for each in (pair.text, pair.answer_a, pair.answer_b))
        ]
        assert len(fitting) == 1
        return care[fitting[0].planted]

    found = hard_trial(tmp_path, say)
    assert (found.right, found.both, found.better) == (60, 60, True)
    assert {(row.right, row.missed, row.invented) for row in found.kinds} == {(10, 0, 0)}
    assert msgspec.convert(msgspec.to_builtins(found), Trial) == found
