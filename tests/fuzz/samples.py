"""Small inputs to begin with, one or more for each format; invented. Mutations of them reach what no real file has."""

from __future__ import annotations

import json


def rows_of(*rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


HTML = b"""<!doctype html><html><head><meta charset="utf-8"><title>After the operation</title></head><body>
<nav>Menu</nav><h1>After the operation</h1><p>Keep the wound <b>dry</b> for 2&nbsp;days.</p><h2>Bathing</h2><ul>
<li>Showers are fine.</li><li>No baths for four weeks.</li></ul><table>
<caption>Table 1</caption><tr><th>Week</th><th>May</th></tr>
<tr><td rowspan="2">3</td><td>walk</td></tr><tr><td>swim<sup>2</sup></td></tr></table><figure><img src="g1.png">
<figcaption>Figure 1. The wound.</figcaption></figure><script>let x = "<p>";</script></body></html>"""
TEXT = b"""---\ntitle: A leaflet\ndate: 2024-05-01\n---\nIntroduction\n\nKeep the wound dry.\n\nCase presentation\n
A 54-year-old man had a fever (Fig. 1).\n\nFigure 1: The wound.\n\nWeek\tMay\n3\twalk\n\n- one\n- two\n"""
PATIENTS = rows_of(
    {
        "patient_uid": "1-1",
        "PMID": "1",
        "title": "A case",
        "patient": "A man of 54 had a fever.",
        "age": [[54.0, "year"]],
        "gender": "M",
        "relevant_articles": {"2": 1},
        "similar_patients": {"2-1": 2},
    },
)
CSV = b'id,title,text,year\n1,"A, b","He had a ""fever"".\nTwice.",2020\n2,C,No fever.,\n'
QUESTIONS = [
    rows_of(
        {"id": "q1", "text": "What next?", "answer": "Biopsy.", "options": ["Biopsy.", "Wait."], "context": "A man."}
    ),
    rows_of(
        {"question": "What?", "options": {"A": "x", "B": "y"}, "answer_idx": "A", "answer": "x", "meta_info": "step1"}
    ),
    rows_of(
        {
            "id": "m",
            "question": "What?",
            "opa": "a",
            "opb": "b",
            "opc": "c",
            "opd": "d",
            "cop": 2,
            "choice_type": "single",
            "exp": None,
            "subject_name": "Medicine",
            "topic_name": "x",
        }
    ),
    rows_of(
        {
            "clean_case_presentation": "A man.",
            "correct_diagnosis": "Gout",
            "distractor1": "a",
            "distractor2": "b",
            "distractor3": "c",
        }
    ),
    rows_of(
        {
            "Title": "A fever",
            "pmc_id": "PMC1",
            "Classification": "Cardiology",
            "Question": "What next?",
            "Context": "A man.",
            "Answer": "Biopsy.",
        }
    ),
    rows_of(
        {"input": "Case.\nWhat next?\n\nA) x\nB) y", "target": "A", "id": "i", "choices": ["x", "y"], "metadata": {}}
    ),
    rows_of(
        {
            "id": "p",
            "question": "Does it?",
            "context": {"contexts": ["It does."], "labels": ["RESULTS"]},
            "long_answer": "It does.",
            "final_decision": "yes",
        }
    ),
]
CHATS = [
    b'{"choices":[{"message":{"content":"{\\"addressed\\": \\"yes\\"}"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":9,'
    b'"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":1}},"model":"m"}',
    b'{"choices":[{"message":{"content":"<think>hm</think>B","reasoning_content":"x"},"finish_reason":"length","logprobs":'
    b'{"content":[{"token":"B","logprob":-0.1,"top_logprobs":[{"token":"A","logprob":-2}]}]}}]}',
    b'{"choices":[{"message":{"content":null,"refusal":"I cannot help."},"finish_reason":"content_filter"}]}',
    b'{"error":{"message":"This model\'s maximum context length is 8192 tokens","code":"context_length_exceeded"}}',
    b'{"error":"rate limit"}',
]
BATCH = [
    b'{"custom_id":"a-1","response":{"status_code":200,"body":' + CHATS[0] + b'},"error":null}',
    b'{"custom_id":"a-1","response":null,"error":{"code":"batch_expired"}}',
    b'{"custom_id":"a-1","result":{"type":"succeeded","message":{"content":[{"type":"thinking","thinking":"x"},{"type":"text",'
    b'"text":"yes"}],"stop_reason":"max_tokens","usage":{"input_tokens":3,"output_tokens":2},"model":"m"}}}',
    b'{"custom_id":"a-1","result":{"type":"errored","error":{"type":"error","error":{"type":"rate_limit_error","message":"x"}}}}',
    b'{"key":"a-1","response":{"candidates":[{"content":{"parts":[{"text":"yes"},{"text":"hm","thought":true}]},'
    b'"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1,"thoughtsTokenCount":2}}}',
    b'{"key":"a-1","error":{"code":8,"message":"out of quota"}}',
    b'{"status":"Bad Request","request":{"labels":{"hoofbeat_id":"a-1"}},"response":'
    b'{"promptFeedback":{"blockReason":"SAFETY"}}}',
]
OUTPUTS = [
    b'{"addressed": "yes"}',
    b'Here it is:\n```json\n{"addressed": "no"}\n```\nI hope that helps.',
    b"<think>The fever {speaks} for it.</think>\n\nThe answer is **(B) Tuberculosis**.",
    b"<|channel|>analysis<|message|>Fever.<|end|><|start|>assistant<|channel|>final<|message|>Answer: C<|return|>",
    b"<|begin_of_thought|>x<|end_of_thought|><|begin_of_solution|>A. Sarcoidosis<|end_of_solution|>",
    b"I'm sorry, but I can't provide medical advice.",
    "A is wrong. Therefore, the correct option is C, not D; unless there is a rash: then it’s E.".encode(),
    b"### Final answer\n\n\\boxed{B}\n\n| option | verdict |\n|---|---|\n| A | no |",
    b"None of the options fits. If I had to choose: tuberculosis or sarcoidosis.",
    "最可能的诊断是 B. burgdorferi。答案：E".encode(),
]


DECISIONS = json.dumps({"format": "hoofbeat-decisions/1", "decisions": [], "cases": []}).encode()
MANIFEST = (
    b'{"kind":"corpus","schema":1,"title":"x","command":["a"],"inputs":[{"name":"a","sha256":"00","kind":"file"}],'
    b'"settings":{"a":1},"seeds":{"a":0},"counts":{"kept":1,"rejected":0,"failed":0,"reasons":{},"failures":{}},"cost":'
    b'{"calls":0,"tokens_in":0,"tokens_out":0,"money":0.0},"metrics":{},"files":{"documents.jsonl":"00"}}'
)
ENDPOINT = [
    b'{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[0.5,2]}]}',
    b'{"results":[{"index":1,"relevance_score":0.5},{"index":0,"relevance_score":2}]}',
    b'{"choices":[{"text":"","logprobs":{"tokens":["a"," context"," b"],'
    b'"token_logprobs":[null,-1,-2],"text_offset":[0,1,9]}}]}',
    b'{"tokens":[1,2,3],"completion_probabilities":[{"id":3,"token":" b","logprob":-1,"top_logprobs":[]}]}',
    b'{"data":[{"id":"m","max_model_len":4096}],"default_generation_settings":{"n_ctx":4096}}',
]
BEIR = {
    "corpus.jsonl": rows_of({"_id": "d1", "title": "A", "text": "b", "metadata": {}}, {"_id": "d2", "text": "c"}),
    "queries.jsonl": rows_of({"_id": "q1", "text": "What?", "metadata": {"answer": "x"}}),
    "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\n",
}
R2MED = {
    "corpus.jsonl": rows_of({"id": "d1", "text": "b"}),
    "query.jsonl": rows_of({"id": "q1", "text": "What?", "answer": "x", "doc_id": "d1", "body_system": "heart"}),
    "qrels.jsonl": rows_of({"q_id": "q1", "p_id": "d1", "score": 1}),
}
AUDITED = [
    b"Label: Divergent\n\nAlder says two days, Brook says a week.",
    b"**Label:** Contradictory (high)",
    b'"Keep the wound dry [...] Showers are fine"',
    "You may shower after 2 days… [1: Care] (strong recommendation).".encode(),
]
CONFIGS = [
    b'on = "local"\nledger = "l.sqlite"\ncurrency = "EUR"\n[models.mine]\nspec = "http://127.0.0.1:1/v1#m"\n'
    b'identity = "mine"\nprice_in = 1.0\nprice_out = 2\ncontext = 32000\nreasoning = 0\nmax_in_flight = 3\n',
    b'known_models = "models.toml"\nplugins = ["a.py"]\n[models.fleet]\nendpoints = ["http://127.0.0.1:1/v1"]\n'
    b'name = "m"\nendpoints_file = "e.txt"\n[models.fleet.extra]\ntop_k = 5\n',
]
TYPED = [
    b"bm25[k1={0.9|1.2}] + 0.5*dense[encoder=minilm] > rerank[with=listwise]@100",
    b"not retracted; words>=300; unique(minhash, 0.15); year in 2010..2020 and (venue ~ 'x' or kind=pdf)",
    b"share_disagree > 20% and undecided > 0",
    b"bm25 + dense @2",
    b"first 50%",
    b"agent over bm25",
    b"id=key,text=question,options=a+b+c+d,answer=gold",
]
TENSORS = (66).to_bytes(8, "little") + b'{"embeddings":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}' + bytes(16)
