"""Tools in a trial: stand-ins that answer by rules, and the agent's own tools, recorded.

`trial.tools.NAME(...)` calls the case's stand-in, else the own tool that went through `trial.tool`. A name that is
neither is recorded as an unknown tool and raises UnknownTool; arguments that do not fit a tool's signature are
recorded as invalid and raise TypeError.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seatrial.core.encoding import dumps, to_json
from seatrial.core.fixture import StandInRule
from seatrial.core.matching import matches
from seatrial.core.trace import CallState
from seatrial.environment.approvals import Approvals
from seatrial.environment.callee import Callee, is_async, is_awaitable
from seatrial.environment.calls import Body, RecordedCall, run_blocking, run_waiting
from seatrial.environment.failure import FixtureError
from seatrial.environment.faults import Faults, FaultyCall, exception_of
from seatrial.environment.observed import ObservedCall, observed_call
from seatrial.environment.pace import Pace
from seatrial.environment.recorder import Recorder
from seatrial.errors import did_you_mean

__all__ = ["NoRuleMatches", "Rules", "Toolbox", "Tools", "UnknownTool", "is_async", "tool_name"]

Function = Callable[..., Any]


class UnknownTool(LookupError):
    """There is no tool of that name in the trial."""


class NoRuleMatches(LookupError):
    """A stand-in was called with arguments that none of its rules foresees."""


@dataclass(frozen=True)
class Rules:
    """A stand-in that answers by rules: the first that matches the arguments."""

    name: str
    rules: tuple[StandInRule, ...]
    case_input: Any = None

    def __call__(self, /, **arguments: Any) -> Any:
        for rule in self.rules:
            if rule.when is None or matches(rule.when, arguments, input=self.case_input):
                if rule.raises is not None:
                    raise exception_of(rule.raises)
                return copy.deepcopy(rule.returns)  # what an agent does to it must not reach the next call
        raise NoRuleMatches(
            f"stand-in {self.name}: no rule matches the arguments {dumps(to_json(arguments))}; "
            "add one, or `otherwise: true`"
        )


def tool_name(function: Function) -> str:
    """The name a function goes by as a tool: its own, that of what a partial wraps, or its class's."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", None) or type(function).__name__)


