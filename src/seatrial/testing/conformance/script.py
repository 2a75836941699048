"""What a scripted agent does, said without any framework: the language between the conformance kit and whoever builds
its situations in one.

A `Script` names agents, what their models say call by call, and their tools. A `Framework` builds the real thing from
it: the framework's own agent around a scripted model, the way its users build theirs. Its scripted model asks the
trial's `Player` for every reply, so one agent may serve many trials at once:

    def reply(agent_name, messages):                       # inside the framework's model class
        line = player_of(current_trial(), script).line(agent_name)
        if line.error: raise line.error
        # else line.calls, line.handoff, line.said(texts of the users) become the framework's message
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from weakref import WeakKeyDictionary

from seatrial.core.trace import Observable, Usage

__all__ = [
    "AgentScript",
    "Ask",
    "Framework",
    "Line",
    "Player",
    "Script",
    "ScriptOver",
    "Tool",
    "Ways",
    "player_of",
    "ways_of",
]

Then = Literal["told", "ends"]
"""What becomes of a call that went wrong: the model is told of it and goes on, or the run ends with its error."""


class ScriptOver(AssertionError):
    """A model was called more often than its script has lines."""


@dataclass(frozen=True)
class Ask:
    """One tool call that a model asks for."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """Text goes to the framework as it is: the malformed arguments of a bad model."""
    call_id: str = ""
    """As a provider would give it. A framework that makes ids of its own says so in `own_call_ids`."""


@dataclass(frozen=True)
class Line:
    """One reply of a model: an answer, or calls that it asks for (several in one line are parallel), or a hand-off."""

    text: str | Callable[[Sequence[str]], str] = ""
    """A function gets all that users said in the conversation so far, in order."""
    calls: tuple[Ask, ...] = ()
    handoff: str | None = None
    """The agent that takes over; asked for as the framework's models do it."""
    reason: str | None = None
    """Why it hands over, where the framework has a place for that (`Ways.handoff_carries`)."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """What it hands over beside the conversation, likewise."""
    usage: Usage | None = field(default_factory=lambda: Usage(input=10, output=5))
    """What the provider reports; None = nothing."""
    error: Exception | None = None
    """Raised instead of answering."""

    def said(self, heard: Sequence[str]) -> str:
        """The text of this reply."""
        return self.text if isinstance(self.text, str) else self.text(heard)


@dataclass(frozen=True)
class Tool:
    """A tool of an agent."""

    function: Callable[..., Any]
    """A typed, documented function, sync or async; its `__name__` is the tool's."""
    needs_approval: bool = False

    @property
    def name(self) -> str:
        """As the model calls it."""
        return self.function.__name__


@dataclass(frozen=True)
class AgentScript:
    """One agent."""

    name: str
    lines: tuple[Line, ...]
    """Its model's replies over all turns of one trial."""
    tools: tuple[Tool, ...] = ()
    handoffs: tuple[str, ...] = ()
    """Agents that it may hand over to."""
    nested: tuple[str, ...] = ()
    """Agents that it calls as tools, by their names: they answer, and it goes on."""
    model: str = "scripted"
    """Name that its model reports."""


@dataclass(frozen=True)
class Script:
    """Everything that a situation needs."""

    agents: tuple[AgentScript, ...]
    """The first one gets the user's message."""
    streaming: bool = False
    """The model streams its replies, where the framework lets it."""
    in_trial: Callable[[int], Script] | None = None
    """The script of one trial by its number, where trials differ; its agents and tools are the same, only lines differ.
    `player_of` sees to it."""

    def agent(self, name: str) -> AgentScript:
        """The agent of this name. KeyError when there is none."""
        return {agent.name: agent for agent in self.agents}[name]


