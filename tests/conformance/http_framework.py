"""The kit's scripts as a service: real HTTP, with the trial's callback."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from conformance.command_framework import REPORTED
from conformance.remote_player import Conversation, player_loop
from seatrial.testing.conformance import script as kit
from services import Asked, Reply, serving, tell

_SERVING = ExitStack()
"""Services last as long as the tests: what they are asked comes from any of them."""


class _Service:
    """Answers the turns of all conversations of one script."""

    def __init__(self, script: kit.Script) -> None:
        self.script = script
        self.conversations: dict[str, Conversation] = {}

    def __call__(self, asked: Asked) -> Any:
        return asyncio.run_coroutine_threadsafe(self.answer(asked.body), player_loop()).result()

    async def answer(self, body: Mapping[str, Any]) -> Any:
        key, trial = body["conversation"], body["trial"]

        async def exchange(*, asked_to_run: bool = False, **message: Any) -> dict[str, Any]:
            reply: dict[str, Any] = await asyncio.to_thread(tell, trial["callback"], **message)
            return reply

        if key not in self.conversations:
            await exchange(type="hello", observes=sorted(REPORTED))
            self.conversations[key] = Conversation(self.script, trial, exchange)
        try:
            answer = await self.conversations[key].answer(body["message"])
        except Exception as error:
            return Reply(f"{type(error).__name__}: {error}", 500)
        said = {"answer": answer.pop("output"), **answer}
        if not self.script.streaming or not isinstance(said["answer"], str):
            return said
        words = [said["answer"][at : at + 5] for at in range(0, len(said["answer"]), 5)]
        return Reply.stream(*({"answer": word} for word in words))


class Service:
    """An `agent: http://...`."""

    kind = "http"
    own_call_ids = False
    observes = REPORTED
    absent: Mapping[str, str] = {}

    @property
    def ways(self) -> Any:
        """What the protocol leaves unsaid; older kits have no such thing."""
        return kit.Ways(says_told=False) if hasattr(kit, "Ways") else None

    def build(self, script: kit.Script) -> str:
        return _SERVING.enter_context(serving(_Service(script)))


FRAMEWORKS = (Service(),)
