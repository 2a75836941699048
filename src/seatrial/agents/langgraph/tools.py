"""Tools of a compiled graph that ask the running trial before their body runs.

Each entry of a graph's ToolNodes, subgraphs' too, is replaced by a copy of the tool whose body goes through
`TrialEnvironment.run_tool`: the fixture's stand-in and faults apply. Which trial that is, is asked when the tool is
called, so twenty trials of one graph at once keep apart, and outside a trial the tool does what it always did.
Everything around the body stays the framework's: ids, schemas, validation, injected arguments, callbacks.

A tool that the user's own node calls by itself is not found this way: it is recorded, but stand-ins and faults apply
only if it went through `trial.tool` or calls `trial.tools.NAME`.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

from seatrial.agents.langchain.reading import command_in
from seatrial.core.encoding import to_json
from seatrial.environment.observed import ObservedCall, observed_call
from seatrial.environment.trial import TrialEnvironment, running_trial

__all__ = ["graphs_in", "hand_tools_to_trials", "tools_of"]

Body = Callable[..., Any]


def graphs_in(graph: Any) -> Iterator[Any]:
    """The graph and every graph within it, each once."""
    waiting, seen = [graph], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting.extend(
                sub for node in current.nodes.values() for sub in node.subgraphs or () if isinstance(sub, Pregel)
            )


def tool_nodes(graph: Any) -> Iterator[ToolNode]:
    """Every ToolNode of a graph and of the graphs within it."""
    for one in graphs_in(graph):
        for node in one.nodes.values():
            for runnable in (node.bound, *getattr(node.bound, "steps", ())):
                if isinstance(runnable, ToolNode):
                    yield runnable


def tools_of(graph: Any) -> dict[str, BaseTool]:
    """Tools by name."""
    return {name: tool for node in tool_nodes(graph) for name, tool in node.tools_by_name.items()}


def hand_tools_to_trials(graph: Any) -> None:
    """Let the trial that is running answer for the graph's tools. Doing it twice changes nothing."""
    for node in tool_nodes(graph):
        for name, tool in list(node.tools_by_name.items()):
            node.tools_by_name[name] = _handed_over(tool)


def _handed_over(tool: BaseTool) -> BaseTool:
    if getattr(type(tool), "_asks_trial", False):
        return tool
    copy = tool.model_copy()
    copy.__class__ = _asking(type(tool))
    return copy


@functools.cache
def _asking(kind: type[BaseTool]) -> type[BaseTool]:
    """The same class of tool, asking the trial. Signatures stay, because LangChain injects by them."""

    @functools.wraps(kind._run)  # what a subclass of BaseTool overrides
    def _run(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        body = functools.partial(kind._run, self)
        result = _through_trial(self, body, args, kwargs)
        return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result

    @functools.wraps(kind._arun)
    async def _arun(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        async def body(*own_args: Any, **own_kwargs: Any) -> Any:
            return await kind._arun(self, *own_args, **own_kwargs)

        result = _through_trial(self, body, args, kwargs)
        return await result if inspect.isawaitable(result) else result

    members: dict[str, Any] = {
        "_run": _run,
        "_asks_trial": True,
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
    }
    if kind._arun is not BaseTool._arun:  # else LangChain runs `_run` in a thread
        members["_arun"] = _arun
    return type(kind.__name__, (kind,), members)


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


def _through_trial(tool: BaseTool, body: Body, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    trial, call = running_trial(), observed_call(tool.name)
    if trial is None or (call is not None and call.applied):
        return body(*args, **kwargs)
    call = call or ObservedCall(tool.name)
    call.entered = call.applied = True
    arguments = _as_run(trial, call, kwargs)
    own = _own(body, args, kwargs)
    result = trial.run_tool(tool.name, arguments, own, number=call.number)
    if inspect.isawaitable(result):
        return _kept_later(tool, call, result)
    return _kept(tool, call, result)


def _own(body: Body, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Body:
    """The body with what LangChain validated and injected; the named arguments are among it."""
    if inspect.iscoroutinefunction(body):

        async def own_waiting(**_: Any) -> Any:
            return await body(*args, **kwargs)

        return own_waiting

    def own(**_: Any) -> Any:
        return body(*args, **kwargs)

    return own


def _as_run(trial: TrialEnvironment, call: ObservedCall, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The named arguments with their values as the tool gets them; the trace learns where that differs.

    Only plain values take the tool's form ("750" into 750): a date or a model stays as it was asked for.
    """
    asked = dict(call.arguments)
    plain = {name: value for name, value in kwargs.items() if value is None or isinstance(value, (str, int, float))}
    arguments = {name: plain.get(name, value) for name, value in asked.items()}
    if call.number is not None and arguments != asked:
        trial.recorder.amend(call.number, arguments=to_json(arguments), asked=to_json(asked))
    return arguments


async def _kept_later(tool: BaseTool, call: ObservedCall, result: Awaitable[Any]) -> Any:
    return _kept(tool, call, await result)


def _kept(tool: BaseTool, call: ObservedCall, result: Any) -> Any:
    """Remember what the tool gave, and give it in the form that LangChain expects of this tool."""
    two_parts = tool.response_format == "content_and_artifact"
    if command_in(result) is None:
        call.result = result[0] if two_parts and isinstance(result, tuple) and result else result
    return result if not two_parts or isinstance(result, tuple) else (result, None)
