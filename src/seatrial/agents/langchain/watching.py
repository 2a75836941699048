"""One context in which LangChain reports to a recorder, and to nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from langsmith import tracing_context

from seatrial.agents.langchain.pacing import pacing
from seatrial.agents.langchain.recorder import LangChainRecorder, recording

__all__ = ["watching"]


@contextmanager
def watching(recorder: LangChainRecorder) -> Iterator[LangChainRecorder]:
    """Runs that start in here are recorded; LangSmith's tracing is off, whatever the environment says."""
    outer, outer_pacing = recording.get(), pacing.get()
    recording.set(recorder)
    pacing.set(recorder.pacing if len(recorder.handlers) > 1 else None)
    try:
        with tracing_context(enabled=False):
            yield recorder
    finally:
        recording.set(outer)
        pacing.set(outer_pacing)
