"""Programs over JSON lines: what is recorded, what the trial decides, and how a program's life ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphs import Drive, Driven
from programs import agent_of, program
from seatrial.agents.detect import agent_for
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import CallState, Guardrail, Observable, Retrieval, SafetyEvent, StopReason, Usage
from seatrial.core.trial import TrialStatus
from seatrial.errors import UsageError
from seatrial.runner.capture import captured_output
from seatrial.runner.trial import TrialSettings, run_trial

pytestmark = pytest.mark.skipif(os.name == "nt", reason="process groups are POSIX")


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def running(body: str, given: Any = "go", *turns: str, steps: int = 20, **fixture: Any) -> Driven:
        with captured_output():
            return Drive(agent_of(tmp_path, body), steps=steps).run(given, *turns, **fixture)

    return running


def failed(driven: Driven) -> str:
    assert driven.record.stop_reason is StopReason.AGENT_ERROR
    assert driven.record.error is not None
    return driven.record.error.message


# --- what it is told and what it tells -------------------------------------------------------------------------------


def test_the_answer_is_the_output_as_it_was_given(run: Any) -> None:
    driven = run(
        'turn = hear(); say(type="answer", output={"echo": turn["input"], "said": turn["message"]})',
        {"message": "hi", "n": 1},
    )
    assert driven.output == {"echo": {"message": "hi", "n": 1}, "said": "hi"}
    assert driven.trace.observes == {Observable.OUTPUT}


def test_hello_tells_of_the_trial_and_nothing_that_is_expected(run: Any) -> None:
    driven = run(
        'hear(); say(type="answer", output={**hello, "files": os.listdir(hello["workdir"]), "here": os.getcwd()})',
        identity={"agent": "desk", "user": "u1"},
        state={"n": 1},
        tools={"search": [{"returns": 1}]},
        secrets={"card": "4111 1111 1111 1111"},
    )
    told = driven.output
    assert told.pop("workdir") == told.pop("here")
    assert isinstance(told.pop("seed"), int)
    assert told == {
        "type": "hello",
        "protocol": 1,
        "case": "case",
        "trial": 1,
        "fixture": "",
        "identity": {"agent": "desk", "user": "u1"},
        "state": {"n": 1},
        "config": {},
        "database": None,
        "tools": ["search"],
        "files": [],
    }


def test_everything_that_is_reported_stands_in_the_trace_in_order(run: Any) -> None:
    driven = run(
        """
        hear()
        say(type="model_call", model="m", usage={"input": 7, "output": 3, "cached": 2}, cost_usd=0.5, latency_ms=12)
        say(type="tool_call", id="c1", name="lookup", arguments={"order": "O-1"})
        say(type="tool_call", id="c2", name="lookup", arguments='{"order": "O-2"}')
        say(type="tool_result", id="c2", result=2, told="two")
        say(type="tool_result", id="c1", error="KeyError: O-1")
        say(type="retrieval", query="q", contexts=["a"])
        say(type="guardrail", name="g", passed=True)
        say(type="safety", event="secret_exposure", evidence="e")
        say(type="handoff", source="desk", target="boss", reason="above", context={"order": "O-1"})
        say(type="message", role="assistant", content="done")
        say(type="answer", output="done", outcome={"status": "open"}, cost_usd=0.75, latency_ms=5)
        """
    )
    one, two = driven.calls
    assert (one.name, one.call_id, one.arguments, one.state, one.error) == (
        "lookup", "c1", {"order": "O-1"}, CallState.FAILED, "KeyError: O-1",
    )  # fmt: skip
    assert (two.arguments, two.result, two.told, two.state) == ({"order": "O-2"}, 2, "two", CallState.EXECUTED)
    assert one.ended == two.ended == two.number + 1, "both were open when the other began"
    (model,) = driven.model_calls
    assert (model.model, model.usage, model.cost_usd, model.latency_ms) == (
        "m",
        Usage(input=7, output=3, cached=2),
        0.5,
        12,
    )
    assert {one.step, two.step} == {model.number}
    (handoff,) = driven.handoffs
    assert (handoff.source, handoff.target, handoff.reason, handoff.context) == (
        "desk",
        "boss",
        "above",
        {"order": "O-1"},
    )
    assert len(list(driven.trace.of(Retrieval))) == len(list(driven.trace.of(Guardrail))) == 1
    assert [event.source for event in driven.trace.of(SafetyEvent)] == ["agent"]
    assert driven.record.outcome == {"status": "open"}
    assert (driven.record.cost_usd, driven.record.latency_ms) == (0.75, 5)
    assert set(Observable) - driven.trace.observes == {Observable.APPROVALS}


def test_a_call_of_a_handoff_tool_is_a_handoff(run: Any) -> None:
    driven = run(
        """
        hear()
        say(type="tool_call", id="c1", name="transfer_to_boss", agent="desk",
            arguments={"reason": "above", "context": {"order": "O-1"}, "amount": 7})
        say(type="tool_result", id="c1", result="ok")
        say(type="answer", output="")
        """
    )
    assert driven.calls == []
    assert [(h.source, h.target, h.reason, h.context) for h in driven.handoffs] == [
        ("desk", "boss", "above", {"order": "O-1", "amount": 7})
    ]


def test_what_is_declared_was_observed_though_it_did_not_happen(run: Any) -> None:
    driven = run('hear(); say(type="hello", observes=["tool_calls", "handoffs"]); say(type="answer", output=1)')
    assert driven.trace.observes == {Observable.OUTPUT, Observable.TOOL_CALLS, Observable.HANDOFFS}


def test_a_conversation_stays_in_one_process(run: Any) -> None:
    driven = run(
        """
        heard = []
        while True:
            heard.append(hear()["message"])
            say(type="answer", output=heard)
        """,
        "one",
        "two",
        "three",
    )
    assert driven.trace.outputs == (["one"], ["one", "two"], ["one", "two", "three"])


async def test_twenty_trials_at_once_share_nothing(tmp_path: Path) -> None:
    drive = Drive(
        agent_of(tmp_path, 'turn = hear(); open("mine", "x").close(); say(type="answer", output=turn["input"])')
    )
    driven = await asyncio.gather(*(drive.arun(f"input {number}") for number in range(20)))
    assert [one.output for one in driven] == [f"input {number}" for number in range(20)]


# --- what the trial decides ------------------------------------------------------------------------------------------

ASKS = """
hear()
told = []
for order in ("O-1", "O-2"):
    reply = ask(type="tool_call", id=order, name="lookup", arguments={"order": order}, ask=True)
    if reply["type"] == "run":
        reply = ask(type="tool_result", id=order, result=["own", order])
    told.append(reply.get("result", reply.get("error")))