@dataclass(frozen=True)
class Tool:
    """What answers calls of one name."""

    name: str
    own: Callee | None = None
    """The agent's."""
    stand_in: Callee | None = None
    """The fixture's; goes first."""
    agent: str | None = None
    """Who calls it; None = whoever acts."""

    @property
    def asynchronous(self) -> bool:
        """Whether its calls are awaited."""
        answering = self.stand_in or self.own
        return answering is not None and answering.asynchronous

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, as the own function, else the stand-in, takes them. TypeError when it does not."""
        taking = self.own or self.stand_in
        return dict(kwargs) if taking is None else taking.named(args, kwargs)

    def body(self, arguments: Mapping[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Body:
        """What runs: the stand-in with the arguments by name, or the own function as it was called."""
        if self.stand_in is not None:
            return functools.partial(self.stand_in.function, **arguments)
        if self.own is not None:
            return functools.partial(self.own.function, *args, **kwargs)
        raise UnknownTool(f"there is no tool named {self.name!r}")


class Toolbox:
    """Every tool of one trial: calls it, with stand-in and faults applied, and records the call."""

    faults: Faults
    """Those in force; set before the first call, as are the approvals."""
    approvals: Approvals

    def __init__(
        self,
        recorder: Recorder,
        *,
        use_stand_ins: bool,
        agent: Callable[[], str | None],
        case_input: Any = None,
        pace: Pace | None = None,
    ) -> None:
        self._recorder = recorder
        self._agent = agent
        self._input = case_input
        self._pace = pace or Pace()
        self._use_stand_ins = use_stand_ins
        self._stand_ins: dict[str, Callee] = {}
        self._own: dict[str, Tool] = {}

    @property
    def names(self) -> list[str]:
        """Every tool there is, stand-ins first."""
        return list(dict.fromkeys((*(self._stand_ins if self._use_stand_ins else ()), *self._own)))

    def has_stand_in(self, name: str) -> bool:
        """Whether a stand-in answers calls of this tool."""
        return self._use_stand_ins and name in self._stand_ins

    def set_stand_in(self, name: str, given: Any) -> None:
        """Let a function, or rules (as a fixture file writes them), answer calls. FixtureError for anything else."""
        if callable(given):
            self._stand_ins[name] = Callee(name, given, named_only=isinstance(given, Rules))
        elif isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
            rules = tuple(StandInRule.model_validate(rule) for rule in given)
            self._stand_ins[name] = Callee(name, Rules(name, rules, self._input), named_only=True)
        else:
            raise FixtureError(f"stand-in {name} must be a function or a list of rules, not {type(given).__name__}")

    def wrap(self, function: Function, agent: str | None = None) -> Function:
        """The function with its signature, recorded, with stand-in and faults applied. TypeError for anything else."""
        if not callable(function):
            raise TypeError(f"a tool is a function, not {function!r} ({type(function).__name__})")
        name = tool_name(function)
        self._own[name] = tool = Tool(name, own=Callee(name, function), agent=agent)
        wrapped = self._async_door(tool) if tool.asynchronous else self._door(tool)
        functools.update_wrapper(wrapped, function)
        wrapped.__name__ = name
        return wrapped

    def _door(self, tool: Tool) -> Function:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return self._call_blocking(self._answered(tool), args, kwargs)

        return wrapped

    def _async_door(self, tool: Tool) -> Function:
        async def wrapped(*args: Any, **kwargs: Any) -> Any:
            return await self._call_waiting(self._answered(tool), args, kwargs)

        return wrapped

    def call(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call a tool by name; an awaitable when what answers is async. Raises UnknownTool when there is none."""
        tool = self._answered(self._own.get(name) or Tool(name))
        return (self._call_waiting if tool.asynchronous else self._call_blocking)(tool, args, kwargs)

    def run(self, name: str, arguments: Mapping[str, Any], own: Function | None, number: int | None) -> Any:
        """Call a tool without recording the call; an awaitable when what answers, or `own`, is async."""
        tool = self._answered(
            Tool(name, own=Callee(name, own)) if own is not None else self._own.get(name) or Tool(name)
        )
        return self._started(tool, tool.body(arguments, (), arguments), number)

    def _started(self, tool: Tool, body: Body, number: int | None) -> Any:
        waits = tool.asynchronous or (tool.own is not None and tool.own.asynchronous)
        if self._pace.limited("tool", tool.name):
            return (self._started_later if waits else self._started_paced)(tool.name, body, number)
        return (run_waiting if waits else run_blocking)(body, self._faulty(tool.name, number))

    def _started_paced(self, name: str, body: Body, number: int | None) -> Any:
        self._pace.wait("tool", name)
        self._begins_now(number)
        return run_blocking(body, self._faulty(name, number))

    async def _started_later(self, name: str, body: Body, number: int | None) -> Any:
        await self._pace.ready("tool", name)
        self._begins_now(number)
        return await run_waiting(body, self._faulty(name, number))

    def _begins_now(self, number: int | None) -> None:
        """A call that an adapter has on record begins when its turn has come: what it waited is not its duration."""
        if number is not None:
            self._recorder.amend(number, at_ms=self._recorder.elapsed_ms())

    def _answered(self, tool: Tool) -> Tool:
        """The tool as it is answered now: by the stand-in, where there is one."""
        stand_in = self._stand_ins.get(tool.name) if self._use_stand_ins else None
        return tool if stand_in is None else replace(tool, stand_in=stand_in)

    def _faulty(self, name: str, number: int | None) -> FaultyCall | None:
        if not self.faults.concern(name):
            return None
        return FaultyCall(name, self.faults.begin(name), self.faults, self._recorder, number)

    def _call_blocking(self, tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        observed = observed_call(tool.name)
        if observed is not None:
            return self._within(observed, tool, args, kwargs)
        self._pace.wait("tool", tool.name)
        with self._begin(tool, args, kwargs) as call:
            body = tool.body(call.arguments, args, kwargs)
            return call.gives(run_blocking(body, self._faulty(tool.name, call.number)))

    async def _call_waiting(self, tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        observed = observed_call(tool.name)
        if observed is not None:
            result = self._within(observed, tool, args, kwargs)
            return await result if is_awaitable(result) else result
        await self._pace.ready("tool", tool.name)
        with self._begin(tool, args, kwargs) as call:
            body = tool.body(call.arguments, args, kwargs)
            return call.gives(await run_waiting(body, self._faulty(tool.name, call.number)))

    def _within(self, observed: ObservedCall, tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The body of a call that an adapter has on record: nothing is recorded or applied twice."""
        if observed.applied and tool.own is not None:
            return tool.own.function(*args, **kwargs)
        observed.applied = True
        return self._started(tool, tool.body(tool.bind(args, kwargs), args, kwargs), observed.number)

    def _begin(self, tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> RecordedCall:
        """The call, begun. One that cannot run is recorded as that, and raises."""
        if tool.own is None and tool.stand_in is None:
            hint = did_you_mean(tool.name, self.names) or "the trial has no tools"
            raise self._rejected(
                tool, args, kwargs, UnknownTool(f"there is no tool named {tool.name!r}; {hint}"), CallState.UNKNOWN_TOOL
            )
        try:
            arguments = tool.bind(args, kwargs)
        except TypeError as error:
            raise self._rejected(tool, args, kwargs, error, CallState.INVALID_ARGUMENTS) from None
        return self._recorded(tool, arguments).begin()

    def _recorded(self, tool: Tool, arguments: Mapping[str, Any]) -> RecordedCall:
        return RecordedCall(
            self._recorder,
            self.approvals,
            tool.name,
            arguments,
            agent=tool.agent or self._agent(),
            stand_in=tool.stand_in is not None,
        )

    def _rejected(
        self, tool: Tool, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception, state: CallState
    ) -> Exception:
        """Record a call that cannot run; positional arguments stand under their positions. Gives the error back."""
        arguments = {**{str(place): value for place, value in enumerate(args)}, **kwargs}
        call = self._recorded(tool, arguments).begin()
        self._recorder.end_tool_call(call.number, error=error, state=state)
        return error


class Tools:
    """The tools of one trial by name: `trial.tools.search(query="x")` or `trial.tools["search"](query="x")`.

    Assigning (`trial.tools["search"] = function_or_rules`) makes a stand-in. Any name can be read; whether there is
    such a tool, `in` tells.
    """

    __slots__ = ("_toolbox",)
    _toolbox: Toolbox

    def __init__(self, toolbox: Toolbox) -> None:
        object.__setattr__(self, "_toolbox", toolbox)

    def __getitem__(self, name: str) -> Function:
        def tool(*args: Any, **kwargs: Any) -> Any:
            return self._toolbox.call(name, args, kwargs)

        tool.__name__ = name
        return tool

    def __getattr__(self, name: str) -> Function:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __setitem__(self, name: str, given: Any) -> None:
        self._toolbox.set_stand_in(name, given)

    def __setattr__(self, name: str, given: Any) -> None:
        self[name] = given

    def __contains__(self, name: object) -> bool:
        return name in self._toolbox.names

    def __iter__(self) -> Iterator[str]:
        return iter(self._toolbox.names)

    def __len__(self) -> int:
        return len(self._toolbox.names)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._toolbox.names]
