"""Who records what Pydantic AI runs. It loads neither the framework nor the recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.agents.recording import Recording

if TYPE_CHECKING:
    from seatrial.agents.pydantic_ai.recorder import PydanticAIRecorder

__all__ = ["recording"]

recording: Recording[PydanticAIRecorder] = Recording(
    "seatrial_pydantic_ai_recorder", "seatrial.agents.pydantic_ai.recorder:PydanticAIRecorder"
)
