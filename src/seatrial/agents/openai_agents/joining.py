"""Joining the OpenAI Agents SDK without loading it: told when it is loaded, asked when it runs something.

An agent may import the SDK only inside its first call. So this waits (`on_load`) for it. From then on every run of this
process goes through a runner, and every agent's tools through a function, that ask for the recorder of the context;
outside a trial both do nothing. Its tracing, which would send every run to OpenAI where a key is set, is off.

The SDK's package is called `agents`, and a user may have one of that name: what does not hold the SDK's names is left
alone.
"""

from __future__ import annotations

import threading
from types import ModuleType

from seatrial.agents.on_load import when_loaded

__all__ = ["listen"]

_lock = threading.RLock()


def listen() -> None:
    """The SDK asks for a recorder from now on, or from when it is loaded; its tracing is off."""
    when_loaded("agents", _join)


def _join(module: ModuleType) -> None:
    names = ("AgentBase", "Runner", "RunHooks", "set_tracing_disabled")
    if not all(hasattr(module, name) for name in names):  # a user's own package of that name
        return
    from seatrial.agents.openai_agents.runner import hand_runs_to_trials
    from seatrial.agents.openai_agents.tools import hand_tools_to_trials

    with _lock:
        module.set_tracing_disabled(True)
        hand_runs_to_trials()
        hand_tools_to_trials(module.AgentBase)
