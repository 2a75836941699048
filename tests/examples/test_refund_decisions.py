"""The release policy of the format on the refund example: the good build passes, each faulty one as the table says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import seatrial
from examples.expected_decisions import EXPECTED_DECISIONS
from seatrial.harness.approving import approve
from seatrial.harness.gating import project_or_none, rulebook

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Support for class-based `config`")]

PROJECT = Path(__file__).parents[2] / "examples" / "refund_agent"


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("baseline")
    seatrial.run(PROJECT, build="good", output=folder / "good")
    rules = rulebook(project_or_none(PROJECT), with_baseline=False)
    target = folder / "approved.json"
    made = approve(folder / "good", rules, approver="Ada", reason="the first", output=target, fresh=None)
    assert made.written == target
    return target


@pytest.mark.parametrize("build", EXPECTED_DECISIONS)
def test_each_build_gets_the_decision_of_the_table(build: str, baseline: Path, tmp_path: Path) -> None:
    run = seatrial.run(PROJECT, build=build, output=tmp_path / "run")
    decision = seatrial.gate(run.folder, baseline=baseline, project=PROJECT)
    verdict, not_held = EXPECTED_DECISIONS[build]
    found = {(gate.name, str(gate.verdict)) for gate in decision.gates if gate.decides and gate.verdict != "pass"}
    assert (str(decision.verdict), found) == (verdict, not_held)
    assert decision.exit_code == {"pass": 0, "block": 1}[verdict]
    assert json.loads((tmp_path / "run" / "release-decision.json").read_text()) == decision.model_dump(mode="json")
