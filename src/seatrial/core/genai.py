"""Names of OpenTelemetry's GenAI conventions, and Seatrial's own beside them, in one place.

Source: OpenTelemetry semantic conventions, registry `gen_ai` (development), as of opentelemetry-semantic-conventions
0.65b0.
"""

from __future__ import annotations

__all__ = [
    "AGENT_NAME",
    "CHAT",
    "CONVERSATION_ID",
    "EVALUATION_EXPLANATION",
    "EVALUATION_LABEL",
    "EVALUATION_NAME",
    "EVALUATION_RESULT",
    "EVALUATION_SCORE",
    "EXECUTE_TOOL",
    "HANDOFF_FROM",
    "HANDOFF_TO",
    "INPUT_MESSAGES",
    "INVOKE_AGENT",
    "OPERATION",
    "OUTPUT_MESSAGES",
    "REQUEST_MODEL",
    "RESPONSE_MODEL",
    "RETRIEVAL",
    "RETRIEVAL_DOCUMENTS",
    "RETRIEVAL_QUERY",
    "TOOL_ARGUMENTS",
    "TOOL_CALL_ID",
    "TOOL_NAME",
    "TOOL_RESULT",
    "USAGE_CACHE_READ",
    "USAGE_CACHE_WRITE",
    "USAGE_INPUT",
    "USAGE_OUTPUT",
    "USAGE_REASONING",
]

OPERATION = "gen_ai.operation.name"
CHAT, INVOKE_AGENT, EXECUTE_TOOL, RETRIEVAL = "chat", "invoke_agent", "execute_tool", "retrieval"

AGENT_NAME = "gen_ai.agent.name"
CONVERSATION_ID = "gen_ai.conversation.id"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"

USAGE_INPUT = "gen_ai.usage.input_tokens"
USAGE_OUTPUT = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE = "gen_ai.usage.cache_creation.input_tokens"
USAGE_REASONING = "gen_ai.usage.reasoning.output_tokens"

TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

RETRIEVAL_QUERY = "gen_ai.retrieval.query.text"
RETRIEVAL_DOCUMENTS = "gen_ai.retrieval.documents"

HANDOFF_FROM = "gen_ai.handoff.from_agent"
HANDOFF_TO = "gen_ai.handoff.to_agent"
"""In no convention yet; what instrumentations of OpenAI Agents write."""

EVALUATION_RESULT = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION = "gen_ai.evaluation.explanation"
