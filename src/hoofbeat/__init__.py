"""Hoofbeat: build, run, judge and audit clinical question answering. Research software, not for clinical use.

`import hoofbeat as hb` gives the verbs of the command as functions and the folders they write as objects:

    corpus = hb.import_corpus("articles", "corpus")
    bench = hb.build("ogcare", corpus, "benchmark", model="openai:NAME")
    run = hb.answer(bench, "run", model="openai:NAME", conditions=["closed", "bm25 + dense @3"])
    judged = hb.judge(run, "judged", judge="openai:OTHER")
    hb.report([bench, judged], "report")

`hb.open(path)` opens any folder; `hb.aio` has the same verbs to be awaited. Names are loaded when they are first used.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hoofbeat.version import __version__

if TYPE_CHECKING:
    from hoofbeat import aio
    from hoofbeat.answering import Run
    from hoofbeat.api import (
        answer,
        apply_reviews,
        ask_corpora,
        audit_answers,
        audit_sources,
        build,
        check,
        check_leakage,
        compare,
        create_study,
        export,
        export_exam,
        export_labels,
        filter_corpus,
        find_evidence,
        import_benchmark,
        import_corpus,
        import_predictions,
        judge,
        leaderboard,
        load_plugin,
        report,
        retrieve,
        run_paper,
        verify,
    )
    from hoofbeat.audit import Audit
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.corpus import Corpus
    from hoofbeat.engine import running_on
    from hoofbeat.errors import BatchPending, BudgetSpent, HoofbeatError
    from hoofbeat.folders import CheckFolder, LeakageFolder, RankingsFolder, ReportFolder
    from hoofbeat.folders import open_folder as open
    from hoofbeat.judging import JudgmentFolder
    from hoofbeat.models import Estimate
    from hoofbeat.progress import SILENT
    from hoofbeat.records import Answer, Comparison, Document, Failure, Hit, Judgment, Passage, Question, Span
    from hoofbeat.retrieval.index.kept_parts import keeping_indexes
    from hoofbeat.store.artefact import ArtefactFolder

# The threads behind numpy's matrix products wait for more work by spinning, for some 20 ms; on the cores that a dense
# search then chooses on. Told to sleep at once, they cost the products nothing that can be measured. The library reads
# this when numpy is first imported; whoever has set it knows better.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

_HOMES = {
    "hoofbeat.api": (
        "import_corpus", "filter_corpus", "build", "retrieve", "answer", "import_predictions", "judge",
        "audit_sources", "check", "check_leakage", "compare", "report", "ask_corpora", "import_benchmark", "export",
        "verify", "load_plugin", "run_paper",
        "audit_answers", "find_evidence", "create_study", "export_labels", "export_exam", "apply_reviews",
        "leaderboard",
    ),
    "hoofbeat.folders": ("CheckFolder", "LeakageFolder", "RankingsFolder", "ReportFolder"),
    "hoofbeat.store.artefact": ("ArtefactFolder",),
    "hoofbeat.corpus": ("Corpus",),
    "hoofbeat.benchmarks": ("Benchmark",),
    "hoofbeat.answering": ("Run",),
    "hoofbeat.judging": ("JudgmentFolder",),
    "hoofbeat.audit": ("Audit",),
    "hoofbeat.models": ("Estimate",),
    "hoofbeat.records": (
        "Document", "Passage", "Span", "Question", "Hit", "Answer", "Judgment", "Comparison", "Failure",
    ),
    "hoofbeat.errors": ("HoofbeatError", "BudgetSpent", "BatchPending"),
    "hoofbeat.progress": ("SILENT",),
    "hoofbeat.engine": ("running_on",),
    "hoofbeat.retrieval.index.kept_parts": ("keeping_indexes",),
}  # fmt: skip
_PLACES = {name: (module, name) for module, names in _HOMES.items() for name in names}
_LONGER = {"audit": "audit_sources", "ask": "ask_corpora"}  # packages already have the short names
_PLACES["open"] = ("hoofbeat.folders", "open_folder")

__all__ = [
    "SILENT", "Answer", "ArtefactFolder", "Audit", "BatchPending", "Benchmark", "BudgetSpent", "CheckFolder",
    "Comparison", "Corpus", "Document", "Estimate", "Failure", "Hit", "HoofbeatError", "Judgment", "JudgmentFolder",
    "LeakageFolder", "Passage", "Question", "RankingsFolder", "ReportFolder", "Run", "Span", "__version__", "aio",
    "answer", "apply_reviews", "ask_corpora", "audit_answers", "audit_sources", "build", "check", "check_leakage",
    "compare", "create_study", "export", "export_exam", "export_labels", "filter_corpus", "find_evidence",
    "import_benchmark", "import_corpus", "import_predictions", "judge", "keeping_indexes", "leaderboard", "load_plugin",
    "open", "report", "retrieve", "run_paper", "running_on", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: `import hoofbeat` alone loads nothing else."""
    if name == "aio":
        return import_module("hoofbeat.aio")
    if name not in _PLACES:
        hint = f". Did you mean hoofbeat.{_LONGER[name]}?" if name in _LONGER else ""
        raise AttributeError(f"module 'hoofbeat' has no attribute {name!r}{hint}")
    module, attribute = _PLACES[name]
    found = globals()[name] = getattr(import_module(module), attribute)
    return found


def __dir__() -> list[str]:
    """The public names, and Python's own of a module: what this file imports for itself is not offered."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
