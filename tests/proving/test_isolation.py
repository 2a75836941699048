"""Who depends on whom is found with few runs, and nobody is accused for what is their own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.proving.arrangement import Arrangement
from seatrial.proving.bench import Played
from seatrial.proving.isolation import Orders, fewest, isolate
from seatrial.verdict.isolation import CaseIsolation, Change, Finding, Isolation, Seen

CASES = tuple("abcdefgh")


class World:
    """Runs arrangements of an agent `(case, state) -> features`; every run starts with an empty state."""

    def __init__(self, agent: Callable[[str, dict[str, Any]], Any]) -> None:
        self.agent = agent
        self.trials = self.processes = 0

    def run(self, arrangement: Arrangement) -> Played:
        self.processes += 1
        self.trials += len(arrangement.cases)
        state: dict[str, Any] = {"together": arrangement.concurrency > 1, "run": self.processes}
        seen: list[Seen | None] = []
        changes: tuple[Change, ...] = ()
        for number, case in enumerate(arrangement.cases):
            if number == len(arrangement.cases) - 1 and arrangement.suspects:
                changes = tuple(Change("global", f"m:{key}") for key in state if key not in ("together", "run"))
            result = self.agent(case, state)
            if result == "crash":
                seen += [Seen({"status": "crashed"}), *[None] * (len(arrangement.cases) - number - 1)]
                break
            features = {"status": result} if isinstance(result, str) else result
            seen.append(Seen(features))
        return Played(tuple(seen), changes)


def examine(agent: Callable[[str, dict[str, Any]], Any], cases: Sequence[str] = CASES, **orders: Any) -> Isolation:
    return isolate(World(agent), dict.fromkeys(cases, "smoke"), Orders(**orders))


def found(result: Isolation) -> dict[str, str]:
    return {case.case_id: str(case.finding) for case in result.cases if case.finding is not Finding.INDEPENDENT}


def only(result: Isolation) -> CaseIsolation:
    (case,) = (case for case in result.cases if case.finding is not Finding.INDEPENDENT)
    return case


def test_honest_cases_are_independent_and_cost_a_known_number_of_trials() -> None:
    result = examine(lambda case, state: "passed")
    assert (found(result), result.exit_code) == ({}, 0)
    assert result.trials == len(CASES) * (1 + 2 + 1 + 3 + 1)
    assert result.orders[0] == "alone"
    assert result.orders[-1] == "side by side, 8 at once"


def test_an_earlier_case_is_named_with_what_only_it_changes() -> None:
    def agent(case: str, state: dict[str, Any]) -> str:
        result = "failed" if case == "f" and "login" in state else "passed"
        state["count"] = True
        if case == "c":
            state["login"] = True
        return result

    case = only(examine(agent, concurrency=1))
    assert (case.case_id, case.finding, case.company, case.fewest) == ("f", Finding.DEPENDENT, ("c",), True)
    assert [change.what for change in case.shared] == ["m:login"]
    assert case.alone is not None
    assert case.otherwise is not None
    assert (case.alone.status, case.otherwise.status, case.differs) == ("passed", "failed", ("status",))


def test_a_case_that_needs_another_is_dependent_too() -> None:
    def agent(case: str, state: dict[str, Any]) -> str:
        state[case] = True
        return "passed" if case != "b" or "a" in state else "failed"

    result = examine(agent, concurrency=1)
    assert only(result).company == ("a",)
    assert result.exit_code == 1


def test_two_that_only_do_it_together_are_both_named() -> None:
    def agent(case: str, state: dict[str, Any]) -> str:
        state[case] = True
        return "failed" if case == "h" and {"b", "e"} <= state.keys() else "passed"

    assert set(only(examine(agent, concurrency=1)).company) == {"b", "e"}


def test_a_case_may_depend_on_its_own_earlier_trial() -> None:
    def agent(case: str, state: dict[str, Any]) -> str:
        first = case not in state
        state[case] = True
        return "passed" if first or case != "d" else "failed"

    assert only(examine(agent, concurrency=1)).company == ("d",)


def test_a_counter_makes_every_case_that_reads_it_dependent_on_any_other() -> None:
    def agent(case: str, state: dict[str, Any]) -> dict[str, str]:
        state["n"] = state.get("n", 0) + 1
        return {"status": "passed", "outcome order_id": f"O-{state['n']}"}

    result = examine(agent, concurrency=1)
    assert found(result) == dict.fromkeys(CASES, "dependent")
    assert {len(case.company) for case in result.cases} == {1}
    assert result.cases[0].differs == ("outcome order_id",)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_a_flaky_case_is_not_accused(rate: float, seed: int) -> None:
    chance = random.Random(seed)

    def agent(case: str, state: dict[str, Any]) -> str:
        return "failed" if case == "e" and chance.random() < rate else "passed"

    result = examine(agent)
    assert set(found(result).items()) <= {("e", "flaky")}
    assert result.exit_code == (4 if found(result) else 0)


def test_flaky_by_itself_is_told_with_how_often() -> None:
    turn = itertools.count()

    def agent(case: str, state: dict[str, Any]) -> str:
        return "failed" if case == "b" and next(turn) % 2 else "passed"

    case = only(examine(agent))
    assert (case.finding, case.where) == (Finding.FLAKY, "alone: 3 times passed, 2 times failed")


def test_an_outcome_that_varies_by_itself_is_left_out() -> None:
    turn = itertools.count()

    def agent(case: str, state: dict[str, Any]) -> dict[str, str]:
        return {"status": "passed", "outcome created": str(next(turn))}

    assert examine(agent).exit_code == 0


def test_a_dependence_shows_beside_what_varies_by_itself() -> None:
    turn = itertools.count()

    def agent(case: str, state: dict[str, Any]) -> dict[str, str]:
        state[case] = True
        known = "yes" if case == "g" and "b" in state else "no"
        return {"status": "passed", "outcome created": str(next(turn)), "outcome known": known}

    case = only(examine(agent, concurrency=1))
    assert (case.case_id, case.differs, case.company) == ("g", ("outcome known",), ("b",))


def test_what_happens_only_side_by_side_is_said_so() -> None:
    def agent(case: str, state: dict[str, Any]) -> str:
        return "failed" if case == "c" and state["together"] else "passed"

    case = only(examine(agent))
    assert (case.finding, case.together, case.where) == (Finding.DEPENDENT, True, "side by side, 8 at once")
    assert case.company == ("a",)  # whoever is left when all others were left out


def test_a_race_that_is_lost_most_times_is_found_and_one_lost_once_is_flaky() -> None:
    def racing(lost: Callable[[int], bool]) -> CaseIsolation:
        turn = itertools.count()

        def agent(case: str, state: dict[str, Any]) -> str:
            return "failed" if case == "c" and state["together"] and lost(next(turn)) else "passed"

        return only(examine(agent))

    often, once = racing(lambda turn: turn % 4 != 3), racing(lambda turn: turn == 0)
    assert (often.finding, often.fewest) == (Finding.DEPENDENT, False)
    assert once.finding is Finding.FLAKY
    assert once.where == "once side by side, 8 at once, and not when that was repeated"


def test_a_crash_hides_what_comes_after_it_and_the_answer_says_so() -> None:
    def agent(case: str, state: dict[str, Any]) -> str:
        return "crash" if case == "a" else "passed"

    result = examine(agent, cases=("a", "b"), shuffles=0, concurrency=1)
    assert (found(result), result.unseen, result.exit_code) == ({}, (), 0)
    hidden = isolate(World(lambda case, state: "crash"), {"a": "", "b": "", "c": ""}, Orders(shuffles=0, concurrency=1))
    assert (hidden.unseen, hidden.exit_code) == (("b",), 4)


def test_one_case_is_tried_against_itself() -> None:
    result = examine(lambda case, state: "passed", cases=("a",))
    assert (result.orders, result.trials) == (("alone", "in file order, twice over"), 3)


def test_shuffles_follow_the_seed() -> None:
    def orders(seed: int) -> list[tuple[str, ...]]:
        world = World(lambda case, state: "passed")
        played = []
        run = world.run
        world.run = lambda arrangement: (played.append(arrangement.cases), run(arrangement))[1]  # type: ignore[method-assign]
        isolate(world, dict.fromkeys(CASES, ""), Orders(seed=seed))
        return played

    assert orders(1) == orders(1) != orders(2)


@given(st.integers(1, 60), st.data())
def test_the_fewest_are_exactly_those_that_matter(count: int, data: Any) -> None:
    company = [str(number) for number in range(count)]
    needed = data.draw(st.sets(st.sampled_from(company), min_size=1, max_size=3))
    left, complete = fewest(company, lambda part: needed <= set(part), 10_000)
    assert (set(left), complete) == (needed, True)
    assert list(left) == sorted(left, key=int)


def test_one_among_a_thousand_is_found_in_twenty_runs() -> None:
    runs: list[int] = []

    def flips(part: Sequence[str]) -> bool:
        runs.append(len(part))
        return "700" in part

    assert fewest([str(number) for number in range(1000)], flips, 60) == (("700",), True)
    assert len(runs) <= 20
    assert fewest([str(number) for number in range(1000)], lambda part: len(part) > 990, 60)[1] is False
