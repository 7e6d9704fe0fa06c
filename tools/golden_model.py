"""The model of the golden set: an OpenAI-compatible endpoint on loopback whose answers follow from the request alone.

It answers from the material of a request (what stands between material tags) and from the fields of the schema, never
from the instructions: a prompt in other words changes the ledger's keys, but not what the commands write. Where the
material is a case of the teaching set it answers by that case's gold, so that recipes keep questions. A digest of the
material decides the rest, so that every label and some rejections occur.

Usage: python tools/golden_model.py GOLD.jsonl. It prints its port and ends when its standard input is closed. `GET
/received` says how often each request to answer (not to embed) has arrived, by the hash of its body.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

_MATERIAL = re.compile(r'<material name="([^"]*)">\n(.*?)\n</material>', re.DOTALL)
_NUMBERED = re.compile(r"^\[?(\d+)[\].):]* (.+)$", re.MULTILINE)
_OPTION = re.compile(r"^([A-Z])[.):] *(.+)$", re.MULTILINE)
_DISEASES = (
    "Sarcoidosis", "Tuberculosis", "Multiple myeloma", "Lyme disease", "Amyloidosis", "Gout", "Brucellosis", "Scurvy",
    "Syphilis", "Whipple disease", "Leptospirosis", "Kawasaki disease",
)  # fmt: skip
_DIMENSIONS = 48


class Asked(NamedTuple):
    """What a request shows: its material by name, the case of the teaching set it is about, if any, and a digest."""

    shown: dict[str, str]
    case: dict[str, Any] | None
    digest: int

    @property
    def text(self) -> str:
        return "\n".join(self.shown.values())

    @property
    def longest(self) -> str:
        return max(self.shown.values(), key=len, default="")


def asked(words: str, cases: list[dict[str, Any]]) -> Asked:
    shown = dict(_MATERIAL.findall(words)) or {"": words}
    text = "\n".join(shown.values())
    return Asked(shown, _case(text, cases), digest(text))


def digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def _case(text: str, cases: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The case whose title or context is in the text, else the one whose diagnosis or step is."""
    for names in (lambda case: (case["title"], _context(case)[:80]), lambda case: (case["diagnosis"],)):
        for case in cases:
            if any(name and name.lower() in text.lower() for name in names(case)):
                return case
    return None


def _context(case: dict[str, Any]) -> str:
    return str((case["question"] or {}).get("context") or "")


def sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.?!])\s+|\n+", text) if part.strip()]


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))


def nearest(wanted: str, rows: list[tuple[int, str]]) -> int:
    """The number of the row with most words in common with these."""
    return max(rows, key=lambda row: (len(words_of(row[1]) & words_of(wanted)), -row[0]), default=(1, ""))[0]


# Whole replies, by the fields that are asked for


def _diagnosis(a: Asked) -> dict[str, Any]:
    known = [a.case["diagnosis"], *a.case["synonyms"], *a.case["abbreviations"]] if a.case else ["no diagnosis"]
    stated = next((name for name in known if name.lower() in a.longest.lower()), known[0])
    quote = next((each for each in sentences(a.longest) if stated.lower() in each.lower()), stated)
    others = [name for name in known if name != stated and name.lower() in a.longest.lower()]
    return {"kind": "diagnosis", "quote": quote[:290], "diagnosis": stated, "synonyms": others[:4]}


def _shown(a: Asked) -> dict[str, Any]:
    """All up to the last sentence that tells the answer by the notes; those that do are hidden or reworded."""
    lines = a.shown.get("case", "").splitlines()
    notes = a.shown.get("notes", "").partition("\n")[0]
    told = {int(number): words for number, words in re.findall(r"(\d+) \(([^)]*)\)", notes)}
    last = max(told, default=len(lines))
    reworded = []
    for number, words in told.items():
        if (a.digest + number) % 3 == 0 and number <= len(lines):
            text = lines[number - 1].partition(". ")[2]
            for name in words.split(", "):
                text = text.replace(name, "the condition")
            reworded.append({"sentence": number, "text": text[:1500]})
    other = {each["sentence"] for each in reworded}
    hide = [{"number": number, "why": "diagnosis"} for number in told if number not in other]
    return {"last": last, "hide": hide, "trim": [], "reworded": reworded}