say(type="answer", output=told)
"""


def test_a_stand_in_answers_in_place_of_the_agents_own_tool(run: Any) -> None:
    driven = run(
        ASKS,
        tools={"lookup": [{"when": {"order": "O-1"}, "returns": 1}, {"otherwise": True, "raises": "ValueError: no"}]},
    )
    assert driven.output == [1, "ValueError: no"]
    assert driven.states == [("lookup", "executed"), ("lookup", "failed")]
    assert [call.stand_in for call in driven.calls] == [True, True]


def test_without_a_stand_in_the_agents_own_body_runs(run: Any) -> None:
    driven = run(ASKS)
    assert driven.output == [["own", "O-1"], ["own", "O-2"]]
    assert [call.result for call in driven.calls] == driven.output


def test_faults_hit_before_and_after_the_agents_own_body(run: Any) -> None:
    driven = run(
        ASKS,
        faults=[
            {"tool": "lookup", "on_call": 1, "error": "timeout"},
            {"tool": "lookup", "on_call": 2, "result": "truncated"},
        ],
    )
    assert driven.output == ["TimeoutError: the tool timed out", ["own"]]
    assert driven.states == [("lookup", "failed"), ("lookup", "executed")]


def test_a_tool_that_nobody_has_is_unknown(run: Any) -> None:
    driven = run(
        'hear(); r = ask(type="tool_call", id="1", name="x", ask=True, own=False); say(type="answer", output=r)'
    )
    assert driven.states == [("x", "unknown_tool")]
    assert "there is no tool named 'x'" in driven.output["error"]


def test_arguments_that_are_no_object_are_invalid(run: Any) -> None:
    driven = run(
        'hear(); ask(type="tool_call", id="1", name="x", arguments="{", ask=True); say(type="answer", output=1)'
    )
    assert driven.states == [("x", "invalid_arguments")]
    assert driven.call.malformed


def test_parallel_calls_may_end_in_another_order(run: Any) -> None:
    driven = run(
        """
        hear()
        for name in "ab":
            say(type="tool_call", id=name, name=name, arguments={}, ask=True)
        ready = {hear()["id"], hear()["id"]}
        for name in "ba":
            ask(type="tool_result", id=name, result=name)
        say(type="answer", output=sorted(ready))
        """
    )
    first, second = driven.calls
    assert [first.result, second.result] == driven.output == ["a", "b"]
    assert first.ended == second.ended == second.number + 1, "both were open at once"


APPROVES = """
hear()
say(type="tool_call", id="c", name="pay", arguments={"amount": 700})
reply = ask(type="approval", id="a", action="pay", arguments={"amount": 700}, call="c")
if reply["decision"] in ("granted", "edited"):
    say(type="tool_result", id="c", result="paid")
