"""Which adapter a target needs, found without importing any framework: by the module names of its classes.

A callable with a parameter named `environment` or `config`, or without parameters, is a factory, and so is a class:
it is called once a trial with those it names, and its result decides the kind. `kind` in the agent's spec is the kind
of what is tested, behind a factory too.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import re
import sys
from collections.abc import Awaitable, Mapping
from importlib.util import find_spec
from typing import Any, cast

from seatrial.agents import AGENTS
from seatrial.agents.expressions import check_input, named_function, reader
from seatrial.agents.taking import check_taken
from seatrial.core.ports import Agent, Answer, Session, TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import Misfit, UsageError
from seatrial.registry import load_object

__all__ = ["FactoryAgent", "agent_for", "load_agent"]

_ACCEPTED = (
    "an agent is a function of the input, a factory (a callable with parameters named environment or config, or none), "
    "a class or object with invoke(case), a compiled LangGraph graph, a LlamaIndex workflow, an agent of the OpenAI "
    "Agents SDK or of Pydantic AI, a Google ADK agent, App or Runner, a URL (http or https), or a command"
)
_GIVEN = ("environment", "config")
_URL = re.compile(r"https?://", re.IGNORECASE)
_ANY_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_FRAMEWORKS = (
    ("langgraph", "langgraph"),
    ("langchain_core", "langchain"),
    ("llama_index", "llamaindex"),
    ("workflows.workflow", "llamaindex"),
    ("agents.agent", "openai_agents"),
    ("pydantic_ai", "pydantic_ai"),
    ("google.adk", "google_adk"),
)
"""Modules of frameworks, and the kind of adapter for objects whose classes come from them."""
_MARKS = {"workflows": ("Workflow", "Context", "step"), "agents": ("Agent", "Runner", "RunHooks", "function_tool")}
"""What a package of so common a name holds when it is the framework's, and not a user's own."""


def load_agent(spec: AgentSpec, folder: str = ".") -> Agent[TrialEnvironment]:
    """The agent that a spec names; files that a command names lie in `folder`, the project's.

    UsageError when there is none, or it cannot be imported.
    """
    target = spec.target or ""
    _check_url(target)
    if spec.kind == "otel":
        return _traced(target, spec)
    if spec.command is None and spec.sandbox != "none":
        raise UsageError("agent sandbox: only a command runs in a sandbox")
    if spec.headers and not _URL.match(target):
        raise UsageError("agent headers: only requests to a URL have headers")
    if spec.command is not None:
        return _adapter_of("command", folder, spec)
    if _URL.match(target):
        return _adapter_of(spec.kind or "http", target, spec)
    if not target:
        raise UsageError("no agent: name one in seatrial.yaml (agent: module:object) or with --agent")
    return agent_for(_imported(target), spec)


def _check_url(target: str) -> None:
    if _ANY_URL.match(target) and not _URL.match(target):
        raise UsageError(f"agent {target!r}: only http:// and https:// are supported")


def _traced(target: str, spec: AgentSpec) -> Agent[TrialEnvironment]:
    """An agent whose spans are its trace: spans on file, or its own code, imported once its spans are heard."""
    otel = AGENTS.load("otel")
    if not re.fullmatch(r"[\w.]+:[\w.]+", target):
        check_taken(spec, "a folder of spans")
        return cast("Agent[TrialEnvironment]", otel.recorded(target))
    otel.prepare()
    return agent_for(_imported(target), spec)


def _imported(target: str) -> Any:
    try:
        return load_object(target)
    except UsageError as error:
        raise UsageError(f"agent {error}") from error


def agent_for(target: object, spec: AgentSpec | None = None) -> Agent[TrialEnvironment]:
    """The adapter for an object, or for what a spec or a URL names. UsageError that says what is accepted when nothing
    fits."""
    if isinstance(target, AgentSpec):
        return load_agent(target)
    spec = spec or AgentSpec()
    if spec.kind == "otel":
        inner = agent_for(target, spec.model_copy(update={"kind": None}))
        return cast("Agent[TrialEnvironment]", AGENTS.load("otel")(inner))
    if _is_agent(target):
        return cast("Agent[TrialEnvironment]", target)
    if isinstance(target, str):
        _check_url(target)
    if isinstance(target, str) and _URL.match(target):
        return _adapter_of(spec.kind or "http", target, spec)
    if _is_factory(target):
        return FactoryAgent(target, spec)
    return _adapter(target, spec)


def _is_agent(target: object) -> bool:
    """Whether it is an agent behind an adapter already."""
    return not inspect.isclass(target) and all(hasattr(target, name) for name in ("kind", "observes", "open"))


def _adapter(target: object, spec: AgentSpec) -> Agent[TrialEnvironment]:
    return _adapter_of(spec.kind or _kind_of(target), target, spec)


def _adapter_of(kind: str, target: object, spec: AgentSpec) -> Agent[TrialEnvironment]:
    if kind == "http" and find_spec("httpx") is None:
        raise UsageError("an agent behind a URL needs the package httpx: pip install 'seatrial[http]'")
    adapter: Agent[TrialEnvironment] = AGENTS.load(kind)(target, spec)
    return adapter


def _framework_of(target: object) -> str | None:
    """The kind of adapter for objects of the framework that the target's classes come from; None for plain Python."""
    return _framework_of_class(type(target))


