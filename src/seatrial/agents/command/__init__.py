"""Agents that are programs in any language: JSON lines over standard input and output.

See `agent` for what happens in a trial, `process` for the program's life, `sandbox` for bubblewrap, and
`seatrial.agents.remote` for the messages.
"""

from __future__ import annotations

from seatrial.agents.command.agent import CommandAgent

__all__ = ["CommandAgent"]
