"""Who records what LlamaIndex runs. It loads neither the framework nor the recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.agents.recording import Recording

if TYPE_CHECKING:
    from seatrial.agents.llamaindex.recorder import LlamaIndexRecorder

__all__ = ["recording"]

recording: Recording[LlamaIndexRecorder] = Recording(
    "seatrial_llamaindex_recorder", "seatrial.agents.llamaindex.recorder:LlamaIndexRecorder"
)