def _framework_of_class(kind: type) -> str | None:
    modules = [cls.__module__ + "." for cls in kind.__mro__ if _is_known(cls.__module__.partition(".")[0])]
    return next((kind for prefix, kind in _FRAMEWORKS if any(name.startswith(prefix + ".") for name in modules)), None)


def _is_known(package: str) -> bool:
    """Whether a package of this name is what one thinks; a user may call an own one `agents` as well."""
    return all(hasattr(sys.modules.get(package), name) for name in _MARKS.get(package, ()))


def _kind_of(target: object) -> str:
    name, framework = type(target).__qualname__, _framework_of(target)
    invokes = callable(getattr(target, "invoke", None))
    if framework == "langgraph" and not invokes and hasattr(target, "compile"):
        raise UsageError(f"this {name} is not compiled; give the result of its .compile()")
    if framework == "langchain":
        raise UsageError(f"a LangChain {name} is no agent by itself; wrap it in a function of the input")
    if framework is not None:
        return framework
    if invokes or callable(target):
        return "function"
    raise UsageError(f"an object of type {name} is no agent that this version knows; {_ACCEPTED}")


def _makes_functions(kind: type) -> bool:
    """Whether a class's objects are called as functions are."""
    called = hasattr(kind, "invoke") or any("__call__" in vars(each) for each in kind.__mro__)
    return called and _framework_of_class(kind) is None


def _is_factory(target: object) -> bool:
    if inspect.isclass(target):
        return True
    if not callable(target) or hasattr(target, "invoke") or _framework_of(target) is not None:
        return False
    try:
        parameters = inspect.signature(target).parameters
    except ValueError:  # some builtins tell nothing
        return False
    return not parameters or any(name in parameters for name in _GIVEN)


