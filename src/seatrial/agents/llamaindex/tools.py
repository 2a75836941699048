"""Tools of LlamaIndex's agents that ask the running trial before their body runs.

Every agent gets its tools by `get_tools`, retrieved ones too; inside a trial it gives copies whose body goes through
`TrialEnvironment.run_tool`: the fixture's stand-in and faults apply. The user's agents and tools stay as they are, and
outside a trial nothing changes. Everything around the body stays the framework's: schema, context, callbacks, blocks.

A tool that the user's own step calls by itself is recorded, but stand-ins and faults apply only if it went through
`trial.tool` or calls `trial.tools.NAME`.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from llama_index.core.tools import AsyncBaseTool, FunctionTool, ToolMetadata, ToolOutput
from workflows.runtime.types.results import WaitingForEvent

from seatrial.agents.leaving import kept_in
from seatrial.agents.llamaindex.calls import RunningCall
from seatrial.environment.observed import observed_call
from seatrial.environment.trial import TrialEnvironment, running_trial

__all__ = ["hand_tools_to_trials"]

Body = Callable[[], Awaitable[Any]]


def hand_tools_to_trials(agents: type) -> None:
    """Let the trial that is running answer for the tools of this class's agents. Doing it twice changes nothing."""
    get_tools: Any = agents.get_tools  # type: ignore[attr-defined]
    if hasattr(get_tools, "_asks_trial"):
        return

    @functools.wraps(get_tools)
    async def asking(self: Any, *args: Any, **kwargs: Any) -> Any:
        tools = await get_tools(self, *args, **kwargs)
        trial = running_trial()
        return tools if trial is None else [_asking(tool, trial) for tool in tools]

    asking._asks_trial = True  # type: ignore[attr-defined]
    agents.get_tools = asking  # type: ignore[attr-defined]


def _asking(tool: Any, trial: TrialEnvironment) -> Any:
    if tool.metadata.name == "handoff":
        return tool
    return _asking_function(tool, trial) if isinstance(tool, FunctionTool) else _AskingTool(tool, trial)


def _asking_function(tool: FunctionTool, trial: TrialEnvironment) -> FunctionTool:
    own = tool.async_fn

    async def body(*args: Any, **kwargs: Any) -> Any:
        return await _through(trial, tool.metadata.get_name(), lambda: own(*args, **kwargs))

    asking = copy.copy(tool)
    asking._async_fn = body
    return asking


class _AskingTool(AsyncBaseTool):
    """Any other tool, whose answers are ToolOutputs of its own."""

    def __init__(self, tool: Any, trial: TrialEnvironment) -> None:
        self._tool = tool
        self._trial = trial

    @property
    def metadata(self) -> ToolMetadata:
        return self._tool.metadata  # type: ignore[no-any-return]

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        return self._tool.call(*args, **kwargs)  # type: ignore[no-any-return]

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        given: list[ToolOutput] = []

        async def own() -> Any:
            given.append(await self._tool.acall(*args, **kwargs))
            return given[-1].raw_output

        name = self.metadata.get_name()
        value = await _through(self._trial, name, own)
        if given and value is given[-1].raw_output:
            return given[-1]
        return ToolOutput(tool_name=name, content=str(value), raw_input=kwargs, raw_output=value)


async def _through(trial: TrialEnvironment, name: str, own: Body) -> Any:
    call = observed_call(name)
    if not isinstance(call, RunningCall) or call.applied:
        return await own()
    if call.stop is not None:
        raise call.stop
    call.entered = call.applied = True
    if call.resumed or not call.fits:  # of arguments that do not fit Python itself tells the model
        return await _waiting(call, own)
    return await _answered(trial, call, own)


async def _answered(trial: TrialEnvironment, call: RunningCall, own: Body) -> Any:
    if call.number is not None and trial.has_stand_in(call.name):
        trial.recorder.amend(call.number, stand_in=True)

    async def body(**_: Any) -> Any:
        return await _waiting(call, own)

    result = trial.run_tool(call.name, dict(call.arguments), body, number=call.number)
    return await result if inspect.isawaitable(result) else result


async def _waiting(call: RunningCall, own: Body) -> Any:
    try:
        with kept_in():
            return await own()
    except WaitingForEvent as waiting:
        call.waiter = waiting.add
        raise
