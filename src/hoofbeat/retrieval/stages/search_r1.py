"""`search-r1`: an agent that searches while it thinks.

It thinks on with the passages themselves (Jin and others 2025).
"""

from __future__ import annotations

from typing import ClassVar

from hoofbeat.retrieval.search_agents import AgentWriter, agent_options


class SearchR1Stage(AgentWriter):
    """The model reads the passages themselves."""

    name = "search-r1"
    summary = "searches while it thinks, reads the passages, and searches with its final answer"
    options = agent_options(turns=4, top=3, reads=800)
    condense: ClassVar[bool] = False


STAGE = SearchR1Stage()
