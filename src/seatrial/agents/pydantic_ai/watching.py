"""Where an agent's run is watched: its model, its tools, their arguments, its hand-offs by output function.

A capability of the run's own, innermost: what the agent's own capabilities do stays around it, and what is recorded is
what really happened: model calls that were made, tool bodies that ran. Nothing is kept on the agent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_ai import DeferredToolRequests, DeferredToolResults, ModelRetry, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturn
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from seatrial.agents.asked import AskedCall
from seatrial.agents.pydantic_ai.deferred import answers, waits_for_answers
from seatrial.agents.pydantic_ai.recorder import PydanticAIRecorder, Run

__all__ = ["Watch"]


_inside: ContextVar[bool] = ContextVar("seatrial_within_pydantic_ai_agent", default=False)


class Watch(AbstractCapability[Any]):
    """The recorder at one run of one agent."""

    def __init__(self, recorder: PydanticAIRecorder, run: Run | None = None, *, nested: bool = False) -> None:
        self.recorder = recorder
        self.run = run or Run()
        self.nested = nested
        """Whether it runs within another agent."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: RunContext[Any]) -> Watch:
        run = Run(self.recorder.agent_name(ctx.agent), ctx.conversation_id)
        return Watch(self.recorder, run, nested=_inside.get())

    def get_wrapper_model(self, model: Model) -> Model:
        return _WatchedModel(model, self)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _WatchedTools(toolset, self)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        outer = _inside.get()
        _inside.set(True)
        try:
            result = await handler()
        except BaseException:
            self.recorder.settle(ctx.messages, self.run)
            raise
        finally:
            _inside.set(outer)
        self.recorder.settle(result.all_messages(), self.run)
        return result

    async def wrap_tool_validate(
        self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        try:
            return await handler(args)
        except (ValidationError, ModelRetry) as error:
            self.asked(call.tool_name, {}, call.tool_call_id).rejected = str(error)
            raise

    async def wrap_output_process(self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Any) -> Any:
        part = output_context.tool_call
        call_id = None if part is None or ctx.partial_output else part.tool_call_id
        call = self.recorder.calls.by_id(call_id, self.run.conversation)
        if call is None or call.target is None:
            return await handler(output)
        return await self.recorder.calls.run(call, {}, lambda: handler(output))

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        if not self.nested or not waits_for_answers(getattr(ctx.agent, "output_type", None)):
            return None
        return await answers(requests, self.recorder)

    def asked(self, name: str, arguments: dict[str, Any], call_id: str | None) -> AskedCall:
        """The call that is about to run, or would have been."""
        return self.recorder.asked(name, arguments, call_id, self.run)


class _WatchedModel(WrapperModel):
    """The model that really answers a request."""

    def __init__(self, wrapped: Model, watch: Watch) -> None:
        super().__init__(wrapped)
        self._watch = watch

    async def _begin(self, messages: list[ModelMessage]) -> int:
        watch = self._watch
        return await watch.recorder.begin_model_call(self.wrapped.model_name, messages, watch.run)

    def _end(self, number: int, response: ModelResponse, offered: ModelRequestParameters) -> None:
        self._watch.recorder.end_model_call(number, response, offered, self._watch.run)

    def _failed(self, number: int, error: BaseException) -> None:
        self._watch.recorder.trial.recorder.end_model_call(number, error=error)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        number = await self._begin(messages)
        try:
            response = await self.wrapped.request(messages, model_settings, model_request_parameters)
        except BaseException as error:
            self._failed(number, error)
            raise
        self._end(number, response, model_request_parameters)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        number = await self._begin(messages)
        streaming = self.wrapped.request_stream(messages, model_settings, model_request_parameters, run_context)
        try:
            async with streaming as stream:
                yield stream
        except BaseException as error:
            self._failed(number, error)
            raise
        self._end(number, stream.get(), model_request_parameters)


@dataclass
class _WatchedTools(WrapperToolset[Any]):
    """The agent's tools, each body on record."""

    watch: Watch

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        watch, wrapped = self.watch, self.wrapped
        call = watch.asked(name, tool_args, ctx.tool_call_id)
        return await watch.recorder.calls.run(
            call,
            tool_args,
            lambda: wrapped.call_tool(name, tool_args, ctx, tool),
            waits=(ApprovalRequired, CallDeferred),
            read=_result,
        )


def _result(given: Any) -> Any:
    return given.return_value if isinstance(given, ToolReturn) else given
