"""Reranking by a language model: a scripted endpoint, and a real tiny model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from hoofbeat.errors import BatchPending, UsageError
from hoofbeat.models import Model, Reply
from hoofbeat.models.http_backend import HttpBackend
from hoofbeat.models.requests import TokenLogprob
from hoofbeat.records import Failure
from hoofbeat.retrieval.stages.rerank import EndpointReranker, ListwiseReranker, YesNoReranker, yes_over_no
from hoofbeat.store.call_ledger import Ledger
from hoofbeat.window import ContextWindow
from tests.answering.support import asked_for, check_fenced, wire_text
from tests.helpers import needs_weights
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ledger_in
from tests.retrieval.stages.rerank_support import PASSAGE, QUESTION, Bench, Reader, query, ranks, scores, stage


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


# The score of one reply


def reply(**top: float) -> Reply:
    token = max(top, key=lambda each: top[each])
    return Reply(text=token, logprobs=(TokenLogprob(token=token, logprob=top[token], top=top),))


def test_yes_over_no_adds_up_every_way_to_write_either_word() -> None:
    assert yes_over_no(reply(Yes=-0.5, No=-2.0)) == pytest.approx(1.5)
    top = {"Yes": -1.0, " yes": -1.0, "YES.": -1.0, "No": -1.0, "Not": -0.1, "nothing": -0.2, "Yesterday": -0.3}
    assert yes_over_no(reply(**top)) == pytest.approx(1.0986123)  # three ways against one: log 3
    assert yes_over_no(reply(**{"▁No": -0.7, "Ġyes": -0.9})) == pytest.approx(-0.2)


def test_a_word_that_is_not_listed_is_at_most_as_likely_as_the_last_that_is() -> None:
    assert yes_over_no(reply(Yes=-0.1, Maybe=-4.0, The=-6.0)) == pytest.approx(5.9)
    assert yes_over_no(reply(No=-0.1, The=-6.0)) == pytest.approx(-5.9)
    assert yes_over_no(reply(No=-0.1)) == 0
    alone = Reply(text="Yes", logprobs=(TokenLogprob(token="Yes", logprob=-0.2, top={"No": -1.2}),))
    assert yes_over_no(alone) == pytest.approx(1.0)
    assert yes_over_no(reply(Yes=-1.0, No=float("-inf"), The=-3.0)) == pytest.approx(2.0)


def test_a_reply_that_lists_neither_word_has_no_score() -> None:
    assert yes_over_no(reply(The=-0.1, A=-2.0)) is None
    assert yes_over_no(Reply(text="Yes")) is None


# Yes or no


def test_texts_are_scored_by_yes_over_no(ledger: Ledger) -> None:
    texts = [["a rash 0.5", "paracetamol 3", "stairs -2"], ["stairs -1"]]
    with Reader() as server:
        model = a_model(server.spec(), ledger)
        bench = Bench(model)
        reranker = stage("rerank[model=mine]@3").method
        first, second = reranker.rerank([query(), query("Why?")], texts, bench)
        assert scores(first) == pytest.approx([0.5, 3, -2])
        assert scores(second) == pytest.approx([-1])
        assert bench.asked == ["mine"]
        assert len(server.seen) == 4
        assert YesNoReranker().rerank([query(), query("Why?")], texts, Bench(a_model(server.spec(), ledger))) == [
            first,
            second,
        ]
        assert len(server.seen) == 4
    body = server.seen[0].body
    assert (body["max_tokens"], body["top_logprobs"], body["temperature"]) == (1, 20, 0)
    check_fenced(body, "a rash", fences=2)
    check_fenced(body, QUESTION, fences=2)
    text = wire_text(body)
    assert text.index(QUESTION) < text.index("a rash")  # what texts of a query share comes first
    assert "never shown" not in text


def test_texts_are_scored_by_a_cross_encoder_behind_an_endpoint(ledger: Ledger) -> None:
    texts = [["a rash 0.5", "paracetamol 3", "stairs -2"], ["stairs -1", "fault=503 x 1"], []]
    queries = [query(), query("Why?"), query("And?")]
    with Reader() as server:
        chosen = stage(f"rerank[with={server.spec('scorer')}]@3")
        bench = Bench(a_model(server.spec("scorer"), ledger, attempts=1))
        first, second, third = chosen.method.rerank(queries, texts, bench)
        assert (first, third) == ([0.5, 3.0, -2.0], [])
        assert isinstance(second, Failure)
        assert second.kind == "server-error"
        asked = len(server.seen)
        wider = [[*texts[0], "bed rest 1"]]
        assert chosen.method.rerank(queries[:1], wider, bench) == [[0.5, 3.0, -2.0, 1.0]]
        assert server.seen[asked].body["documents"] == ["bed rest 1"]  # the others are in the ledger
    assert server.seen[0].body["query"] == QUESTION
    assert (chosen.models(), chosen.folders(), chosen.cost().calls) == ((server.spec("scorer"),), (), 1)
    assert stage("rerank[with=model:scorer]").models() == ("scorer",)


def test_scores_that_do_not_fit_the_texts_are_a_failure(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for said in ('{"results": []}', '{"results": [{"index": 0}]}', '{"results": [{"index": 1, "relevance_score": 2}]}'):

        async def answered(*_: object, said: str = said) -> bytes:
            return said.encode()

        monkeypatch.setattr(HttpBackend, "post", answered)
        reranker = EndpointReranker("scorer")
        [result] = reranker.rerank([query()], [["x 1"]], Bench(a_model("http://127.0.0.1:9/v1#s", ledger, attempts=1)))
        assert isinstance(result, Failure)
        assert result.kind == "garbled"


def test_options_of_other_rerankers_mean_nothing_to_an_endpoint() -> None:
    with pytest.raises(UsageError, match="window can't be used with a cross-encoder"):
        _ = stage("rerank[with=http://127.0.0.1:9/v1#s,window=5]").method


def test_a_pair_that_fails_fails_its_query_and_no_other(ledger: Ledger) -> None:
    texts = [["paracetamol 3", "fault=503 x 1", "fault=policy x 1"], ["stairs 1"], ["x 2"]]
    earlier = Failure(kind="timeout", message="the writer was slow")
    with Reader() as server:
        bench = Bench(a_model(server.spec(), ledger, attempts=1))
        results = YesNoReranker().rerank([query(), query(), query(failure=earlier)], texts, bench)
    assert isinstance(results[0], Failure)
    assert results[0].kind == "server-error"
    assert results[1:] == [[1.0], earlier]
    assert not any("x 2" in seen.text for seen in server.seen)


def test_nothing_to_rerank_needs_no_call(ledger: Ledger) -> None:
    with Reader() as server:
        bench = Bench(a_model(server.spec(), ledger))
        for reranker in (YesNoReranker(), ListwiseReranker()):
            assert reranker.rerank([], [], bench) == []
            assert reranker.rerank([query(), query()], [[], []], bench) == [[], []]
        assert ListwiseReranker().rerank([query()], [["x 1"]], bench) == [[1.0]]
    assert server.seen == []


@pytest.mark.parametrize(
    ("gives", "why"),
    [
        ("nothing", "the reply has no log-probabilities"),
        ("error", "HTTP 400: logprobs are not supported here"),
        ("thoughts", "the model began with '<think>'"),
    ],
)
def test_without_log_probabilities_texts_are_labelled(
    ledger: Ledger, gives: Literal["nothing", "error", "thoughts"], why: str
) -> None:
    texts = [["a -1", "b 3", "c 1"], ["d -2", "e 1"]]
    with Reader(gives) as server:
        model = a_model(server.spec(), ledger)
        reranker = YesNoReranker()
        assert reranker.rerank([query(), query()], texts, Bench(model)) == [[0, 1, 1], [0, 1]]
        words = 0 if gives == "error" else 1  # one pair asked, the others did not
        assert sorted(server.fields()) == ["relevant"] * 5 + ["word"] * words
        assert reranker.rerank([query()], [["f 1"]], Bench(model)) == [[1]]
        assert server.fields().count("word") == words
    (note,) = reranker.notes
    assert "stub gives no log-probabilities of Yes and No" in note
    assert why in note


def test_a_pair_without_log_probabilities_among_others_is_a_failure(ledger: Ledger) -> None:
    """Labels and log-probabilities are not on one scale: they must not meet in one ranking."""
    with Reader() as server:
        model = a_model(server.spec(), ledger)
        reranker = YesNoReranker()
        assert reranker.rerank([query()], [["a 1"]], Bench(model)) == [[1.0]]
        server.gives = "thoughts"
        (result,) = reranker.rerank([query()], [["a 1", "b 1"]], Bench(model))
    assert isinstance(result, Failure)
    assert result.kind == "unsupported"
    assert reranker.notes == []


def test_an_endpoint_that_answers_neither_way_is_a_failure(ledger: Ledger) -> None:
    with Reader("nothing") as server:
        bench = Bench(a_model(server.spec(), ledger, attempts=1))
        (result,) = YesNoReranker().rerank([query("fault=400 why?")], [["a 1"]], bench)
    assert isinstance(result, Failure)
    assert result.kind == "bad-request"


def test_a_first_pair_that_fails_by_chance_decides_nothing(ledger: Ledger) -> None:
    with Reader() as server:
        bench = Bench(a_model(server.spec(), ledger, attempts=1))
        reranker = YesNoReranker()
        failed, fine = reranker.rerank([query(), query()], [["fault=503 1"], ["b 2"]], bench)
    assert isinstance(failed, Failure)
    assert fine == [2.0]
    assert reranker.notes == []


def test_a_batch_folder_gets_every_pair_at_once(tmp_path: Path, ledger: Ledger) -> None:
    model = a_model(f"batch:{tmp_path / 'batch'}#mine", ledger)
    with pytest.raises(BatchPending, match="5 requests were written"):
        YesNoReranker().rerank([query(), query()], [["a 1", "b 2", "c 3"], ["d 4", "e 5"]], Bench(model))


def test_a_batch_folder_gets_one_listwise_request_for_each_query(tmp_path: Path, ledger: Ledger) -> None:
    folder = tmp_path / "batch"
    spec = f"batch:{folder}#mine"
    texts = [["a", "b", "c"], ["d", "e"]]
    with pytest.raises(BatchPending, match="2 requests were written"):
        ListwiseReranker().rerank([query(), query("Why?")], texts, Bench(a_model(spec, ledger)))
    asked = [json.loads(line) for line in (folder / "requests-001.jsonl").read_text().splitlines()]
    answers = [
        {
            "custom_id": line["custom_id"],
            "response": {
                "status_code": 200,
                "body": {"choices": [{"message": {"content": '{"order": [2]}'}, "finish_reason": "stop"}]},
            },
        }
        for line in asked
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in answers))
    reranker = ListwiseReranker()
    results = reranker.rerank([query(), query("Why?")], texts, Bench(a_model(spec, ledger)))
    assert [ranks(result) for result in results] == [[2, 1, 3], [2, 1]]
    assert "2 of 2 orders left texts out (3 in total)" in reranker.notes[0]


def test_a_text_is_shown_up_to_its_limit_and_the_models_window(ledger: Ledger) -> None:
    long = "fever" * 5000 + " 1"
    with Reader("nothing") as server:
        model = a_model(server.spec(), ledger)
        assert _shown(YesNoReranker(chars=300), server, model, long) == 300
        assert _shown(YesNoReranker(), server, model, long) == 2000
        model.window = ContextWindow(tokens=600, source="configured")
        assert _shown(YesNoReranker(), server, model, long) == (600 - 1 - 400) * 3 - len(QUESTION) - 60
        assert _shown(YesNoReranker(), server, model, "熱" * 5000 + " 1") * 3 <= 600 * 3
        reranker = YesNoReranker()
        reranker.rerank([query()], [["fever" * 300 + " 1", "short 1"]], Bench(model))
        assert any("1 of 2 different texts were cut further" in note for note in reranker.notes)
        model.window = ContextWindow(tokens=420, source="configured")
        (result,) = YesNoReranker().rerank([query()], [[long]], Bench(model))
    assert isinstance(result, Failure)
    assert (result.kind, result.attempts) == ("context-overflow", 0)


def _shown(reranker: YesNoReranker, server: FaultServer, model: Model, text: str) -> int:
    """How many characters of a text went over the wire."""
    before = len(server.seen)
    reranker.rerank([query()], [[text]], Bench(model))
    (passage,) = PASSAGE.findall(wire_text(server.seen[before].body))
    return len(passage)


# Listwise


def test_windows_go_from_the_back_to_the_front(ledger: Ledger) -> None:
    texts = [f"text {number}" for number in (3, 1, 2, 0, 4, 9, 8)]
    with Reader() as server:
        bench = Bench(a_model(server.spec(), ledger))
        reranker = stage("rerank[with=listwise,window=4,stride=2]@7").method
        (result,) = reranker.rerank([query()], [texts], bench)
        again = ListwiseReranker(window=4, stride=2).rerank([query()], [texts], bench)
    windows = [[text.split()[-1] for text in PASSAGE.findall(wire_text(seen.body))] for seen in server.seen]
    assert windows == [["0", "4", "9", "8"], ["1", "2", "9", "8"], ["3", "9", "8"]]
    # 9 8 2 1 | 4 0 after the second window; the third sees 3, 9 and 8
    assert ranks(result) == [3, 5, 4, 7, 6, 1, 2]
    assert scores(result)[0] == pytest.approx(1 / 3)
    assert again == [result]
    assert len(server.seen) == 3


def test_one_window_is_one_call_and_fenced(ledger: Ledger) -> None:
    with Reader() as server:
        (result,) = ListwiseReranker().rerank([query()], [["a 1", "b 3", "c 2"]], Bench(a_model(server.spec(), ledger)))
    assert ranks(result) == [3, 1, 2]
    (seen,) = server.seen
    check_fenced(seen.body, "c 2", fences=4)
    order = asked_for(seen.body)["order"]
    assert order["items"]["enum"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("order", "places"),
    [([3], [2, 3, 1]), ([2, 2, 2], [2, 1, 3]), ([3, 1, 3], [2, 3, 1])],
)
def test_what_is_left_out_follows_and_what_is_double_counts_once(
    ledger: Ledger, order: list[int], places: list[int]
) -> None:
    with Reader() as server:
        server.orders = [order]
        reranker = ListwiseReranker()
        bench = Bench(a_model(server.spec(), ledger))
        (result,) = reranker.rerank([query()], [["a 0", "b 0", "c 0"]], bench)
        assert ranks(result) == places
        assert len(server.seen) == 1
        reranker.rerank([query("Whole?")], [["a 1", "b 2", "c 3"]], bench)
    (note,) = reranker.notes
    assert note.startswith(f"1 of 2 orders left texts out ({3 - len(set(order))} in total)")


@pytest.mark.parametrize("order", [[], [4, 1], [0], [1, 2, 3, 1], "3 1 2", [1.5]])
def test_an_unusable_order_is_repaired_once_and_then_a_failure(ledger: Ledger, order: Any) -> None:
    with Reader() as server:
        model = a_model(server.spec(), ledger)
        server.orders = [order]
        (result,) = ListwiseReranker().rerank([query()], [["a 1", "b 2", "c 3"]], Bench(model))
        assert ranks(result) == [3, 2, 1]
        assert len(server.seen) == 2
        server.orders = [order, order]
        (failed,) = ListwiseReranker().rerank([query("Why?")], [["a 1", "b 2", "c 3"]], Bench(model))
    assert isinstance(failed, Failure)
    assert failed.kind == "schema"


def test_a_window_that_fails_fails_its_query_and_no_other(ledger: Ledger) -> None:
    earlier = Failure(kind="refusal", message="no")
    with Reader() as server:
        bench = Bench(a_model(server.spec(), ledger, attempts=1))
        results = ListwiseReranker(window=2, stride=1).rerank(
            [query(), query(), query(failure=earlier)],
            [["fault=503 1", "b 2", "c 3"], ["a 1", "b 2"], ["a 1", "b 2"]],
            bench,
        )
    assert isinstance(results[0], Failure)
    assert results[0].kind == "server-error"
    assert ranks(results[1]) == [2, 1]
    assert results[2] is earlier


def test_many_long_texts_share_a_small_window(ledger: Ledger) -> None:
    texts = ["fever " * 2000] * 20
    with FaultServer() as server:
        model = a_model(server.spec(), ledger)
        model.window = ContextWindow(tokens=4096, source="configured")
        reranker = ListwiseReranker()
        assert len(scores(reranker.rerank([query()], [["a", *texts[1:]]], Bench(model))[0])) == 20
        assert "1 of 2 different texts were cut further" in reranker.notes[-1]
        assert "window of 4,096 tokens" in reranker.notes[-1]
        shown = wire_text(server.seen[0].body)
        assert 3000 < len(shown) < 4096 * 3
        model.window = ContextWindow(tokens=1024, source="configured")
        (failed,) = ListwiseReranker().rerank([query()], [texts], Bench(model))
    assert isinstance(failed, Failure)
    assert failed.kind == "context-overflow"
    assert len(server.seen) == 1


# A real model


def test_a_real_model_reranks_and_a_second_run_asks_nothing(ledger: Ledger) -> None:
    needs_weights("smollm2-135m")
    model = a_model("embedded:smollm2-135m", ledger, timeout=300)
    texts = [["Paracetamol lowers a fever.", "The museum opens at nine.", ""]]
    results = [reranker.rerank([query()], texts, Bench(model)) for reranker in (YesNoReranker(), ListwiseReranker())]
    assert model.made >= 4
    yesno = scores(results[0][0])
    assert len(set(yesno)) == 3
    assert sorted(ranks(results[1][0])) == [1, 2, 3]
    again = a_model("embedded:smollm2-135m", ledger, timeout=300)
    assert [
        reranker.rerank([query()], texts, Bench(again)) for reranker in (YesNoReranker(), ListwiseReranker())
    ] == results
    assert again.made == 0
