"""The refund desk outside the harness: the same graph, told of a trial and telling what it does.

`exchange(message)` carries one message of Seatrial's protocol to the trial and gives the reply (see
docs/adapters/command.md). The agent itself is untouched: its tools ask the trial before their body runs, a LangChain
callback reports model calls, interrupts become approvals.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import os
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

os.environ["LANGSMITH_TRACING"] = "false"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import refund_agent
from refund_agent import graph, tools

__all__ = ["BUILDS", "RemoteDesk"]

BUILDS = tuple(name for name in refund_agent.__all__ if name not in ("Design", "build"))
Exchange = Callable[..., dict[str, Any]]
_HANDING_OVER = ("state", "tool_call_id")
_desk: ContextVar[RemoteDesk] = ContextVar("desk")


class RemoteDesk:
    """One conversation of one build in one trial."""

    def __init__(self, build: str, trial: Mapping[str, Any], exchange: Exchange) -> None:
        self.exchange = exchange
        self.numbers = itertools.count(1)
        environment = SimpleNamespace(database=trial["database"], identity=trial["identity"])
        factory = getattr(refund_agent, build)
        self._graph = factory(environment, {}) if build == "good" else factory(environment)
        self._graph.checkpointer = InMemorySaver()

    def answer(self, message: str) -> dict[str, Any]:
        """The answer to what the user says, as fields of an `answer`."""
        _desk.set(self)
        config = {"configurable": {"thread_id": "one"}, "callbacks": [_Models(self.exchange)], "recursion_limit": 100}
        state = self._graph.invoke({"messages": [("user", message)]}, config)
        while "__interrupt__" in state:
            decisions = [self._decision(asked) for asked in state["__interrupt__"][0].value["action_requests"]]
            if None in decisions:
                return {"output": None, "stop_reason": "waiting_approval"}
            state = self._graph.invoke(Command(resume={"decisions": decisions}), config)
        return {"output": state["messages"][-1].text}

    def _decision(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        action, arguments = asked["name"], asked["args"]
        key = f"approval-{next(self.numbers)}"
        reply = self.exchange(type="approval", id=key, action=action, arguments=arguments, agent="refund_supervisor")
        if reply["decision"] == "edited":
            return {"type": "edit", "edited_action": {"name": action, "args": reply["arguments"]}}
        return {"granted": {"type": "approve"}, "denied": {"type": "reject"}}.get(reply["decision"])


class _Models(BaseCallbackHandler):
    """Reports model calls."""

    run_inline = True
    raise_error = True

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._agents: dict[UUID, str] = {}

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._agents[run_id] = str(kwargs["metadata"]["lc_agent_name"])

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        message = response.generations[0][0].message
        used = message.usage_metadata or {}
        self._exchange(
            type="model_call",
            model=message.response_metadata.get("model_name"),
            usage={"input": used.get("input_tokens"), "output": used.get("output_tokens")},
            agent=self._agents[run_id],
        )
        if message.text:
            self._exchange(type="message", role="assistant", content=message.text, agent=self._agents[run_id])


def _asking(tool: BaseTool, agent: str) -> BaseTool:
    """The tool, whose body runs only where the trial lets it."""
    own = tool.func

    @functools.wraps(own)
    def asks(**arguments: Any) -> Any:
        desk = _desk.get()
        key = f"call-{next(desk.numbers)}"
        reply = desk.exchange(type="tool_call", id=key, name=tool.name, arguments=arguments, agent=agent, ask=True)
        if reply["type"] == "run":
            try:
                told = {"result": own(**arguments)}
            except Exception as error:  # noqa: BLE001  whatever a tool raises, the trial is told
                told = {"error": f"{type(error).__name__}: {error}"}
            reply = desk.exchange(type="tool_result", id=key, **told)
        if "error" in reply:
            raise _exception(reply["error"])
        return reply["result"]

    return tool.model_copy(update={"func": asks})


def _exception(text: str) -> Exception:
    """What `Type: message` stands for, where the type is Python's own."""
    name, _, message = text.partition(": ")
    kind = getattr(builtins, name, None)
    known = isinstance(kind, type) and issubclass(kind, Exception)
    return kind(message) if known else RuntimeError(text)


def _telling(tool: BaseTool, agent: str) -> BaseTool:
    """A hand-off tool that says so."""
    own = tool.func

    @functools.wraps(own)
    def tells(**arguments: Any) -> Any:
        named = {name: value for name, value in arguments.items() if name not in _HANDING_OVER}
        _desk.get().exchange(type="tool_call", name=tool.name, arguments=named, agent=agent)
        return own(**arguments)

    return tool.model_copy(update={"func": tells})


graph.customer_tools = lambda database: [_asking(tool, "refund_agent") for tool in tools.customer_tools(database)]
graph.supervisor_tools = lambda database: [
    _asking(tool, "refund_supervisor") for tool in tools.supervisor_tools(database)
]
graph.handoff_to_supervisor = _telling(tools.handoff_to_supervisor, "refund_agent")
graph.handoff_to_agent = _telling(tools.handoff_to_agent, "refund_supervisor")
