"""Who speaks to the agent: scripted turns, rules, or a simulator."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.core.case import Case, UserReply, UserSpec
from seatrial.core.matching import matches
from seatrial.core.ports import User
from seatrial.environment.failure import fixture_part
from seatrial.errors import UsageError
from seatrial.registry import load_object

__all__ = ["RuleUser", "conversation", "inputs_of", "user_for"]


@dataclass(frozen=True)
class RuleUser:
    """A simulated user that answers by rules: the first whose `when` matches the agent's last answer speaks."""

    rules: Sequence[UserReply]

    def reply(self, answers: Sequence[str]) -> str | None:
        """The matching rule's text; None (done) when no rule matches."""
        last = answers[-1] if answers else ""
        for rule in self.rules:
            if rule.when is None or matches(rule.when, last):
                return rule.say
        return None


def user_for(spec: UserSpec, case: Case) -> User:
    """The simulator a case asks for; UsageError for one that this version cannot play."""
    if spec.scripted is not None:
        return RuleUser(spec.scripted)
    if spec.use is not None:
        factory = load_object(spec.use)
        user = factory(case)
        if not callable(getattr(user, "reply", None)):
            raise UsageError(f"case {case.id}: {spec.use} gave a {type(user).__name__} without a `reply` method")
        return user  # type: ignore[no-any-return]  # checked above
    raise UsageError(f"case {case.id}: users played by a model are not available in this version; use `scripted`")


async def conversation(case: Case, answers: Sequence[str]) -> AsyncGenerator[Any, None]:
    """The inputs of all user turns: the case's own, then scripted turns or what the simulated user says.

    `answers` is read when the next input is asked for, so the caller appends the agent's answers to it. Raises
    FixtureError when a simulated user does: no failure of the agent's.
    """
    if case.user is None:
        for value in inputs_of(case):
            yield value
        return
    yield case.input
    with fixture_part("the simulated user"):
        user = user_for(case.user, case)
    limit = case.user.simulated.max_turns if case.user.simulated else case.user.max_turns
    for _ in range(limit - 1):
        with fixture_part("the simulated user"):
            said = user.reply(answers)
            said = await said if inspect.isawaitable(said) else said
        if said is None:
            return
        yield with_message(case.input, said)


def inputs_of(case: Case) -> tuple[Any, ...]:
    """What a user says who listens to no answer: the case's own input, then its scripted turns."""
    first, turns = case.input, case.turns
    return (first, *[with_message(first, turn.user) for turn in turns]) if turns else (first,)


def with_message(case_input: Any, message: str) -> Any:
    """The input of a later turn: the text itself, or the case's mapping with `message` replaced."""
    return message if isinstance(case_input, str) else {**case_input, "message": message}