def _options(a: Asked) -> dict[str, Any]:
    rows = re.findall(r"^(\d+)\. (.+)$", a.shown.get("candidates", ""), re.MULTILINE)
    chosen = [{"candidate": int(number), "wording": text} for number, text in rows[:8]]
    own = [{"candidate": 0, "wording": text} for text in _DISEASES[: 10 - len(chosen)]]
    return {"options": [*chosen, *own], "unfit": [], "answer_wording": ""}


def _differentials(a: Asked) -> dict[str, Any]:
    named = a.case["differentials"] if a.case else []
    found = [name for name in named if name.lower() in a.text.lower()]
    return {"alternatives": [{"quote": name.lower(), "name": name} for name in found]}


def _significance(a: Asked) -> dict[str, Any]:
    rows = [(int(number), text) for number, text in _NUMBERED.findall(a.longest)]
    step = a.case["decisive_step"] if a.case else "no step"
    at = nearest(step, rows)
    return {
        "significance": a.case["significance"] if a.case else "nothing",
        "significance_sentences": [nearest(a.case["significance"] if a.case else "", rows)],
        "step_sentences": [at],
        "step": " ".join(step.split()[:12]).rstrip(",;"),
        "kind": "new-step" if a.case else "standard-step",
    }


def _course(a: Asked) -> dict[str, Any]:
    rows = [(int(number), text) for number, text in _NUMBERED.findall(a.longest)]
    at = nearest(a.shown.get("decisive step", ""), rows)
    before = [number for number, _ in rows if number < at][-12:] or [1, 2, 3]
    said = (a.case["limitations"] if a.case else [])[:2]
    return {
        "before": before,
        "after": [number for number, _ in rows if number >= at][:4],
        "limitations": [{"sentences": [nearest(each, rows)], "limitation": each} for each in said],
    }


def _question(a: Asked) -> dict[str, Any]:
    told = next((text for name, text in a.shown.items() if name.startswith("facts")), a.longest)
    gold = (a.case or {}).get("question") or {}
    context = gold.get("context") or " ".join(line.lstrip("-0123456789.) ") for line in told.splitlines())
    return {
        "answer": gold.get("answer") or a.shown.get("decisive step: the answer", "It is not known."),
        "rationale": "The facts lead there.",
        "core": sentences(context)[:3],
        "context": context,
        "question": gold.get("text") or "What is the most appropriate next step for this patient?",
    }


def _distraction(a: Asked) -> dict[str, Any]:
    more = (
        " The patient also takes drops for dry eyes, has a healed fracture of the wrist, wears reading glasses, and"
        " came with a neighbour who had driven all night."
    )
    return {"changes": "Side conditions.", "context": a.shown.get("case", a.longest) + more, "added": [more.strip()]}


def _reasoning(a: Asked) -> dict[str, Any]:
    steps = [each[:390] for each in sentences(a.longest)[:2]]
    return {"steps": [*steps, "One thing explains them."], "conclusion": f"It is {a.shown.get('right answer', '')}."}


def _source(a: Asked) -> dict[str, Any]:
    passages = [(name, text) for name, text in a.shown.items() if name != "question"]
    wanted = words_of(a.shown.get("question", ""))
    found = [(len(words_of(each) & wanted), each, name) for name, text in passages for each in sentences(text)]
    share, sentence, name = max(found, key=lambda row: row[0], default=(0, "", ""))
    if share < 2:
        return dict.fromkeys(("quote", "answer", "statement", "strength", "passage"), "none")
    said = sentence[:290]
    return {"quote": said, "answer": said, "statement": said[:110], "strength": "none given", "passage": name}


def _statements(a: Asked) -> dict[str, Any]:
    rows = [sentences(text)[:1] for name, text in a.shown.items() if name.startswith("passage")]
    return {"statements": [{"text": row[0][:390], "passages": [at]} for at, row in enumerate(rows[:2], 1) if row]}


