"""One context in which LangChain reports to a recorder, and to nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seatrial.agents.langchain.joining import listen, recording, untraced
from seatrial.agents.langchain.pacing import pacing
from seatrial.agents.langchain.recorder import LangChainRecorder

__all__ = ["watching"]


@contextmanager
def watching(recorder: LangChainRecorder) -> Iterator[LangChainRecorder]:
    """Runs that start in here are recorded; LangSmith's tracing is off, whatever the environment says."""
    listen()
    outer = pacing.get()
    pacing.set(recorder.pacing if len(recorder.handlers) > 1 else None)
    try:
        with recording.by(lambda: recorder), untraced():
            yield recorder
    finally:
        pacing.set(outer)
