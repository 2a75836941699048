"""The kit's scripts as a plain function that runs the OpenAI Agents SDK inside, and tells Seatrial nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agents import Runner
from conformance.openai_agents_framework import OpenAIAgentsFramework
from seatrial.core.trace import Observable
from seatrial.testing.conformance import Script
from seatrial.testing.conformance.script import Ways

__all__ = ["FRAMEWORKS", "HiddenRun"]


class HiddenRun:
    """A function that keeps its conversation and runs its agent; streamed, where the script asks for that."""

    kind = "function"
    name = "function (OpenAI Agents SDK inside)"
    own_call_ids = False
    ways = Ways(unknown_tool="ends", refused_handoff="ends", nested_argument="input")
    observes = frozenset(Observable) - {
        Observable.APPROVALS,
        Observable.OUTCOME,
        Observable.RETRIEVAL,
        Observable.SAFETY,
    }
    absent: Mapping[str, str] = dict.fromkeys(
        ("approval_granted", "approval_denied", "approval_edited", "approval_unanswered"),
        "the function has to ask by itself",
    )

    def build(self, script: Script) -> Any:
        """A factory of the function."""
        agent = OpenAIAgentsFramework().build(script)

        def conversation() -> Callable[[str], Any]:
            said: list[Any] = []

            async def answer(text: str) -> str:
                result = await _run(agent, [*said, {"role": "user", "content": text}], streamed=script.streaming)
                said[:] = result.to_input_list()
                return str(result.final_output)

            return answer

        return conversation


async def _run(agent: Any, items: list[Any], *, streamed: bool) -> Any:
    if not streamed:
        return await Runner.run(agent, items, max_turns=None)
    result = Runner.run_streamed(agent, items, max_turns=None)
    async for _ in result.stream_events():
        pass
    return result


FRAMEWORKS = (HiddenRun(),)
