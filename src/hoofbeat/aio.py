"""The verbs of the Python face to be awaited: `await hoofbeat.aio.answer(...)`.

Each does what the function of the same name does, in a thread beside the event loop. When the task that waits is
cancelled, the work stops as by Ctrl-C; calls that were answered are in the ledger and are not made again.
"""

from __future__ import annotations

from hoofbeat import api
from hoofbeat.calls import asynchronous

__all__ = [
    "answer", "apply_reviews", "ask_corpora", "audit_answers", "audit_sources", "build", "check", "check_leakage",
    "compare", "create_study", "export", "export_exam", "export_labels", "filter_corpus", "find_evidence",
    "import_benchmark", "import_corpus", "import_predictions", "judge", "leaderboard", "report", "retrieve",
    "run_paper", "verify",
]  # fmt: skip

import_corpus = asynchronous(api.import_corpus)
filter_corpus = asynchronous(api.filter_corpus)
build = asynchronous(api.build)
retrieve = asynchronous(api.retrieve)
answer = asynchronous(api.answer)
import_predictions = asynchronous(api.import_predictions)
judge = asynchronous(api.judge)
leaderboard = asynchronous(api.leaderboard)
audit_sources = asynchronous(api.audit_sources)
check = asynchronous(api.check)
check_leakage = asynchronous(api.check_leakage)
compare = asynchronous(api.compare)
report = asynchronous(api.report)
run_paper = asynchronous(api.run_paper)
ask_corpora = asynchronous(api.ask_corpora)
import_benchmark = asynchronous(api.import_benchmark)
export = asynchronous(api.export)
verify = asynchronous(api.verify)
apply_reviews = asynchronous(api.apply_reviews)
audit_answers = asynchronous(api.audit_answers)
create_study = asynchronous(api.create_study)
export_exam = asynchronous(api.export_exam)
export_labels = asynchronous(api.export_labels)
find_evidence = asynchronous(api.find_evidence)
