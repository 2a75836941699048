"""The kit's scripts as an agent outside the harness, behind whatever carries the messages of its protocol.

The agent's process or service only passes messages on; the script itself is played here, in a thread with an event loop
of its own, because its tools are Python functions of the tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from seatrial.testing.conformance.script import AgentScript, Ask, Line, Player, Script

__all__ = ["Conversation", "WaitsForApproval", "player_loop"]

Exchange = Callable[..., Awaitable[dict[str, Any]]]


class WaitsForApproval(Exception):
    """Nobody answered."""


@cache
def player_loop() -> asyncio.AbstractEventLoop:
    """The loop in which scripts are played, one for all."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ThreadPoolExecutor(80, "player"))
    threading.Thread(target=loop.run_forever, name="player", daemon=True).start()
    return loop


class Conversation:
    """One trial's agents, their tools, and who has the word. `exchange` says a message and gives the reply, if any."""

    def __init__(self, script: Script, trial: Mapping[str, Any], exchange: Exchange) -> None:
        in_trial = getattr(script, "in_trial", None)
        self.script = script if in_trial is None else in_trial(trial["trial"])
        self.player = Player(self.script)
        self.exchange = exchange
        self.heard: list[str] = []
        self.acting = self.script.agents[0].name

    async def answer(self, message: str) -> dict[str, Any]:
        """The fields of the answer to what the user says. What the script raises is passed on."""
        self.heard.append(message)
        try:
            return {"output": await self.run(self.acting, self.heard)}
        except WaitsForApproval:
            return {"output": None, "stop_reason": "waiting_approval"}

    async def run(self, name: str, heard: Sequence[str]) -> str:
        agent = self.script.agent(name)
        while True:
            line = await self.reply(agent)
            text = line.said(heard)
            if text:
                await self.exchange(type="message", role="assistant", content=text, agent=name)
            if line.handoff is not None:
                if await self.hand_over(agent, line):
                    return await self.run(self.acting, heard)
            elif not line.calls:
                return text
            else:
                await asyncio.gather(*(self.call(agent, ask) for ask in line.calls))

    async def reply(self, agent: AgentScript) -> Line:
        line = self.player.line(agent.name)
        counts = None if line.usage is None else line.usage.model_dump(exclude_none=True)
        error = None if line.error is None else str(line.error)
        await self.exchange(type="model_call", model=agent.model, agent=agent.name, usage=counts, error=error)
        if line.error is not None:
            raise line.error
        return line

    async def hand_over(self, agent: AgentScript, line: Line) -> bool:
        target, known = str(line.handoff), line.handoff in agent.handoffs
        context = dict(getattr(line, "context", {})) or None
        more = {} if line.reason is None else {"reason": line.reason}
        await self.exchange(type="handoff", source=agent.name, target=target, context=context, completed=known, **more)
        if known:
            self.acting = target
        return known

    async def call(self, agent: AgentScript, ask: Ask) -> None:
        if ask.name in agent.nested and isinstance(ask.arguments, Mapping):
            await self.nested(agent, ask)
            return
        tool = next((tool for tool in agent.tools if tool.name == ask.name), None)
        if tool is not None and isinstance(ask.arguments, Mapping) and not _fits(tool.function, ask.arguments):
            await self.exchange(**_call(agent, ask), state="invalid_arguments", error="the arguments do not fit")
            return
        arguments: Any = ask.arguments
        if tool is not None and tool.needs_approval:
            arguments = await self.approved(agent, ask)
            if arguments is None:
                return
        more = {} if arguments == ask.arguments else {"asked": ask.arguments}
        reply = await self.exchange(
            **{**_call(agent, ask), "arguments": arguments}, **more, ask=True, own=tool is not None
        )
        if reply.get("type") == "run" and tool is not None:
            await self.exchange(
                type="tool_result", id=ask.call_id, asked_to_run=True, **await _run(tool.function, arguments)
            )

    async def nested(self, agent: AgentScript, ask: Ask) -> None:
        await self.exchange(**_call(agent, ask))
        task = str(next(iter(dict(ask.arguments).values()), ""))  # type: ignore[arg-type]  # a mapping, as checked
        await self.exchange(type="tool_result", id=ask.call_id, result=await self.run(ask.name, [task]))

    async def approved(self, agent: AgentScript, ask: Ask) -> Any:
        """Arguments that may be run; None where the call was denied."""
        reply = await self.exchange(
            type="approval",
            id=f"approval-{ask.call_id}",
            action=ask.name,
            arguments=ask.arguments,
            call=ask.call_id,
            agent=agent.name,
        )
        if reply["decision"] in ("granted", "edited"):
            return reply["arguments"]
        await self.exchange(**_call(agent, ask), state="refused", error=f"not allowed: {reply['decision']}")
        if reply["decision"] == "unanswered":
            raise WaitsForApproval
        return None


def _call(agent: AgentScript, ask: Ask) -> dict[str, Any]:
    return {
        "type": "tool_call",
        "id": ask.call_id,
        "name": ask.name,
        "arguments": ask.arguments if isinstance(ask.arguments, str) else dict(ask.arguments),
        "agent": agent.name,
    }


def _fits(function: Callable[..., Any], arguments: Mapping[str, Any]) -> bool:
    with contextlib.suppress(TypeError):
        inspect.signature(function).bind(**arguments)
        return True
    return False


async def _run(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        if inspect.iscoroutinefunction(function):
            return {"result": await function(**arguments)}
        return {"result": await asyncio.to_thread(function, **arguments)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
