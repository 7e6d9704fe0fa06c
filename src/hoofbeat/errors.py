"""Every error Hoofbeat raises on purpose.

Each says what was wrong, where, and what to do; the command line prints the three and exits with the error's code,
without a traceback. Anything else that escapes is a bug.

    HoofbeatError                 exit 1
    ├── UsageError                exit 2   a wrong option, spec, retriever line or configuration
    │   └── TrustNeeded                    the folder's configuration asks for something that needs the user's consent
    ├── InputError                exit 1   a file or folder that can't be read as what it should be
    │   ├── ArtefactError                  missing, foreign, newer-schema or damaged artefact folder
    │   └── HostileInputError              refused on purpose: entity bombs, path tricks, absurd sizes
    ├── OutputError               exit 1   results can't be written: full disk, read-only folder, folder in use
    ├── WeightsError              exit 1   model weights missing, damaged or not downloadable
    ├── ModelError                exit 1   a model can't be used at all: unknown, no key, endpoint not reachable
    │   └── ModelMissing                   the endpoint has no such model, or no such path
    ├── ClusterError              exit 1   no Ray, cluster not reachable, another version, a file unseen
    ├── VerificationError         exit 1   a published figure could not be reproduced
    ├── BudgetSpent               exit 3   the hard budget stopped the command; nothing is lost
    └── BatchPending              exit 4   requests were written to a batch folder; run again when answered

A gate of `hoofbeat audit gate` that does not pass is no error; the command ends with exit code 5.

A single call that fails is not an exception: it becomes a `records.Failure` and is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Protocol


class Trusting(Protocol):
    """Something that needs the user's consent, which `remember` stores."""

    def remember(self) -> None:
        """Store the user's consent."""


class HoofbeatError(Exception):
    """Base of all deliberate errors: what was wrong, where (if anywhere), what to do; details go into `--json`."""

    exit_code = 1

    def __init__(
        self, what: str, *, where: str | None = None, fix: str | None = None, details: dict[str, object] | None = None
    ) -> None:
        super().__init__(what)
        self.details = details or {}
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        parts = [self.what]
        if self.where:
            parts.append(f"at: {self.where}")
        if self.fix:
            parts.append(f"do: {self.fix}")
        return "\n".join(parts)


class UsageError(HoofbeatError):
    """The command, a spec, a retriever line or the configuration is wrong."""

    exit_code = 2


class TrustNeeded(UsageError):
    """The configuration in the current folder asks for something that needs the user's consent (`hoofbeat.trust`)."""

    def __init__(self, what: str, *, where: Trusting, fix: str) -> None:
        super().__init__(what, where=str(where), fix=fix)
        self.config = where


class InputError(HoofbeatError):
    """A file or folder can't be read as what it should be."""


class ArtefactError(InputError):
    """An artefact folder is missing, foreign, of a newer schema, or damaged."""


class HostileInputError(InputError):
    """Input refused on purpose because reading it could do harm."""


class OutputError(HoofbeatError):
    """Results can't be written where they were asked for."""


class WeightsError(HoofbeatError):
    """Model weights are missing, damaged, or can't be downloaded."""


class ModelError(HoofbeatError):
    """A model can't be used at all: unknown name, no key, endpoint that can't be reached."""


class ModelMissing(ModelError):
    """An endpoint has no such model, or no such path."""


class ClusterError(HoofbeatError):
    """Work can't run where it should: Ray is missing, differs or can't be reached, or a worker lacks something."""


class VerificationError(HoofbeatError):
    """A known figure could not be reproduced."""


class BudgetSpent(HoofbeatError):
    """The hard budget stopped the command; every call made so far is in the ledger."""

    exit_code = 3


class BatchPending(HoofbeatError):
    """Requests wait in a batch folder; run the same command again when the answers are there.

    `written` are new requests in `files`, `waiting` those of earlier files that have no answer yet, `round` the number
    of the newest of these files. `step` is what the command was doing, `notes` are lines of answers that can't be used.
    """

    exit_code = 4

    def __init__(
        self,
        *,
        folder: str,
        files: Sequence[str] = (),
        written: int = 0,
        waiting: int = 0,
        round: int = 0,
        step: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        of = f" for the step “{step}” (round {round})" if step else ""
        if written:
            made = "1 request was" if written == 1 else f"{written} requests were"
            what = f"{made} written to {', '.join(files)}{of}"
            left = "1 earlier request still waits" if waiting == 1 else f"{waiting} earlier requests still wait"
            what += f"; {left} for an answer" if waiting else ""
            do = "have them answered, put the answers file (any other name ending in .jsonl) into the folder, and run "
            do += "the same command again"
        else:
            many, wait = ("1 request", "waits") if waiting == 1 else (f"{waiting} requests", "wait")
            what = f"{many} in {', '.join(files)}{of} still {wait} for an answer"
            do = "put the answers file (any other name ending in .jsonl) into the folder and run the same command "
            do += "again; to write the requests again, remove the requests file"
        self.folder, self.files, self.written, self.waiting = folder, tuple(files), written, waiting
        self.round, self.step, self.notes = round, step, tuple(notes)
        counts = {"folder": folder, "files": list(files), "written": written, "waiting": waiting}
        super().__init__(
            what, where=folder, fix=do, details={**counts, "step": step, "round": round, "notes": list(notes)}
        )

    def for_step(self, step: str) -> BatchPending:
        """The same error with the step that the command was at; a step that is already named stays."""
        return BatchPending.together([self], step=self.step or step)

    @staticmethod
    def together(pending: Sequence[BatchPending], *, step: str = "") -> BatchPending:
        """Several errors as one, for a command that writes all requests of a round before it stops.

        Files, steps and round are those of what was just written, if anything was. The folder is that of the first;
        files of other folders are named with their folder. A step that only waits for what another has just written
        adds nothing.
        """
        new = {(each.folder, name) for each in pending if each.written for name in each.files}
        waits = [each for each in pending if each.written or not new.issuperset((each.folder, n) for n in each.files)]
        named = [each for each in pending if each.written] or list(pending)
        first = named[0]
        files = [
            name if each.folder == first.folder else f"{each.folder}/{name}" for each in named for name in each.files
        ]
        return BatchPending(
            folder=first.folder,
            files=list(dict.fromkeys(files)),
            written=sum(each.written for each in pending),
            waiting=sum(each.waiting for each in waits),
            round=max(each.round for each in named if each.folder == first.folder),
            step=step or _steps_named([each.step for each in named if each.step]),
            notes=list(dict.fromkeys(note for each in pending for note in each.notes)),
        )


def _steps_named(steps: Sequence[str]) -> str:
    """Each step once: “verify” and “verify, moment” are “verify, moment”."""
    return ", ".join(each for each in dict.fromkeys(steps) if not any(other.startswith(f"{each}, ") for other in steps))


_SHORT = 3


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A guess at what was meant, to begin a fix with; empty where no known name is similar."""
    names = {name.lower(): name for name in known}
    cutoff = 0.5 if len(word) <= _SHORT else 0.6  # k2 for k1, but not "nothing" for "teaching"
    close = get_close_matches(word.lower(), names, n=1, cutoff=cutoff)
    return f"did you mean {names[close[0]]}? " if close else ""