class FactoryAgent:
    """A callable that builds the agent of each trial."""

    blocking = True
    observes: frozenset[Observable] = frozenset()
    """What is built decides; each trial's recorder knows."""

    def __init__(self, target: Any, spec: AgentSpec | None = None) -> None:
        self.spec = spec or AgentSpec()
        self.kind = self.spec.kind or "factory"
        self._target = target
        self._wants = self._parameters()
        check_input(self.spec.input, ("$messages",))
        named_function(self.spec.input)
        if self.spec.output is not None:
            reader(self.spec.output, lambda state: state)
        if inspect.isclass(target) and _makes_functions(target):
            check_taken(self.spec)

    def _parameters(self) -> tuple[str, ...]:
        """Which of environment and config it names. UsageError when it needs anything else."""
        name = getattr(self._target, "__qualname__", type(self._target).__qualname__)
        try:
            parameters = inspect.signature(self._target).parameters
        except ValueError:  # a class written in C tells nothing: it is called without arguments
            return ()
        needed = [
            parameter.name
            for parameter in parameters.values()
            if parameter.default is parameter.empty
            and parameter.name not in _GIVEN
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        if needed:
            why = "a class" if inspect.isclass(self._target) else "a parameter named environment or config"
            raise UsageError(
                f"{name} is a factory ({why} makes it one), which gets environment and config only, "
                f"but it needs {', '.join(needed)} too"
            )
        return tuple(wanted for wanted in _GIVEN if wanted in parameters)

    def open(self, trial: TrialEnvironment) -> Session:
        """Build this trial's agent and open it. What the factory raises is passed on."""
        if "environment" in self._wants:
            trial.hand_out()
        given: Mapping[str, Any] = {"environment": trial, "config": copy.deepcopy(dict(trial.config))}
        built = self._target(**{name: given[name] for name in self._wants})
        if inspect.isawaitable(built):
            return _LateSession(built, trial, self.spec, self._shown())
        return _opened(built, trial, self.spec, self._shown())

    def _shown(self) -> str:
        """The factory, and what made it one."""
        name = getattr(self._target, "__qualname__", type(self._target).__qualname__)
        if inspect.isclass(self._target):
            return f"the class {name}"
        why = f"a parameter named {' or '.join(self._wants)}" if self._wants else "no parameters"
        return f"{name}, taken for a factory because it has {why},"


def _opened(built: object, trial: TrialEnvironment, spec: AgentSpec, factory: str) -> Session:
    """UsageError for what is no agent at all; Misfit for what the spec, which holds for every trial, does not fit."""
    if _is_factory(built) and not inspect.isclass(built):
        raise UsageError(f"{factory} returned another factory; return what answers the input")
    if not callable(built) and not hasattr(built, "invoke") and _framework_of(built) is None:
        what = "None" if built is None else f"an object of type {type(built).__qualname__}"
        raise UsageError(
            f"{factory} returned {what}, which is no agent; return what answers the input, or take the input as a "
            f"parameter of another name ({_ACCEPTED})"
        )
    try:
        agent = FactoryAgent(built, spec) if inspect.isclass(built) else _adapter(built, spec)
    except UsageError as error:
        raise Misfit(f"what {factory} returned: {error}") from error
    return agent.open(trial)


class _LateSession:
    """An agent whose factory is async: built in the loop that runs the trial, before its first turn."""

    blocking = False

    def __init__(self, building: Awaitable[Any], trial: TrialEnvironment, spec: AgentSpec, factory: str) -> None:
        self._building: Awaitable[Any] | None = building
        self._trial = trial
        self._spec = spec
        self._factory = factory
        self._session: Session | None = None

    async def invoke(self, turn: TurnInput) -> Answer:
        """Answer one turn."""
        if self._building is not None:
            building, self._building = self._building, None
            self._session = _opened(await building, self._trial, self._spec, self._factory)
        if self._session is None:
            raise RuntimeError("the agent's factory failed before")
        session = self._session
        answer = await _in_thread(session, turn) if session.blocking else session.invoke(turn)
        return await answer if inspect.isawaitable(answer) else answer

    def close(self) -> Awaitable[None] | None:
        """Close what was built, or the factory that was never waited for."""
        if inspect.iscoroutine(self._building):
            self._building.close()
        return None if self._session is None else self._session.close()


async def _in_thread(session: Session, turn: TurnInput) -> Answer | Awaitable[Answer]:
    """`session.invoke(turn)` in a thread. A future cannot carry StopIteration, so that comes back as a value."""

    def invoked() -> tuple[Any, StopIteration | None]:
        try:
            return session.invoke(turn), None
        except StopIteration as error:
            return None, error

    answer, error = await asyncio.to_thread(invoked)
    if error is not None:
        raise error
    return answer  # type: ignore[no-any-return]
