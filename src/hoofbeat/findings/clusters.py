"""Which questions are resampled together because they ask about the same documents.

Intervals and tests take the questions of a benchmark as a sample of the questions that could have been asked. Two
questions written from one document are not two draws: they succeed and fail together, with the document. So the unit
is the document that a question was made from, as the specification says.

`Question.documents` holds one document where a recipe wrote the question from it. In a test collection it holds every
document that was graded relevant, which is something else: topics are drawn one by one, and two of them may share one
of forty documents. Linking questions by a chain of shared documents would join 318 of NFCorpus's 323 topics to a single
cluster, and an interval from the six clusters that remain means nothing. Hence the rule, for rankings and answers
alike: questions with exactly the same documents are a cluster (SciFact's 300 claims are checked against 250 sets of
abstracts); questions that share only some of their documents are not. That is how topics are taken in information
retrieval, where each is one draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hoofbeat.records import Question


def clusters_of(questions: Iterable[Question]) -> dict[str, str]:
    """Question to the name of its cluster: the documents that it was made from, or that answer it.

    A question without documents is in no cluster; it is resampled alone.
    """
    return {each.id: "\t".join(sorted(set(each.documents))) for each in questions if each.documents}


def cluster_of(question: str, clusters: Mapping[str, str] | None) -> str:
    """What a question is resampled with: its cluster, or itself."""
    return clusters.get(question, question) if clusters else question


def cluster_labels(questions: Sequence[str], clusters: Mapping[str, str] | None) -> list[str] | None:
    """The cluster of each question; None where no two share one, so that questions are resampled one by one."""
    labels = [cluster_of(question, clusters) for question in questions]
    return labels if len(set(labels)) < len(labels) else None
