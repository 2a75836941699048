"""Agents of Google's Agent Development Kit.

See `agent` for what happens in a trial, `mapping` for `input:` and `output:` of the agent's spec, `confirming` for
approvals, `watching` for what is observed and where, `joining` for how it is found in a running process.

Importing this package loads nothing of the framework; the first use of the adapter does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.agents.google_adk.agent import GoogleADKAgent

__all__ = ["GoogleADKAgent"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from seatrial.agents.google_adk import agent

    return getattr(agent, name)
