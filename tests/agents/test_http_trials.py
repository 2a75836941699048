"""Services over HTTP: what they are sent, what is read of them, how they reach the trial, what goes wrong."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import urllib.error
from collections.abc import Callable
from typing import Any

import pytest

from graphs import Drive, Driven
from seatrial.agents.detect import agent_for, load_agent
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import CallState, Observable, StopReason, Usage
from seatrial.errors import UsageError
from seatrial.runner.trial import TrialSettings, run_trial
from services import Asked, Reply, serving, tell

Answer = Callable[[Asked], Any]


def run(
    answer: Answer, given: Any = "go", *turns: str, steps: int = 20, settings: Any = None, **fixture: Any
) -> Driven:
    with serving(answer) as url:
        return Drive(AgentSpec(target=url, **(settings or {})), steps=steps).run(given, *turns, **fixture)


def failed(driven: Driven) -> str:
    assert driven.record.stop_reason is StopReason.AGENT_ERROR
    assert driven.record.error is not None
    return driven.record.error.message


# --- what it is sent -------------------------------------------------------------------------------------------------


def test_without_settings_a_service_is_sent_everything_it_may_need() -> None:
    driven = run(
        lambda asked: asked.body, {"message": "hi", "n": 1}, identity={"user": "u"}, tools={"t": [{"returns": 1}]}
    )
    sent = driven.output
    assert {key: sent[key] for key in ("message", "input", "turn", "approvals")} == {
        "message": "hi",
        "input": {"message": "hi", "n": 1},
        "turn": 1,
        "approvals": None,
    }
    assert sent["trial"].keys() == {
        *("protocol", "case", "trial", "seed", "fixture", "identity", "state"),
        *("config", "workdir", "database", "tools", "callback"),
    }
    assert sent["trial"]["identity"] == {"user": "u"}
    assert sent["trial"]["callback"].startswith("http://127.0.0.1:")


def test_the_request_is_mapped() -> None:
    settings = {
        "input": {
            "question": "$message",
            "who": "$input.user.id",
            "missing": "$input.none",
            "said": "$messages",
            "n": "$turn",
            "style": ["$config.style", "$$literal", 7],
        },
        "headers": {"X-Session": "$conversation", "Authorization": "Bearer abc"},
        "output": "sent",
    }
    heard: list[Asked] = []

    def answer(asked: Asked) -> Any:
        heard.append(asked)
        return {"sent": asked.body}

    driven = run(answer, {"message": "one", "user": {"id": "u1"}}, "two", settings=settings)
    first, second = driven.trace.outputs
    assert first == {
        "question": "one",
        "who": "u1",
        "missing": None,
        "said": [{"role": "user", "content": "one"}],
        "n": 1,
        "style": [None, "$literal", 7],
    }
    assert [message["role"] for message in second["said"]] == ["user", "assistant", "user"]
    sessions = {asked.headers["x-session"] for asked in heard}
    assert len(sessions) == 1
    assert heard[0].headers["authorization"] == "Bearer abc"


async def test_each_trial_is_a_conversation_of_its_own() -> None:
    conversations: dict[str, list[str]] = {}

    def answer(asked: Asked) -> Any:
        said = conversations.setdefault(asked.body["conversation"], [])
        said.append(asked.body["message"])
        return {"answer": said}

    with serving(answer) as url:
        drive = Drive(AgentSpec(target=url))
        driven = await asyncio.gather(*(drive.arun(f"one {n}", f"two {n}") for n in range(20)))
    assert [one.output for one in driven] == [[f"one {n}", f"two {n}"] for n in range(20)]


# --- what is read ----------------------------------------------------------------------------------------------------


def test_a_response_by_names_is_read_whole() -> None:
    response = {
        "answer": {"text": "done"},
        "tool_calls": [
            {"id": "c1", "name": "lookup", "arguments": {"order": "O-1"}, "result": 7},
            {"function": {"name": "search", "arguments": '{"q": "x"}'}, "id": "c2"},
        ],
        "handoffs": [{"source": "desk", "target": "boss", "reason": "r", "context": {"order": "O-1"}}],
        "usage": {"model": "m", "input": 5, "output": 2},
        "outcome": {"status": "open"},
        "safety_events": ["secret_exposure"],
        "cost_usd": 0.25,
    }
    driven = run(lambda _: response)
    assert driven.output == {"text": "done"}
    assert [(call.name, call.arguments, call.call_id, call.result) for call in driven.calls] == [
        ("lookup", {"order": "O-1"}, "c1", 7),
        ("search", {"q": "x"}, "c2", None),
    ]
    assert [handoff.target for handoff in driven.handoffs] == ["boss"]
    assert [(call.model, call.usage) for call in driven.model_calls] == [("m", Usage(input=5, output=2))]
    assert driven.record.outcome == {"status": "open"}
    assert driven.record.cost_usd == 0.25
    assert not driven.trace.ordered


def test_what_a_response_says_nothing_of_is_not_observed() -> None:
    assert run(lambda _: {"answer": "hi"}).trace.observes == {Observable.OUTPUT}
    assert run(lambda _: {"reply": "hi"}).output == {"reply": "hi"}


def test_a_response_is_read_by_paths() -> None:
    settings = {
        "output": {
            "answer": "reply.parts[0]",
            "tool_calls": {"path": "steps", "name": "tool", "arguments": "args", "result": "output.value"},
            "handoffs": "transfers",
            "usage": {"path": "meta.tokens", "input": "prompt", "output": "completion"},
        }
    }
    response = {
        "reply": {"parts": ["hello"]},
        "steps": [{"tool": "lookup", "args": {"n": 1}, "output": {"value": 2}, "took": 3}],
        "meta": {"tokens": {"prompt": 4, "completion": 5}},
    }
    driven = run(lambda _: response, settings=settings)
    assert driven.output == "hello"
    assert (driven.call.name, driven.call.arguments, driven.call.result) == ("lookup", {"n": 1}, 2)
    assert driven.model_calls[0].usage == Usage(input=4, output=5)
    assert {Observable.HANDOFFS, Observable.TOOL_CALLS, Observable.USAGE} <= driven.trace.observes
    assert Observable.SAFETY not in driven.trace.observes


def test_a_stream_is_put_together() -> None:
    parts = (
        {"answer": "Hel", "tool_calls": [{"name": "a"}]},
        {"answer": "lo"},
        {"tool_calls": [{"name": "b"}], "cost_usd": 1},
    )
    for end in ("data: [DONE]\n\n", ""):
        driven = run(lambda _, end=end: Reply.stream(*parts, end=end))
        assert driven.output == "Hello"
        assert [call.name for call in driven.calls] == ["a", "b"]
        assert driven.record.cost_usd == 1


def test_events_of_a_response_stand_in_their_order() -> None:
    events = [
        {"type": "model_call", "model": "m", "usage": {"input": 1, "output": 1}},
        {"type": "tool_call", "name": "lookup", "arguments": {}, "result": 1},
        {"type": "handoff", "target": "boss"},
    ]
    driven = run(lambda _: {"answer": "ok", "events": events})
    assert [event.kind for event in driven.trace.events] == ["message", "model_call", "tool_call", "handoff"]
    assert "events of the response: unknown type 'tool'" in failed(run(lambda _: {"events": [{"type": "tool"}]}))


@pytest.mark.parametrize(
    ("decision", "stop"), [("granted", "answered"), ("denied", "answered"), ("unanswered", "waiting_approval")]
)
def test_approvals_that_a_response_asks_for_go_back_with_the_next_request(decision: str, stop: str) -> None:
    def answer(asked: Asked) -> Any:
        decisions = asked.body["approvals"]
        if decisions is None:
            return {"approvals": [{"id": "a1", "action": "pay", "arguments": {"amount": 700}}]}
        return {"answer": [decisions[0]["id"], decisions[0]["decision"], decisions[0]["arguments"]]}

    driven = run(answer, approvals=[{"action": "pay", "decision": decision, "by": "boss"}])
    assert driven.record.stop_reason == stop
    assert [approval.decision for approval in driven.approvals] == [decision]
    if stop == "answered":
        assert driven.output == ["a1", decision, {"amount": 700}]


def test_a_service_that_asks_for_approval_for_ever_is_stopped() -> None:
    asks = {"approvals": [{"action": "pay"}]}
    driven = run(lambda _: asks, steps=3, approvals=[{"action": "pay", "decision": "granted", "by": "boss"}])
    assert driven.record.stop_reason is StopReason.MAX_STEPS


# --- the callback ----------------------------------------------------------------------------------------------------


def calls_lookup(asked: Asked) -> Any:
    trial, key = asked.body["trial"]["callback"], f"c{asked.body['turn']}"
    reply = tell(trial, type="tool_call", id=key, name="lookup", arguments={"order": "O-1"}, ask=True)
    if reply["type"] == "run":
        reply = tell(trial, type="tool_result", id=key, result=["own", 1])
    return {"answer": reply.get("result", reply.get("error"))}


def test_a_service_has_its_tools_answered_by_the_trial() -> None:
    assert run(calls_lookup).output == ["own", 1]
    assert run(calls_lookup, tools={"lookup": [{"returns": "stand-in"}]}).output == "stand-in"
    driven = run(calls_lookup, faults=[{"tool": "lookup", "error": "timeout", "after": True}])
    assert driven.output == "TimeoutError: the tool timed out"
    assert driven.states == [("lookup", "failed")]


def test_what_a_service_reports_before_it_fails_is_kept() -> None:
    def answer(asked: Asked) -> Any:
        assert tell(asked.body["trial"]["callback"], type="tool_call", name="lookup", arguments={}, result=1) == {}
        return Reply("out of memory", 500)

    driven = run(answer)
    assert failed(driven).endswith("/ask answered 500 Internal Server Error: out of memory")
    assert driven.states == [("lookup", "executed")]


def test_a_service_asks_for_approval_while_it_answers() -> None:
    def answer(asked: Asked) -> Any:
        return {"answer": tell(asked.body["trial"]["callback"], type="approval", id="a", action="pay")["decision"]}

    assert run(answer, approvals=[{"action": "pay", "decision": "denied", "by": "b"}]).output == "denied"


def told_status(callback: str, **message: Any) -> int:
    try:
        tell(callback, **message)
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def test_an_unreadable_message_is_the_agents_error_though_it_answers() -> None:
    def answer(asked: Asked) -> Any:
        told_status(asked.body["trial"]["callback"], type="tool_cal", name="x")
        waits.wait(20)
        return {"answer": "never mind"}

    waits = threading.Event()
    try:
        assert "the service told the trial something unreadable: unknown type 'tool_cal'" in failed(run(answer))
    finally:
        waits.set()


def test_the_step_limit_ends_a_service_that_goes_on() -> None:
    statuses: list[int] = []

    def answer(asked: Asked) -> Any:
        for _ in range(5):
            statuses.append(told_status(asked.body["trial"]["callback"], type="model_call", model="m", usage={}))
        return {"answer": "done"}

    driven = run(answer, steps=3)
    assert driven.record.stop_reason is StopReason.MAX_STEPS
    assert len(driven.model_calls) == 3
    assert statuses[:4] == [200, 200, 200, 409]


def test_another_address_than_the_trials_own_is_refused() -> None:
    def answer(asked: Asked) -> Any:
        return {"answer": told_status(asked.body["trial"]["callback"] + "x", type="message", content="hi")}

    assert run(answer).output == 404


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_status_that_is_no_success_is_the_agents_error_and_can_be_retried_by_name() -> None:
    driven = run(lambda _: Reply('{"detail": "no such model"}', 404))
    assert failed(driven).endswith('/ask answered 404 Not Found: {"detail": "no such model"}')
    assert driven.record.error is not None
    assert driven.record.error.type.endswith("ServiceError")


def test_a_redirect_is_not_followed() -> None:
    driven = run(lambda _: Reply("", 302, {"Location": "http://192.0.2.1/elsewhere"}))
    assert failed(driven).endswith("answered 302 and leads to http://192.0.2.1/elsewhere; redirects are not followed")


def test_text_is_no_json() -> None:
    assert failed(run(lambda _: Reply("<html>hello</html>"))).endswith(
        "/ask: its response is no JSON (Expecting value: line 1 column 1 (char 0)): <html>hello</html>"
    )
    streamed = Reply("data: {broken\n\n", headers={"Content-Type": "text/event-stream"})
    said = failed(run(lambda _: streamed))
    assert "an event of its stream is no JSON (" in said
    assert said.endswith("): {broken")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"answer": NaN}', "its response is no JSON (NaN is no number of JSON)"),
        ('{"answer": 1, "answer": 2}', "its response is no JSON (an object has 'answer' twice)"),
        (b'{"answer": "caf\xe9"}', "its response is no utf-8"),
    ],
)
def test_json_that_says_two_things_or_none_is_refused(content: Any, message: str) -> None:
    assert message in failed(run(lambda _: Reply(content)))


def test_the_encoding_that_a_service_names_is_its_own() -> None:
    latin = Reply('{"answer": "café"}'.encode("latin-1"), headers={"Content-Type": "application/json; charset=latin-1"})
    assert run(lambda _: latin).output == "café"


@pytest.mark.parametrize("output", [None, {"answer": "answer"}, {"answer": "reply.text", "usage": "used"}])
def test_an_error_within_a_stream_is_the_agents(output: Any) -> None:
    reply = Reply.stream({"answer": "half", "reply": {"text": "half"}}, {"error": "model died"})
    settings = {} if output is None else {"output": output}
    assert failed(run(lambda _: reply, settings=settings)) == 'an event of the stream is an error: "model died"'


def test_an_event_named_error_ends_a_stream() -> None:
    reply = Reply('data: {"answer": "half"}\n\nevent: error\ndata: model died\n\n', headers=STREAMED)
    assert failed(run(lambda _: reply)).endswith("its stream says that an error happened: model died")


def test_no_error_and_an_error_that_was_asked_for_are_no_failure() -> None:
    reply = Reply.stream({"answer": "a", "error": None}, {"answer": "b", "error": ""})
    assert run(lambda _: reply).output == "ab"
    mapped = Reply.stream({"error": {"text": "the shop is closed"}})
    assert run(lambda _: mapped, settings={"output": "error.text"}).output == "the shop is closed"


STREAMED = {"Content-Type": "text/event-stream"}


def test_a_stop_by_a_limit_of_its_own_is_told_from_the_cases() -> None:
    driven = run(lambda _: {"answer": 1, "stop_reason": "max_steps"})
    assert driven.record.stop_reason is StopReason.MAX_STEPS
    assert driven.record.detail == "max_steps: the service stopped by a limit of its own"


@pytest.mark.parametrize("kind", ["answer", "error"])
def test_events_hold_nothing_that_ends_a_turn(kind: str) -> None:
    said = failed(run(lambda _: {"answer": 1, "events": [{"type": kind}]}))
    assert said == f"events of the response: {kind} stands in the response of a service itself, not among its messages"


def test_a_handoff_that_was_denied_at_the_callback_is_not_completed() -> None:
    def answer(asked: Asked) -> Any:
        callback = asked.body["trial"]["callback"]
        tell(callback, type="approval", id="a", action="transfer_to_boss", call="h")
        tell(callback, type="tool_call", id="h", name="transfer_to_boss", state="refused")
        tell(callback, type="tool_call", name="lookup", result=1)
        return {"answer": "done"}

    denied = [{"action": "transfer_to_boss", "decision": "denied"}]
    driven = run(answer, approvals=denied, identity={"agent": "desk"})
    assert [(handoff.target, handoff.completed) for handoff in driven.handoffs] == [("boss", False)]
    assert driven.call.agent == "desk"


def test_a_response_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.agents.http.client.LONGEST", 1 << 20)
    assert failed(run(lambda _: {"answer": "x" * (2 << 20)})).endswith("answered with more than 1 MiB")


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driven = Drive(AgentSpec(target=f"http://user:secret@127.0.0.1:{port}/ask?key=secret")).run()
    assert driven.record.error is not None
    assert driven.record.error.type.endswith("ServiceUnreachable")
    assert f"http://127.0.0.1:{port}/ask: " in failed(driven)
    assert "secret" not in driven.record.error.message


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://192.0.2.1:9")
    assert run(lambda _: {"answer": 1}).output == 1


def test_a_missing_answer_is_said() -> None:
    driven = run(lambda _: {"replies": []}, settings={"output": "reply.text"})
    assert failed(driven).startswith("agent output: the response has no answer at reply.text: there is no reply")
    assert run(lambda _: {"reply": None}, settings={"output": "reply"}).output is None


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"tool_calls": ["lookup"]}, "tool_calls[0] of the response is no object but 'lookup'"),
        ({"tool_calls": [{"nam": "x"}]}, "did you mean 'name'?"),
        ({"tool_calls": [{"arguments": {}}]}, "tool_calls[0] of the response"),
        ({"usage": [{"tokens": 1}]}, "usage[0] of the response has the unknown field 'tokens'"),
        ({"answer": 1, "outcome": [1]}, "outcome must be a mapping"),
        ({"answer": 1, "safety_events": [1]}, "safety_events[0] must be a name or a mapping"),
        ({"usage": {"input": "12"}}, "usage[0] of the response: input must be a whole number or None, not '12' (str)"),
        ({"usage": {"input": -1}}, "usage[0] of the response: input must be 0 or more, not -1"),
        ({"usage": {"prompt_tokens": 12}}, "the unknown field 'prompt_tokens'; did you mean 'input'?"),
        ({"usage": {"completion_tokens": 12}}, "did you mean 'output'?"),
        ({"answer": 1, "cost_usd": -1}, "cost_usd of the response must be a finite number of 0 or more, not -1"),
        ({"answer": 1, "latency_ms": "5"}, "latency_ms of the response must be a number or None, not '5'"),
        ({"handoffs": [{"source": "a", "target": 3}]}, "handoffs[0] of the response: target must be text, not 3"),
        ({"tool_calls": [{"name": "x", "state": "executed", "error": "no"}]}, "'executed' with an error"),
    ],
)
def test_what_does_not_fit_is_named(response: Any, message: str) -> None:
    driven = run(lambda _: response)
    assert message in failed(driven)
    assert driven.record.error is not None
    assert driven.record.error.type.endswith("ServiceError")
    assert "AgentRun" not in driven.record.error.message


def test_a_service_that_is_too_slow_times_out() -> None:
    waits = threading.Event()
    drive = Drive(AgentSpec())
    with serving(lambda _: waits.wait(20)) as url:
        planned = drive.planned("go", (), {})
        case = planned.case.model_copy(update={"limits": planned.case.limits.model_copy(update={"timeout_s": 0.2})})
        planned = PlannedCase(case, "", (), 1, planned.fixture)
        record, _ = asyncio.run(run_trial(load_agent(AgentSpec(target=url)), planned, 1, TrialSettings()))
        waits.set()
    assert record.stop_reason is StopReason.TIMEOUT


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"input": {"q": "$mesage"}}, "did you mean 'message'?"),
        ({"headers": {"X": "$nothing"}}, "'\\$nothing' is not known"),
        ({"output": {"anser": "x"}}, "did you mean 'answer'?"),
        ({"output": {"answer": "a..b"}}, "is not a path"),
        ({"output": {"tool_calls": {"path": "x", "nam": "y"}}}, "did you mean 'name'?"),
        ({"output": 7}, "neither a path into the response nor a mapping"),
        ({"output": {"approvals": "asks"}, "input": {"q": "$message"}}, "where the decisions go"),
    ],
)
def test_a_mapping_that_makes_no_sense_is_refused_before_anything_runs(settings: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_agent(AgentSpec(target="http://127.0.0.1:1/", **settings))


def test_only_a_url_is_a_service() -> None:
    with pytest.raises(UsageError, match="an agent of kind http is a URL"):
        agent_for(print, AgentSpec(kind="http"))


def test_nothing_of_a_call_without_state_is_lost() -> None:
    driven = run(
        lambda _: {
            "answer": 1,
            "tool_calls": [{"name": "x", "error": "KeyError: 1"}, {"name": "y", "state": "refused"}],
        }
    )
    assert [call.state for call in driven.calls] == [CallState.FAILED, CallState.REFUSED]
    assert json.dumps(driven.output) == "1"
