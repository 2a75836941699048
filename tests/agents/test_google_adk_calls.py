"""Tool calls of Google ADK agents: what is recorded of those that ran, failed, were rejected or never began."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic import BaseModel

from graphs import drive
from seatrial.core.trace import Message, StopReason, Usage
from seatrial.environment.trial import current_trial
from seatrial.testing.google_adk import ScriptedLlm, say


def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


def boom(x: str) -> str:
    """Fail."""
    raise ValueError(f"boom {x}")


def solo(*lines: Any, tools: Any = (add, boom), **settings: Any) -> LlmAgent:
    return LlmAgent(name="solo", model=ScriptedLlm(script=list(lines)), tools=list(tools), **settings)


def test_a_call_has_its_arguments_without_defaults_and_its_result() -> None:
    driven = drive(solo(say("let me see", [("add", {"a": 1}, "c1")]), say("3")))
    call = driven.call
    assert (call.arguments, call.asked, call.result, call.told) == ({"a": 1}, None, 3, None)
    assert (call.call_id, call.agent, call.state.value) == ("c1", "solo", "executed")
    assert call.step == driven.model_calls[0].number
    assert call.ended == driven.model_calls[1].number
    assert (driven.output, driven.trace.steps) == ("3", 2)
    assert [event.content for event in driven.trace.of(Message)] == ["go", "let me see", "3"]


def test_calls_without_an_id_get_the_frameworks() -> None:
    asking = say(calls=[("add", {"a": 1}), ("add", {"a": 1}), ("add", {"a": 2})])
    assert asking.content is not None
    for part in asking.content.parts or ():
        assert part.function_call is not None
        part.function_call.id = None
    driven = drive(solo(asking, say("ok")))
    assert [(call.result, call.step) for call in driven.calls] == [(3, 2), (3, 2), (4, 2)]
    assert len({call.call_id for call in driven.calls}) == 3
    assert all(str(call.call_id).startswith("adk-") for call in driven.calls)


def test_an_exception_ends_the_run_and_calls_beside_it_are_kept() -> None:
    async def forever() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return ""

    calls = [("add", {"a": 1}), ("forever", {}), ("boom", {"x": "y"})]
    driven = drive(solo(say(calls=calls), tools=(add, forever, boom)))
    assert driven.trace.error is not None
    assert driven.trace.error.summary == "raised ValueError: boom y"
    assert driven.states == [("add", "executed"), ("forever", "failed"), ("boom", "failed")]
    assert [call.error for call in driven.calls] == [None, "cancelled before it ended", "ValueError: boom y"]


def test_an_error_that_a_callback_softens_is_told_so() -> None:
    def soften(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, Any]:
        return {"error": f"sorry, {error}"}

    driven = drive(solo(say(calls=[("boom", {"x": "y"})]), say("ok"), on_tool_error_callback=soften))
    assert driven.states == [("boom", "failed")]
    assert (driven.call.error, driven.call.told) == ("ValueError: boom y", {"error": "sorry, boom y"})
    assert driven.output == "ok"


def test_unknown_tools_and_missing_arguments_are_told_apart() -> None:
    calls = [("ghost", {"q": 1}, "c1"), ("add", {"b": 1}, "c2"), ("add", {"a": 1}, "c3")]
    driven = drive(solo(say(calls=calls), say("ok")))
    states = {call.call_id: call.state.value for call in driven.calls}
    assert states == {"c1": "unknown_tool", "c2": "invalid_arguments", "c3": "executed"}
    by_id = {call.call_id: call for call in driven.calls}
    assert "no tool with that name" in str(by_id["c1"].error)
    assert "mandatory input parameters are not present" in str(by_id["c2"].told)
    assert driven.output == "ok"


def test_a_tool_that_says_error_itself_has_run() -> None:
    def refuse() -> dict[str, str]:
        """Say no."""
        return {"error": "no"}

    driven = drive(solo(say(calls=[("refuse", {})]), say("ok"), tools=[refuse]))
    assert driven.states == [("refuse", "executed")]
    assert (driven.call.result, driven.call.told) == ({"error": "no"}, None)


def test_callbacks_of_the_agent_stay_around_the_body() -> None:
    seen: list[str] = []

    def before(tool: Any, args: Any, tool_context: Any) -> Any:
        seen.append(tool.name)
        return {"cached": True} if args["a"] == 0 else None

    def after(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> Any:
        return {"sum": tool_response} if args["a"] == 1 else None

    calls = [("add", {"a": 0}, "c0"), ("add", {"a": 1}, "c1")]
    agent = solo(say(calls=calls), say("ok"), before_tool_callback=before, after_tool_callback=after)
    by_id = {call.call_id: call for call in drive(agent).calls}
    assert (by_id["c0"].state.value, by_id["c0"].told) == ("unknown", {"cached": True})
    assert (by_id["c1"].result, by_id["c1"].told) == (3, {"sum": 3})
    assert seen == ["add", "add"]


class Doubling(BaseTool):
    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return 2 * args["n"]


def test_tools_of_other_classes_are_seen() -> None:
    tool = Doubling(name="double", description="Double a number.")
    tool._get_declaration = lambda: types.FunctionDeclaration(name="double")  # type: ignore[method-assign]
    driven = drive(solo(say(calls=[("double", {"n": 4})]), say("ok"), tools=[tool]))
    assert (driven.call.result, driven.states) == (8, [("double", "executed")])
    assert drive(
        solo(say(calls=[("double", {"n": 4})]), say("ok"), tools=[tool]), tools={"double": [{"returns": 1}]}
    ).call.stand_in


def test_the_tool_context_is_no_argument_and_its_state_is_the_sessions() -> None:
    def count(step: int, tool_context: ToolContext) -> int:
        """Count."""
        tool_context.state["n"] = tool_context.state.get("n", 0) + step
        return int(tool_context.state["n"])

    driven = drive(solo(say(calls=[("count", {"step": 2})]), say("ok"), tools=[count]))
    assert (driven.call.arguments, driven.call.result) == ({"step": 2}, 2)
    assert driven.record.outcome == {"n": 2}


def test_a_long_running_tool_that_gives_nothing_yet_ends_the_turn() -> None:
    def ask_manager(question: str) -> dict[str, str] | None:
        """Ask."""
        return {"status": "pending"} if question == "now" else None

    def agent(question: str) -> LlmAgent:
        lines = [say(calls=[("ask_manager", {"question": question})]), say("asked")]
        return solo(*lines, tools=[LongRunningFunctionTool(ask_manager)])

    told = drive(agent("now"))
    assert (told.output, told.call.result) == ("asked", {"status": "pending"})
    open_still = drive(agent("later"))
    assert (open_still.trace.stop_reason, open_still.states) == (
        StopReason.WAITING_APPROVAL,
        [("ask_manager", "executed")],
    )
    assert drive(agent("later"), tools={"ask_manager": [{"returns": {"status": "yes"}}]}).output == "asked"


class Total(BaseModel):
    amount: int


def test_the_structured_answer_is_no_tool_call() -> None:
    lines = [say(calls=[("add", {"a": 1})]), say(calls=[("set_model_response", {"amount": 3})])]
    driven = drive(solo(*lines, output_schema=Total))
    assert driven.states == [("add", "executed")]
    assert '"amount": 3' in str(driven.output) or driven.output == {"amount": 3}


# --- the fixture


def test_a_stand_in_does_not_answer_what_the_framework_rejects() -> None:
    driven = drive(solo(say(calls=[("add", {"b": 1})]), say("ok")), tools={"add": [{"returns": 9}]})
    assert driven.states == [("add", "invalid_arguments")]


def test_a_tool_that_went_through_the_trial_is_recorded_once() -> None:
    def build(environment: Any) -> LlmAgent:
        return solo(say(calls=[("add", {"a": 1}, "c1")]), say("ok"), tools=[environment.tool(add)])

    driven = drive(build, tools={"add": [{"returns": 50}]})
    assert (driven.call.result, driven.call.call_id, driven.call.stand_in) == (50, "c1", True)


def test_tools_know_the_trial() -> None:
    def look() -> str:
        """Look around."""
        return current_trial().case.id

    assert drive(solo(say(calls=[("look", {})]), say("ok"), tools=[look])).call.result == "case"


def test_the_apps_plugins_are_kept() -> None:
    class Guard(BasePlugin):
        async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> Any:
            return {"error": "not today"}

        async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
            return say("blocked") if len(llm_request.contents) > 1 else None

    app = App(name="shop", root_agent=solo(say(calls=[("add", {"a": 1})])), plugins=[Guard(name="guard")])
    driven = drive(app)
    assert driven.states == [("add", "unknown")]
    assert driven.call.told == {"error": "not today"}
    assert (driven.output, driven.trace.steps) == ("blocked", 1)


# --- usage


@pytest.mark.parametrize(
    ("reported", "seen"),
    [
        (None, None),
        ((7, 3), Usage(input=7, output=3)),
        (
            types.GenerateContentResponseUsageMetadata(
                prompt_token_count=9,
                tool_use_prompt_token_count=1,
                candidates_token_count=4,
                thoughts_token_count=3,
                cached_content_token_count=2,
                total_token_count=17,
            ),
            Usage(input=10, output=7, cached=2, reasoning=3),
        ),
        (
            types.GenerateContentResponseUsageMetadata(
                prompt_token_count=9, candidates_token_count=4, thoughts_token_count=3, total_token_count=13
            ),
            Usage(input=9, output=4, reasoning=3),
        ),
    ],
)
def test_each_token_is_counted_once(reported: Any, seen: Any) -> None:
    (call,) = drive(solo(say("ok", usage=reported, model="gemini-x"))).model_calls
    assert (call.usage, call.model) == (seen, "gemini-x")


def test_a_model_error_stands_at_its_call() -> None:
    driven = drive(solo(RuntimeError("down")))
    assert [call.error for call in driven.model_calls] == ["RuntimeError: down"]
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR


def test_a_model_that_says_its_error_in_a_response_failed_too() -> None:
    blocked = say()
    blocked.content, blocked.error_code, blocked.error_message = None, "SAFETY", "blocked"
    driven = drive(solo(blocked))
    assert [call.error for call in driven.model_calls] == ["SAFETY: blocked"]
    assert driven.trace.error is not None
    assert driven.trace.error.message == "the model failed: SAFETY: blocked"
