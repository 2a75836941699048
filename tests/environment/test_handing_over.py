"""Calls of hand-off tools are hand-offs, by whichever way they come to be recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from seatrial.core.agent_run import HandoffEvent, ToolCall
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.trace import CallState, Handoff
from seatrial.environment.handing_over import AskedHandoff, asked_handoff
from seatrial.environment.recorder import Recorder
from seatrial.environment.trial import TrialEnvironment

GIVEN = {"order": "O-1", "reason": "limit", "context": {"amount": 7}}
HANDED = {"order": "O-1", "amount": 7}


@pytest.fixture
def trial() -> Iterator[TrialEnvironment]:
    made = TrialEnvironment(Case(id="a"), FixtureSpec.model_validate({"identity": {"agent": "clerk"}}))
    with made.activate():
        yield made


def transfer_to_boss(order: str, reason: str | None = None, context: dict[str, Any] | None = None) -> str:
    return "over to the boss"


def only(recorder: Recorder) -> Handoff:
    (event,) = recorder.freeze()
    assert isinstance(event, Handoff)
    return event


def routes(recorder: Recorder) -> list[tuple[str, str, bool]]:
    events = recorder.freeze()
    assert all(isinstance(event, Handoff) for event in events), events
    return [(event.source, event.target, event.completed) for event in events if isinstance(event, Handoff)]


@pytest.mark.parametrize("argument", ["to", "to_agent", "agent", "agent_name", "target"])
@pytest.mark.parametrize("name", ["handoff", "transfer_to_agent"])
def test_a_tool_for_any_target_names_it_in_an_argument(name: str, argument: str) -> None:
    asked = asked_handoff(name, {argument: "boss", "order": "O-1", "reason": "limit"})
    assert asked == AskedHandoff("boss", "limit", {"order": "O-1"})


@pytest.mark.parametrize("arguments", [{}, {"to": ""}, {"to": 7}, "no JSON", None])
def test_a_handoff_that_names_nobody_goes_to_unknown(arguments: Any) -> None:
    assert asked_handoff("handoff", arguments).target == "unknown"


def test_a_reported_call_is_a_handoff_of_who_acts(trial: TrialEnvironment) -> None:
    trial.record(ToolCall("transfer_to_boss", GIVEN, result="ok"))
    event = only(trial.recorder)
    assert (event.source, event.target, event.completed) == ("clerk", "boss", True)
    assert (event.reason, event.context) == ("limit", HANDED)
    assert trial.recorder.active_agent == "boss"


@pytest.mark.parametrize(
    ("call", "completed"),
    [
        (ToolCall("transfer_to_boss"), True),
        (ToolCall("transfer_to_boss", error="busy"), False),
        (ToolCall("transfer_to_boss", state="refused"), False),
        (ToolCall("transfer_to_boss", state="unknown"), False),
    ],
)
def test_a_reported_call_that_did_not_work_hands_nothing_over(call: ToolCall, completed: bool) -> None:
    recorder = Recorder()
    recorder.report_turn([], [call])
    assert routes(recorder) == [("agent", "boss", completed)]
    assert recorder.active_agent == ("boss" if completed else None)


@pytest.mark.parametrize("reported", ["events", "others"])
def test_a_call_and_its_handoff_are_one(reported: str) -> None:
    recorder, told = Recorder(), [ToolCall("transfer_to_boss"), HandoffEvent("desk", "boss", "limit", {"order": 1})]
    recorder.report_turn(*((told, []) if reported == "events" else ([], told)))
    assert routes(recorder) == [("desk", "boss", True)]
    assert only(recorder).reason == "limit"


def test_a_failed_call_beside_the_handoff_that_worked_stays() -> None:
    recorder = Recorder()
    failed, worked = ToolCall("transfer_to_boss", error="busy", agent="desk"), ToolCall("transfer_to_boss")
    recorder.report_turn([], [failed, worked, HandoffEvent("desk", "boss")])
    assert routes(recorder) == [("desk", "boss", False), ("desk", "boss", True)]


def test_a_tool_of_the_trial_that_hands_over_is_a_handoff(trial: TrialEnvironment) -> None:
    assert trial.tool(transfer_to_boss)("O-1", reason="limit", context={"amount": 7}) == "over to the boss"
    event = only(trial.recorder)
    assert (event.source, event.target, event.reason, event.context) == ("clerk", "boss", "limit", HANDED)


def test_what_runs_within_a_handoff_tool_is_the_target_s(trial: TrialEnvironment) -> None:
    def look() -> None: ...

    def transfer_to_boss() -> None:
        trial.tool(look)()

    trial.tool(transfer_to_boss)()
    handoff, call = trial.recorder.freeze()
    assert (handoff.kind, call.kind, call.agent) == ("handoff", "tool_call", "boss")


def test_a_handoff_tool_that_raises_hands_nothing_over(trial: TrialEnvironment) -> None:
    def transfer_to_boss() -> None:
        raise RuntimeError("busy")

    with pytest.raises(RuntimeError):
        trial.tool(transfer_to_boss)()
    assert routes(trial.recorder) == [("clerk", "boss", False)]
    assert trial.recorder.active_agent is None


def test_a_handoff_tool_that_was_not_approved_hands_nothing_over() -> None:
    spec = FixtureSpec.model_validate({"approvals": [{"action": "transfer_to_boss", "decision": "denied"}]})
    trial = TrialEnvironment(Case(id="a"), spec)

    def transfer_to_boss() -> None:
        if not trial.approve("transfer_to_boss", {}).allowed:
            raise PermissionError("no")

    with trial.activate(), pytest.raises(PermissionError):
        trial.tool(transfer_to_boss)()
    assert [event.completed for event in trial.recorder.freeze() if isinstance(event, Handoff)] == [False]


def test_a_handoff_tool_that_never_ends_hands_nothing_over_here_and_elsewhere() -> None:
    recorder, elsewhere = Recorder(), Recorder()
    recorder.on_change = elsewhere.apply
    recorder.begin_tool_call("transfer_to_boss", {"order": 1})
    assert routes(recorder) == routes(elsewhere) == [("agent", "boss", False)]


def test_a_handoff_tool_that_ended_is_the_same_elsewhere() -> None:
    recorder, elsewhere = Recorder(), Recorder()
    recorder.on_change = elsewhere.apply
    number = recorder.begin_tool_call("transfer_to_boss", {"order": 1})
    recorder.amend(number, stand_in=True, attempt=2)
    recorder.tell(number, "moved")
    recorder.end_tool_call(number, result="moved")
    assert recorder.freeze() == elsewhere.freeze()
    assert only(recorder).completed


def test_malformed_arguments_hand_nothing_of_a_context_over() -> None:
    recorder = Recorder()
    number = recorder.begin_tool_call("transfer_to_boss", "{no JSON")
    recorder.end_tool_call(number, error="no JSON", state=CallState.INVALID_ARGUMENTS)
    assert routes(recorder) == [("agent", "boss", False)]
    assert only(recorder).context is None


@pytest.mark.parametrize("completed", [True, False])
def test_a_handoff_that_a_tool_recorded_is_the_one_that_the_model_asked_for(completed: bool) -> None:
    recorder = Recorder()
    step = recorder.begin_model_call("m", agent="desk")
    recorder.end_model_call(step)
    recorder.end_tool_call(recorder.begin_tool_call("transfer_to_boss", {"order": 1}), result="ok")
    recorder.handoff("desk", "boss", completed=completed, step=step)
    (event,) = [event for event in recorder.freeze() if isinstance(event, Handoff)]
    assert (event.source, event.target, event.step, event.completed) == ("desk", "boss", step, True)
    assert event.context == {"order": 1}


def test_a_second_handoff_that_the_model_asks_for_is_another_one() -> None:
    recorder = Recorder()
    for _ in range(2):
        step = recorder.begin_model_call("m")
        recorder.handoff("desk", "boss", step=step)
    assert len([event for event in recorder.freeze() if isinstance(event, Handoff)]) == 2


def test_a_handoff_that_a_model_asked_for_is_found_by_the_call_that_makes_it() -> None:
    recorder = Recorder()
    assert recorder.open_handoff("transfer_to_boss", {}) is None
    number = recorder.handoff("desk", "boss", step=recorder.begin_model_call("m"))
    assert recorder.open_handoff("transfer_to_boss", {"order": 1}) == number
    assert recorder.open_handoff("handoff", {"to": "boss"}) == number
    assert recorder.open_handoff("transfer_to_boss", {}, besides={number}) is None
    assert recorder.open_handoff("transfer_to_clerk", {}) is None


def test_a_handoff_told_of_right_after_its_tools_call_is_the_same_one() -> None:
    recorder = Recorder()
    for target in ("boss", "desk", "boss"):
        recorder.report(ToolCall(f"transfer_to_{target}", {}))
        recorder.report(HandoffEvent("agent", target, reason="limit"))
    told = [(event.target, event.reason) for event in recorder.freeze() if isinstance(event, Handoff)]
    assert told == [("boss", "limit"), ("desk", "limit"), ("boss", "limit")]


def test_two_handoffs_told_of_after_one_call_are_two() -> None:
    recorder = Recorder()
    recorder.report(ToolCall("transfer_to_boss", {}))
    recorder.report(HandoffEvent("agent", "boss"))
    recorder.report(HandoffEvent("agent", "boss"))
    assert len(recorder.freeze()) == 2
