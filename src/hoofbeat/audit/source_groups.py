"""Several documents as one source: an institution with two handbooks speaks with one voice.

Documents that share the value of a facet are searched each for itself and shown together, with the name of the document
before each heading, so that every citation names it. A question is put only to those documents of a source that are of
its group. Joined documents take the place of documents in an audit's plan; nothing else there knows of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.audit.answers_by_source import CharacterBudget, FindEvidence, QuestionsWithSources, SourcePassages
from hoofbeat.audit.silence import SHOWN_WHOLE
from hoofbeat.audit.source_names import EDITION_FACETS, AuditSource, SourceNames, stated_date
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_value, facet_values, source_is_asked
from hoofbeat.records import Document, Facets, Passage, TraceStep
from hoofbeat.retrieval import sections
from hoofbeat.text import one_line
from hoofbeat.window import shown_size

BY_DOCUMENT = "document"
"""Each document is a source."""

_BETWEEN = "\n\n"


class SourceGroup(Struct, frozen=True, kw_only=True):
    """The documents of one source, and what each is called beside the others; `names` is empty where there is one."""

    id: str
    documents: tuple[Document, ...]
    names: dict[str, str]

    def named(self, passage: Passage) -> Passage:
        """The passage with its document's name in its heading."""
        name = self.names.get(passage.document)
        if not name:
            return passage
        title = next(each.title for each in self.documents if each.id == passage.document)
        heading = "" if passage.heading == title else passage.heading  # text outside any section is under the title
        return replace(passage, heading=f"{name}: {heading}" if heading else name)

    def size(self, document: Document) -> int:
        """How many bytes a document takes where it is shown whole."""
        return sum(shown_size(self.named(each)) for each in sections(document))

    def joined(self, facet: str) -> Document:
        """The source as one document: texts and facets together; its name is the value of `facet`.

        Dates and versions are kept only where all documents have the same: the answer may rest on any of them.
        """
        facets: Facets = {}
        for name in dict.fromkeys(chain.from_iterable(each.facets for each in self.documents)):
            values = list(dict.fromkeys(chain.from_iterable(facet_values(d.facets, name) for d in self.documents)))
            if name not in EDITION_FACETS or all(facet_values(d.facets, name) == values for d in self.documents):
                facets[name] = values[0] if len(values) == 1 else values
        titles = [self.names.get(each.id, each.title) for each in self.documents]
        several = len(self.documents) > 1
        return Document(
            id=self.id,
            title=f"{len(titles)} documents: {'; '.join(titles)}" if several else titles[0],
            text=_BETWEEN.join(each.text for each in self.documents),
            facets={**facets, facet: self.id},
        )

    def source(self, facet: str) -> AuditSource:
        """The source as an audit lists it, with the documents that it is made of."""
        dates = {stated_date(each) for each in self.documents}
        date, by = dates.pop() if len(dates) == 1 else ("", "")
        titles = {each.id: each.title for each in self.documents}
        return replace(AuditSource.of(self.joined(facet)), date=date, dated_by=by, documents=titles)


def group_documents(documents: Sequence[Document], by: str, group_facet: str) -> list[SourceGroup]:
    """The documents by the first value of a facet, in the order of the values; one without a value is a source."""
    if not any(facet_value(each.facets, by).strip() for each in documents):
        known = ", ".join(sorted({name for each in documents for name in each.facets})) or "no facet"
        raise UsageError(
            f"no document has the facet {by!r}, so it can't be the source", fix=f"use {BY_DOCUMENT}, or one of: {known}"
        )
    found: dict[str, list[Document]] = {}
    for each in sorted(documents, key=lambda document: document.id):
        found.setdefault(one_line(facet_value(each.facets, by)) or each.id, []).append(each)
    return [
        SourceGroup(id=name, documents=tuple(members), names=_names(members, group_facet))
        for name, members in sorted(found.items())
    ]


def _names(documents: Sequence[Document], group_facet: str) -> dict[str, str]:
    if len(documents) == 1:
        return {}
    names = SourceNames(map(AuditSource.of, documents), facet="", group=group_facet)
    return {name.id: f"{name.short} ({name.year})" if name.year and name.year not in name.short else name.short
            for name in names}  # fmt: skip


def through_groups(find: FindEvidence, groups: Mapping[str, SourceGroup], group_facet: str) -> FindEvidence:
    """Evidence from sources of several documents, by a search in each document.

    Documents are shown whole only where those of the source that are asked fit the window together.
    """
    sizes = {document.id: group.size(document) for group in groups.values() for document in group.documents}

    def joined(asked: QuestionsWithSources, room: CharacterBudget) -> Iterator[SourcePassages]:
        plans = []
        for question, sources in asked:
            parts = {
                source: [each.id for each in groups[source].documents if source_is_asked(question, each, group_facet)]
                for source in sources
            }
            searched = [names for names in parts.values() if sum(sizes[name] for name in names) > room.characters]
            plans.append((question, parts, frozenset(chain.from_iterable(searched))))
        streams = {
            tight: find(
                [(question, [*chain.from_iterable(parts.values())]) for question, parts, own in plans if own == tight],
                CharacterBudget(characters=room.characters, tight=tight),
            )
            for tight in dict.fromkeys(own for _, _, own in plans)
        }
        for _, parts, tight in plans:
            for source, names in parts.items():
                yield _together(groups[source], list(islice(streams[tight], len(names))))

    return joined


def _together(group: SourceGroup, found: Sequence[SourcePassages]) -> SourcePassages:
    """What was found in each document as the evidence of the source.

    Of documents that are searched the best passages come first, one of each document in turn, because a window that is
    too small cuts the last ones. A document whose search failed fails the source: it can't be said to be silent.
    """
    named = [[group.named(passage) for passage in each.passages] for each in found]
    routes = {each.route for each in found}
    whole = routes <= set(SHOWN_WHOLE)
    turns = named if whole else zip_longest(*named)
    route = found[0].route if len(routes) == 1 else SHOWN_WHOLE[-1] if whole else "retrieved"
    first = next((step for each in found for step in each.trace), TraceStep(stage="line", what=""))
    trace = [] if not group.names else [replace(first, what=f"route: {route}", found=(), calls=())]
    for each in found:
        if group.names:
            trace.append(
                TraceStep(stage=first.stage, what="document", text=f"{group.names[each.source]} ({each.source})")
            )
        trace += each.trace
    return SourcePassages(
        question=found[0].question,
        source=group.id,
        route=route,
        passages=tuple(passage for passage in chain.from_iterable(turns) if passage is not None),
        trace=tuple(trace),
        failure=next((each.failure for each in found if each.failure is not None), None),
    )
