"""How a case's input becomes a run of a Pydantic AI agent, and its output the answer."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse

from graphs import drive
from seatrial.agents.detect import agent_for
from seatrial.core.project import AgentSpec
from seatrial.errors import UsageError
from seatrial.testing.pydantic_ai import ScriptedModel, say

GIVEN = {"message": "Hi", "user": {"id": 7}, "shop": "main"}


@dataclass
class Deps:
    user_id: int
    shop: str = "none"


class ModelDeps(BaseModel):
    user_id: int


def seen(messages: list[ModelMessage]) -> ModelResponse:
    return say(" / ".join(f"{part.part_kind}:{getattr(part, 'content', '')}" for m in messages for part in m.parts))


def deps_of(deps_type: Any) -> Agent[Any, Any]:
    agent = Agent(
        ScriptedModel([say(calls=[("who", {})]), say("a"), say(calls=[("who", {})]), say("b")]), deps_type=deps_type
    )

    @agent.tool
    def who(ctx: RunContext[Any]) -> str:
        """Show the deps."""
        return repr(ctx.deps)

    return agent


def answer(given: Any, *turns: str, **spec: Any) -> Any:
    return drive(Agent(ScriptedModel(seen)), given, *turns, spec=AgentSpec(**spec)).output


def test_without_settings_the_message_is_the_prompt() -> None:
    assert answer("Hi") == "user-prompt:Hi"
    assert answer(GIVEN) == "user-prompt:Hi"


def test_messages_of_the_input_are_the_conversation_until_there() -> None:
    roles = ["system", "user", "assistant", "user"]
    given = {"messages": [{"role": role, "content": str(n)} for n, role in enumerate(roles)]}
    assert answer(given) == "system-prompt:0 / user-prompt:1 / text:2 / user-prompt:3"


def test_expressions_fill_the_prompt() -> None:
    assert answer(GIVEN, input="$input.shop") == "user-prompt:main"
    assert answer(GIVEN, input={}) == "user-prompt:Hi"
    assert answer(GIVEN, input={"prompt": "$input.user"}) == 'user-prompt:{"id":7}'
    assert answer(GIVEN, input={"prompt": "$input.user.id"}) == "user-prompt:7"


def test_other_arguments_of_a_run_may_be_given() -> None:
    def reply(messages: list[ModelMessage]) -> ModelResponse:
        return say(str(getattr(messages[-1], "instructions", "")))

    spec = AgentSpec(input={"instructions": "$input.shop"})
    assert drive(Agent(ScriptedModel(reply)), GIVEN, spec=spec).output == "main"


def test_deps_are_made_once_a_trial_of_the_agents_type() -> None:
    spec = AgentSpec(input={"deps": {"user_id": "$input.user.id", "shop": "$input.shop"}})
    driven = drive(deps_of(Deps), GIVEN, "again", spec=spec)
    assert [call.result for call in driven.calls] == ["Deps(user_id=7, shop='main')"] * 2
    spec = AgentSpec(input={"deps": {"user_id": "$input.user.id"}})
    assert drive(deps_of(ModelDeps), GIVEN, spec=spec).call.result == "ModelDeps(user_id=7)"
    assert drive(deps_of(dict), GIVEN, spec=spec).call.result == "{'user_id': 7}"


def test_functions_may_do_the_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("own_mapping")
    made: list[Any] = []

    def connect(given: Any) -> Deps:
        made.append(given)
        return Deps(given["user"]["id"])

    vars(module).update(
        connect=connect,
        prompt=lambda given: {"prompt": given["shop"].upper()},
        length=len,
    )
    monkeypatch.setitem(sys.modules, "own_mapping", module)
    driven = drive(deps_of(Deps), GIVEN, "again", spec=AgentSpec(input={"deps": "own_mapping:connect"}))
    assert [call.result for call in driven.calls] == ["Deps(user_id=7, shop='none')"] * 2
    assert len(made) == 1
    assert answer(GIVEN, input="own_mapping:prompt") == "user-prompt:MAIN"
    assert answer("Hi", output="own_mapping:length") == len("user-prompt:Hi")


class Report(BaseModel):
    total: int


def test_output_is_a_path_into_the_answer() -> None:
    agent = Agent(ScriptedModel([say(calls=[("final_result", {"total": 3})])]), output_type=Report)
    assert drive(agent, spec=AgentSpec(output="total")).output == 3


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"input": {"promt": "x"}}, "a run has no 'promt'; did you mean 'prompt'"),
        ({"input": 7}, "7 is neither a mapping"),
        ({"output": 7}, "7 is neither a path into the run's output nor module:function"),
    ],
)
def test_settings_that_make_no_sense_are_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        agent_for(Agent(ScriptedModel(seen)), AgentSpec(**spec))


@pytest.mark.parametrize(
    ("given", "spec", "message"),
    [
        ({"user": 1}, {}, "has no `message`"),
        ("Hi", {"output": "total"}, "there is no total in str"),
        (GIVEN, {"input": {"deps": {"user_id": "x"}}}, "deps do not make a Deps"),
    ],
)
def test_inputs_that_do_not_fit_say_so(given: Any, spec: dict[str, Any], message: str) -> None:
    driven = drive(Agent(ScriptedModel(seen), deps_type=Deps), given, spec=AgentSpec(**spec))
    assert driven.trace.error is not None
    assert driven.trace.error.type == "seatrial.errors.UsageError"
    with pytest.raises(UsageError, match=message):
        raise UsageError(driven.trace.error.message)