else:
    say(type="tool_result", id="c", error="not allowed")
say(type="answer", output=reply, stop_reason="waiting_approval" if reply["decision"] == "unanswered" else "answered")
"""


@pytest.mark.parametrize(
    ("rule", "decision", "state", "stop"),
    [
        ({"decision": "granted", "by": "boss"}, "granted", "executed", StopReason.ANSWERED),
        ({"decision": "denied", "by": "boss"}, "denied", "refused", StopReason.ANSWERED),
        ({"decision": "edited", "arguments": {"amount": 5}}, "edited", "executed", StopReason.ANSWERED),
        ({"decision": "unanswered"}, "unanswered", "refused", StopReason.WAITING_APPROVAL),
    ],
)
def test_approvals_are_answered_by_the_script(run: Any, rule: Any, decision: str, state: str, stop: StopReason) -> None:
    driven = run(APPROVES, approvals=[{"action": "pay", **rule}])
    assert [approval.decision for approval in driven.approvals] == [decision]
    assert driven.states == [("pay", state)]
    assert driven.record.stop_reason is stop
    if stop is StopReason.ANSWERED:
        assert driven.output["arguments"] == {"amount": 5 if decision == "edited" else 700}


def test_the_step_limit_ends_a_program_that_asks_and_one_that_does_not(run: Any) -> None:
    for extra, reply in (("ask=True", "hear()"), ("usage={}", "None")):
        driven = run(
            f'hear()\nfor n in range(9):\n    say(type="model_call", id=str(n), model="m", {extra}); {reply}', steps=3
        )
        assert driven.record.stop_reason is StopReason.MAX_STEPS
        assert len(driven.model_calls) == 3


def test_a_model_call_with_a_cost_has_ended_without_usage_too(run: Any) -> None:
    driven = run(
        """
        hear()
        say(type="model_call", model="m", cost_usd=0.25)
        say(type="model_call", id="m1", model="m", cost_usd=0.5)
        say(type="model_call", id="m2", model="m")
        say(type="model_result", id="m2", cost_usd=0.125)
        say(type="answer", output="done")
        """
    )
    assert [(call.usage, call.cost_usd) for call in driven.model_calls] == [(None, 0.25), (None, 0.5), (None, 0.125)]
    assert driven.record.cost_usd == 0.875


@pytest.mark.parametrize("cost", ["-1", '"1"', "True"])
def test_the_cost_in_a_model_result_is_checked(run: Any, cost: str) -> None:
    driven = run(f'hear()\nsay(type="model_call", id="m")\nsay(type="model_result", id="m", cost_usd={cost})\nhear()')
    assert "line 2 of its standard output: model_result.cost_usd must be a" in failed(driven)


def test_a_model_call_that_asks_ends_with_its_result(run: Any) -> None:
    driven = run(
        """
        hear()
        go = ask(type="model_call", id="m1", model="big", ask=True)
        say(type="model_result", id="m1", usage={"input": 1, "output": 2}, error="RateLimitError: slow down")
        say(type="answer", output=go)
        """
    )
    (model,) = driven.model_calls
    assert (model.model, model.usage, model.error) == ("big", Usage(input=1, output=2), "RateLimitError: slow down")
    assert driven.output == {"type": "go", "id": "m1"}


def test_a_stop_by_a_limit_of_its_own_is_told_from_the_cases(run: Any) -> None:
    driven = run('hear(); say(type="answer", output=None, stop_reason="max_steps")')
    assert driven.record.stop_reason is StopReason.MAX_STEPS
    assert driven.record.detail == "max_steps: the program stopped by a limit of its own"
    over = 'hear(); say(type="answer", output=1, stop_reason="max_steps"); say(type="model_call")'
    assert run(over, steps=1).record.detail == "max_steps: the program stopped by a limit of its own"
    driven = run(f"{over}; say(type='model_call')", steps=1)
    assert driven.record.detail == "max_steps: the limit of 1 steps was reached"


# --- hand-offs that are tool calls -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        'say(type="tool_call", id="h", name="transfer_to_boss", state="refused")',
        'say(type="tool_call", id="h", name="transfer_to_boss", error="not allowed")',
        'say(type="tool_call", id="h", name="transfer_to_boss"); say(type="tool_result", id="h", error="not allowed")',
        'say(type="tool_call", id="h", name="transfer_to_boss"); say(type="tool_result", id="h", state="unknown")',
        'say(type="tool_call", id="h", name="transfer_to_boss")',
        'say(type="tool_call", name="transfer_to_boss")',
        'ask(type="tool_call", id="h", name="transfer_to_boss", ask=True); '
        'ask(type="tool_result", id="h", error="not allowed")',
        'ask(type="tool_call", id="h", name="transfer_to_boss", ask=True, own=False)',
    ],
)
def test_a_handoff_that_was_denied_failed_or_never_ended_is_not_completed(run: Any, said: str) -> None:
    driven = run(
        f"""
        hear()
        ask(type="approval", id="a", action="transfer_to_boss", call="h" if "id=" in {said!r} else None)
        {said}
        say(type="tool_call", name="lookup", arguments={{}}, result=1)
        say(type="answer", output="done")
        """,
        approvals=[{"action": "transfer_to_boss", "decision": "denied"}],
        identity={"agent": "desk"},
    )
    assert [(handoff.target, handoff.completed) for handoff in driven.handoffs] == [("boss", False)]
    assert [(call.name, call.agent) for call in driven.calls] == [("lookup", "desk")]


@pytest.mark.parametrize(
    "said",
    [
        'say(type="tool_call", name="transfer_to_boss")',
        'say(type="tool_call", id="h", name="transfer_to_boss", result="over to you")',
        'say(type="tool_call", id="h", name="transfer_to_boss", state="executed")',
        'say(type="tool_call", id="h", name="transfer_to_boss"); say(type="tool_result", id="h", result=None)',
        'ask(type="tool_call", id="h", name="transfer_to_boss", ask=True); ask(type="tool_result", id="h", result=1)',
    ],
)
def test_a_handoff_that_took_place_makes_its_target_act(run: Any, said: str) -> None:
    driven = run(
        f"""
        hear()
        {said}
        say(type="tool_call", name="lookup", arguments={{}}, result=1)
        say(type="answer", output="done")
        """,
        identity={"agent": "desk"},
    )
    assert [(h.source, h.target, h.completed) for h in driven.handoffs] == [("desk", "boss", True)]
    assert [(call.name, call.agent) for call in driven.calls] == [("lookup", "boss")]


# --- after an answer -------------------------------------------------------------------------------------------------

LATE_TOOL = '{"type": "tool_call", "name": "wipe_disk", "arguments": {}, "result": 1}'
ANSWER = '{"type": "answer", "output": "%s"}'


def at_once(*lines: str) -> str:
    """A program that says these lines in one go, whenever it hears of a turn."""
    said = "".join(f"{line}\n" for line in lines)
    return f"while hear():\n    sys.stdout.write({said!r}); sys.stdout.flush()"


def test_what_is_said_after_the_last_answer_counts(run: Any) -> None:
    driven = run(at_once(ANSWER % "done", LATE_TOOL))
    assert driven.output == "done"
    assert driven.states == [("wipe_disk", "executed")]


def test_what_is_said_once_the_input_has_ended_counts_too(run: Any) -> None:
    driven = run(f'hear(); say(type="answer", output=1); sys.stdin.read(); print({LATE_TOOL!r}, flush=True)')
    assert driven.states == [("wipe_disk", "executed")]


def test_what_is_said_between_two_turns_belongs_to_the_turn_before(run: Any) -> None:
    driven = run(at_once(ANSWER % "done", LATE_TOOL), "one", "two")
    assert driven.trace.outputs == ("done", "done")
    assert [(call.name, call.turn) for call in driven.calls] == [("wipe_disk", 1), ("wipe_disk", 2)]


def test_a_second_answer_is_an_error_and_no_answer_of_the_next_turn(run: Any) -> None:
    for turns in (("one",), ("one", "two")):
        driven = run(at_once(ANSWER % "first", LATE_TOOL, ANSWER % "second"), *turns)
        assert failed(driven).startswith("line 3 of its standard output: a second answer to turn 1: ")
        assert driven.trace.outputs == ("first",)
        assert driven.states == [("wipe_disk", "executed")]


def test_a_second_answer_that_comes_late_is_found_in_the_end(run: Any) -> None:
    driven = run('hear(); say(type="answer", output=1); sys.stdin.read(); say(type="answer", output=2)')
    assert "line 2 of its standard output: a second answer to turn 1" in failed(driven)


def test_answers_that_race_with_the_next_turn_are_found_in_the_end(run: Any) -> None:
    body = """
    while hear():
        for text in ("first", "second"):
            say(type="answer", output=text)
    """
    assert "a second answer to turn" in failed(run(body, "one", "two", "three"))


@pytest.mark.parametrize("turns", [("one",), ("one", "two")])
def test_a_broken_line_after_the_answer_is_an_error(run: Any, turns: tuple[str, ...]) -> None:
    driven = run(at_once(ANSWER % "done", '{"type": "tol_call"}'), *turns)
    assert failed(driven).startswith("line 2 of its standard output: unknown type 'tol_call'")


def test_an_error_after_the_answer_is_the_agents(run: Any) -> None:
    driven = run(at_once(ANSWER % "done", '{"type": "error", "kind": "OSError", "message": "disk full"}'))
    assert failed(driven) == "OSError: disk full"


# --- how it ends -----------------------------------------------------------------------------------------------------


def test_a_non_zero_exit_is_an_agent_error_with_code_and_the_tail_of_stderr(run: Any) -> None:
    driven = run(
        """
        hear()
        say(type="tool_call", name="x", arguments={}, result=1)
        sys.exit(print("the database is gone", file=sys.stderr) or 3)
        """
    )
    assert failed(driven) == "the command ended with exit code 3; its standard error ends:\nthe database is gone"
    assert driven.states == [("x", "executed")]
    assert "the database is gone" in driven.trace.log


def test_an_exit_code_after_the_answer_is_an_agent_error_too(run: Any) -> None:
    driven = run('hear(); say(type="answer", output="fine"); sys.exit(4)')
    assert "exit code 4" in failed(driven)
    assert driven.record.status is TrialStatus.FAILED


def test_ending_without_an_answer_is_an_agent_error(run: Any) -> None:
    assert failed(run("hear()")) == "the command ended with exit code 0"


def test_a_signal_is_named(run: Any) -> None:
    assert "was ended by signal SIGKILL" in failed(run("hear(); os.kill(os.getpid(), 9)"))


def test_an_error_that_it_reports_is_the_agents(run: Any) -> None:
    driven = run('hear(); say(type="error", kind="ValueError", message="no such order"); hear()')
    assert failed(driven) == "ValueError: no such order"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"type": "answer", ', "no JSON"),
        ('{"type": "anwser"}', "did you mean 'answer'?"),
        ('{"type": "tool_call", "id": "1", "name": "x", "argumens": {}}', "did you mean 'arguments'?"),
        ('{"type": "tool_call", "id": "1"}', "tool_call needs 'name'"),
        ('{"type": "tool_call", "id": 1, "name": "x"}', "tool_call.id must be text, not 1"),
        ('{"type": "tool_call", "name": 3}', "ToolCall.name must be text"),
        ('{"type": "tool_call", "name": "x", "state": "ran"}', "ToolCall.state cannot be 'ran'"),
        ('{"type": "tool_result", "id": "9"}', "is of no tool_call that waits for one"),
        ('{"type": "model_result", "id": "9"}', "is of no model_call that waits for one"),
        ('{"type": "model_call", "usage": {"inputs": 1}}', "inputs"),
        ('{"type": "model_call", "usage": {"input": -1}}', "ModelCall.input must be 0 or more"),
        ('{"type": "hello", "protocol": 2}', "the agent speaks protocol 2, this version 1"),
        ('{"type": "hello", "observes": ["calls"]}', "hello.observes cannot hold 'calls'"),
        ('{"type": "answer", "stop_reason": "done"}', "answer.stop_reason cannot be 'done'"),
        ('{"type": "answer", "outcome": []}', "answer.outcome must be an object"),
        ('{"type": "retrieval", "contexts": "a"}', "retrieval.contexts must be a list"),
        ('{"type": "answer", "output": NaN}', "no JSON (NaN is no number of JSON)"),
        ('{"type": "answer", "output": [-Infinity]}', "no JSON (-Infinity is no number of JSON)"),
        ('{"type": "answer", "output": 1e999}', "no JSON (1e999 is no number of JSON)"),
        ('{"type": "answer", "output": {"a": 1, "a": 2}}', "no JSON (an object has 'a' twice)"),
        ('{"type": "answer", "type": "hello"}', "no JSON (an object has 'type' twice)"),
        (
            '{"type": "tool_call", "name": "x", "state": "executed", "error": ""}',
            "cannot be 'executed' with an error",
        ),
        ('{"type": "tool_call", "name": "x", "state": "refused", "result": 1}', "cannot be 'refused' with a result"),
        ('{"type": "model_call", "usage": {"prompt_tokens": 1}}', "did you mean 'input'?"),
        (
            '{"type": "model_call", "cost_usd": -0.5}',
            "model_call.cost_usd must be a finite number of 0 or more, not -0.5",
        ),
        ('{"type": "model_call", "cost_usd": "0.5"}', "model_call.cost_usd must be a number or None, not '0.5' (str)"),
        ('{"type": "model_call", "cost_usd": true}', "model_call.cost_usd must be a number or None, not True (bool)"),
        ('{"type": "model_call", "id": "m", "cost_usd": -1}', "model_call.cost_usd must be a finite number"),
        (f'{{"type": "model_call", "cost_usd": {10**400}}}', "cost_usd must be a number of at most 308 digits"),
        (f'{{"type": "answer", "output": 1, "latency_ms": {10**400}}}', "must be a number of at most 308 digits"),
        ('{"type": "model_call", "latency_ms": -1}', "model_call.latency_ms must be a finite number of 0 or more"),
        ('{"type": "model_call", "id": "m", "ask": true, "cost_usd": 1}', "say it in its model_result"),
    ],
)
def test_a_broken_line_is_named_by_its_number(run: Any, line: str, message: str) -> None:
    driven = run(f"hear(); print('noise'); print({line!r}, flush=True); hear()")
    assert failed(driven).startswith("line 2 of its standard output: ")
    assert message in failed(driven)


def test_a_line_that_is_no_utf_8_is_broken_and_a_print_is_not(run: Any) -> None:
    line = '{"type": "answer", "output": "caf\xe9"}\n'
    driven = run(f"hear(); sys.stdout.buffer.write({line.encode('latin-1')!r}); sys.stdout.flush(); hear()")
    assert failed(driven).startswith("line 1 of its standard output: no JSON ('utf-8' codec can't decode byte 0xe9")
    driven = run('hear(); sys.stdout.buffer.write(b"caf\\xe9\\n"); sys.stdout.flush(); say(type="answer", output=1)')
    assert driven.output == 1


def test_a_result_that_contradicts_its_state_is_refused(run: Any) -> None:
    driven = run(
        """
        hear()
        say(type="tool_call", id="c", name="pay", arguments={})
        say(type="tool_result", id="c", state="executed", error="card declined")
        hear()
        """
    )
    assert "line 2 of its standard output: ToolCall.state cannot be 'executed' with an error" in failed(driven)
    assert driven.states == [("pay", "failed")]


@pytest.mark.parametrize("ended", [True, False])
def test_a_call_id_is_used_once(run: Any, ended: bool) -> None:
    more = {"result": 1} if ended else {}
    driven = run(
        f"""
        hear()
        say(type="tool_call", id="c", name="lookup", arguments={{}}, **{more!r})
        say(type="tool_call", id="c", name="pay", arguments={{}}, result=2)
        hear()
        """
    )
    assert "line 2 of its standard output: tool_call.id 'c' is of an earlier call" in failed(driven)
    assert [call.name for call in driven.calls] == ["lookup"]


def test_a_model_call_that_is_open_keeps_its_id(run: Any) -> None:
    driven = run('hear()\nfor _ in "ab":\n    say(type="model_call", id="m")\nhear()')
    assert "line 2 of its standard output: model_call.id 'm' is of a call that waits" in failed(driven)


def test_prints_go_to_the_log_and_do_not_disturb(run: Any) -> None:
    driven = run(
        'hear(); print("loading ...\\n[done]"); print("warning", file=sys.stderr); say(type="answer", output=1)'
    )
    assert driven.output == 1
    assert driven.record.status is not TrialStatus.FAILED
    assert sorted(driven.trace.log.splitlines()) == ["[done]", "loading ...", "warning"]


def test_a_line_that_never_ends_is_given_up(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.agents.command.process.LONGEST_LINE", 1 << 20)
    driven = run('hear(); sys.stdout.write("{" * (3 << 20)); sys.stdout.flush(); hear()')
    assert failed(driven) == "line 1 of its standard output is longer than 1 MiB"


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip() not in ("", "Z", "Z+", "Zs")


HAS_A_CHILD = """
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
hear()
say(type="safety", event="pids", evidence=[os.getpid(), child.pid])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "end", ["time.sleep(60)", "sys.exit(1)", 'say(type="answer", output=1); time.sleep(60)', 'print("{", flush=True)']
)
def test_whatever_happens_no_process_outlives_the_trial(tmp_path: Path, end: str) -> None:
    drive = Drive(agent_of(tmp_path, HAS_A_CHILD + end))
    planned: PlannedCase = drive.planned("go", (), {})
    limits = planned.case.limits.model_copy(update={"timeout_s": 2.5})
    case = planned.case.model_copy(update={"limits": limits})
    planned = PlannedCase(case, "", (), 1, planned.fixture)
    record, trace = asyncio.run(run_trial(agent_for(drive.target), planned, 1, TrialSettings()))
    (told,) = trace.of(SafetyEvent)
    assert [is_alive(pid) for pid in told.evidence] == [False, False]
    stops = {"time.sleep(60)": StopReason.TIMEOUT, 'say(type="answer", output=1); time.sleep(60)': StopReason.ANSWERED}
    assert record.stop_reason is stops.get(end, StopReason.AGENT_ERROR)


