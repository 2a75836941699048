"""Each kind of fault: when it hits, what the agent gets, what is on record."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from seatrial.core.fixture import FaultSpec
from seatrial.core.trace import CallState, Fault
from seatrial.environment.faults import Faults, RateLimitError, exception_of


def faults_of(trial: Any) -> list[tuple[str, int | None]]:
    return [(event.fault, event.call) for event in trial.recorder.freeze() if isinstance(event, Fault)]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("timeout", TimeoutError, "the tool timed out"),
        ("timeout: after 5 s", TimeoutError, "after 5 s"),
        ("ValueError: bad id", ValueError, "bad id"),
        ("KeyError", KeyError, ""),
        ("ConnectionError: no route: 10.0.0.1", ConnectionError, "no route: 10.0.0.1"),
        ("service unavailable", RuntimeError, "service unavailable"),
        ("HTTPError: 503", RuntimeError, "HTTPError: 503"),
        ("SystemExit: 1", RuntimeError, "SystemExit: 1"),
        ("UnicodeDecodeError: x", RuntimeError, "UnicodeDecodeError: x"),
    ],
)
def test_the_text_of_an_error_says_which_exception(text: str, kind: type[Exception], message: str) -> None:
    error = exception_of(text)
    assert type(error) is kind
    assert message in str(error)


def test_an_error_on_the_first_call_only_hits_before_the_body(make_trial: Any) -> None:
    trial = make_trial(faults=[{"tool": "inventory", "on_call": 1, "error": "timeout"}])
    ran: list[int] = []

    def inventory(item: int) -> str:
        ran.append(item)
        return "in stock"

    tool = trial.tool(inventory)
    with pytest.raises(TimeoutError):
        tool(1)
    assert tool(2) == "in stock"
    assert ran == [2]
    call, fault, retried = trial.recorder.freeze()
    assert (call.state, call.error) == (CallState.FAILED, "TimeoutError: the tool timed out")
    assert (fault.tool, fault.fault, fault.call) == ("inventory", "timeout", call.number)
    assert retried.state is CallState.EXECUTED


def test_an_error_after_the_body_leaves_its_effect(make_trial: Any) -> None:
    trial = make_trial(faults=[{"tool": "pay", "error": "ConnectionError: lost", "after": True}])
    paid: list[int] = []

    def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    with pytest.raises(ConnectionError, match="lost"):
        trial.tool(pay)(5)
    assert paid == [5]
    assert trial.recorder.freeze()[0].state is CallState.FAILED


def test_a_rate_limit_refuses_every_call_beyond_it(make_trial: Any) -> None:
    trial = make_trial(
        faults=[{"tool": "pay", "rate_limit": 2}], tools={"pay": [{"otherwise": True, "returns": "paid"}]}
    )
    assert [trial.tools.pay(), trial.tools.pay()] == ["paid", "paid"]
    for _ in range(2):
        with pytest.raises(RateLimitError, match="2 calls of pay are allowed"):
            trial.tools.pay()
    assert faults_of(trial) == [("rate_limit", 3), ("rate_limit", 5)]


def test_latency_is_waited_for_and_recorded(make_trial: Any) -> None:
    trial = make_trial(
        faults=[{"tool": "search", "latency_ms": 1}], tools={"search": [{"otherwise": True, "returns": 1}]}
    )
    assert trial.tools.search() == 1
    call, fault = trial.recorder.freeze()
    assert (fault.fault, fault.details) == ("latency", {"latency_ms": 1})
    assert call.duration_ms >= 1


async def test_latency_of_an_async_tool_blocks_no_one_else(make_trial: Any) -> None:
    trial = make_trial(faults=[{"tool": "search", "latency_ms": 1}])
    others: list[str] = []

    async def search() -> str:
        others.append("searched")
        return "done"

    async def other() -> None:
        others.append("other")

    assert await asyncio.gather(trial.tool(search)(), other()) == ["done", None]
    assert others == ["other", "searched"]


@pytest.mark.parametrize(
    ("kind", "result", "delivered"),
    [
        ("truncated", "abcdef", "abc"),
        ("truncated", [1, 2, 3, 4], [1, 2]),
        ("truncated", {"a": 1, "b": 2}, '{"a":1'),
        ("empty", "abc", ""),
        ("empty", [1], []),
        ("empty", {"a": 1}, {}),
        ("empty", 5, None),
        ("duplicate", [1, 2], [1, 2, 1, 2]),
        ("duplicate", "row", "row\nrow"),
        ("duplicate", {"a": 1}, [{"a": 1}, {"a": 1}]),
    ],
)
def test_result_faults_change_what_the_agent_gets(make_trial: Any, kind: str, result: Any, delivered: Any) -> None:
    trial = make_trial(
        faults=[{"tool": "crm", "result": kind}], tools={"crm": [{"otherwise": True, "returns": result}]}
    )
    assert trial.tools.crm() == delivered
    call, fault = trial.recorder.freeze()
    assert call.result == delivered
    assert fault.fault == kind


@pytest.mark.parametrize("result", ["abc", {"a": 1}, [1, 2], 5, None, '{"a": 1}', ""])
def test_a_malformed_result_is_text_that_is_no_json(make_trial: Any, result: Any) -> None:
    trial = make_trial(
        faults=[{"tool": "crm", "result": "malformed"}], tools={"crm": [{"otherwise": True, "returns": result}]}
    )
    delivered = trial.tools.crm()
    with pytest.raises(json.JSONDecodeError):
        json.loads(delivered)


def test_a_stale_result_is_that_of_the_call_before(make_trial: Any) -> None:
    trial = make_trial(faults=[{"tool": "stock", "on_call": 3, "result": "stale"}])
    left = [9]

    def stock() -> int:
        left[0] -= 1
        return left[0]

    tool = trial.tool(stock)
    assert [tool(), tool(), tool(), tool()] == [8, 7, 7, 5]
    assert faults_of(trial) == [("stale", 3)]


def test_a_first_result_cannot_be_stale(make_trial: Any) -> None:
    trial = make_trial(
        faults=[{"tool": "stock", "result": "stale"}], tools={"stock": [{"otherwise": True, "returns": 1}]}
    )
    assert trial.tools.stock() == 1
    assert faults_of(trial) == []


def test_faults_of_other_tools_do_not_hit(make_trial: Any) -> None:
    trial = make_trial(
        faults=[{"tool": "pay", "error": "timeout"}], tools={"search": [{"otherwise": True, "returns": 1}]}
    )
    assert trial.tools.search() == 1


def hits(seed: int, calls: int = 200) -> list[bool]:
    faults = Faults([FaultSpec(tool="search", error="timeout", probability=0.2)], seed)
    return [bool(faults.begin("search")) for _ in range(calls)]


def test_chance_is_drawn_from_the_seed() -> None:
    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert 20 < sum(hits(1)) < 60
    assert not any(Faults([FaultSpec(tool="a", error="x", probability=0)], 1).begin("a") for _ in range(20))


def test_faults_apply_to_tools_that_an_adapter_records(make_trial: Any) -> None:
    trial = make_trial(faults=[{"tool": "pay", "error": "timeout"}])
    with pytest.raises(TimeoutError):
        trial.run_tool("pay", {}, lambda: "paid", number=7)
    assert faults_of(trial) == [("timeout", 7)]


async def test_several_faults_of_one_call_all_apply(make_trial: Any) -> None:
    trial = make_trial(
        faults=[
            {"tool": "search", "latency_ms": 1},
            {"tool": "search", "result": "duplicate"},
            {"tool": "search", "result": "truncated"},
        ]
    )

    async def search() -> list[int]:
        return [1, 2]

    assert await trial.tool(search)() == [1, 2]
    assert [fault for fault, _ in faults_of(trial)] == ["latency", "duplicate", "truncated"]
