"""Tools of the SDK's agents that ask the running trial before their body runs.

Every agent gives its tools by `get_all_tools`; inside a trial it gives copies whose body goes through
`TrialEnvironment.run_tool`: the fixture's stand-in and faults apply. The user's agents and tools stay as they are.

A tool's failure handler stands between its body and the SDK, and tells the model a fixed text; the copy looks beneath
it, so that the trace has what the tool raised. Around it the SDK's own stays: schema, guardrails, approval, time limit.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

from agents.exceptions import ModelBehaviorError
from agents.tool import _FailureHandlingFunctionToolInvoker
from jsonschema import Draft202012Validator

from agents import FunctionTool
from seatrial.agents.leaving import kept_in
from seatrial.agents.openai_agents.calls import RunningCall
from seatrial.agents.openai_agents.recorder import AgentsRecorder
from seatrial.agents.openai_agents.recording import recording
from seatrial.environment.observed import observing

__all__ = ["hand_tools_to_trials"]

Invoke = Callable[[Any, str], Awaitable[Any]]
_MADE_BY_THE_SDK = ("__agents_prepare_arguments__", "__agents_function_tool_wrapped_callable__")
_SYNC = "__agents_sync_function_tool__"


def hand_tools_to_trials(agents: Any) -> None:
    """Let the trial that is running answer for the tools of this class's agents. Doing it twice changes nothing."""
    get_all_tools = agents.get_all_tools
    if hasattr(get_all_tools, "_asks_trial"):
        return

    @functools.wraps(get_all_tools)
    async def asking(self: Any, *args: Any, **kwargs: Any) -> Any:
        tools = await get_all_tools(self, *args, **kwargs)
        recorder = recording.here()
        if recorder is None:
            return tools
        recorder.offers(self.name, (tool.name for tool in tools))
        return [_asking(tool, recorder, self.name) if isinstance(tool, FunctionTool) else tool for tool in tools]

    asking._asks_trial = True  # type: ignore[attr-defined]
    agents.get_all_tools = asking


def _asking(tool: FunctionTool, recorder: AgentsRecorder, agent: str) -> FunctionTool:
    asking = copy.copy(tool)
    own = asking.on_invoke_tool
    if isinstance(own, _FailureHandlingFunctionToolInvoker):
        asking.on_invoke_tool = _AskingInvoker(own, asking, recorder, agent)
    else:
        body = _Body(own, asking, recorder)

        async def invoke(context: Any, arguments: str) -> Any:
            return await _recorded(body, recorder, agent, context, arguments)

        asking.on_invoke_tool = invoke
    return asking


class _AskingInvoker(_FailureHandlingFunctionToolInvoker):
    """The SDK's way to call a function, with the trial above its failure handler and beneath it."""

    def __init__(
        self, own: _FailureHandlingFunctionToolInvoker, tool: FunctionTool, recorder: AgentsRecorder, agent: str
    ) -> None:
        body = _Body(own._invoke_tool_impl, tool, recorder)
        super().__init__(body, own._on_handled_error, function_tool=tool)
        self._recorder = recorder
        self._agent = agent
        if getattr(own, _SYNC, False):
            setattr(self, _SYNC, True)

    async def __call__(self, ctx: Any, input: str) -> Any:  # noqa: A002  the SDK's name
        return await _recorded(super().__call__, self._recorder, self._agent, ctx, input)


async def _recorded(invoke: Invoke, recorder: AgentsRecorder, agent: str, context: Any, arguments: str) -> Any:
    """One call, from its beginning to what the model is told."""
    call = recorder.tool_begins(context.tool_name, arguments, context.tool_call_id, agent)
    if call.stop is not None:
        raise call.stop
    outer = observing.get()
    observing.set(call)
    if call.asked.edited is not None:
        arguments, context._function_tool_arguments = call.asked.as_run(), None
    try:
        told = await invoke(context, arguments)
    except Exception as error:
        recorder.tool_failed(call, error)
        raise
    except BaseException as error:
        if not _is_cancellation(error):  # a time limit, the tool's or the trial's: what comes next will tell
            recorder.tool_failed(call, error)
        raise
    finally:
        observing.set(outer)
    recorder.tool_ended(call, told)
    return told


def _is_cancellation(error: BaseException) -> bool:
    return any(kind.__name__ == "CancelledError" for kind in type(error).__mro__)


class _Body:
    """A tool's body with stand-in and faults, beneath the SDK's failure handler."""

    def __init__(self, own: Invoke, tool: FunctionTool, recorder: AgentsRecorder) -> None:
        self._own = own
        self._tool = tool
        self._recorder = recorder
        for name in _MADE_BY_THE_SDK:
            if hasattr(own, name):
                setattr(self, name, getattr(own, name))

    async def __call__(self, context: Any, arguments: str) -> Any:
        call = observing.get()
        if not isinstance(call, RunningCall) or call.applied:
            return await self._own(context, arguments)
        call.entered = call.applied = True
        try:
            call.result = await self._answer(call, context, arguments)
        except BaseException as error:
            call.error = error
            call.invalid = call.invalid or _says_invalid(error)
            raise
        return call.result

    async def _answer(self, call: RunningCall, context: Any, arguments: str) -> Any:
        async def own(**_: Any) -> Any:
            with kept_in():
                return await self._own(context, arguments)

        trial = self._recorder.trial
        if call.resumed or call.number is None:
            return await own()
        if trial.has_stand_in(call.name) and not self._takes(arguments):
            call.invalid = True
            return await own()  # which tells the model so
        result = trial.run_tool(call.name, dict(call.arguments), own, number=call.number)
        return await result if inspect.isawaitable(result) else result

    def _takes(self, arguments: str) -> bool:
        """Whether the tool would accept these arguments, without running it."""
        prepare = getattr(self._own, "__agents_prepare_arguments__", None)
        prepared = None if prepare is None else prepare(arguments, self._tool.name)
        if prepared is not None and (prepared.args or prepared.kwargs):
            return True
        try:
            given = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            return False
        return Draft202012Validator(self._tool.params_json_schema).is_valid(given)


def _says_invalid(error: BaseException) -> bool:
    return isinstance(error, ModelBehaviorError) and str(error).startswith("Invalid JSON input for tool")
