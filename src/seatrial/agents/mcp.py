"""MCP servers as an agent's tools: a proxy on loopback that stands between any MCP client and the real server.

The agent is pointed at the proxy's URL in place of the server. It sees the server's tools; every call goes through the
trial: recorded once, answered by the fixture's stand-in where there is one, hit by its faults. Arguments that do not
fit the tool's schema are invalid and reach nobody. Needs mcp (extra `mcp`).
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

import jsonschema
import uvicorn
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

from seatrial.core.encoding import dumps, to_json
from seatrial.core.trace import CallState, Observable
from seatrial.environment.failure import TrialOver, error_text
from seatrial.environment.handing_over import is_handoff_tool
from seatrial.environment.recorder import StepLimitReached
from seatrial.environment.spending import CostLimitReached
from seatrial.environment.tools import UnknownTool
from seatrial.environment.trial import TrialEnvironment, current_trial

__all__ = ["MCPProxy", "mcp_proxy"]

_ANY = {"type": "object", "additionalProperties": True}
_START_S = 30.0


def mcp_proxy(server: Any = None) -> MCPProxy:
    """A proxy before an MCP server for the running trial: a context manager, sync or async, whose `url` the agent uses.

    `server` is what `mcp.Client` takes: a URL, StdioServerParameters or a server object; None: the fixture's stand-ins
    are all the tools there are. Raises RuntimeError outside a trial, and what connecting to the server raises.
    """
    return MCPProxy(current_trial(), server)


class _ToolFailed(Exception):
    """The real server says that the tool failed."""

    def __init__(self, result: CallToolResult) -> None:
        super().__init__(_text(result))
        self.result = result


class MCPProxy:
    """One trial's proxy. It has a thread and a loop of its own, so that it serves agents of every colour."""

    url: str
    """Where clients connect (streamable HTTP), once entered."""

    def __init__(self, trial: TrialEnvironment, server: Any) -> None:
        self._trial = trial
        self._real = server
        self._client: Client | None = None
        self._tools: dict[str, Tool] = {}
        self._taken: set[int] = set()
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="seatrial-mcp", daemon=True)

    def __enter__(self) -> MCPProxy:
        self._trial.recorder.observe(Observable.TOOL_CALLS)
        self._thread.start()
        self._ready.wait(_START_S)
        if self._error is not None or not self._ready.is_set():
            self.__exit__()
            raise self._error or TimeoutError(f"the MCP server did not answer within {_START_S:g} s")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if self._error is None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_START_S)

    async def __aenter__(self) -> MCPProxy:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.__exit__)

    # --- its own thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001  the end of a thread: whoever waits for the server gets it
            self._error = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncExitStack() as open_things:
            if self._real is not None:
                self._client = await open_things.enter_async_context(Client(self._real))
            await self._learn_tools()
            path = f"/{secrets.token_urlsafe(16)}/mcp"
            front: Server[Any] = Server("seatrial", on_list_tools=self._list_tools, on_call_tool=self._call_tool)
            app = front.streamable_http_app(streamable_http_path=path, json_response=True, stateless_http=True)
            listening = open_things.enter_context(socket.create_server(("127.0.0.1", 0)))
            self.url = f"http://127.0.0.1:{listening.getsockname()[1]}{path}"
            http = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
            serving = asyncio.create_task(http.serve([listening]))  # the socket takes connections already
            self._ready.set()
            await self._stop.wait()
            http.should_exit = True
            await serving

    async def _learn_tools(self) -> None:
        """The real server's tools, and the stand-ins that it does not have."""
        if self._client is not None:
            cursor: str | None = None
            while True:
                page = await self._client.list_tools(cursor=cursor)
                self._tools |= {tool.name: tool for tool in page.tools}
                cursor = page.next_cursor
                if cursor is None:
                    break
        for name in self._trial.tools:
            if self._trial.has_stand_in(name) and (name not in self._tools and self._client is None):
                self._tools[name] = Tool(name=name, input_schema=_ANY)

    async def _list_tools(self, context: Any, parameters: Any) -> ListToolsResult:
        """The tools with their own schemas. Not with those of their results: a stand-in or a fault need not keep them,
        and a client refuses a result that does not."""
        return ListToolsResult(tools=[tool.model_copy(update={"output_schema": None}) for tool in self._tools.values()])

    async def _call_tool(self, context: Any, parameters: Any) -> CallToolResult:
        name, arguments = str(parameters.name), dict(parameters.arguments or {})
        try:
            number, ours = self._begin(name, arguments)
        except (StepLimitReached, CostLimitReached, TrialOver) as error:
            return _failed(str(error))
        try:
            self._check(name, arguments)
            result = await self._answered(name, arguments, number)
        except Exception as error:  # noqa: BLE001  a stand-in, a fault or the server may raise anything: the agent is told
            return self._ended_badly(error, number, ours=ours)
        if ours:
            self._trial.recorder.end_tool_call(number, result=_value(result))
        return result if isinstance(result, CallToolResult) else _result(result)

    def _begin(self, name: str, arguments: Mapping[str, Any]) -> tuple[int, bool]:
        """Event number of a call, and whether it is recorded here: what a framework's adapter has begun stays its."""
        recorder, stand_in = self._trial.recorder, self._trial.has_stand_in(name)
        find = recorder.open_handoff if is_handoff_tool(name) else recorder.open_call
        known = find(name, arguments, besides=self._taken)
        if known is not None:
            self._taken.add(known)
            recorder.amend(known, stand_in=stand_in)
            return known, False
        agent = recorder.active_agent or self._trial.identity.get("agent")
        return recorder.begin_tool_call(name, arguments, agent=agent, stand_in=stand_in), True

    def _check(self, name: str, arguments: Mapping[str, Any]) -> None:
        tool = self._tools.get(name)
        if tool is None:
            raise UnknownTool(f"there is no tool named {name!r}")
        jsonschema.validate(arguments, tool.input_schema)

    async def _answered(self, name: str, arguments: Mapping[str, Any], number: int) -> Any:
        """What the trial makes of a call; the server's own result, whole, where nothing changed it."""
        whole: list[CallToolResult] = []

        async def forwarded(**_: Any) -> Any:
            if self._client is None:
                raise UnknownTool(f"there is no tool named {name!r}")
            answer = await self._client.call_tool(name, dict(arguments))
            if answer.is_error:
                raise _ToolFailed(answer)
            whole.append(answer)
            return _value(answer)

        with self._trial.activate():
            result = await self._trial.run_tool(name, arguments, forwarded, number=number)
        return whole[0] if whole and to_json(_value(whole[0])) == to_json(result) else result

    def _ended_badly(self, error: Exception, number: int, *, ours: bool) -> CallToolResult:
        if isinstance(error, jsonschema.ValidationError):
            state, text = CallState.INVALID_ARGUMENTS, f"invalid arguments: {error.message}"
        elif isinstance(error, UnknownTool):
            state, text = CallState.UNKNOWN_TOOL, str(error)
        else:
            state, text = CallState.FAILED, str(error) if isinstance(error, _ToolFailed) else error_text(error)
        if ours:
            self._trial.recorder.end_tool_call(number, error=text, state=state)
        return error.result if isinstance(error, _ToolFailed) else _failed(text)


def _text(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def _value(result: Any) -> Any:
    """What a result says, as data: its structured content, a single value freed of its wrapping, else its text."""
    if not isinstance(result, CallToolResult):
        return result
    found = result.structured_content
    if found is None:
        return _text(result)
    return found["result"] if set(found) == {"result"} else found


def _result(value: Any) -> CallToolResult:
    text = value if isinstance(value, str) else dumps(to_json(value))
    data = to_json(value)
    structured = data if isinstance(data, dict) else None
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=structured)


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
