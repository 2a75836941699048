"""Who records what the OpenAI Agents SDK runs. It loads neither the framework nor the recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.agents.recording import Recording

if TYPE_CHECKING:
    from seatrial.agents.openai_agents.recorder import AgentsRecorder

__all__ = ["recording"]

recording: Recording[AgentsRecorder] = Recording(
    "seatrial_openai_agents_recorder", "seatrial.agents.openai_agents.recorder:AgentsRecorder"
)
