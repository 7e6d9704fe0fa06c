"""`search-o1`: an agent that searches while it thinks.

It condenses what each search found in a separate call (reason in documents) and thinks on with that: Li and others
2025.
"""

from __future__ import annotations

from hoofbeat.retrieval.search_agents import AgentWriter, agent_options


class SearchO1Stage(AgentWriter):
    """Passages are condensed before the model thinks on."""

    name = "search-o1"
    summary = "searches while it thinks, summarises what it finds, and searches with its final answer"
    options = agent_options(turns=5, top=10, reads=800)


STAGE = SearchO1Stage()
