"""Joining LlamaIndex without loading it: told when it is loaded, asked when it runs something.

An agent may import LlamaIndex only inside its first call. So this waits (`on_load`) for the module that dispatches its
instrumentation, to which handlers are added once for this process, and for the modules of its agents, whose tools ask
the running trial from then on. Outside a trial both do nothing.
"""

from __future__ import annotations

import threading
from functools import partial
from types import ModuleType

from seatrial.agents.on_load import when_loaded

__all__ = ["listen"]

_DISPATCH = "llama_index_instrumentation"
_AGENTS = (
    ("llama_index.core.agent.workflow.base_agent", "BaseWorkflowAgent"),
    ("llama_index.core.agent.workflow.multi_agent_workflow", "AgentWorkflow"),
)

_lock = threading.RLock()
_joined: list[ModuleType] = []


def listen() -> None:
    """LlamaIndex asks for a recorder from now on, or from when it is loaded."""
    when_loaded(_DISPATCH, _join)
    for name, cls in _AGENTS:
        when_loaded(name, partial(_hand_over, cls))


def _join(module: ModuleType) -> None:
    with _lock:
        if module not in _joined:
            from seatrial.agents.llamaindex.handlers import Events, Spans

            dispatcher = module.get_dispatcher()
            dispatcher.add_event_handler(Events())
            dispatcher.add_span_handler(Spans())
            _joined.append(module)


def _hand_over(name: str, module: ModuleType) -> None:
    from seatrial.agents.llamaindex.tools import hand_tools_to_trials

    with _lock:
        hand_tools_to_trials(getattr(module, name))
