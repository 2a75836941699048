"""Which adapter a target gets, and what is said when none fits."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.agents.detect import FactoryAgent, agent_for, load_agent
from seatrial.agents.function import FunctionAgent
from seatrial.core.case import Case
from seatrial.core.ports import TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import Misfit, UsageError


@pytest.fixture
def trial() -> Iterator[TrialEnvironment]:
    made = TrialEnvironment(Case(id="a"), config={"model": "small", "nested": {"n": 1}})
    with made.activate():
        yield made
    made.clean_up()


async def answer_of(target: Any, trial: TrialEnvironment) -> Any:
    session = agent_for(target).open(trial)
    given = TurnInput(case_id="a", input="hi")
    answer = await asyncio.to_thread(session.invoke, given) if session.blocking else session.invoke(given)
    answer = await answer if inspect.isawaitable(answer) else answer
    session.close()
    return answer.output


def echo(task: str) -> str:
    return task


def wants_environment(environment: TrialEnvironment) -> Any:
    return lambda task: f"{task} {environment.case.id}"


def wants_config(config: dict[str, Any]) -> Any:
    config["nested"]["n"] += 1
    return lambda task: f"{task} {config['model']} {config['nested']['n']}"


def wants_both(*, config: dict[str, Any], environment: TrialEnvironment) -> Any:
    return lambda task: f"{config['model']} {environment.case.id}"


def wants_nothing() -> Any:
    return echo


def gives_a_class(config: Any) -> type:
    return Configured


class Configured:
    def __init__(self, config: dict[str, Any], style: str = "plain") -> None:
        self.model = config["model"]
        self.style = style

    def invoke(self, case: dict[str, Any]) -> str:
        return f"{case['input']} {self.model} {self.style}"


async def builds_later(environment: TrialEnvironment) -> Any:
    await asyncio.sleep(0)
    return lambda task: f"later {task} {environment.case.id}"


async def builds_async_later() -> Any:
    async def agent(task: str) -> str:
        return f"async later {task}"

    return agent


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        (echo, "hi"),
        (wants_environment, "hi a"),
        (wants_config, "hi small 2"),
        (wants_both, "small a"),
        (wants_nothing, "hi"),
        (Configured, "hi small plain"),
        (gives_a_class, "hi small plain"),
        (builds_later, "later hi a"),
        (builds_async_later, "async later hi"),
    ],
)
async def test_functions_and_factories_answer(target: Any, answer: str, trial: TrialEnvironment) -> None:
    for _ in range(2):
        assert await answer_of(target, trial) == answer


def test_what_is_called_once_a_trial_is_a_factory() -> None:
    assert isinstance(agent_for(echo), FunctionAgent)
    for factory in (wants_environment, wants_config, wants_both, wants_nothing, Configured, builds_later):
        agent = agent_for(factory)
        assert isinstance(agent, FactoryAgent)
        assert (agent.kind, agent.blocking, agent.observes) == ("factory", True, frozenset())


def test_a_factory_that_gets_the_environment_is_observed(trial: TrialEnvironment) -> None:
    agent_for(wants_config).open(trial)
    assert trial.recorder.observes == {Observable.OUTPUT}
    agent_for(wants_environment).open(trial)
    assert Observable.TOOL_CALLS in trial.recorder.observes


def test_what_a_factory_raises_passes_through(trial: TrialEnvironment) -> None:
    def build(config: Any) -> Any:
        raise KeyError("model")

    with pytest.raises(KeyError):
        agent_for(build).open(trial)


async def test_an_async_factory_that_fails_says_so_every_turn(trial: TrialEnvironment) -> None:
    async def build(config: Any) -> Any:
        raise KeyError("model")

    session = agent_for(build).open(trial)
    with pytest.raises(KeyError):
        await session.invoke(TurnInput("a", "hi"))
    with pytest.raises(RuntimeError, match="factory failed before"):
        await session.invoke(TurnInput("a", "hi"))


async def test_an_async_factory_that_is_never_needed_leaves_no_warning(trial: TrialEnvironment) -> None:
    agent_for(builds_later).open(trial).close()


class Needy:
    def __init__(self, client: Any) -> None:
        self.client = client


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (lambda task, config: None, "parameter named environment or config makes it one.*but it needs task too"),
        (Needy, "Needy is a factory .a class makes it one.*but it needs client too"),
        (5, "an object of type int is no agent that this version knows; an agent is a function of the input"),
        ("text", "an object of type str is no agent"),
        (None, "an object of type NoneType is no agent"),
    ],
)
def test_what_is_no_agent_is_refused_with_what_is_accepted(target: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        agent_for(target)


@pytest.mark.parametrize(
    ("built", "message"),
    [
        (None, "taken for a factory because it has a parameter named config, returned None, which is no agent"),
        (lambda: None, "returned another factory; return what answers the input"),
        (7, "because it has a parameter named config, returned an object of type int, which is no agent"),
    ],
)
def test_a_factory_must_give_an_agent(built: Any, message: str, trial: TrialEnvironment) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        agent_for(lambda config: built).open(trial)
    assert not isinstance(caught.value, Misfit), "what one trial's factory gave says nothing of the others"


def a_class_of(module: str, name: str, **members: Any) -> Any:
    return type(name, (), {"__module__": module, **members})


def test_frameworks_are_told_by_their_modules_names_without_importing_them() -> None:
    before = set(sys.modules)
    builder = a_class_of("langgraph.graph.state", "StateGraph", compile=echo)()
    with pytest.raises(UsageError, match=r"this StateGraph is not compiled; give the result of its \.compile\(\)"):
        agent_for(builder)
    runnable = a_class_of("langchain_core.runnables.base", "RunnableSequence", invoke=echo)()
    with pytest.raises(UsageError, match="a LangChain RunnableSequence is no agent by itself"):
        agent_for(runnable)
    assert not {name for name in set(sys.modules) - before if name.startswith("langgraph")}


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown agent 'functoin'; did you mean 'function'"):
        agent_for(echo, AgentSpec(kind="functoin"))


class Asked:
    def invoke(self, case: Any) -> Any:
        return case


class Called:
    def __call__(self, task: Any) -> Any:
        return task


@pytest.mark.parametrize("key", ["input", "output"])
@pytest.mark.parametrize("target", [echo, Asked(), Called(), Asked, Called])
@pytest.mark.parametrize("kind", [None, "function", "otel"])
def test_a_function_takes_neither_input_nor_output(target: Any, key: str, kind: str | None) -> None:
    with pytest.raises(UsageError, match=f"a function takes no `{key}`"):
        agent_for(target, AgentSpec(kind=kind, **{key: "x"}))


def test_a_function_that_a_factory_builds_takes_neither(trial: TrialEnvironment) -> None:
    with pytest.raises(Misfit, match="named config, returned: a function takes no `input`"):
        agent_for(lambda config: echo, AgentSpec(input="$message")).open(trial)


def test_spans_on_file_take_neither(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a folder of spans takes no `output`"):
        load_agent(AgentSpec(kind="otel", target=str(tmp_path), output="x"))


def ready() -> str:
    return "ok"


def test_a_function_without_parameters_was_taken_for_a_factory(trial: TrialEnvironment) -> None:
    expected = "ready, taken for a factory because it has no parameters, returned an object of type str.*take the input"
    with pytest.raises(UsageError, match=expected):
        agent_for(ready).open(trial)


@pytest.mark.parametrize("target", ["ftp://x/y", "ws://localhost:8000", "file:///a/b"])
def test_a_url_of_another_scheme_is_refused(target: str) -> None:
    for ask in (lambda: load_agent(AgentSpec(target=target)), lambda: agent_for(target)):
        with pytest.raises(UsageError, match="only http:// and https:// are supported"):
            ask()


@pytest.mark.parametrize(
    "name", ["LangGraph", "LlamaIndex", "OpenAI Agents SDK", "Pydantic AI", "Google ADK", "command"]
)
def test_what_an_agent_may_be_names_every_framework(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        agent_for(5)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (AgentSpec(), "no agent: name one in seatrial.yaml"),
        (AgentSpec(command=("no-such-program-here",)), "there is no program 'no-such-program-here'"),
        (AgentSpec(target="https://localhost:8000/run", output=1), "agent output: 1 is neither a path"),
        (AgentSpec(target="agent"), "'agent' is not an import path; write module:object"),
        (AgentSpec(target="no_such_module_here:agent"), "there is no module named 'no_such_module_here'"),
        (AgentSpec(target="json:loadz"), "json has no 'loadz'; did you mean 'load"),
    ],
)
def test_a_spec_that_names_no_agent_is_a_usage_error(spec: AgentSpec, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_agent(spec)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")

    yield write
    for name in [name for name in sys.modules if name.startswith("made_agent")]:
        del sys.modules[name]


def test_an_agent_is_loaded_by_its_import_path(module: Any) -> None:
    module("made_agent_a", "def agent(task):\n    return task\n")
    assert load_agent(AgentSpec(target="made_agent_a:agent")).kind == "function"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\nraise ValueError('no settings')\n", r"raised ValueError: no settings \(.*made_agent_b\.py:2\)"),
        ("import nothing_of_that_name\n", "importing it needs 'nothing_of_that_name', which is not installed"),
        ("def agent(:\n", "raised SyntaxError"),
        ("import sys\nsys.exit(3)\n", "raised SystemExit: 3"),
    ],
)
def test_a_module_that_raises_is_named_with_its_line(module: Any, text: str, message: str) -> None:
    module("made_agent_b", text)
    with pytest.raises(UsageError, match=message):
        load_agent(AgentSpec(target="made_agent_b:agent"))


@pytest.mark.parametrize(
    ("package", "inner", "name"),
    [("agents", "agent", "Agent"), ("agents", "run", "Runner"), ("workflows", "workflow", "Workflow")],
)
def test_a_users_own_package_is_not_taken_for_a_framework_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, inner: str, name: str
) -> None:
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").write_text(f"from {package}.{inner} import {name}\n", encoding="utf-8")
    text = f"class {name}:\n    def invoke(self, case):\n        return case\n\nagent = {name}()\n"
    (folder / f"{inner}.py").write_text(text, encoding="utf-8")
    for module in [one for one in sys.modules if one.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert load_agent(AgentSpec(target=f"{package}.{inner}:agent")).kind == "function"
    finally:
        for module in [one for one in sys.modules if one.partition(".")[0] == package]:
            del sys.modules[module]


def test_a_url_or_a_spec_may_be_given_in_an_agents_place() -> None:
    assert agent_for("http://localhost:8000/run").kind == "http"
    assert agent_for(AgentSpec(target="https://localhost/run")).kind == "http"
    assert agent_for(AgentSpec(command=(sys.executable,))).kind == "command"


def test_a_service_without_httpx_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.agents.detect.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs the package httpx: pip install 'seatrial\[http\]'"):
        load_agent(AgentSpec(target="http://localhost:8000/run"))
