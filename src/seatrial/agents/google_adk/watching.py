"""Where a run is watched: around the model that answers a step, and around a tool's body.

Both are stand-ins for one call: neither model nor tool nor agent is changed, and other trials see nothing of them.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types
from pydantic import PrivateAttr

from seatrial.agents.asked import AskedCall
from seatrial.agents.google_adk.recorder import GoogleADKRecorder, gives_answer, whose
from seatrial.core.trace import Usage, count_of

__all__ = ["WatchedModel", "run_watched"]


class WatchedModel(BaseLlm):
    """The model of one step of one agent."""

    _wrapped: BaseLlm = PrivateAttr()
    _recorder: GoogleADKRecorder = PrivateAttr()
    _context: Any = PrivateAttr()

    @classmethod
    def of(cls, model: BaseLlm, recorder: GoogleADKRecorder, context: Any) -> WatchedModel:
        """The model, on record."""
        watched = cls(model=model.model)
        watched._wrapped, watched._recorder, watched._context = model, recorder, context
        return watched

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """The wrapped model's responses. Each is on record before the framework acts on it."""
        recorder = self._recorder
        number = await recorder.begin_model_call(llm_request.model or self.model, whose(self._context)[0])
        reply = _Reply(recorder, number)
        try:
            async with aclosing(self._wrapped.generate_content_async(llm_request, stream=stream)) as responses:
                async for response in responses:
                    reply.take(response, llm_request, self._context)
                    yield response
        except GeneratorExit:
            raise
        except BaseException as error:
            recorder.trial.recorder.end_model_call(number, error=error)
            raise
        finally:
            reply.close()


class _Reply:
    """One model call as its responses come in: pieces of a stream, then what they make together."""

    def __init__(self, recorder: GoogleADKRecorder, number: int) -> None:
        self._recorder = recorder
        self._number = number
        self._usage: Usage | None = None
        self._last: LlmResponse | None = None
        self._ended = False

    def take(self, response: LlmResponse, request: LlmRequest, context: Any) -> None:
        """The next response."""
        self._usage = _usage(response.usage_metadata) or self._usage
        self._last = response
        if response.partial:
            return
        if self._ended:
            self._recorder.trial.recorder.amend(self._number, usage=self._usage)
        else:
            self._end(response)
        self._recorder.read(self._number, response, request.tools_dict, context)

    def _end(self, response: LlmResponse) -> None:
        self._ended = True
        self._recorder.end_model_call(self._number, response, self._usage)

    def close(self) -> None:
        """No more responses; a stream that was cut leaves what it had."""
        if not self._ended and self._last is not None:
            self._end(self._last)


def _usage(given: types.GenerateContentResponseUsageMetadata | None) -> Usage | None:
    """Tokens as Gemini counts them, thoughts beside the answer; other providers' adapters count them within it."""
    if given is None:
        return None
    sent, written = count_of(given.prompt_token_count), count_of(given.candidates_token_count)
    thoughts = count_of(given.thoughts_token_count)
    if sent is not None:
        sent += count_of(given.tool_use_prompt_token_count) or 0
    within = given.total_token_count == (sent or 0) + (written or 0)
    if thoughts and not within:
        written = (written or 0) + thoughts
    return Usage(input=sent, output=written, cached=given.cached_content_token_count, reasoning=thoughts)


class _Waits(Exception):
    """The body asked for confirmation instead of doing anything; it will run again."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


async def run_watched(
    recorder: GoogleADKRecorder, run: Callable[..., Awaitable[Any]], tool: BaseTool, args: dict[str, Any], context: Any
) -> Any:
    """Run a tool's body on record; the framework checks the arguments of a function before that."""
    if gives_answer(tool):
        return await run(tool, args, context)
    call = recorder.asked(tool.name, args, context.function_call_id, context._invocation_context)
    body: Callable[[], Awaitable[Any]]
    try:
        if isinstance(tool, FunctionTool) and _is_plain(tool):
            call.rejected = "its arguments were not accepted"
            return await run(_watched_function(tool, recorder, call, context), args, context)
        body = functools.partial(run, tool, args, context)
        return await recorder.calls.run(call, args, lambda: _waiting(body, context), waits=(_Waits,))
    except _Waits as waits:
        return waits.result


def _is_plain(tool: FunctionTool) -> bool:
    """Whether it is the framework that checks the arguments and calls the function."""
    return type(tool).run_async is FunctionTool.run_async and not tool._spec.is_generator


def _watched_function(tool: FunctionTool, recorder: GoogleADKRecorder, call: AskedCall, context: Any) -> FunctionTool:
    """The tool for this one call, its function on record."""

    async def function(**kwargs: Any) -> Any:
        body = functools.partial(tool._invoke_callable, tool.func, kwargs)
        return await recorder.calls.run(call, kwargs, lambda: _waiting(body, context), waits=(_Waits,))

    watched = copy.copy(tool)
    watched.func = function
    return watched


async def _waiting(body: Callable[[], Awaitable[Any]], context: Any) -> Any:
    result = await body()
    if context.function_call_id in context.actions.requested_tool_confirmations:
        raise _Waits(result)
    return result
