"""Tool calls that a run left open, answered by the trial: `DeferredToolRequests` in, `DeferredToolResults` out.

- A call that needs approval is answered by the fixture's script: granted, edited (`override_args`) or denied.
- A call that is executed elsewhere (`CallDeferred`, an external toolset) is answered by the fixture's stand-in.

Every question is put on record, also when another one stays unanswered; then the turn ends. An agent that runs within
another one is answered while it runs, since nobody could resume it; what stays unanswered goes to the code around it.
"""

from __future__ import annotations

from typing import Any, get_args

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart

from seatrial.agents.asked import AskedCall
from seatrial.agents.pydantic_ai.recorder import PydanticAIRecorder

__all__ = ["answered", "answers", "waits_for_answers"]


async def answers(requests: DeferredToolRequests, recorder: PydanticAIRecorder) -> DeferredToolResults:
    """What there is for the agent to go on with; what stayed unanswered is not in it."""
    approvals = {call.tool_call_id: _approval(call, recorder) for call in requests.approvals}
    results = {call.tool_call_id: await _result(call, recorder) for call in requests.calls}
    return DeferredToolResults(
        calls={key: result for key, result in results.items() if result is not _OPEN},
        approvals={key: answer for key, answer in approvals.items() if answer is not None},
    )


async def answered(requests: DeferredToolRequests, recorder: PydanticAIRecorder) -> DeferredToolResults | None:
    """What the agent goes on with; None when something stayed unanswered."""
    found = await answers(requests, recorder)
    asked = len(requests.approvals) + len(requests.calls)
    return found if len(found.approvals) + len(found.calls) == asked else None


def waits_for_answers(output_type: Any) -> bool:
    """Whether an agent of this output type may end with open calls; others raise when there are any."""
    kinds = output_type if isinstance(output_type, (list, tuple)) else [output_type]
    return any(kind is DeferredToolRequests for one in kinds for kind in (one, *get_args(one)))


_OPEN: Any = object()


def _approval(part: ToolCallPart, recorder: PydanticAIRecorder) -> ToolApproved | ToolDenied | None:
    call = _asked(part, recorder)
    answer = recorder.trial.approve(part.tool_name, part.args, call_id=part.tool_call_id, agent=call.agent)
    if answer.decision == "edited":
        call.edited = dict(answer.arguments)
        return ToolApproved(override_args=dict(answer.arguments))
    if answer.decision == "granted":
        return ToolApproved()
    return ToolDenied() if answer.decision == "denied" else None


async def _result(part: ToolCallPart, recorder: PydanticAIRecorder) -> Any:
    if not recorder.trial.has_stand_in(part.tool_name):
        return _OPEN
    call = _asked(part, recorder)
    try:
        return await recorder.calls.run(call, {}, _nobody)
    except Exception as error:  # noqa: BLE001  whatever a stand-in or fault raises is how the outside failed
        return ToolFailed(f"{type(error).__name__}: {error}")


def _asked(part: ToolCallPart, recorder: PydanticAIRecorder) -> AskedCall:
    return recorder.calls.waiting(part.tool_call_id) or AskedCall(part.tool_name, part.args, part.tool_call_id)


async def _nobody() -> Any:
    raise AssertionError("the stand-in answers")
