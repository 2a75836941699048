"""Chat endpoints as agents: messages over turns, usage, tools answered by the trial, streams, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from chats import Configured
from graphs import Driven
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Guardrail, StopReason, Usage
from services import Asked, Reply, serving


class Endpoint:
    """Answers with the next of its replies, and keeps what it was asked."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.asked: list[Any] = []

    def __call__(self, asked: Asked) -> Any:
        self.asked.append(asked.body)
        reply = self.replies[len(self.asked) - 1]
        return reply(asked.body) if callable(reply) else reply


def completion(content: str | None = None, calls: Sequence[tuple[str, str, str]] = (), **usage: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
            for key, name, arguments in calls
        ]
    used = usage or {"prompt_tokens": 10, "completion_tokens": 4}
    return {"model": "served-model", "choices": [{"index": 0, "message": message}], "usage": used}


def run(
    endpoint: Endpoint, given: Any = "go", *turns: str, config: Any = None, steps: int = 20, **fixture: Any
) -> Driven:
    with serving(endpoint, "/v1/chat/completions") as url:
        drive = Configured(AgentSpec(target=url), steps=steps)
        drive.config.update(config or {})
        return drive.run(given, *turns, **fixture)


def test_the_conversation_is_kept_over_the_turns() -> None:
    endpoint = Endpoint(completion("one"), completion("two"))
    system = {"role": "system", "content": "Be short."}
    driven = run(endpoint, "first", "second", config={"model": "m", "temperature": 0, "messages": [system]})
    assert driven.trace.outputs == ("one", "two")
    assert endpoint.asked[1] == {
        "model": "m",
        "temperature": 0,
        "messages": [
            system,
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "one"},
            {"role": "user", "content": "second"},
        ],
    }


def test_usage_is_read_once_of_each_kind() -> None:
    used = {
        "prompt_tokens": 100,
        "completion_tokens": 40,
        "total_tokens": 140,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    driven = run(Endpoint(completion("hi", **used)), config={"model": "asked-model"})
    assert [(call.model, call.usage) for call in driven.model_calls] == [
        ("served-model", Usage(input=100, output=40, cached=60, reasoning=30))
    ]


def test_stand_ins_answer_the_models_tool_calls_and_parallel_ones_share_their_step() -> None:
    calls = [("c1", "lookup", '{"order": "O-1"}'), ("c2", "lookup", '{"order": "O-2"}')]
    endpoint = Endpoint(completion(calls=calls), completion("done"))
    driven = run(
        endpoint,
        tools={"lookup": [{"when": {"order": "O-1"}, "returns": {"n": 1}}, {"otherwise": True, "returns": "two"}]},
    )
    assert driven.output == "done"
    assert [(call.call_id, call.result, call.stand_in) for call in driven.calls] == [
        ("c1", {"n": 1}, True),
        ("c2", "two", True),
    ]
    assert {call.step for call in driven.calls} == {driven.model_calls[0].number}
    told = endpoint.asked[1]["messages"][-2:]
    assert [message["tool_call_id"] for message in told] == ["c1", "c2"]
    assert [json.loads(told[0]["content"]), told[1]["content"]] == [{"n": 1}, "two"]
    assert [tool["function"]["name"] for tool in endpoint.asked[0]["tools"]] == ["lookup"]
    assert driven.trace.steps == 2


def test_declared_tools_are_sent_as_they_are() -> None:
    tool = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}
    endpoint = Endpoint(completion("hi"))
    run(endpoint, config={"tools": [tool]}, tools={"lookup": [{"returns": 1}]})
    assert endpoint.asked[0]["tools"] == [tool]


def test_calls_that_cannot_run_are_told_to_the_model() -> None:
    calls = [("c1", "nothing", "{}"), ("c2", "lookup", "{broken"), ("c3", "slow", "{}")]
    endpoint = Endpoint(completion(calls=calls), completion("sorry"))
    driven = run(
        endpoint,
        tools={"lookup": [{"returns": 1}], "slow": [{"returns": 1}]},
        faults=[{"tool": "slow", "error": "timeout"}],
    )
    assert driven.states == [("nothing", "unknown_tool"), ("lookup", "invalid_arguments"), ("slow", "failed")]
    told = [message["content"] for message in endpoint.asked[1]["messages"][-3:]]
    assert told == [
        "UnknownTool: there is no tool named 'nothing'",
        "ValueError: the arguments are no JSON object",
        "TimeoutError: the tool timed out",
    ]


def test_a_handoff_tool_is_a_handoff() -> None:
    calls = [("c1", "transfer_to_boss", '{"reason": "above", "order": "O-1"}')]
    driven = run(Endpoint(completion(calls=calls), completion("the boss here")), identity={"agent": "desk"})
    assert driven.calls == []
    assert [(h.source, h.target, h.reason, h.context) for h in driven.handoffs] == [
        ("desk", "boss", "above", {"order": "O-1"})
    ]
    assert [call.agent for call in driven.model_calls] == ["desk", "boss"]


def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "served-model", "choices": [{"index": 0, "delta": delta}], **more}


LOOKS_UP = chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "lookup", "arguments": "{}"}}]})
STREAMED = {"Content-Type": "text/event-stream"}


def finished(reason: str, **message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}]}


def guards(driven: Driven) -> list[tuple[str, bool, Any]]:
    return [(guard.name, guard.passed, guard.details) for guard in driven.trace.of(Guardrail)]


