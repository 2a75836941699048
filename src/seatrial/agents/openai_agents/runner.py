"""Every run of the SDK, nested and hidden ones too, told to the trial that it happens in.

The SDK asks a runner for every run, and lets it be another one. This one gives the run hooks of the trial's, before the
user's own, and passes everything on. Outside a trial it only passes on.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from agents.exceptions import AgentsException
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner

from agents import RunHooks
from seatrial.agents.openai_agents.reading import model_name
from seatrial.agents.openai_agents.recorder import AgentsRecorder
from seatrial.agents.openai_agents.recording import recording

__all__ = ["hand_runs_to_trials"]

_GUARDS = ("input_guardrail_results", "output_guardrail_results")
_TOOL_GUARDS = ("tool_input_guardrail_results", "tool_output_guardrail_results")


def hand_runs_to_trials() -> None:
    """Let the trial that is running see every run. Doing it twice changes nothing."""
    inner = get_default_agent_runner()
    if not isinstance(inner, _TrialRunner):
        set_default_agent_runner(_TrialRunner(inner))


class _TrialRunner(AgentRunner):
    """The runner of before, with hooks of the trial that it is asked in."""

    def __init__(self, inner: AgentRunner) -> None:
        self._inner = inner

    async def run(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:  # noqa: A002  the SDK's name
        hooks = _hooked(starting_agent, kwargs)
        try:
            result = await self._inner.run(starting_agent, input, **kwargs)
        except BaseException as error:
            _failed(hooks, error)
            raise
        _ended(hooks, result)
        return result

    def run_sync(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:  # noqa: A002
        hooks = _hooked(starting_agent, kwargs)
        try:
            result = self._inner.run_sync(starting_agent, input, **kwargs)
        except BaseException as error:
            _failed(hooks, error)
            raise
        _ended(hooks, result)
        return result

    def run_streamed(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:  # noqa: A002
        hooks = _hooked(starting_agent, kwargs)
        result = self._inner.run_streamed(starting_agent, input, **kwargs)
        if hooks is not None:
            hooks.recorder.late.append(lambda: _streamed(hooks, result))
        return result


def _hooked(agent: Any, kwargs: dict[str, Any]) -> _TrialHooks | None:
    """The trial's hooks, put in front of the user's; None outside a trial."""
    recorder = recording.here()
    if recorder is None:
        return None
    config = kwargs.get("run_config")
    hooks = _TrialHooks(recorder, agent.name, config, kwargs.get("hooks"))
    kwargs.update(hooks=hooks, run_config=_untraced(config))
    return hooks


def _untraced(config: Any) -> Any:
    if config is None or isinstance(config, dict):
        return {**(config or {}), "tracing_disabled": True}
    return dataclasses.replace(config, tracing_disabled=True)


def _failed(hooks: _TrialHooks | None, error: BaseException) -> None:
    if hooks is None:
        return
    hooks.broken_off(error)
    recorder, data = hooks.recorder, getattr(error, "run_data", None) if isinstance(error, AgentsException) else None
    for name in _GUARDS:
        recorder.guarded(getattr(data, name, None) or (), hooks.first_agent)
    result = getattr(error, "guardrail_result", None)
    if result is not None:
        recorder.guarded([result], hooks.first_agent)


def _ended(hooks: _TrialHooks | None, result: Any) -> None:
    if hooks is not None:
        for name in (*_GUARDS, *_TOOL_GUARDS):
            hooks.recorder.guarded(getattr(result, name, None) or (), hooks.first_agent)


def _streamed(hooks: _TrialHooks, result: Any) -> None:
    """A streamed run is over, one way or the other."""
    error = result.run_loop_exception
    if error is not None:
        _failed(hooks, error)
    _ended(hooks, result)


class _TrialHooks(RunHooks[Any]):
    """Hooks of one run."""

    def __init__(self, recorder: AgentsRecorder, first_agent: str, config: Any, own: Any = None) -> None:
        self.recorder = recorder
        self.first_agent = first_agent
        self._config = config
        self._own: RunHooks[Any] = own or RunHooks()
        self._calling: int | None = None

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
        self._calling = await self.recorder.model_begins(agent, model_name(agent, self._config), input_items)
        await self._own.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        number, self._calling = self._calling, None
        if number is not None:
            self.recorder.model_ended(number, agent, response)
        await self._own.on_llm_end(context, agent, response)

    def broken_off(self, error: BaseException) -> None:
        """The run raised, in a model call where one is under way."""
        number, self._calling = self._calling, None
        if number is not None:
            self.recorder.trial.recorder.end_model_call(number, error=error)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        self.recorder.handed_over(from_agent.name, to_agent.name)
        await self._own.on_handoff(context, from_agent, to_agent)

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        await self._own.on_agent_start(context, agent)

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        await self._own.on_agent_end(context, agent, output)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        await self._own.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        await self._own.on_tool_end(context, agent, tool, result)
