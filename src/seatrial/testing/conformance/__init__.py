"""The kit that proves an adapter: scripted situations, driven through it, and a trace that must say what happened."""

from __future__ import annotations

from seatrial.testing.conformance.script import (
    AgentScript,
    Ask,
    Framework,
    Line,
    Player,
    Script,
    ScriptOver,
    Tool,
    player_of,
)

__all__ = ["AgentScript", "Ask", "Framework", "Line", "Player", "Script", "ScriptOver", "Tool", "player_of"]