def _grades(a: Asked) -> dict[str, Any]:
    texts = list(a.shown.values())
    wanted = words_of(a.shown.get("answer") or texts[0])
    share = len(wanted & words_of(texts[-1])) / max(1, len(wanted))
    return {"reason": "By words in common.", "relevance": round(10 * share), "support": round(9 * share + 1)}


def _agent(a: Asked) -> dict[str, Any]:
    searched = any("searched" in name or "found" in name for name in a.shown)
    reply = _text(a)
    return {
        "thought": "One search is enough.",
        "action": "answer" if searched else "search",
        "query": "" if searched else " ".join(sorted(words_of(a.longest))[:6]),
        "answer": reply if searched else "",
    }


def _tried(a: Asked) -> dict[str, Any]:
    sound = bool(a.digest % 5)
    return {
        "reason": "By the findings.",
        "choice": _letter(a),
        "basis": ("style", "knowledge", "chance")[a.digest % 3],
        "answer": _text(a),
        "others": ["Wait and see."] if a.digest % 2 else [],
        "told": "" if a.digest % 7 else "Nothing else was left to do.",
        "answerable": "yes" if sound else "no",
        "match": ("yes", "partly", "yes", "no")[a.digest % 4],
        "supported": "yes" if sound else "no",
        "missing": "" if sound else "What would decide it.",
        "rival": "" if a.digest % 11 else "Another test.",
    }


def _refereed(a: Asked) -> dict[str, Any]:
    if a.digest % 4:
        return {"faults": [], "publish": "yes"}
    return {"faults": [{"kind": "fact", "fault": "A finding is missing.", "mend": "Add it."}], "publish": "no"}


def _compared(a: Asked) -> dict[str, Any]:
    rows = []
    for letter, text in _OPTION.findall(a.shown.get("wrong options", "")):
        chance = digest(f"{text} {a.digest}")
        rows.append(
            {
                "option": letter,
                "reason": "By what it names.",
                "relation": "different" if chance % 23 else "broader",
                "also_right": "no" if chance % 29 else "yes",
                "absurd": "no" if chance % 7 else "yes",
                "style": "same" if chance % 5 else "other",
            }
        )
    return {"options": rows}


def _moment(a: Asked) -> dict[str, Any]:
    """Sometimes a treatment that runs is not told in the case."""
    left_out = {
        "what": "The treatment of the first day",
        "state": "runs",
        "sentences": [1],
        "told": "no",
        "difference": "",
    }
    running = [] if a.digest % 3 else [left_out]
    return {"running": running, "later": [], "closed": [], "conflicts": [], "measures": []}


