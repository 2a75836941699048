"""Who records what LangChain runs. It loads neither the framework nor the recorder."""

from __future__ import annotations

from typing import Any

from seatrial.agents.recording import Recording

__all__ = ["recording"]


class _Recording(Recording[Any]):
    """It takes the place of a ContextVar, of which LangChain calls `get` at the start of every run."""

    def get(self) -> Any:
        """The recorder of this context, or None."""
        return self.here()


recording = _Recording("seatrial_langchain_recorder", "seatrial.agents.langchain.recorder:LangChainRecorder")
