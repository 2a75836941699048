"""The kit's scripts as a plain function that runs LlamaIndex inside, and tells Seatrial nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.memory import ChatMemoryBuffer

from conformance.llamaindex_framework import LlamaIndexFramework
from seatrial.core.trace import Observable
from seatrial.testing.conformance import Script
from seatrial.testing.conformance.script import Ways

__all__ = ["FRAMEWORKS", "HiddenWorkflow"]


class HiddenWorkflow:
    """A function that keeps its conversation and runs its workflow."""

    kind = "function"
    name = "function (LlamaIndex inside)"
    own_call_ids = False
    ways = Ways(handoff_carries=frozenset({"reason"}))
    observes = frozenset(Observable) - {
        Observable.APPROVALS,
        Observable.HANDOFF_CONTEXT,
        Observable.OUTCOME,
        Observable.SAFETY,
    }
    absent: Mapping[str, str] = dict.fromkeys(
        ("approval_granted", "approval_denied", "approval_edited", "approval_unanswered"),
        "the function has to ask by itself",
    )

    def build(self, script: Script) -> Any:
        """A factory of the function."""
        workflow = LlamaIndexFramework().build(script)

        def conversation() -> Callable[[str], Any]:
            memory = ChatMemoryBuffer.from_defaults()

            async def answer(text: str) -> str:
                return str(await workflow.run(user_msg=text, memory=memory))

            return answer

        return conversation


FRAMEWORKS = (HiddenWorkflow(),)
