"""inspect-ai: `eval` with a solver that needs no model, its own `exact` scorer, its own log, and no display."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread
from inspect_ai import Task as InspectTask
from inspect_ai import eval as evaluate
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries, recover_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ModelOutput
from inspect_ai.scorer import exact
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolCall

from benchmarks.task import Ready, Task, act, act_blocking, calls, question

__all__ = ["kept", "trials"]


def trials(task: Task, folder: Path) -> Ready:
    """A whole evaluation; `max_samples` is the concurrency."""
    samples = [Sample(id=n + 1, input=question(n), target=question(n)) for n in range(task.cases)]
    whole = InspectTask(
        dataset=MemoryDataset(samples), solver=_answering(task), scorer=exact(), epochs=task.trials_each
    )
    kept_in = str(folder / "kept")

    def run() -> EvalLog:
        return evaluate(whole, model=None, display="none", log_dir=kept_in, max_samples=task.concurrency)[0]

    return Ready(run, _passed)


def _passed(log: EvalLog) -> int:
    if log.status != "success" or log.results is None:
        raise RuntimeError(f"the evaluation ended as {log.status}")
    mean = log.results.scores[0].metrics["mean"].value
    return round(mean * log.results.completed_samples)


@solver
def _answering(task: Task) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        asked = state.input_text
        if task.agent == "blocking":
            await anyio.to_thread.run_sync(act_blocking, task)
        elif task.agent in ("calls", "tools"):
            _report(state, asked)
        else:
            await act(task)
        state.output = ModelOutput.from_content("none", asked)
        return state

    return solve


def _report(state: TaskState, asked: str) -> None:
    for number, text in calls(asked):
        call = ToolCall(id=f"call{number}", function="look", arguments={"n": number})
        state.messages.append(ChatMessageAssistant(content="", tool_calls=[call]))
        state.messages.append(ChatMessageTool(content=text, tool_call_id=call.id, function=call.function))


def kept(task: Task, folder: Path) -> Ready:
    """How many samples its own recovery finds after a kill, in the log and in its buffer."""
    log = next((folder / "kept").glob("*.eval"))
    out = folder / "recovered.eval"

    def run() -> int:
        recover_eval_log(str(log), output=str(out))
        return sum(summary.completed and not summary.error for summary in read_eval_log_sample_summaries(str(out)))

    return Ready(run, int)
