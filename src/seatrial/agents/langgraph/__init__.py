"""Agents that are compiled LangGraph graphs, `create_agent` included.

See `agent` for what happens in a trial, `mapping` for `input:` and `output:` of the agent's spec, `interrupts` for
approvals, `tools` for stand-ins and faults.
"""

from __future__ import annotations

from seatrial.agents.langgraph.agent import LangGraphAgent

__all__ = ["LangGraphAgent"]
