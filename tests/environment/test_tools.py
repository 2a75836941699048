"""Stand-ins, recorded own tools, and what is on record of each call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from seatrial.core.trace import CallState, Observable
from seatrial.environment.failure import FixtureError
from seatrial.environment.observed import ObservedCall, observing
from seatrial.environment.recorder import StepLimitReached
from seatrial.environment.tools import NoRuleMatches, UnknownTool

WEATHER = {
    "search_web": [
        {"when": {"query": {"$contains": "weather"}}, "returns": {"sky": ["Sunny"]}},
        {"when": {"query": "$input.message"}, "returns": "as asked"},
        {"when": {"query": "down"}, "raises": "ConnectionError: no route"},
        {"otherwise": True, "returns": "No results"},
    ]
}


def lookup_order(order_id: str, *fields: str, detail: bool = False, **more: Any) -> dict[str, Any]:
    """An order."""
    return {"order_id": order_id, "fields": fields, "detail": detail, **more}


def test_the_first_rule_that_matches_answers(make_trial: Any) -> None:
    trial = make_trial(tools=WEATHER, case_input={"message": "what now"})
    assert trial.tools.search_web(query="weather in Oslo") == {"sky": ["Sunny"]}
    assert trial.tools.search_web(query="what now") == "as asked"
    assert trial.tools["search_web"](query="else") == "No results"
    with pytest.raises(ConnectionError, match="no route"):
        trial.tools.search_web(query="down")
    calls = trial.recorder.freeze()
    assert [call.state for call in calls] == [CallState.EXECUTED] * 3 + [CallState.FAILED]
    assert all(call.stand_in for call in calls)
    assert calls[0].arguments == {"query": "weather in Oslo"}
    assert calls[3].error == "ConnectionError: no route"


def test_what_an_agent_does_to_an_answer_reaches_no_later_call(make_trial: Any) -> None:
    trial = make_trial(tools=WEATHER)
    trial.tools.search_web(query="weather")["sky"].append("changed")
    assert trial.tools.search_web(query="weather") == {"sky": ["Sunny"]}
    assert trial.recorder.freeze()[0].result == {"sky": ["Sunny"]}


def test_a_call_that_no_rule_matches_names_tool_and_arguments(make_trial: Any) -> None:
    trial = make_trial(tools={"crm": [{"when": {"id": 1}, "returns": "one"}]})
    with pytest.raises(NoRuleMatches, match=r'stand-in crm: no rule matches the arguments \{"id":2\}'):
        trial.tools.crm(id=2)
    (call,) = trial.recorder.freeze()
    assert call.state is CallState.FAILED
    assert "no rule matches" in call.error


def test_an_own_tool_keeps_signature_name_and_docs(make_trial: Any) -> None:
    wrapped = make_trial().tool(lookup_order)
    assert inspect.signature(wrapped) == inspect.signature(lookup_order)
    assert (wrapped.__name__, wrapped.__doc__) == ("lookup_order", "An order.")
    assert not inspect.iscoroutinefunction(wrapped)


def test_arguments_are_recorded_by_name_without_defaults_the_call_did_not_name(make_trial: Any) -> None:
    trial = make_trial()
    wrapped = trial.tool(lookup_order)
    assert wrapped("O-1") == {"order_id": "O-1", "fields": (), "detail": False}
    wrapped("O-1", "a", "b", detail=True, tenant="acme")
    trial.tools.lookup_order("O-2")
    assert [call.arguments for call in trial.recorder.freeze()] == [
        {"order_id": "O-1"},
        {"order_id": "O-1", "fields": ["a", "b"], "detail": True, "tenant": "acme"},
        {"order_id": "O-2"},
    ]


def test_arguments_may_have_any_name(make_trial: Any) -> None:
    trial = make_trial(tools={"find": [{"otherwise": True, "returns": "found"}]})
    assert trial.tools.find(name="x", self=1, args=2, kwargs=3, tool=4, arguments=5) == "found"
    assert trial.recorder.freeze()[0].arguments == {
        "name": "x",
        "self": 1,
        "args": 2,
        "kwargs": 3,
        "tool": 4,
        "arguments": 5,
    }


def test_arguments_that_do_not_fit_are_recorded_as_invalid(make_trial: Any) -> None:
    trial = make_trial()
    wrapped = trial.tool(lookup_order)
    with pytest.raises(TypeError, match="order_id"):
        wrapped(detail=True)
    (call,) = trial.recorder.freeze()
    assert (call.state, call.arguments) == (CallState.INVALID_ARGUMENTS, {"detail": True})


def test_arguments_of_a_stand_in_by_rules_need_names(make_trial: Any) -> None:
    trial = make_trial(tools=WEATHER)
    with pytest.raises(TypeError, match="name the arguments of search_web"):
        trial.tools.search_web("weather")
    (call,) = trial.recorder.freeze()
    assert (call.state, call.arguments) == (CallState.INVALID_ARGUMENTS, {"0": "weather"})


def test_an_unknown_tool_is_recorded_with_the_nearest_name(make_trial: Any) -> None:
    trial = make_trial(tools=WEATHER)
    with pytest.raises(UnknownTool, match="did you mean 'search_web'"):
        trial.tools.serch_web(query="x")
    (call,) = trial.recorder.freeze()
    assert (call.name, call.state, call.arguments) == ("serch_web", CallState.UNKNOWN_TOOL, {"query": "x"})
    assert "search_web" in trial.tools
    assert "serch_web" not in trial.tools
    assert list(trial.tools) == ["search_web"]


def test_a_stand_in_goes_before_the_own_tool(make_trial: Any) -> None:
    trial = make_trial(tools={"lookup_order": [{"when": {"order_id": "O-1"}, "returns": "stand-in"}]})
    assert trial.tool(lookup_order)("O-1") == "stand-in"
    assert trial.has_stand_in("lookup_order")
    assert trial.recorder.freeze()[0].stand_in


def test_real_tools_switch_stand_ins_off(make_trial: Any) -> None:
    trial = make_trial(tools={"lookup_order": [{"otherwise": True, "returns": "stand-in"}]}, tools_mode="real")
    assert trial.tool(lookup_order)("O-1")["order_id"] == "O-1"
    assert not trial.has_stand_in("lookup_order")
    assert not trial.recorder.freeze()[0].stand_in


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt(), SystemExit(2), StopIteration("empty")])
def test_whatever_a_tool_raises_is_recorded_and_passed_on_unchanged(make_trial: Any, error: BaseException) -> None:
    trial = make_trial()

    def broken() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        trial.tool(broken)()
    assert raised.value is error
    (call,) = trial.recorder.freeze()
    assert call.state is CallState.FAILED
    assert call.error.startswith(type(error).__name__)


async def test_an_async_tool_stays_async_and_is_recorded_when_it_ends(make_trial: Any) -> None:
    trial = make_trial()
    seen: list[str] = []

    async def search(query: str) -> str:
        await asyncio.sleep(0)
        seen.append(query)
        return f"found {query}"

    wrapped = trial.tool(search)
    assert inspect.iscoroutinefunction(wrapped)
    assert await wrapped("x") == "found x"
    assert await trial.tools.search(query="y") == "found y"
    assert seen == ["x", "y"]
    assert [(call.arguments, call.result) for call in trial.recorder.freeze()] == [
        ({"query": "x"}, "found x"),
        ({"query": "y"}, "found y"),
    ]


async def test_a_cancelled_tool_is_on_record_as_failed(make_trial: Any) -> None:
    trial = make_trial()

    async def forever() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(trial.tool(forever)())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (call,) = trial.recorder.freeze()
    assert (call.state, call.error) == (CallState.FAILED, "CancelledError: ")


async def test_a_function_that_gives_an_awaitable_unannounced_is_recorded_when_that_ends(make_trial: Any) -> None:
    trial = make_trial(faults=[{"tool": "search", "result": "duplicate"}])

    async def really(query: str) -> str:
        return query

    def search(query: str) -> Any:
        return really(query)

    waiting = trial.tool(search)("x")
    assert trial.recorder.freeze()[0].ended is None
    assert await waiting == "x\nx"
    call, fault = trial.recorder.freeze()
    assert (call.state, call.result) == (CallState.EXECUTED, "x\nx")
    assert fault.fault == "duplicate"


def test_objects_partials_and_methods_are_tools_too(make_trial: Any) -> None:
    class Search:
        def __call__(self, query: str) -> str:
            return query

        def by_id(self, number: int) -> int:
            return number

    trial = make_trial()
    assert trial.tool(Search())(query="x") == "x"
    assert trial.tool(Search().by_id)(5) == 5
    assert trial.tool(functools.partial(lookup_order, detail=True))("O-1")["detail"] is True
    assert [(call.name, call.arguments) for call in trial.recorder.freeze()] == [
        ("Search", {"query": "x"}),
        ("by_id", {"number": 5}),
        ("lookup_order", {"order_id": "O-1"}),
    ]


def test_the_caller_is_the_named_agent_else_the_active_else_the_identitys(make_trial: Any) -> None:
    trial = make_trial(identity={"agent": "front_desk"})
    trial.tool(lookup_order)("O-1")
    trial.recorder.handoff("front_desk", "supervisor")
    trial.tools.lookup_order("O-2")
    trial.tool(lookup_order, agent="auditor")("O-3")
    agents = [event.agent for event in trial.recorder.freeze() if event.kind == "tool_call"]
    assert agents == ["front_desk", "supervisor", "auditor"]


def test_the_step_limit_stops_tools(make_trial: Any) -> None:
    trial = make_trial(steps=1)
    wrapped = trial.tool(lookup_order)
    wrapped("O-1")
    with pytest.raises(StepLimitReached):
        wrapped("O-2")
    assert len(trial.recorder.freeze()) == 1


def test_a_fixture_may_set_functions_or_rules_as_stand_ins(make_trial: Any) -> None:
    trial = make_trial()
    trial.tools["search"] = lambda query: [query]
    trial.tools.crm = [{"otherwise": True, "returns": "crm"}]
    assert trial.tools.search("x") == ["x"]
    assert trial.tools.crm(id=1) == "crm"
    assert trial.recorder.freeze()[0].arguments == {"query": "x"}
    with pytest.raises(FixtureError, match="stand-in bad must be a function or a list of rules, not int"):
        trial.tools["bad"] = 5


async def test_a_fixtures_async_stand_in_is_awaited(make_trial: Any) -> None:
    async def search(query: str) -> str:
        return f"async {query}"

    trial = make_trial()
    trial.tools = {"search": search}
    assert await trial.tools.search(query="x") == "async x"
    assert trial.recorder.freeze()[0].result == "async x"


def test_run_tool_applies_stand_ins_without_recording(make_trial: Any) -> None:
    trial = make_trial(tools=WEATHER)
    own: list[Any] = []
    assert trial.run_tool("search_web", {"query": "weather"}, lambda **a: own.append(a)) == {"sky": ["Sunny"]}
    assert own == []
    assert trial.run_tool("lookup_order", {"order_id": "O-1"}, lookup_order)["order_id"] == "O-1"
    with pytest.raises(UnknownTool):
        trial.run_tool("missing", {})
    assert trial.recorder.freeze() == ()


async def test_run_tool_is_awaited_where_the_own_body_is_async(make_trial: Any) -> None:
    trial = make_trial(tools=WEATHER)

    async def own(**arguments: Any) -> Any:
        return arguments

    assert await trial.run_tool("search_web", {"query": "weather"}, own) == {"sky": ["Sunny"]}
    assert await trial.run_tool("other", {"a": 1}, own) == {"a": 1}


def test_tools_may_be_called_from_many_threads(make_trial: Any) -> None:
    trial = make_trial()
    barrier = threading.Barrier(8)
    wrapped = trial.tool(lookup_order)

    def work(number: int) -> str:
        barrier.wait()
        return str(wrapped(f"O-{number}")["order_id"])

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    calls = trial.recorder.freeze()
    assert sorted(call.result["order_id"] for call in calls) == sorted(results)
    assert all(call.arguments["order_id"] == call.result["order_id"] for call in calls)


def test_tools_are_observed_once_they_could_have_been_recorded(make_trial: Any) -> None:
    assert make_trial().recorder.observes == set()
    assert make_trial(tools=WEATHER).recorder.observes == {Observable.TOOL_CALLS}
    assert make_trial(tools=WEATHER, tools_mode="real").recorder.observes == set()
    trial = make_trial()
    trial.tool(lookup_order)
    assert trial.recorder.observes == {Observable.TOOL_CALLS}


def test_a_tool_within_a_call_that_an_adapter_has_on_record_is_no_second_call(make_trial: Any) -> None:
    trial = make_trial(faults=[{"tool": "lookup_order", "on_call": 2, "error": "timeout"}])
    wrapped = trial.tool(lookup_order)
    token = observing.set(ObservedCall("lookup_order", number=9))
    try:
        assert wrapped("O-1", "a", "b", tenant="acme")["fields"] == ("a", "b")
    finally:
        observing.reset(token)
    assert trial.recorder.freeze() == ()
    with pytest.raises(TimeoutError):
        wrapped("O-2")
