"""One adapter a file; none imports another. Names stand for them here and in `agent: {kind: ...}`."""

from __future__ import annotations

from seatrial.registry import Registry

__all__ = ["AGENTS"]

AGENTS = Registry(
    "agent",
    {
        "function": "seatrial.agents.function:FunctionAgent",
        "langgraph": "seatrial.agents.langgraph:LangGraphAgent",
        "llamaindex": "seatrial.agents.llamaindex.agent:LlamaIndexAgent",
        "openai_agents": "seatrial.agents.openai_agents.agent:OpenAIAgentsAgent",
        "pydantic_ai": "seatrial.agents.pydantic_ai:PydanticAIAgent",
        "google_adk": "seatrial.agents.google_adk:GoogleADKAgent",
        "http": "seatrial.agents.http:HTTPAgent",
        "command": "seatrial.agents.command:CommandAgent",
        "otel": "seatrial.agents.otel:TracedAgent",
    },
)
