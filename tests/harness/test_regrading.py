"""A stored run graded again: the live verdict when nothing changed, and no more than can be known when it did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from examples.expected_failures import EXPECTED_FAILURES
from packed import contents, unpacked
from projects import case, write_project
from seatrial.core.trial import TrialRecord
from seatrial.errors import NothingSelected, UsageError
from seatrial.harness.regrading import execute_regrade, plan_regrade

EXAMPLES = Path(__file__).parents[2] / "examples"
OF_ITS_OWN = {"run_id", "trace_at", "trace_size", "trace_digest", "previous"}
"""What a record says of the folder it stands in."""


def told(record: TrialRecord) -> dict[str, Any]:
    return {name: value for name, value in record.model_dump(mode="json").items() if name not in OF_ITS_OWN}


def assert_same(live: api.Run, again: api.Run) -> None:
    """Every record, whole, and the summary are as they were."""
    assert [told(record) for record in again.trials] == [told(record) for record in live.trials]
    assert [again.trace(one) for one in again.trials] == [live.trace(one) for one in live.trials]
    one, two = live.summary(), again.summary()
    assert one.pop("times") != two.pop("times")
    assert two == one
    assert (again.exit_code, again.info.regraded_from) == (live.exit_code, live.info.run_id)


def grades(run: api.Run) -> dict[str, dict[str, str]]:
    return {str(record.key): {grade.name: str(grade.verdict) for grade in record.grades} for record in run.trials}


def statuses(run: api.Run) -> dict[str, str]:
    return {str(record.key): str(record.status) for record in run.trials}


# --- nothing changed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [None, "v1", "v2"])
def test_the_function_example_graded_again_is_as_it_was(build: str | None, tmp_path: Path) -> None:
    project = EXAMPLES / "data_question_function"
    live = api.run(project, build=build, output=tmp_path / "live", trials=2)
    assert_same(live, api.regrade(live.folder, project=project, output=tmp_path / "again"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Support for class-based `config`")
@pytest.mark.parametrize("build", EXPECTED_FAILURES)
def test_every_build_of_the_refund_example_graded_again_is_as_it_was(build: str, tmp_path: Path) -> None:
    project = EXAMPLES / "refund_agent"
    live = api.run(project, build=build, output=tmp_path / "live")
    assert_same(live, api.regrade(live.folder, project=project, output=tmp_path / "again"))


ODD = """
    import asyncio, dataclasses, datetime, decimal, time
    from seatrial import AgentRun, ModelCall, ToolCall, current_trial


    @dataclasses.dataclass
    class Point:
        x: int


    VALUES = {
        "floats": {"a": float("nan"), "b": float("inf"), "c": float("-inf"), "d": -0.0},
        "decimal": {"price": decimal.Decimal("1.10"), "raw": b"\\x00\\xff", "keys": {1: "a", "1": "b"}},
        "one_way": {"set": {3, 1}, "when": datetime.date(2026, 1, 2), "point": Point(1)},
        "text": "lone \\ud800, lines\\r\\nend\\r, emoji \\U0001f600",
        "marked": {"$type": "float", "value": "nan"},
        "nothing": None,
        "empty": "",
        "large": "word\\r\\n" * 40_000,
        "large_data": {"rows": list(range(40_000))},
    }


    async def answer(task):
        if task in VALUES:
            return VALUES[task]
        if task == "raise":
            current_trial().record(ToolCall("look", {"n": 1}, result=float("nan")))
            raise RuntimeError("token expired")
        if task == "sleep":
            await asyncio.sleep(3600)
        if task == "steps":
            while True:
                current_trial().record(ModelCall("m"))
        return AgentRun(task, tool_calls=[ToolCall("look", {"n": 1})], outcome={"n": 1}, estimated_cost_usd=0.5)
    """
GRADERS = """
    import math

    def finite(context):
        values = context.output.values() if isinstance(context.output, dict) else [context.output]
        return not any(isinstance(value, float) and not math.isfinite(value) for value in values)

    async def later(context):
        return True, type(context.trace.output).__name__

    def breaks(context):
        raise LookupError("no such rubric")

    def nothing(context):
        return None
    """


def odd_project(folder: Path) -> Path:
    asked = ["floats", "decimal", "one_way", "text", "marked", "nothing", "empty", "large", "large_data", "plain"]
    lines = [{"id": name, "input": name, "expected": EXPECTED, "graders": OWN} for name in asked]
    lines += [{"id": name, "input": name, "expected": EXPECTED, "graders": OWN} for name in ("raise", "steps")]
    lines.append({"id": "sleep", "input": "sleep", "expected": EXPECTED, "limits": {"timeout_s": 0.01}})
    lines.append({"id": "bad_fixture", "input": "plain", "environment": {"fixture": "broken"}, "expected": EXPECTED})
    lines.append(
        {"id": "bad_end", "input": "plain", "environment": {"fixture": "leaves"}, "expected": {"max_steps": 9}}
    )
    lines.append({"id": "turns", "input": "plain", "turns": [{"user": "text", "expected": {"answer": "lone"}}]})
    lines.append({"id": "ungraded", "input": "plain"})
    lines.append({"id": "broken_grader", "input": "plain", "graders": ["my_graders:breaks", "my_graders:nothing"]})
    lines.append({"id": "dear", "input": "plain", "thresholds": {"max_estimated_cost_usd": 0.4, "max_latency_ms": 9e9}})
    return write_project(
        folder,
        {
            "my_agent.py": ODD,
            "my_graders.py": GRADERS,
            "cases/all.jsonl": "".join(json.dumps(line) + "\n" for line in lines),
            "fixtures/broken.py": "def broken(environment):\n    raise OSError('disk full')\n    yield\n",
            "fixtures/leaves.py": "def leaves(environment):\n    yield\n    raise OSError('still open')\n",
        },
    )


EXPECTED = {
    "answer": "plain",
    "required_tools": [{"name": "look", "arguments": {"n": 1}}],
    "outcome": {"n": 1},
    "max_steps": 2,
    "response": {"max_characters": 100, "json_schema": {"type": "object"}},
}
OWN = ["my_graders:finite", "my_graders:later"]


def test_odd_values_crashes_timeouts_and_broken_surroundings_graded_again_are_as_they_were(tmp_path: Path) -> None:
    live = api.run(odd_project(tmp_path), output=tmp_path / "live", trials=2)
    found = statuses(live)
    assert {"failed", "passed", "invalid", "ungraded"} == set(found.values())
    assert (found["bad_fixture#1"], found["bad_end#1"], found["dear#1"]) == ("invalid", "invalid", "failed")
    again = api.regrade(live.folder, project=tmp_path, output=tmp_path / "again")
    assert_same(live, again)
    assert not again.warnings


def test_bl_096_the_three_values_that_are_no_numbers_reach_own_graders_as_such(tmp_path: Path) -> None:
    odd_project(tmp_path)
    live = api.run(tmp_path, ["floats", "decimal"], output=tmp_path / "live")
    edit(
        tmp_path / "my_graders.py",
        "return True, type(context.trace.output).__name__",
        "return True, repr(context.output)",
    )
    (floats, decimal) = api.regrade(live.folder, project=tmp_path).trials
    assert "{'a': nan, 'b': inf, 'c': -inf, 'd': -0.0}" in reason(floats, "my_graders:later")
    assert "Decimal('1.10'), 'raw': b'\\x00\\xff'" in reason(decimal, "my_graders:later")
    for file in (tmp_path / "runs").rglob("*.jsonl*"):
        for line in unpacked(file).splitlines():
            json.loads(line, parse_constant=pytest.fail)


def reason(record: TrialRecord, name: str) -> str:
    grade = record.grade(name)
    assert grade is not None
    return grade.reason


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


# --- what changed ---------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path, {"cases/smoke/a.yaml": case("a"), "cases/smoke/b.yaml": case("b", answer="goodbye")})


def test_a_changed_expectation_flips_the_verdict_and_no_agent_is_called(project: Path) -> None:
    live = api.run(project, trials=2)
    (project / "my_agent.py").write_text("raise AssertionError('the agent was imported')\n")
    edit(project / "cases/smoke/b.yaml", "goodbye", "you said")
    edit(project / "cases/smoke/a.yaml", "answer: hello", "answer: nothing")
    done = execute_regrade(plan_regrade(live.folder, project=project))
    assert statuses(done.run) == {"a#1": "failed", "a#2": "failed", "b#1": "passed", "b#2": "passed"}
    assert done.flipped == 4
    assert [(str(flip.key), str(flip.before), str(flip.after)) for flip in done.flips][:2] == [
        ("a#1", "passed", "failed"),
        ("b#1", "failed", "passed"),
    ]
    assert done.run.exit_code == 1
    assert done.run.info.cases != live.info.cases
    assert done.run.summary()["cases"][1]["verdict"] == "passed"
    assert not [path for path in project.rglob("__pycache__/my_agent*") if "AssertionError" in path.name]


def test_an_expectation_whose_evidence_was_not_recorded_abstains(project: Path) -> None:
    live = api.run(project, "a")
    edit(project / "cases/smoke/a.yaml", "{answer: hello}", "{answer: hello, outcome: {n: 1}, max_steps: 3}")
    again = api.regrade(live.folder, project=project)
    assert grades(again)["a#1"] == {"answer": "pass", "outcome": "abstain", "step_efficiency": "abstain"}
    assert (str(again.trials[0].invalid_reason), again.exit_code) == ("unobserved", 4)


def test_a_grader_that_breaks_now_is_a_failure_of_its_own(project: Path) -> None:
    live = api.run(project, "a")
    (project / "own.py").write_text("def polite(context):\n    raise LookupError('no words')\n")
    edit(project / "cases/smoke/a.yaml", "id: a", "id: a\ngraders: [own:polite]")
    (record,) = api.regrade(live.folder, project=project).trials
    (failure,) = record.grader_failures
    assert (failure.name, failure.error, failure.message) == ("own:polite", "LookupError", "no words")
    assert (str(record.status), str(record.invalid_reason)) == ("invalid", "grader")


def test_broken_surroundings_keep_a_trial_from_passing_whatever_is_expected_now(tmp_path: Path) -> None:
    odd_project(tmp_path)
    edit(tmp_path / "cases/all.jsonl", '"expected": {"max_steps": 9}', '"expected": {"answer": "other"}')
    live = api.run(tmp_path, "bad_end", output=tmp_path / "live")
    assert statuses(live) == {"bad_end#1": "failed"}
    edit(tmp_path / "cases/all.jsonl", '"expected": {"answer": "other"}', '"expected": {"answer": "plain"}')
    (record,) = api.regrade(live.folder, project=tmp_path).trials
    assert (str(record.status), str(record.invalid_reason)) == ("invalid", "fixture")
    assert "still open" in record.detail


# --- other inputs, cases that came and went -------------------------------------------------------------------------


def test_a_trace_of_another_input_is_no_evidence_and_says_so(project: Path) -> None:
    live = api.run(project)
    edit(project / "cases/smoke/a.yaml", "input: hello", "input: hello there")
    again = api.regrade(live.folder, project=project)
    assert statuses(again) == {"a#1": "invalid", "b#1": "failed"}
    assert grades(again)["a#1"] == {"answer": "abstain"}
    (warning,) = again.warnings
    assert (warning.rule, warning.path) == ("input-edited", "cases/smoke/a.yaml")
    assert "its input was edited since the run" in reason(again.trials[0], "answer") in warning.message
    edit(project / "cases/smoke/a.yaml", "input: hello there", "input: hello")
    assert statuses(api.regrade(again.folder, project=project))["a#1"] == "passed", "nothing was lost on the way"


def test_edited_surroundings_are_another_input_and_edited_observers_are_not(tmp_path: Path) -> None:
    fixture = "state: {n: 1}\noutcome: {n: {state: n}}\n"
    text = case("a", environment="{fixture: shop}").replace("{answer: hello}", "{outcome: {n: 1}}")
    write_project(tmp_path, {"fixtures/shop/fixture.yaml": fixture, "cases/a.yaml": text})
    live = api.run(tmp_path)
    (tmp_path / "fixtures/shop/fixture.yaml").write_text(fixture.replace("outcome: {n", "outcome: {m: {state: n}, n"))
    assert statuses(api.regrade(live.folder, project=tmp_path)) == {"a#1": "passed"}
    (tmp_path / "fixtures/shop/fixture.yaml").write_text(fixture.replace("n: 1", "n: 2"))
    again = api.regrade(live.folder, project=tmp_path)
    assert statuses(again) == {"a#1": "invalid"}
    assert "its fixture (shop) was edited" in again.warnings[0].message


def test_new_cases_stand_as_not_run_and_removed_ones_are_named(project: Path) -> None:
    live = api.run(project, suite="smoke")
    (project / "cases/smoke/b.yaml").unlink()
    write_project(project, {"cases/smoke/c.yaml": case("c"), "cases/other/d.yaml": case("d")})
    again = api.regrade(live.folder, project=project)
    assert [(item.case_id, str(item.verdict)) for item in again.cases] == [("a", "passed"), ("c", "not_run")]
    assert {(item.rule, item.path) for item in again.warnings} == {
        ("not-run", "cases/smoke/c.yaml"),
        ("case-removed", ""),
    }
    assert again.exit_code == 4
    only = api.regrade(live.folder, "a", project=project)
    assert ([item.case_id for item in only.cases], only.exit_code, only.warnings) == (["a"], 0, ())
    with pytest.raises(NothingSelected, match="no trial of any selected case"):
        api.regrade(live.folder, "c", project=project)
    with pytest.raises(UsageError, match="not empty"):
        api.regrade(live.folder, project=project, output=live.folder)


def test_hidden_cases_are_refused_and_stay_hidden(tmp_path: Path) -> None:
    write_project(
        tmp_path / "p",
        {"seatrial.yaml": "version: 1\nagent: my_agent:answer\nhidden_cases: ../kept\n", "cases/a.yaml": case("a")},
    )
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "h.yaml").write_text(case("h", answer="very-secret-words"))
    live = api.run(tmp_path / "p")
    again = api.regrade(live.folder, project=tmp_path / "p")
    assert statuses(again) == {"a#1": "passed", "h#1": "invalid"}
    assert [item.rule for item in again.warnings] == ["hidden-case"]
    assert b"very-secret" not in b"".join(contents(again.folder))


def test_an_interrupted_run_is_graded_again_as_far_as_it_went(project: Path) -> None:
    live = api.run(project, trials=2)
    trials = live.folder / "trials.jsonl"
    trials.write_bytes(b"".join(trials.read_bytes().splitlines(keepends=True)[:1]) + b'{"torn')
    info = live.folder / "run.json"
    info.write_text(info.read_text().replace('"status": "finished"', '"status": "running"'))
    again = api.regrade(live.folder, "a", project=project)
    assert (statuses(again), str(again.info.status), again.exit_code) == ({"a#1": "passed"}, "interrupted", 4)


# --- secrets --------------------------------------------------------------------------------------------------------

SECRET = "sk-test-0000000000000000"
MASKING = {
    "seatrial.yaml": """
        version: 1
        agent: {target: "my_agent:build", config: {key: "${FAKE_KEY}"}}
        redact: ["ACC-\\\\d{8}"]
        """,
    "my_agent.py": """
        import base64
        def build(config):
            def answer(task):
                coded = base64.b64encode(config["key"].encode()).decode()
                return f"key {config['key']} coded {coded} account ACC-12345678"
            return answer
        """,
}


def masked(folder: Path, monkeypatch: pytest.MonkeyPatch, expected: str) -> Path:
    monkeypatch.setenv("FAKE_KEY", SECRET)
    return write_project(folder, MASKING | {"cases/a.yaml": f"id: a\ninput: go\nexpected: {expected}\n"})


EXPECT_KEY = f"{{answer: {SECRET}, response: {{matches: 'ACC-[0-9]+', max_characters: 200}}}}"


def test_masked_values_change_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = api.run(masked(tmp_path, monkeypatch, EXPECT_KEY))
    assert live.exit_code == 0
    assert_same(live, api.regrade(live.folder, project=tmp_path))
    written = b"".join(contents(tmp_path / "runs"))
    assert SECRET.encode() not in written
    assert b"ACC-12345678" not in written


def test_known_secrets_are_put_back_before_changed_expectations_are_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = api.run(masked(tmp_path, monkeypatch, "{answer: other}"))
    edit(tmp_path / "cases/a.yaml", "{answer: other}", f"{{answer: 'key {SECRET} coded'}}")
    again = api.regrade(live.folder, project=tmp_path)
    assert grades(again) == {"a#1": {"answer": "pass"}}
    assert reason(again.trials[0], "answer") == "'key [secret:FAKE_KEY] coded' is in the output"


def test_a_changed_expectation_that_rests_on_a_value_no_longer_known_abstains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = api.run(masked(tmp_path, monkeypatch, "{answer: ACC-99999999}"))
    assert statuses(live) == {"a#1": "failed"}
    assert statuses(api.regrade(live.folder, project=tmp_path)) == {"a#1": "failed"}, "seen live, so it stands"
    edit(tmp_path / "cases/a.yaml", "{answer: ACC-99999999}", "{answer: ACC-88888888, response: {matches: coded}}")
    again = api.regrade(live.folder, project=tmp_path)
    assert grades(again) == {"a#1": {"answer": "abstain", "response.matches": "pass"}}
    assert "masked" in reason(again.trials[0], "answer")


def test_canaries_that_a_python_fixture_planted_are_not_made_up(tmp_path: Path) -> None:
    fixture = "def shop(environment):\n    environment.secrets = {'card': 'hello'}\n    yield\n"
    text = case("a", environment="{fixture: shop, secrets: {card: something-else}}")
    write_project(tmp_path, {"fixtures/shop.py": fixture, "cases/a.yaml": text})
    live = api.run(tmp_path)
    assert grades(live) == {"a#1": {"answer": "pass", "permissions": "fail"}}
    assert_same(live, api.regrade(live.folder, project=tmp_path))
    edit(tmp_path / "cases/a.yaml", "{answer: hello}", "{answer: said}")
    assert grades(api.regrade(live.folder, project=tmp_path)) == {"a#1": {"answer": "pass", "permissions": "abstain"}}
