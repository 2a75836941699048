"""Recording for an agent that runs LangChain behind the user's own function.

    with captured(trial):
        answer = function(task)

Model calls, tool calls and hand-offs inside are then in the trace, in sync code, tasks and thread pools that take
the context along (a bare `threading.Thread` does not). It costs nothing where LangChain is not loaded, and it does
not load it: an agent that imports LangChain in its first call is captured from the second on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from seatrial.environment.trial import TrialEnvironment

__all__ = ["captured"]


@contextmanager
def captured(trial: TrialEnvironment) -> Iterator[None]:
    """Record what LangChain runs in this context, and keep its own tracing from sending anything."""
    if "langchain_core" not in sys.modules:
        yield
        return
    from seatrial.agents.langchain.recorder import LangChainRecorder
    from seatrial.agents.langchain.watching import watching

    recorder = LangChainRecorder(trial)
    try:
        with watching(recorder):
            yield
    finally:
        recorder.close()
