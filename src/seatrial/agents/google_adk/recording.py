"""Who records what Google ADK runs. It loads neither the framework nor the recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.agents.recording import Recording

if TYPE_CHECKING:
    from seatrial.agents.google_adk.recorder import GoogleADKRecorder

__all__ = ["recording"]

recording: Recording[GoogleADKRecorder] = Recording(
    "seatrial_google_adk_recorder", "seatrial.agents.google_adk.recorder:GoogleADKRecorder"
)
