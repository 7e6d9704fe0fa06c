"""Record the replies that `hoofbeat demo` replays: `src/hoofbeat/teaching/recorded.jsonl`.

The demo finds each reply by the key of its request, so a prompt or a teaching text that changes needs a new reply.
`tests/cli/test_demo.py` says which requests have none. To record:

1. `python tools/record_demo.py FOLDER --on DATE` runs the demo's steps with a batch folder. It takes what is recorded
   already, and writes the requests that have no reply to `FOLDER/batch/requests-001.jsonl`.
2. Have a strong model answer them, one request at a time, as they are written. Put the replies into the folder as a
   provider's output file, or with `--replies FILE` from lines `{"id": ..., "text": ...}`.
3. Run it again. Judgments need the answers first, so there are several rounds. When nothing is missing, the tool writes
   `recorded.jsonl` with `--by` and `--on`. Replies of two writers can't be mixed: record all of it again for another.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from hoofbeat import teaching
from hoofbeat.cli.console import Screen
from hoofbeat.cli.demo_tour import Tour, recorded_plan
from hoofbeat.errors import BatchPending
from hoofbeat.models.batch import KEY_LENGTH
from hoofbeat.models.model_loading import Session, open_session
from hoofbeat.models.replay import Recording
from hoofbeat.models.requests import Reply
from hoofbeat.store.ledger_base import LedgerEntry
from hoofbeat.store.tables import read_jsonl, write_jsonl

_CONTEXT = 200_000
_NAME = "recorded"


class _Reply(msgspec.Struct):
    id: str
    text: str


class _Line(msgspec.Struct):
    recorded: Recording | None = None
    key: str = ""
    reply: Reply | None = None


def _config(folder: Path, identity: str) -> Path:
    """A configuration whose model is the batch folder under the recording's identity: its keys are the recording's."""
    path = folder / "hoofbeat.toml"
    spec = f"batch:{folder / 'batch'}#{_NAME}"
    path.write_text(
        f'[models.{_NAME}]\nspec = "{spec}"\nidentity = "{identity}"\ncontext = {_CONTEXT}\nreasoning = 0\n',
        encoding="utf-8",
    )
    return path


def _output_line(reply: _Reply) -> dict[str, object]:
    """A reply as a provider's output file has it."""
    message = {"role": "assistant", "content": reply.text}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return {"custom_id": reply.id, "response": {"status_code": 200, "body": body}, "error": None}


def _take(replies: Iterable[_Reply], name: str, batch: Path) -> None:
    batch.mkdir(parents=True, exist_ok=True)
    write_jsonl(batch / f"answers-{name}.jsonl", map(_output_line, replies))


def _recorded(path: Path, recording: Recording) -> Iterator[_Reply]:
    """What the same writer wrote on the same day, as replies to the batch folder."""
    lines = list(read_jsonl(path, _Line)) if path.is_file() else []
    if lines and lines[0].recorded is not None and lines[0].recorded.identity == recording.identity:
        yield from (_Reply(id=f"{each.key[:KEY_LENGTH]}-000", text=each.reply.text) for each in lines if each.reply)


def _write(entries: list[LedgerEntry], recording: Recording, path: Path) -> None:
    """The calls without their requests, which the key stands for."""
    lines = [
        {"key": each.key, "prompt": each.prompt, "reply": each.reply}
        for each in sorted(entries, key=lambda each: (each.prompt, each.key))
    ]
    write_jsonl(path, [{"recorded": recording}, *lines])


def _pending(step: Callable[[Session], None], session: Session) -> bool:
    """Whether a step waits for replies; the other step's requests are written all the same."""
    try:
        step(session)
    except BatchPending as pending:
        sys.stderr.write(f"{pending}\n")
        return True
    return False


def main() -> int:
    """Run the demo's steps until every request has a reply."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--replies", type=Path, action="append", default=[])
    parser.add_argument("--by", default="a frontier-class language model")
    parser.add_argument("--on", required=True, help="the day of the recording, such as 17 November 2026")
    parser.add_argument("--how", default="")
    chosen = parser.parse_args()
    folder: Path = chosen.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    recording = Recording(by=chosen.by, on=chosen.on, how=chosen.how, context=_CONTEXT)
    _take(_recorded(teaching.recorded_replies(), recording), _NAME, folder / "batch")
    for replies in chosen.replies:
        _take(read_jsonl(replies, _Reply), replies.stem, folder / "batch")
    (folder / "ledger.sqlite").unlink(missing_ok=True)  # the batch folder has all replies, the ledger only those in use
    config = _config(folder, recording.identity)
    with open_session(ledger_path=folder / "ledger.sqlite", config_path=config) as session:
        tour = Tour(Screen(as_json=False), folder / "demo", recorded_plan(_NAME))
        tour.documents()
        tour.rankings()
        waiting = [_pending(step, session) for step in (tour.answers, tour.audit)]
        if any(waiting):
            return 4
        entries = list(session.ledger.entries(model=recording.identity, operation="chat"))
    _write(entries, recording, teaching.recorded_replies())
    sys.stdout.write(f"{len(entries)} replies: {teaching.recorded_replies()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
