"""Sea trials for AI agents: run, observe, grade and decide a release, with evidence.

The public names below are loaded on first use, so that `import seatrial` costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # not taken from typing, which costs more to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from seatrial.agents.mcp import mcp_proxy
    from seatrial.core.agent_run import AgentRun, HandoffEvent, ModelCall, ToolCall
    from seatrial.core.grade import Grade
    from seatrial.environment.trial import current_trial
    from seatrial.graders.external import grader
    from seatrial.harness.comparing import compare
    from seatrial.harness.functions import Harness
    from seatrial.harness.gating import gate
    from seatrial.harness.regrading import regrade
    from seatrial.harness.rerunning import rerun
    from seatrial.harness.runs import Run, arun, load, run

__version__ = "0.1.0"

_HOMES = {
    "AgentRun": "seatrial.core.agent_run",
    "Grade": "seatrial.core.grade",
    "HandoffEvent": "seatrial.core.agent_run",
    "Harness": "seatrial.harness.functions",
    "ModelCall": "seatrial.core.agent_run",
    "Run": "seatrial.harness.runs",
    "ToolCall": "seatrial.core.agent_run",
    "arun": "seatrial.harness.runs",
    "compare": "seatrial.harness.comparing",
    "current_trial": "seatrial.environment.trial",
    "gate": "seatrial.harness.gating",
    "grader": "seatrial.graders.external",
    "load": "seatrial.harness.runs",
    "mcp_proxy": "seatrial.agents.mcp",
    "regrade": "seatrial.harness.regrading",
    "rerun": "seatrial.harness.rerunning",
    "run": "seatrial.harness.runs",
}

__all__ = [
    "AgentRun",
    "Grade",
    "HandoffEvent",
    "Harness",
    "ModelCall",
    "Run",
    "ToolCall",
    "__version__",
    "arun",
    "compare",
    "current_trial",
    "gate",
    "grader",
    "load",
    "mcp_proxy",
    "regrade",
    "rerun",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'seatrial' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
