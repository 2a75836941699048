"""Graders of what the agent said: the final output, and whether it asked before it acted.

Text is read as `seatrial.core.text` says. The text of a structured output is all its values, one a
line. Phrases are looked for as they stand: a negated sentence that holds the phrase holds
it (`no refund completed` holds `refund completed`), one with a word in between does not (`refund not completed`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from seatrial.core.case import AnswerExpectation, Concept, ResponseExpectation
from seatrial.core.grade import Grade
from seatrial.core.grading import abstained, failed, listed, passed, unobserved
from seatrial.core.language import language_of
from seatrial.core.matching import Mismatch, mismatches, show
from seatrial.core.ports import GradingContext
from seatrial.core.text import NumberInText, contains_phrase, normalised, numbers, unfenced
from seatrial.core.trace import Message, Observable, text_of

__all__ = [
    "REQUESTS",
    "answer",
    "asks",
    "equals",
    "json_schema",
    "language",
    "matches_pattern",
    "max_characters",
    "output",
    "prohibited_concepts",
    "required_concepts",
]


def _text(context: GradingContext) -> str:
    return text_of(context.trace.output)


def _response(context: GradingContext) -> ResponseExpectation:
    return context.expected.response or ResponseExpectation()


# --- answer ---------------------------------------------------------------------------------------------------------


def answer(context: GradingContext) -> Grade | None:
    """The final output holds the expected text or number."""
    wanted = context.expected.answer
    if wanted is None:
        return None
    holds, reason = _holds(wanted, _text(context))
    return passed(reason) if holds else failed(reason)


def _holds(wanted: AnswerExpectation, text: str) -> tuple[bool, str]:
    if wanted.any_of:
        found = [_holds(option, text) for option in wanted.any_of]
        right = [reason for holds, reason in found if holds]
        return (True, right[0]) if right else (False, "; ".join(reason for _, reason in found))
    if wanted.number is not None:
        return _holds_number(wanted, list(numbers(text)))
    if contains_phrase(text, wanted.text or ""):
        return True, f"{wanted.text!r} is in the output"
    return False, f"{wanted.text!r} is not in the output {show(text)}"


def _holds_number(wanted: AnswerExpectation, found: list[NumberInText]) -> tuple[bool, str]:
    number, tolerance = Decimal(repr(wanted.number)), Decimal(repr(wanted.tolerance))
    within = f" within {wanted.tolerance:g}" if tolerance else ""
    looked_at = found[-1:] if wanted.which == "last" else found
    right = next((item for item in looked_at if abs(item.value - number) <= tolerance), None)
    if right is not None:
        return True, f"{wanted.number}{within} is in the output{_percent_note([right])}"
    if not found:
        return False, f"expected the number {wanted.number}{within}, but the output holds no number"
    which = "the last number of the output is" if wanted.which == "last" else "the output holds"
    seen = listed(item.text for item in looked_at)
    return False, f"expected the number {wanted.number}{within}, {which} {seen}{_percent_note(looked_at)}"


def _percent_note(found: list[NumberInText]) -> str:
    percentages = [f"{item.text} reads as {item.value}" for item in found if item.percent]
    return f" ({listed(percentages)})" if percentages else ""


# --- output ---------------------------------------------------------------------------------------------------------


def output(context: GradingContext) -> Grade | None:
    """The structured output (or text that is JSON) matches."""
    found = _output_mismatches(context)
    if found:
        return failed("; ".join(map(str, found)))
    return passed("the output is as expected")


def _output_mismatches(context: GradingContext) -> list[Mismatch]:
    wanted, given = context.expected.output, context.trace.output
    as_given = mismatches(wanted, given, path="output", input=context.case.input)
    if not as_given or not isinstance(given, str):
        return as_given
    readable, data = _parsed(given)
    return mismatches(wanted, data, path="output", input=context.case.input) if readable else as_given


def _parsed(text: str) -> tuple[bool, Any]:
    """Whether a text is JSON, in a code fence or not, and its data."""
    try:
        return True, json.loads(unfenced(text))
    except (ValueError, RecursionError):
        return False, None


# --- response -------------------------------------------------------------------------------------------------------


def required_concepts(context: GradingContext) -> Grade | None:
    """Every concept is in the text."""
    text, concepts = _text(context), _response(context).required_concepts or ()
    lacking = [concept for concept in concepts if not _phrase_in(text, concept)]
    if lacking:
        return failed("the output does not say " + " nor ".join(map(_named, lacking)))
    return passed("the output says " + listed(map(_named, concepts))) if concepts else None


def prohibited_concepts(context: GradingContext) -> Grade | None:
    """No such concept is in the text."""
    text, concepts = _text(context), _response(context).prohibited_concepts or ()
    found = [phrase for concept in concepts if (phrase := _phrase_in(text, concept))]
    if found:
        return failed("the output says " + listed(map(repr, found)))
    return passed("the output says none of " + listed(map(_named, concepts))) if concepts else None


def _phrase_in(text: str, concept: Concept) -> str | None:
    return next((phrase for phrase in concept.any_of if contains_phrase(text, phrase)), None)


def _named(concept: Concept) -> str:
    return " or ".join(map(repr, concept.any_of))


def matches_pattern(context: GradingContext) -> Grade | None:
    """`response.matches`: the regular expression is found in the text."""
    pattern, text = _response(context).matches or "", text_of(context.trace.output)
    if re.search(pattern, text):
        return passed(f"the output matches {pattern!r}")
    return failed(f"the output does not match {pattern!r}: {show(text)}")


def equals(context: GradingContext) -> Grade | None:
    """`response.equals`: the whole text is equal after NFC and trimming."""
    wanted, text = _response(context).equals or "", text_of(context.trace.output)
    if normalised(wanted) == normalised(text):
        return passed("the output is the expected text")
    return failed(f"expected {show(wanted)}, got {show(text)}")


def json_schema(context: GradingContext) -> Grade | None:
    """`response.json_schema`: the structured output, or the JSON in the text, is valid."""
    from jsonschema.validators import validator_for
    from referencing import Registry

    data = context.trace.output
    if isinstance(data, str):
        readable, data = _parsed(data)
        if not readable:
            return failed(f"the output is no JSON: {show(context.trace.output)}")
    schema = _response(context).json_schema or {}
    validator = validator_for(schema)(schema, registry=Registry())  # an empty registry: nothing is fetched
    problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(data)]
    return failed(listed(problems, most=5)) if problems else passed("the output is valid under the schema")


def max_characters(context: GradingContext) -> Grade | None:
    """`response.max_characters`: the text is no longer than that."""
    most, length = _response(context).max_characters or 0, len(text_of(context.trace.output))
    if length > most:
        return failed(f"the output has {length} characters, at most {most} are allowed")
    return passed(f"the output has at most {most} characters")


def language(context: GradingContext) -> Grade | None:
    """`response.language`: the text is in that language."""
    wanted, found = _response(context).language, language_of(_text(context))
    if found is None:
        return abstained("the output has too little text to tell its language")
    return passed(f"the output is in {found!r}") if found == wanted else failed(f"expected {wanted!r}, got {found!r}")


# --- asks -----------------------------------------------------------------------------------------------------------

REQUESTS = (
    *("please provide", "please tell", "please share", "please send", "please give", "please enter", "please confirm"),
    *("please specify", "tell me", "let me know", "could you", "can you", "would you", "i need", "i'll need"),
    *("i will need", "we need", "provide your", "provide the", "what is"),
)
"""A sentence with one of these asks for something, as does any that ends in a question mark."""
_SENTENCE = r"[^.!?？؟\n]*[.!?？؟\n]?"


def asks(context: GradingContext) -> Grade | None:
    """The agent asks for the concept before its first call that acts."""
    concept = context.expected.asks
    if concept is None:
        return None
    asked = next((place for place, text in _said(context) if _asks_for(text, concept)), None)
    unseen = unobserved(context.trace, Observable.TOOL_CALLS)
    acted = [call for call in context.trace.tool_calls if _acts(context, call.name)]
    if acted and (asked is None or asked > (acted[0].turn, acted[0].number)):
        return failed(f"{acted[0].name} was called before the agent asked for {concept!r}", evidence=[acted[0].number])
    if asked is None:
        return failed(f"the agent never asked for {concept!r}") if context.trace.answered else None
    return unseen or passed(f"the agent asked for {concept!r} before it acted")


def _said(context: GradingContext) -> Iterator[tuple[tuple[int, float], str]]:
    """What the agent said, each with its place as (turn, event number); an answer comes after its turn's events."""
    trace = context.trace
    said = [((m.turn, float(m.number)), text_of(m.content)) for m in trace.of(Message) if m.role == "assistant"]
    last = max((event.turn for event in trace.events), default=1)
    earlier = [((turn, float("inf")), text_of(value)) for turn, value in enumerate(trace.outputs[:-1], start=1)]
    final = ((max(last, len(trace.outputs)), float("inf")), text_of(trace.output))
    return iter(sorted([*said, *earlier, final]))


def _asks_for(text: str, concept: str) -> bool:
    return any(
        contains_phrase(sentence, concept) and _is_question(sentence) for sentence in re.findall(_SENTENCE, text)
    )


def _is_question(sentence: str) -> bool:
    asked = sentence.rstrip("\"'*_) ").endswith(("?", "？", "؟"))
    return asked or any(contains_phrase(sentence, phrase) for phrase in REQUESTS)


def _acts(context: GradingContext, tool: str) -> bool:
    if context.rules is not None:
        return bool(context.rules.side_effect(tool))
    return tool not in context.expected.allowed_tools
