"""What Seatrial reads in the SDK's objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agents import Agent, Handoff
from seatrial.core.trace import Usage

__all__ = ["function_calls", "handoff_targets", "model_name", "outputs_by_call", "text_of", "usage_of"]


def usage_of(response: Any) -> Usage | None:
    """Tokens of a model's response. The SDK writes 0 where the provider said nothing: a 0 is unknown."""
    told = response.usage
    if not (told.input_tokens or told.output_tokens or told.total_tokens):
        return None
    sent, written = told.input_tokens_details, told.output_tokens_details
    return Usage(
        input=told.input_tokens,
        output=told.output_tokens,
        cached=getattr(sent, "cached_tokens", None) or None,
        cache_write=getattr(sent, "cache_write_tokens", None) or None,
        reasoning=getattr(written, "reasoning_tokens", None) or None,
    )


def model_name(agent: Any, run_config: Any = None) -> str | None:
    """Name of the model that a run of this agent calls; None where it is not known."""
    wanted = run_config.get("model") if isinstance(run_config, Mapping) else getattr(run_config, "model", None)
    model = wanted or agent.model
    if model is None:
        from agents.models.default_models import get_default_model

        return get_default_model()
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return None if name is None else str(name)


def text_of(response: Any) -> str:
    """What the model said, as text."""
    parts = [part for item in response.output for part in getattr(item, "content", None) or ()]
    return "".join(str(part.text) for part in parts if getattr(part, "type", "") == "output_text")


def function_calls(response: Any) -> list[Any]:
    """The function calls that a model asked for, in order."""
    return [item for item in response.output if getattr(item, "type", "") == "function_call"]


def outputs_by_call(items: Iterable[Any]) -> dict[str, Any]:
    """What a conversation says of function calls, by call id."""
    found = [item for item in items if isinstance(item, Mapping) and item.get("type") == "function_call_output"]
    return {str(item.get("call_id")): _text(item.get("output")) for item in found}


def _text(output: Any) -> Any:
    if isinstance(output, list) and all(isinstance(one, Mapping) and one.get("type") == "input_text" for one in output):
        return "".join(str(one.get("text")) for one in output)
    return output


def handoff_targets(agent: Any) -> dict[str, tuple[str, bool]]:
    """Whom an agent's hand-offs go to, by the tool's name, and whether the tool has a place for a context."""
    found = {}
    for one in agent.handoffs:
        if isinstance(one, Handoff):
            found[one.tool_name] = one.agent_name, bool(one.input_json_schema.get("properties"))
        elif isinstance(one, Agent):
            found[Handoff.default_tool_name(one)] = one.name, False
    return found
