"""MCP servers as an agent's tools: real clients, real servers, and the trial between them."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer

import seatrial
from graphs import Drive, Driven, drive
from seatrial.core.agent_run import ToolCall
from seatrial.core.trace import Observable, StopReason
from seatrial.environment.trial import current_trial

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SHOP = """
from mcp.server.mcpserver import MCPServer

shop = MCPServer("shop", log_level="CRITICAL")


@shop.tool()
def price(item: str, count: int = 1) -> float:
    \"\"\"What an item costs.\"\"\"
    if item == "ghost":
        raise ValueError("no such item")
    return 2.5 * count


@shop.tool()
def stock(item: str) -> dict[str, int]:
    \"\"\"How many there are.\"\"\"
    return {item: 3}


if __name__ == "__main__":
    shop.run(transport="stdio")
"""


def shop() -> MCPServer:
    scope: dict[str, Any] = {"__name__": "shop"}
    exec(SHOP, scope)  # the same server as in a process of its own
    server: MCPServer = scope["shop"]
    return server


def calling(*calls: tuple[str, dict[str, Any]], server: Any = shop) -> Any:
    """An agent that makes these calls through a real client, and gives what it was told."""

    async def agent(task: str) -> list[Any]:
        async with (
            seatrial.mcp_proxy(server() if callable(server) else server) as proxy,
            Client(proxy.url) as client,
        ):
            told = [await client.call_tool(name, arguments) for name, arguments in calls]
        return [(one.is_error, getattr(one.content[0], "text", None)) for one in told]

    return agent


def run(*calls: tuple[str, dict[str, Any]], server: Any = shop, **fixture: Any) -> Driven:
    return drive(calling(*calls, server=server), **fixture)


def test_calls_go_through_to_the_server_and_are_recorded() -> None:
    driven = run(("price", {"item": "lamp", "count": 2}), ("stock", {"item": "lamp"}), identity={"agent": "desk"})
    assert [told[0] for told in driven.output] == [False, False]
    assert [(call.name, call.arguments, call.result, call.agent) for call in driven.calls] == [
        ("price", {"item": "lamp", "count": 2}, 5.0, "desk"),
        ("stock", {"item": "lamp"}, {"lamp": 3}, "desk"),
    ]
    assert Observable.TOOL_CALLS in driven.trace.observes


def test_stand_ins_answer_in_the_servers_place_and_faults_hit() -> None:
    driven = run(
        ("price", {"item": "lamp"}),
        ("stock", {"item": "lamp"}),
        ("stock", {"item": "lamp"}),
        tools={"price": [{"returns": 99}]},
        faults=[
            {"tool": "stock", "on_call": 1, "error": "timeout"},
            {"tool": "stock", "on_call": 2, "result": "empty"},
        ],
    )
    assert driven.output == [[False, "99"], [True, "TimeoutError: the tool timed out"], [False, "{}"]]
    assert driven.states == [("price", "executed"), ("stock", "failed"), ("stock", "executed")]
    assert [call.stand_in for call in driven.calls] == [True, False, False]


def test_what_the_server_refuses_is_told_and_recorded() -> None:
    driven = run(("price", {"item": "ghost"}), ("price", {"item": 7}), ("nothing", {}))
    assert driven.states == [("price", "failed"), ("price", "invalid_arguments"), ("nothing", "unknown_tool")]
    assert [told[0] for told in driven.output] == [True, True, True]
    assert "7 is not of type 'string'" in driven.output[1][1]


def test_stand_ins_alone_are_a_server_too() -> None:
    driven = run(("search", {"q": "x"}), server=None, tools={"search": [{"when": {"q": "x"}, "returns": {"hits": 1}}]})
    assert [json.loads(text) for _, text in driven.output] == [{"hits": 1}]
    assert driven.states == [("search", "executed")]


def test_the_schemas_are_the_servers_own() -> None:
    async def agent(task: str) -> Any:
        async with seatrial.mcp_proxy(shop()) as proxy, Client(proxy.url) as client:
            return [
                (tool.name, tool.description, sorted(tool.input_schema["properties"]))
                for tool in (await client.list_tools()).tools
            ]

    assert drive(agent, tools={"price": [{"returns": 1}]}).output == [
        ["price", "What an item costs.", ["count", "item"]],
        ["stock", "How many there are.", ["item"]],
    ]


def test_a_call_that_a_framework_has_on_record_is_recorded_once() -> None:
    async def agent(task: str) -> Any:
        recorder = current_trial().recorder
        async with seatrial.mcp_proxy(shop()) as proxy, Client(proxy.url) as client:
            number = recorder.begin_tool_call("price", {"item": "lamp"}, call_id="c1")  # as an adapter does
            told = await client.call_tool("price", {"item": "lamp"})
            recorder.end_tool_call(number, result=getattr(told.content[0], "text", None))
        return None

    driven = drive(agent, tools={"price": [{"returns": 7}]})
    assert (driven.call.call_id, driven.call.result, driven.call.stand_in) == ("c1", "7", True)


def test_a_sync_agent_uses_it_too_and_nothing_is_left() -> None:
    def agent(task: str) -> Any:
        async def ask(url: str) -> Any:
            async with Client(url) as client:
                return (await client.call_tool("price", {"item": "lamp"})).structured_content

        with seatrial.mcp_proxy(shop()) as proxy:
            return asyncio.run(ask(proxy.url))

    assert drive(agent).output == {"result": 2.5}
    assert [thread.name for thread in threading.enumerate() if thread.name == "seatrial-mcp"] == []


def test_the_step_limit_holds() -> None:
    driven = drive(calling(*[("price", {"item": "lamp"})] * 4), steps=2)
    assert driven.record.stop_reason is StopReason.MAX_STEPS
    assert len(driven.calls) == 2


def test_a_server_that_cannot_be_reached_is_the_agents_error() -> None:
    driven = run(server="http://127.0.0.1:9/mcp")
    assert driven.record.stop_reason is StopReason.AGENT_ERROR


def test_outside_a_trial_there_is_no_proxy() -> None:
    with pytest.raises(RuntimeError, match="no trial is running"):
        seatrial.mcp_proxy()


@pytest.mark.slow
def test_a_server_of_another_process_is_reached_over_stdio(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    driven = run(
        ("price", {"item": "lamp"}),
        server=StdioServerParameters(command=sys.executable, args=[str(tmp_path / "shop.py")]),
    )
    assert driven.call.result == 2.5


@pytest.mark.slow
def test_an_openai_agents_agent_reaches_its_server_through_the_proxy() -> None:
    mcp = pytest.importorskip("agents.mcp")

    async def agent(task: str) -> Any:
        async with (
            seatrial.mcp_proxy(shop()) as proxy,
            mcp.MCPServerStreamableHttp({"url": proxy.url}) as server,
        ):
            names = [tool.name for tool in await server.list_tools()]
            told = await server.call_tool("price", {"item": "lamp"})
        return [names, told.content[0].text]

    driven = drive(agent, tools={"price": [{"returns": 7}]})
    assert driven.output == [["price", "stock"], "7"]
    assert driven.states == [("price", "executed")]


def test_trials_at_once_keep_apart() -> None:
    async def agent(task: str) -> Any:
        current_trial().record(ToolCall("own", {"task": task}))
        return await calling(("price", {"item": "lamp"}))(task)

    async def all_of_them() -> list[Driven]:
        return list(
            await asyncio.gather(*(Drive(agent).arun(f"t{n}", tools={"price": [{"returns": n}]}) for n in range(6)))
        )

    for number, driven in enumerate(asyncio.run(all_of_them())):
        assert driven.output == [[False, str(number)]]
        assert [call.name for call in driven.calls] == ["own", "price"]


def test_a_tool_of_a_server_that_hands_over_is_a_handoff() -> None:
    server = MCPServer("office", log_level="CRITICAL")

    @server.tool()
    def transfer_to_boss(order: str) -> str:
        """Hand over."""
        if order == "ghost":
            raise ValueError("no such order")
        return "over to the boss"

    calls = [("transfer_to_boss", {"order": "ghost"}), ("transfer_to_boss", {"order": "O-1", "reason": "limit"})]
    driven = drive(calling(*calls, server=lambda: server))
    assert [(one.target, one.completed, one.context) for one in driven.handoffs] == [
        ("boss", False, {"order": "ghost"}),
        ("boss", True, {"order": "O-1"}),
    ]
    assert driven.calls == []


def test_a_handoff_tool_of_a_server_that_a_framework_calls_is_one_handoff() -> None:
    server = MCPServer("office", log_level="CRITICAL")

    @server.tool()
    def transfer_to_boss(order: str) -> str:
        """Hand over."""
        return "over to the boss"

    async def agent(task: str) -> str:
        from agents.mcp import MCPServerStreamableHttp

        from agents import Agent, Runner
        from seatrial.testing.openai_agents import ScriptedAgentsModel, say

        script = [say(calls=[("transfer_to_boss", {"order": "O-1"}, "c1")]), say("done")]
        async with seatrial.mcp_proxy(server) as proxy, MCPServerStreamableHttp({"url": proxy.url}) as tools:
            desk = Agent("desk", model=ScriptedAgentsModel(script=script), mcp_servers=[tools])
            return str((await Runner.run(desk, task)).final_output)

    driven = drive(agent)
    assert [(one.source, one.target, one.completed) for one in driven.handoffs] == [("desk", "boss", True)], driven
    assert driven.calls == []
