"""One context in which LangChain reports to a recorder, and to nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seatrial.agents.langchain.joining import listen, untraced
from seatrial.agents.langchain.recorder import LangChainRecorder
from seatrial.agents.langchain.recording import recording

__all__ = ["watching"]


@contextmanager
def watching(recorder: LangChainRecorder) -> Iterator[LangChainRecorder]:
    """Runs that start in here are recorded; LangSmith's tracing is off, whatever the environment says."""
    listen()
    with recording.by(lambda: recorder), untraced():
        yield recorder