# --- what is refused before anything runs ----------------------------------------------------------------------------


def test_a_program_that_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="there is no program 'no-such-program'"):
        agent_for(AgentSpec(command=("no-such-program",)))


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (("python3", "nofile.py"), "nofile.py"),
        (("python3", "-u", "nofile.py"), "nofile.py"),
        (("python3", "deep/nofile"), "deep/nofile"),
        (("sh", "run.sh"), "run.sh"),
        (("env", "python3", "agents/nofile.py"), "agents/nofile.py"),
    ],
)
def test_a_script_that_is_not_in_the_project_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=f"agent command: '{word}' is not in the project"):
        agent_for(AgentSpec(command=command))
    (tmp_path / word).parent.mkdir(exist_ok=True)
    (tmp_path / word).touch()
    assert agent_for(AgentSpec(command=command)).kind == "command"


def test_a_script_with_a_name_like_one_that_is_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").touch()
    with pytest.raises(UsageError, match=r"did you mean 'agent\.py'"):
        agent_for(AgentSpec(command=("python3", "agnet.py")))


@pytest.mark.parametrize(
    "words",
    [
        ("-c", "open('a/b.py')"),
        ("-c", "1/2"),
        ("-m", "package.module", "x/y"),
        ("agent.py", "--model", "meta/llama"),
        ("agent.py", "meta/llama"),
        ("agent.py", "--write", "made.py"),
        ("agent.py", "http://127.0.0.1/x.js"),
    ],
)
def test_other_words_are_no_files_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").touch()
    assert agent_for(AgentSpec(command=("python3", *words))).kind == "command"


@pytest.mark.parametrize("name", ["python", "python3"])
def test_python_is_the_interpreter_that_runs_seatrial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = program(tmp_path, 'hear(); say(type="answer", output=sys.executable)')
    monkeypatch.setenv("PATH", "")
    assert Drive(AgentSpec(command=(name, "-S", str(path)))).run().output == sys.executable


def test_mappings_are_refused() -> None:
    with pytest.raises(UsageError, match="agent input and output"):
        agent_for(AgentSpec(command=(sys.executable,), output="answer"))


def test_files_of_the_project_are_found_from_the_trials_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_of(tmp_path, 'hear(); say(type="answer", output="found")')
    monkeypatch.chdir(tmp_path)
    driven = Drive(AgentSpec(command=(sys.executable, "agent.py"))).run()
    assert driven.output == "found"


def test_a_program_written_into_the_command_is_no_path() -> None:
    body = 'import json; input(); input(); print(json.dumps({"type": "answer", "output": 1})) #' + "x" * 5000
    assert Drive(AgentSpec(command=(sys.executable, "-S", "-c", body))).run().output == 1
