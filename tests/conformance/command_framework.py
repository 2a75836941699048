"""The kit's scripts as a program: a real process that speaks JSON lines, its words put in its mouth by the player."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from conformance.remote_player import Conversation, player_loop
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable
from seatrial.testing.conformance import script as kit

_RELAY = """
import socket, sys, threading

there = socket.create_connection(("127.0.0.1", int(sys.argv[1])))

def out():
    for line in there.makefile("rb"):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

threading.Thread(target=out, daemon=True).start()
for line in sys.stdin.buffer:
    there.sendall(line)
"""
"""A program that passes lines on."""

REPORTED = frozenset(
    {
        Observable.MESSAGES,
        Observable.MODEL_CALLS,
        Observable.USAGE,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.HANDOFF_CONTEXT,
        Observable.APPROVALS,
    }
)
"""What the player reports, and says so in its hello."""


class _Lines:
    """One program's lines, seen from the player: what is asked is answered by id."""

    def __init__(self, script: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.script, self.reader, self.writer = script, reader, writer
        self.waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}

    def say(self, **message: Any) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def exchange(self, *, asked_to_run: bool = False, **message: Any) -> dict[str, Any]:
        if not (asked_to_run or message.get("ask") or message["type"] == "approval"):
            self.say(**message)
            return {}
        reply = self.waiting[message["id"]] = asyncio.get_running_loop().create_future()
        self.say(**message)
        return await reply

    async def play(self) -> None:
        playing: set[asyncio.Task[None]] = set()
        conversation: Conversation | None = None
        while line := await self.reader.readline():
            message = json.loads(line)
            if message["type"] == "hello":
                conversation = Conversation(self.script, message, self.exchange)
                self.say(type="hello", observes=sorted(REPORTED))
            elif message["type"] == "turn" and conversation is not None:
                playing.add(asyncio.ensure_future(self.turn(conversation, message["message"])))
            else:
                self.waiting.pop(message["id"]).set_result(message)
        for task in playing:
            task.cancel()
        self.writer.close()

    async def turn(self, conversation: Conversation, message: str) -> None:
        try:
            self.say(type="answer", **await conversation.answer(message))
        except Exception as error:
            self.say(type="error", kind=type(error).__name__, message=str(error))


class Program:
    """An `agent: {command: [...]}`."""

    kind = "command"
    own_call_ids = False
    observes = REPORTED
    absent: Mapping[str, str] = {"streaming": "a program gives its answer whole"}

    @property
    def ways(self) -> Any:
        """What the protocol leaves unsaid; older kits have no such thing."""
        return kit.Ways(says_told=False) if hasattr(kit, "Ways") else None

    def build(self, script: kit.Script) -> AgentSpec:
        async def serve() -> int:
            async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await _Lines(script, reader, writer).play()

            server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=64)
            return int(server.sockets[0].getsockname()[1])

        port = asyncio.run_coroutine_threadsafe(serve(), player_loop()).result()
        return AgentSpec(command=(sys.executable, "-S", "-c", _RELAY, str(port)))


FRAMEWORKS = (Program(),)
