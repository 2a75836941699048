"""One context in which LangChain reports to a recorder, and to nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from langsmith import tracing_context

from seatrial.agents.langchain.recorder import LangChainRecorder, recording

__all__ = ["watching"]


@contextmanager
def watching(recorder: LangChainRecorder) -> Iterator[LangChainRecorder]:
    """Runs that start in here are recorded; LangSmith's tracing is off, whatever the environment says."""
    outer = recording.get()
    recording.set(recorder)
    try:
        with tracing_context(enabled=False):
            yield recorder
    finally:
        recording.set(outer)