class Player:
    """Plays a script in one trial, agent by agent; from any thread."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._played: Counter[str] = Counter()
        self._lock = threading.Lock()

    def line(self, agent: str) -> Line:
        """The next reply of this agent's model. Raises ScriptOver beyond the last."""
        lines = self._script.agent(agent).lines
        with self._lock:
            position = self._played[agent]
            self._played[agent] += 1
        if position >= len(lines):
            raise ScriptOver(f"the script of {agent} has {len(lines)} lines, and this is call {position + 1}")
        return lines[position]


_PLAYERS: WeakKeyDictionary[Any, Player] = WeakKeyDictionary()
_LOCK = threading.Lock()


def player_of(trial: Any, script: Script) -> Player:
    """The player of this script in this trial, the same for every agent and thread in it."""
    with _LOCK:
        if trial not in _PLAYERS:
            _PLAYERS[trial] = Player(script if script.in_trial is None else script.in_trial(trial.trial_index))
        return _PLAYERS[trial]


@dataclass(frozen=True)
class Ways:
    """Where frameworks rightly differ, as data: the kit is as strict with each as with the others."""

    raising_tool: Then = "told"
    """After a tool raised; an injected fault is the same."""
    unknown_tool: Then = "told"
    """After a call of a tool that does not exist."""
    invalid_arguments: Then = "told"
    """After a call whose arguments do not fit the tool."""
    malformed_arguments: Literal["told", "ends", "answers"] = "told"
    """After a call whose arguments are no JSON object; answers: the reply that asks for it is taken as the answer."""
    refused_handoff: Then = "told"
    """After a hand-off to an agent that does not exist."""
    unanswered: Literal["waits", "told"] = "waits"
    """When nobody answers a request for approval: the turn ends as waiting_approval, or the agent itself is told."""
    handoff_carries: frozenset[str] = frozenset({"reason", "context"})
    """Which of reason and context a hand-off of this framework can carry."""
    nested_argument: str = "request"
    """Name of the argument by which an agent that is called as a tool gets its task."""
    async_tools: bool = True
    """Whether tools may be async functions; where not, the situations have tools that block their thread."""
    says_step: bool = True
    """Whether a call in the trace names the model call that asked for it; False where the adapter cannot know."""
    says_told: bool = True
    """Whether the trace has what the model was told of a call that went wrong; False where the adapter cannot know."""
    says_asked: bool = True
    """Whether a call with edited arguments says what was asked for too; False where only the approval does."""
    handoff_returns: bool = False
    """Whether the agent that handed over is asked again once the other one has answered."""
    usage_kinds: frozenset[str] = frozenset({"input", "output", "cached", "cache_write", "reasoning"})
    """Kinds of tokens that the framework carries from the provider; others must stand in the trace as unknown."""


class Framework(Protocol):
    """How a framework's agents are built for the kit.

    `kind`, `absent`, `own_call_ids` and `build` are needed. The others may be left out; they then have the values
    below.
    """

    kind: str
    """Name of the adapter under proof, as in `agent: {kind: ...}`."""
    absent: Mapping[str, str]
    """Situations (`SITUATIONS`) of which the framework has no such thing, each with why in a few words; shown in the
    matrix."""
    own_call_ids: bool
    """Whether the framework makes call ids of its own, so that the script's cannot be seen in the trace."""

    name: str = ""
    """What the matrix calls it, where there are several of a kind; empty = `kind`."""
    ways: Ways = Ways()
    """Where it differs from others."""
    observes: frozenset[Observable] = frozenset()
    """What its trials may observe beyond the adapter's own `observes`, where what is built decides."""
    adapter: Any = None
    """The adapter's class, where it is not registered under `kind`; `build` then gives what it takes, no factory."""

    def build(self, script: Script) -> Any:
        """What a user would name as `agent:`: the framework's agent, or a factory of it; a URL, a mapping or an
        AgentSpec for adapters that need one. It is called once a situation: what it gives serves all its trials."""


def ways_of(framework: Framework) -> Ways:
    """Where this framework differs from others."""
    ways: Ways = getattr(framework, "ways", None) or Ways()
    return ways