def _reviewed(a: Asked) -> dict[str, Any]:
    """An editor who mostly signs, sometimes takes out the last sentence or rejects, and never edits twice."""
    rows = a.shown.get("case as the examinee reads it, numbered sentences", "").splitlines()
    edited = "an edit of an earlier review" in a.shown.get("remarks", "")
    verdict = "sign" if edited or a.digest % 4 else ("edit", "edit", "reject")[a.digest // 4 % 3]
    cut = {"do": "delete", "sentence": len(rows), "text": "", "sources": [], "why": "It tells nothing."}
    return {
        "problems": [] if verdict == "sign" else [{"kind": "residue", "problem": "The last sentence tells nothing."}],
        "verdict": verdict,
        "reason": "By the findings.",
        "edits": [cut] if verdict == "edit" else [],
        "new_question": "",
        "new_answer": "",
        "new_options": [],
        "accepted": [],
        "grading_note": "",
        "requirements": [],
        "exclusions": [],
        "answer_check": [],
    }


_WHOLE: dict[frozenset[str], Callable[[Asked], dict[str, Any]]] = {
    frozenset(fields.split()): reply
    for fields, reply in {
        "kind quote diagnosis synonyms": _diagnosis,
        "last hide trim reworded": _shown,
        "options unfit answer_wording": _options,
        "alternatives": _differentials,
        "significance significance_sentences step_sentences step kind": _significance,
        "before after limitations": _course,
        "answer rationale core context question": _question,
        "answer rationale core question": _question,
        "changes context added": _distraction,
        "quote answer passage": _source,
        "statements": _statements,
        "reason relevance support": _grades,
        "steps conclusion": _reasoning,
        "thought action query answer": _agent,
        "reason choice answerable missing": _tried,
        "reason choice basis": _tried,
        "reason answer others told answerable missing": _tried,
        "reason match supported missing rival": _tried,
        "options": _compared,
        "faults publish": _refereed,
        "running later closed conflicts measures": _moment,
        "problems verdict reason edits accepted grading_note new_question new_answer requirements exclusions "
        "answer_check": _reviewed,
        "problems verdict reason edits new_question new_answer new_options": _reviewed,
    }.items()
}


# Single fields

_USUAL = ("new-step", "nothing", "good", "same", "none")
"""Words of a closed list that let an item go on; they are said three times of four."""
_NO = {"given_away", "named", "cause", "decision"}
"""Questions whose usual answer is no."""


def _field(name: str, schema: dict[str, Any], a: Asked) -> Any:
    choice = digest(f"{name} {a.digest}")
    if "enum" in schema:
        return _one_of(name, [str(each) for each in schema["enum"]], choice)
    kind = schema.get("type")
    if kind == "integer":
        least, most = int(schema.get("minimum", 1)), int(schema.get("maximum", 3))
        return least + choice % (most - least + 1) if name == "grade" else max(least, most - choice % 4)
    if kind == "array":
        return _list(name, schema, a, choice)
    if kind == "object":
        return {each: _field(each, inner, a) for each, inner in schema.get("properties", {}).items()}
    return _string(name, a)[: int(schema.get("maxLength", 400))]


def _one_of(name: str, values: list[str], choice: int) -> str:
    usual = next((value for value in _USUAL if value in values), None)
    if {"yes", "no"} == set(values):
        usual = "no" if name in _NO else "yes"
    return usual if usual and choice % 4 else values[choice % len(values)]


def _list(name: str, schema: dict[str, Any], a: Asked, choice: int) -> list[Any]:
    if name == "order":
        numbers = list(range(1, 1 + sum(each.startswith("passage") for each in a.shown)))
        return sorted(numbers, key=lambda number: digest(f"{number} {a.digest}"))
    if name == "diagnoses":
        return [_DISEASES[(choice + step) % len(_DISEASES)] for step in range(6)]
    if name == "questions":
        topic = " ".join(list(dict.fromkeys(re.findall(r"[a-z]{6,}", a.longest.lower())))[:4])
        return [f"What should I know about {topic}?", f"When do I have to ask my doctor about {topic}?"]
    if name in ("sentences", "overlapping", "quotes", "lost", "left", "reworded", "missing", "telling", "unsupported"):
        return []
    return [_field(f"{name}-{step}", schema["items"], a) for step in range(max(1, schema.get("minItems", 1)))]


def _string(name: str, a: Asked) -> str:
    if name == "question":
        put = [each for each in sentences(a.text) if each.endswith("?")]
        return max(put, key=len) if put else f"What is known about {' '.join(a.text.split()[:12])}?"
    if name == "choice":
        return _letter(a)
    if name.startswith("corrected") or name in ("rival", "derivable"):
        return ""
    if name in ("reason", "reasoning", "thought", "shared"):
        return f"By the words {' '.join(sorted(words_of(a.text))[:4])}."
    if name in ("topic", "name"):
        return " ".join(sorted(words_of(a.text), key=lambda word: (-len(word), word))[:2])
    if name == "group":
        groups = a.shown.get("groups", "").split()
        return next((each for each in groups if each in a.shown.get("question", "")), "general")
    return _text(a)


# Plain text


def _letter(a: Asked) -> str:
    options: dict[str, str] = dict(_OPTION.findall(a.shown.get("options", "") or a.text))
    right = [letter for letter, text in options.items() if a.case and a.case["diagnosis"].lower() in text.lower()]
    return right[0] if right and a.digest % 3 else sorted(options or {"A": ""})[a.digest % max(1, len(options))]


def _text(a: Asked) -> str:
    """The gold answer twice of three times, else a sentence of what was shown."""
    gold = ((a.case or {}).get("question") or {}).get("answer")
    if gold and a.digest % 3:
        return str(gold)
    told = sentences(a.longest) or ["Nothing."]
    return " ".join(told[(a.digest + step) % len(told)] for step in range(2))[:600]


def reply(body: dict[str, Any], cases: list[dict[str, Any]]) -> str:
    """What the model says to a request."""
    a = asked(next(each["content"] for each in body["messages"] if each["role"] == "user"), cases)
    form = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if form is None:
        if body.get("max_tokens") == 1:
            return "Yes" if a.digest % 2 else "No"
        if "options" in a.shown:
            return f"By the findings. The answer is {_letter(a)}."
        return f"Answer: {_text(a)}" if a.digest % 2 else _text(a)
    properties = form["properties"]
    whole = _WHOLE.get(frozenset(properties))
    if whole is not None:
        made = whole(a)
        return json.dumps({name: made[name] for name in properties})
    return json.dumps({name: _field(name, schema, a) for name, schema in properties.items()})


def _chat(body: dict[str, Any], cases: list[dict[str, Any]]) -> dict[str, Any]:
    for message in body["messages"]:
        if isinstance(message["content"], list):  # text and images
            message["content"] = "\n".join(part.get("text", "") for part in message["content"])
    text = reply(body, cases)
    choice: dict[str, Any] = {"finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    if body.get("logprobs"):
        sure = -0.01 - digest(json.dumps(body["messages"][-1])) % 60 / 100
        top = [{"token": text[:3], "logprob": sure}, {"token": "No" if text == "Yes" else "Yes", "logprob": -1.5}]
        choice["logprobs"] = {"content": [{"token": text[:3], "logprob": sure, "top_logprobs": top}]}
    usage = {
        "prompt_tokens": sum(len(message["content"].split()) for message in body["messages"]),
        "completion_tokens": len(text.split()),
    }
    return {"model": body["model"], "choices": [choice], "usage": usage}


def _echo(body: dict[str, Any]) -> dict[str, Any]:
    """The log-probability of every word of a prompt: by the word alone."""
    found = [(match.start(), match[0]) for match in re.finditer(r"\s*\S+|\s+$", body["prompt"])]
    logprobs = [None, *(-0.1 - digest(word) % 400 / 100 for _, word in found[1:])]
    told = {"tokens": [word for _, word in found], "text_offset": [at for at, _ in found], "token_logprobs": logprobs}
    return {"choices": [{"text": body["prompt"], "logprobs": told}]}


def _embed(body: dict[str, Any]) -> dict[str, Any]:
    """Texts with words in common get vectors that are alike; whole numbers, the same on every machine."""
    rows = []
    for index, text in enumerate([body["input"]] if isinstance(body["input"], str) else body["input"]):
        vector = [0] * _DIMENSIONS
        for word in re.findall(r"\w+", text.lower()):
            hashed = digest(word)
            vector[hashed % _DIMENSIONS] += 1 if hashed & 65536 else -1
        rows.append({"index": index, "embedding": vector if any(vector) else [1] * _DIMENSIONS})
    return {"data": rows}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: apart, the second waits 40 ms for the first's receipt
    cases: list[dict[str, Any]]
    received: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def do_GET(self) -> None:
        with self.lock:
            counted = dict(self.received)
        self._send(200, counted)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(data)
        if self.path.endswith("/completions"):
            with self.lock:
                self.received[hashlib.sha256(data).hexdigest()[:16]] += 1
        if self.path.endswith("/chat/completions"):
            self._send(200, _chat(body, self.cases))
        elif self.path.endswith("/completions"):
            self._send(200, _echo(body))
        elif self.path.endswith("/embeddings"):
            self._send(200, _embed(body))
        else:
            self._send(404, {"error": {"message": "there is no such path"}})

    def _send(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A command that was killed has broken its connections off; nothing is printed."""


def main() -> None:
    _Handler.cases = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    server = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
