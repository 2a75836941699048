"""What Seatrial reads in LangChain's and LangGraph's objects, by their public attributes.

LangGraph's classes are told by name, so that LangChain alone works too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.core.encoding import to_json
from seatrial.core.trace import Usage, count_of
from seatrial.environment.handing_over import handed_over

__all__ = [
    "HANDOFF_MARK",
    "asked_model",
    "command_in",
    "declared_target",
    "destination_of",
    "goes_to_parent",
    "handed_over",
    "interrupt_ids",
    "is_langgraph",
    "message_of",
    "model_name",
    "offered_tools",
    "says_the_same",
    "takes_arguments",
    "target_of",
    "told_by",
    "usage_of",
]

HANDOFF_MARK = "__handoff_destination"
"""Key of a tool's metadata by which its author declares a hand-off (langgraph-supervisor and -swarm do)."""
_PARENT = "__parent__"
"""`Command.PARENT`."""
_END = "__end__"
"""`END`: no node."""


def message_of(response: Any) -> Any:
    generations = response.generations[0] if response.generations else ()
    return getattr(generations[0], "message", None) if generations else None


def model_name(response: Any, message: Any) -> str | None:
    told = getattr(message, "response_metadata", None) or {}
    name = told.get("model_name") or told.get("model") or (response.llm_output or {}).get("model_name")
    return None if name is None else str(name)


def usage_of(message: Any) -> Usage | None:
    usage = getattr(message, "usage_metadata", None)
    if not usage:
        return None
    sent, written = usage.get("input_token_details") or {}, usage.get("output_token_details") or {}
    return Usage(
        input=usage.get("input_tokens"),
        output=usage.get("output_tokens"),
        cached=_tokens(sent, "cache_read"),
        cache_write=_tokens(sent, "cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),
        reasoning=_tokens(written, "reasoning"),
    )


def _tokens(details: Mapping[str, Any], *names: str) -> int | None:
    """Sum of the details of these names, also with a provider's prefix (`priority_cache_read`); None without any."""
    found = [count for key, value in details.items() if key.endswith(names) and (count := count_of(value)) is not None]
    return sum(found) if found else None


def asked_model(metadata: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """Name of the model that is about to be called; None when LangChain does not say."""
    model = metadata.get("ls_model_name") or parameters.get("model") or parameters.get("model_name")
    return None if model is None else str(model)


def offered_tools(parameters: Mapping[str, Any]) -> frozenset[str] | None:
    """Names of the tools that a model call offered; None when it does not say."""
    tools = parameters.get("tools")
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        return None
    names = (tool.get("function", tool).get("name") for tool in tools if isinstance(tool, Mapping))
    return frozenset(str(name) for name in names if name)


def declared_target(name: str, metadata: Mapping[str, Any]) -> str | None:
    """Whom a tool of this name hands over to; `""` when only its answer will tell, None when it is no hand-off."""
    declared = metadata.get(HANDOFF_MARK)
    if declared:
        return str(declared)
    if name.startswith("transfer_to_"):
        return name.removeprefix("transfer_to_")
    return "" if name == "handoff" else None


def target_of(command: Any, declared: str | None) -> str | None:
    """Whom a tool's answer hands over to; None when the call was no hand-off."""
    goto = destination_of(command)
    if declared is not None:
        return goto or declared or "unknown"
    return goto if goes_to_parent(command) else None


def goes_to_parent(command: Any) -> bool:
    return command is not None and bool(command.graph == _PARENT)


def destination_of(command: Any) -> str | None:
    """The node that a command names; None where it names none, or the end of the graph."""
    goto = None if command is None else command.goto
    first = goto[0] if isinstance(goto, (list, tuple)) and goto else goto
    node = getattr(first, "node", first)
    return node if isinstance(node, str) and node not in ("", _END) else None


def told_by(command: Any, call_id: str | None) -> Any:
    """The tool message that a command puts into the conversation."""
    update = command.update if isinstance(command.update, Mapping) else {}
    for messages in update.values():
        for message in messages if isinstance(messages, list) else ():
            if call_id is not None and getattr(message, "tool_call_id", None) == call_id:
                return message
    return None


def takes_arguments(tool: Any) -> bool:
    return bool(getattr(tool, "args", None))


def command_in(output: Any) -> Any:
    """The Command among what a tool answered; the one to the parent graph first. None without any."""
    commands = [one for one in (output if isinstance(output, list) else [output]) if is_langgraph(one, "Command")]
    return next((one for one in commands if one.graph == _PARENT), commands[0] if commands else None)


def is_langgraph(value: Any, name: str) -> bool:
    """Whether LangGraph's class of this name is among the value's classes; LangChain works without LangGraph."""
    return any(kind.__name__ == name and kind.__module__.startswith("langgraph.") for kind in type(value).__mro__)


def interrupt_ids(error: BaseException) -> list[str]:
    interrupts = error.args[0] if error.args else ()
    return [one.id for one in interrupts if hasattr(one, "id")]


def says_the_same(told: Any, result: Any) -> bool:
    """Whether a tool message holds a result and nothing else: LangChain writes a result that is no text as JSON."""
    if told == result:
        return True
    if not isinstance(told, str):
        return False
    try:
        return bool(json.loads(told) == to_json(result))
    except ValueError:
        return told == str(result)
