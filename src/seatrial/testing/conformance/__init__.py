"""The kit that proves an adapter: scripted situations, driven through it, and a trace that must say what happened."""

from __future__ import annotations

from seatrial.testing.conformance.names import SITUATIONS
from seatrial.testing.conformance.script import (
    AgentScript,
    Ask,
    Framework,
    Line,
    Player,
    Script,
    ScriptOver,
    Tool,
    Ways,
    player_of,
    ways_of,
)

__all__ = [
    "SITUATIONS",
    "AgentScript",
    "Ask",
    "Framework",
    "Line",
    "Player",
    "Script",
    "ScriptOver",
    "Tool",
    "Ways",
    "player_of",
    "ways_of",
]
