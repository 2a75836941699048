"""The chat adapter against a server that is not ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chats import Configured
from seatrial.core.project import AgentSpec

llmock_testing = pytest.importorskip("llmock.testing")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def server() -> Iterator[Any]:
    running = llmock_testing.LLMockServer().start()
    try:
        yield running
    finally:
        running.stop()


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_answer_and_usage_of_another_implementation_are_read(server: Any, stream: bool) -> None:
    from llmock.scenarios import Reply, ToolCall

    server.state.scenarios.add(Reply(tool_calls=(ToolCall("add", {"a": 1}), ToolCall("boom", {"a": 2}))))
    server.state.scenarios.add(Reply(text="the sum is 3"))
    drive = Configured(AgentSpec(target=f"{server.base_url('openai').rstrip('/')}/chat/completions"))
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
        for name in ("add", "boom")
    ]
    drive.config.update(model="gpt-4o", stream=stream, tools=tools)
    driven = drive.run(
        "add one", tools={"add": [{"returns": 3}], "boom": [{"otherwise": True, "raises": "ValueError: no"}]}
    )
    assert driven.output == "the sum is 3"
    assert driven.states == [("add", "executed"), ("boom", "failed")]
    assert [call.arguments for call in driven.calls] == [{"a": 1}, {"a": 2}]
    assert len({call.call_id for call in driven.calls}) == 2
    assert all(call.usage is not None and call.usage.input for call in driven.model_calls)
    assert [call.model for call in driven.model_calls] == ["gpt-4o", "gpt-4o"]
