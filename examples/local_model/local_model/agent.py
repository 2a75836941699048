"""The agent: a loop around the model, which answers in JSON that its grammar allows, one move at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from openai import OpenAI

from local_model.server import base_url
from seatrial import ModelCall

__all__ = ["build"]

PRICES = {"apple": 3, "pear": 4, "plum": 2, "melon": 9}
MOVES = 6
Messages = list[dict[str, str]]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def price_of(item: str) -> int | str:
    """The price of an item in dollars."""
    return PRICES.get(item, "unknown item")


def _move(name: str, **arguments: dict[str, Any]) -> dict[str, Any]:
    """The schema of one move: a branch a tool, every argument required, nothing else allowed."""
    properties = {"tool": {"const": name}, **arguments}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


NUMBER = {"type": "integer", "minimum": 0, "maximum": 9999}
SCHEMA = {
    "oneOf": [
        _move("price_of", item={"type": "string", "maxLength": 12}),
        _move("add", a=NUMBER, b=NUMBER),
        _move("finish", answer={"type": "string", "maxLength": 24}),
    ]
}
SYSTEM = "You are a shop assistant. Use one tool at a time, then finish with the answer."
EXAMPLES = (
    ("What does a plum cost?", '{"tool":"price_of","item":"plum"}'),
    ("result: 2", '{"tool":"finish","answer":"2"}'),
    ("What is 100 plus 250?", '{"tool":"add","a":100,"b":250}'),
    ("result: 350", '{"tool":"finish","answer":"350"}'),
    ("What do a plum and a melon cost together?", '{"tool":"price_of","item":"plum"}'),
    ("result: 2", '{"tool":"price_of","item":"melon"}'),
    ("result: 9", '{"tool":"add","a":2,"b":9}'),
    ("result: 11", '{"tool":"finish","answer":"11"}'),
)


def _beginning(task: str) -> Messages:
    said: Messages = [{"role": "system", "content": SYSTEM}]
    for asked, answered in EXAMPLES:
        said += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return [*said, {"role": "user", "content": task}]


def build(environment: Any, config: Mapping[str, Any]) -> Callable[[str], str]:
    """The agent of one trial. `config`: `temperature` (0.8) and `model`."""
    tools = {function.__name__: environment.tool(function) for function in (add, price_of)}
    model = config.get("model", "smollm2-135m")

    def next_move(client: OpenAI, messages: Messages, number: int) -> str:
        reply = client.chat.completions.create(
            model=model,
            messages=messages,  # type: ignore[arg-type]
            temperature=config.get("temperature", 0.8),
            seed=(environment.seed + number) % 2**31,  # the same trial, run again, says the same
            max_tokens=64,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "move", "strict": True, "schema": SCHEMA},
            },
        )
        usage = reply.usage
        environment.record(
            ModelCall(model, input=usage and usage.prompt_tokens, output=usage and usage.completion_tokens)
        )
        return reply.choices[0].message.content or ""

    def answer(task: str) -> str:
        messages = _beginning(task)
        with OpenAI(base_url=base_url(), api_key="none", max_retries=0, timeout=60) as client:
            for number in range(MOVES):
                said = next_move(client, messages, number)
                move = json.loads(said)
                tool = move.pop("tool")
                if tool == "finish":
                    return str(move["answer"])
                result = tools[tool](**move)
                messages += [{"role": "assistant", "content": said}, {"role": "user", "content": f"result: {result}"}]
        return "I did not come to an end."

    return answer
