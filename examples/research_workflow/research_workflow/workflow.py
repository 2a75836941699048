"""The workflow: the researcher takes every question, and hands calculations over."""

from __future__ import annotations

import os
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.llms.function_calling import FunctionCallingLLM

from research_workflow.model import next_message
from research_workflow.tools import add, multiply, search_notes
from seatrial.testing.llamaindex import ScriptedLLM

__all__ = ["adds_first", "build", "from_memory", "good", "language_model"]

RESEARCHER = "You are the researcher. You answer questions about two ships. Hand calculations over to the calculator."
NOTES_ONLY = "Say only what the notes say; search them first."
CALCULATOR = "You are the calculator. Use a tool for every calculation, and answer in one sentence."
ORDER = "Multiply before you add."


def language_model() -> FunctionCallingLLM:
    """The model named in the environment variable MODEL, at OPENAI_BASE_URL, else the scripted one."""
    name = os.environ.get("MODEL")
    if not name:
        return ScriptedLLM(script=next_message, model="scripted-research")
    from llama_index.llms.openai_like import OpenAILike

    options = {"api_base": os.environ.get("OPENAI_BASE_URL"), "api_key": os.environ.get("OPENAI_API_KEY", "none")}
    model: FunctionCallingLLM = OpenAILike(model=name, is_chat_model=True, is_function_calling_model=True, **options)
    return model


def build(researcher: tuple[str, ...], calculator: tuple[str, ...]) -> Any:
    """The workflow with these prompts."""
    model = language_model()
    agents = [
        FunctionAgent(
            name="researcher",
            description="Knows the notes about the ships.",
            system_prompt="\n".join(researcher),
            tools=[search_notes],
            llm=model,
            can_handoff_to=["calculator"],
        ),
        FunctionAgent(
            name="calculator",
            description="Adds and multiplies.",
            system_prompt="\n".join(calculator),
            tools=[multiply, add],
            llm=model,
            can_handoff_to=["researcher"],
        ),
    ]
    return AgentWorkflow(agents=agents, root_agent="researcher")


def good() -> Any:
    """The build that ships."""
    return build((RESEARCHER, NOTES_ONLY), (CALCULATOR, ORDER))


def adds_first() -> Any:
    """Nobody says in which order to calculate."""
    return build((RESEARCHER, NOTES_ONLY), (CALCULATOR,))


def from_memory() -> Any:
    """Nobody asks for the notes."""
    return build((RESEARCHER,), (CALCULATOR, ORDER))