def test_a_stream_that_says_why_it_ended_needs_no_done() -> None:
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    driven = run(Endpoint(Reply.stream(chunk({"content": "Hello"}), last, end="")), config={"stream": True})
    assert (driven.output, guards(driven)) == ("Hello", [])


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_an_answer_that_was_cut_short_is_noted(reason: str) -> None:
    driven = run(Endpoint(finished(reason, content="half an ans")))
    assert driven.output == "half an ans"
    assert guards(driven) == [(reason, False, {"finish_reason": reason})]


def test_a_refusal_is_the_output_and_noted() -> None:
    whole = finished("stop", content=None, refusal="I cannot help with that.")
    parts = Reply.stream(chunk({"refusal": "I cannot help "}), chunk({"refusal": "with that."}))
    for reply in (whole, parts):
        driven = run(Endpoint(reply))
        assert driven.output == "I cannot help with that."
        assert guards(driven) == [("refusal", False, "I cannot help with that.")]


def test_calls_with_one_id_are_kept_apart_and_those_without_have_none() -> None:
    twice = [completion(calls=[("c", "lookup", f'{{"n": {number}}}')]) for number in (1, 2)]
    without = completion(calls=[("", "lookup", '{"n": 3}'), ("", "lookup", '{"n": 4}')])
    endpoint = Endpoint(*twice, without, completion("done"))
    driven = run(endpoint, tools={"lookup": [{"returns": 1}]})
    assert [(call.call_id, call.attempt) for call in driven.calls] == [("c", 1), ("c#2", 1), (None, 1), (None, 1)]
    assert endpoint.asked[2]["messages"][-1]["tool_call_id"] == "c", "the endpoint hears of its own id"


def test_a_handoff_with_broken_arguments_is_not_completed() -> None:
    endpoint = Endpoint(completion(calls=[("c1", "transfer_to_boss", '{"reason": "abo')]), completion("sorry"))
    driven = run(endpoint, identity={"agent": "desk"})
    assert [(h.target, h.completed) for h in driven.handoffs] == [("boss", False)]
    assert [call.agent for call in driven.model_calls] == ["desk", "desk"]
    assert endpoint.asked[1]["messages"][-1]["content"] == "ValueError: the arguments are no JSON object"


def test_a_stream_is_put_together_calls_too() -> None:
    asks = Reply.stream(
        chunk({"role": "assistant", "content": None}),
        chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"name": "up", "arguments": '{"order":'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ' "O-1"}'}}]}),
        {"model": "served-model", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    )
    says = Reply.stream(chunk({"content": "Hel"}), chunk({"content": "lo"}))
    endpoint = Endpoint(asks, says)
    driven = run(endpoint, config={"stream": True}, tools={"lookup": [{"returns": 1}]})
    assert driven.output == "Hello"
    assert (driven.call.name, driven.call.arguments) == ("lookup", {"order": "O-1"})
    assert [call.usage for call in driven.model_calls] == [Usage(input=3, output=2), None]
    assert endpoint.asked[0]["stream_options"] == {"include_usage": True}


def test_a_model_that_calls_tools_for_ever_is_stopped() -> None:
    forever = [completion(calls=[("c", "lookup", "{}")])] * 9
    driven = run(Endpoint(*forever), steps=3, tools={"lookup": [{"returns": 1}]})
    assert driven.record.stop_reason is StopReason.MAX_STEPS
    assert len(driven.model_calls) == 3


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply('{"error": {"message": "slow down"}}', 429), "answered 429 Too Many Requests"),
        ({"error": {"message": "no such model"}}, "the endpoint answered with an error: no such model"),
        ({"answer": "hi"}, "the response is no chat completion"),
        ([], "the response is no chat completion: []"),
        (Reply.stream({"error": {"message": "overloaded"}}), "the endpoint answered with an error: overloaded"),
        (Reply.stream(chunk({"content": "half an ans"}), end=""), "without finish_reason and without [DONE]"),
        (Reply.stream(LOOKS_UP, end=""), "without finish_reason and without [DONE]"),
        (Reply.stream(end=""), "its stream ended without an event"),
        (Reply('event: error\ndata: "overloaded"\n\n', headers=STREAMED), "its stream says that an error happened"),
        (finished("error", content="half"), "its finish_reason is 'error'"),
        (finished("length", tool_calls=LOOKS_UP["choices"][0]["delta"]["tool_calls"]), "ended within its tool calls"),
        (Reply(b'{"choices": [{"message": {"content": "caf\xe9"}}]}'), "its response is no utf-8"),
        (Reply('{"choices": [{"message": {"content": "a", "content": "b"}}]}'), "an object has 'content' twice"),
    ],
)
def test_an_endpoint_that_fails_is_the_agents_error_and_its_call_is_on_record(reply: Any, message: str) -> None:
    driven = run(Endpoint(reply, completion("late")), tools={"lookup": [{"returns": 1}]})
    assert driven.calls == []
    assert driven.record.stop_reason is StopReason.AGENT_ERROR
    assert driven.record.error is not None
    assert message in driven.record.error.message
    assert [message in str(call.error) for call in driven.model_calls] == [True]


def test_messages_of_the_case_are_sent_as_they_are() -> None:
    endpoint = Endpoint(completion("hi"))
    messages = [
        {"role": "user", "content": "earlier"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "now"},
    ]
    run(endpoint, {"messages": messages})
    assert endpoint.asked[0]["messages"] == messages
