"""The scripted model for Pydantic AI: lines, functions, errors, streams."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse

from seatrial.testing.lines import Lines
from seatrial.testing.pydantic_ai import ScriptedModel, ScriptExhausted, say


def double(n: int) -> int:
    """Double."""
    return 2 * n


async def test_lines_are_played_one_a_call() -> None:
    agent = Agent(ScriptedModel([say(calls=[("double", {"n": 2}, "c1")]), say("four", usage=(7, 3))]), tools=[double])
    result = await agent.run("x")
    assert (result.output, result.usage.input_tokens, result.usage.output_tokens) == ("four", 17, 8)
    with pytest.raises(ScriptExhausted, match="2 lines, and this is call 3"):
        await agent.run("x")


async def test_a_line_may_be_an_error_or_a_function() -> None:
    def reply(messages: list[ModelMessage]) -> ModelResponse:
        return say(f"{len(messages)}")

    agent = Agent(ScriptedModel([reply, RuntimeError("down")]))
    assert (await agent.run("x")).output == "1"
    with pytest.raises(RuntimeError, match="down"):
        await agent.run("x")


async def test_a_reply_is_never_handed_out_twice() -> None:
    line = say("same")
    agent = Agent(ScriptedModel(lambda _: line))
    first, second = await agent.run("x"), await agent.run("y")
    assert first.all_messages()[-1] is not second.all_messages()[-1]
    assert line.run_id is None


@pytest.mark.parametrize("usage", [(3, 2), None])
async def test_a_stream_says_the_same_piece_by_piece(usage: Any) -> None:
    agent = Agent(ScriptedModel([say("one two three", usage=usage)], model_name="m"))
    async with agent.run_stream("x") as result:
        pieces = [text async for text in result.stream_text(delta=True, debounce_by=None)]
    assert "".join(pieces) == "one two three"
    assert len(pieces) == 3
    assert result.usage.input_tokens == (usage or (0, 0))[0]


async def test_one_script_serves_many_tasks() -> None:
    lines: Lines[int] = Lines(list(range(100)))
    played = await asyncio.gather(*[asyncio.to_thread(lines.play, []) for _ in range(100)])
    assert sorted(played) == list(range(100))
