"""Several turns of a trial, which are one conversation, and several trials of an agent, which know nothing of each
other."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.core.trace import Observable
from seatrial.testing.conformance.expected import AGENT, Call, Expected, Facts, Ledger, ModelCalled, Plan, Said
from seatrial.testing.conformance.script import AgentScript, Ask, Line, Script, Tool
from seatrial.testing.conformance.signals import Meeting
from seatrial.testing.conformance.situations.shared import asks, one_agent
from seatrial.testing.conformance.tools import meet, meet_blocking

__all__ = ["isolation", "three_turns", "twenty_trials"]

ABOUT = frozenset({Observable.OUTPUT})
TRIALS = 20


def _heard(said: Sequence[str]) -> str:
    return "I heard: " + "; ".join(said)


def _conversation(*said: str) -> Expected:
    """Every answer repeats what the user has said until then, and nothing else."""
    answers = [_heard(said[: turn + 1]) for turn in range(len(said))]
    return Expected(
        outputs=tuple(answers),
        model_calls=tuple(ModelCalled(turn=turn) for turn in range(1, len(said) + 1)),
        said=tuple(Said(text, turn=turn) for turn, text in enumerate(answers, 1)),
    )


def three_turns(facts: Facts) -> Plan:
    """One conversation: each answer knows what was said before, each event its turn."""
    said = ("one", "two", "three")
    lines = [Line(_heard)] * len(said)
    return Plan(one_agent(*lines), lambda _: _conversation(*said), about=ABOUT, says=lambda _: said)


def isolation(facts: Facts) -> Plan:
    """The same agent, one trial after the other: none hears what another was told."""

    def says(index: int) -> tuple[str, ...]:
        return (f"trial {index}, first", f"trial {index}, second")

    return Plan(
        one_agent(Line(_heard), Line(_heard)),
        lambda index: _conversation(*says(index)),
        about=ABOUT,
        says=says,
        trials=3,
    )


def twenty_trials(facts: Facts) -> Plan:
    """All at once, each in the middle of its call until every other is too: to each its own."""
    ledger = Ledger()
    meeting = Meeting(TRIALS)
    tool = Tool(meet(ledger, meeting) if facts.ways.async_tools else meet_blocking(ledger, meeting))

    def script(index: int) -> Script:
        ask = Ask("meet", {"visitor": f"visitor {index}"}, f"call-{index}")
        return Script((AgentScript(AGENT, (asks(ask), Line(_heard)), tools=(tool,)),))

    def expected(index: int) -> Expected:
        answer = _heard((f"I am visitor {index}",))
        arguments = {"visitor": f"visitor {index}"}
        call = Call("meet", arguments, f"visitor {index} met the others", call_id=f"call-{index}")
        models = (ModelCalled(), ModelCalled())
        return Expected(outputs=(answer,), model_calls=models, tool_calls=(call,), said=(Said(answer),))

    return Plan(
        Script(script(1).agents, in_trial=script),
        expected,
        about=ABOUT,
        ledger=ledger,
        bodies=tuple(("meet", {"visitor": f"visitor {index}"}) for index in range(1, TRIALS + 1)),
        says=lambda index: (f"I am visitor {index}",),
        trials=TRIALS,
        at_once=True,
    )
