"""The scripted chat model for LangChain."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from seatrial.testing import ScriptedChatModel, ScriptExhausted, say

ASK = [HumanMessage("hello")]


def test_lines_are_played_in_order_and_then_the_script_is_exhausted() -> None:
    model = ScriptedChatModel(script=[say("one"), say("two")])
    assert [model.invoke(ASK).text, model.invoke(ASK).text] == ["one", "two"]
    with pytest.raises(ScriptExhausted, match="the script has 2 lines, and this is call 3"):
        model.invoke(ASK)


def test_an_exception_is_raised_and_a_function_sees_the_messages() -> None:
    model = ScriptedChatModel(script=[TimeoutError("slow"), lambda messages: say(messages[-1].text.upper())])
    with pytest.raises(TimeoutError, match="slow"):
        model.invoke(ASK)
    assert model.invoke(ASK).text == "HELLO"


def test_one_function_plays_every_call() -> None:
    model = ScriptedChatModel(script=lambda messages: say(str(len(messages))))
    assert [model.invoke(ASK).text, model.invoke([*ASK, *ASK]).text] == ["1", "2"]


def test_a_message_is_never_handed_out_twice() -> None:
    line = say("one")
    model = ScriptedChatModel(script=[line, line])
    first, second = model.invoke(ASK), model.invoke(ASK)
    assert first is not line
    assert first is not second
    assert first.id != second.id


def test_calls_usage_and_model_name() -> None:
    model = ScriptedChatModel(script=[say(calls=[("add", {"a": 1}, "c1"), ("add", {"a": 2})], usage=(7, 3))])
    message = model.invoke(ASK)
    assert isinstance(message, AIMessage)
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [("add", {"a": 1}), ("add", {"a": 2})]
    assert message.tool_calls[0]["id"] == "c1"
    assert message.tool_calls[1]["id"] not in (None, "c1")
    assert message.usage_metadata == {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    assert message.response_metadata["model_name"] == "scripted"


def test_usage_with_details_or_without_any() -> None:
    details = say(usage={"input_tokens": 5, "output_tokens": 1, "input_token_details": {"cache_read": 4}})
    assert details.usage_metadata is not None
    assert details.usage_metadata["total_tokens"] == 6
    assert say(usage=None).usage_metadata is None


def test_it_remembers_what_it_saw_with_tools_bound() -> None:
    def add(a: int) -> int:
        """Add."""
        return a

    model = ScriptedChatModel(script=[say("ok")])
    bound: Any = model.bind_tools([add])
    bound.invoke(ASK)
    assert [[message.text for message in seen] for seen in model.seen] == [["hello"]]


async def test_it_works_async() -> None:
    assert (await ScriptedChatModel(script=[say("ok")]).ainvoke(ASK)).text == "ok"


@pytest.mark.slow
def test_importing_the_package_loads_no_framework() -> None:
    code = "import sys, seatrial.testing; assert not [m for m in sys.modules if m.startswith('lang')]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    import seatrial.testing

    with pytest.raises(AttributeError, match="'Scripted'"):
        _ = seatrial.testing.Scripted
    assert "ScriptedChatModel" in dir(seatrial.testing)
