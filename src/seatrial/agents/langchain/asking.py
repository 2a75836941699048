"""Tools of LangChain that ask the running trial before their body runs.

Wherever a tool is called in a trial (a graph's ToolNode, a graph that a tool's body calls, the user's own node or
function), its body goes through `TrialEnvironment.run_tool`: the fixture's stand-in and faults apply. Which trial that
is, is asked when the tool is called, so twenty trials of one tool at once keep apart, and outside a trial the tool does
what it always did. Everything around the body stays LangChain's: ids, schemas, validation, injected arguments,
callbacks.

The user's tools are left as they are. What changes is `BaseTool` itself, once: before it runs a tool in a trial, the
class that defines the tool's body learns to ask.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from types import ModuleType
from typing import Any

from seatrial.agents.langchain.reading import command_in
from seatrial.core.encoding import to_json
from seatrial.environment.observed import ObservedCall, observed_call
from seatrial.environment.trial import TrialEnvironment, running_trial

__all__ = ["let_tools_ask"]

Body = Callable[..., Any]
_lock = threading.Lock()


def let_tools_ask(module: ModuleType) -> None:
    """Let every tool ask; `module` is `langchain_core.tools.base`. Doing it twice changes nothing."""
    base = module.BaseTool
    with _lock:
        for name in ("run", "arun"):
            called = vars(base)[name]
            if not hasattr(called, "_teaches"):
                setattr(base, name, _teaching(called, base))


def _teaching(called: Body, base: type) -> Body:
    """`run` or `arun`, which see to it first that the tool's class asks."""

    @functools.wraps(called)
    def teaches(self: Any, *args: Any, **kwargs: Any) -> Any:
        if running_trial() is not None:
            _teach(type(self), base)
        return called(self, *args, **kwargs)

    teaches._teaches = True  # type: ignore[attr-defined]
    return teaches


def _teach(kind: type, base: type) -> None:
    """Where this class gets the body of its tools from, it asks."""
    for name, asking in (("_run", _asking), ("_arun", _asking_later)):
        owner = next((cls for cls in kind.__mro__ if name in vars(cls)), base)
        body = vars(owner).get(name)
        if owner is not base and not hasattr(body, "_asks"):  # of BaseTool itself, `_arun` runs `_run` in a thread
            with _lock:
                if vars(owner)[name] is body:
                    setattr(owner, name, asking(body))


def _asking(body: Any) -> Body:
    """The same body, asking the trial. Its signature stays, because LangChain injects by it."""

    @functools.wraps(body)
    def asks(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = _through_trial(self, functools.partial(body, self), args, kwargs)
        return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result

    asks._asks = True  # type: ignore[attr-defined]
    return asks


def _asking_later(body: Any) -> Body:
    @functools.wraps(body)
    async def asks(self: Any, *args: Any, **kwargs: Any) -> Any:
        async def own(*own_args: Any, **own_kwargs: Any) -> Any:
            return await body(self, *own_args, **own_kwargs)

        result = _through_trial(self, own, args, kwargs)
        return await result if inspect.isawaitable(result) else result

    asks._asks = True  # type: ignore[attr-defined]
    return asks


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


def _through_trial(tool: Any, body: Body, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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
    if call.edited:
        return asked
    plain = {name: value for name, value in kwargs.items() if value is None or isinstance(value, (str, int, float))}
    arguments = {name: plain.get(name, value) for name, value in asked.items()}
    if call.number is not None and arguments != asked:
        trial.recorder.amend(call.number, arguments=to_json(arguments), asked=to_json(asked))
    return arguments


async def _kept_later(tool: Any, call: ObservedCall, result: Awaitable[Any]) -> Any:
    return _kept(tool, call, await result)


def _kept(tool: Any, call: ObservedCall, result: Any) -> Any:
    """Remember what the tool gave, and give it in the form that LangChain expects of this tool."""
    two_parts = tool.response_format == "content_and_artifact"
    if command_in(result) is None:
        call.result = result[0] if two_parts and isinstance(result, tuple) and result else result
    return result if not two_parts or isinstance(result, tuple) else (result, None)
