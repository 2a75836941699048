"""The GitHub action and the example workflow: what they name exists, and their scripts do what they say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from lxml import etree

from projects import case, write_project

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
SCRIPTS = [step for step in STEPS if "run" in step]
WORKFLOWS = sorted((ROOT / "examples" / "workflows").glob("*.yml"))
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")
POLICY = "version: 1\ngates:\n  cases: {minimum_pass_rate: 0.9}\n"

needs_bash = pytest.mark.skipif(os.name == "nt" or shutil.which("bash") is None, reason="the scripts are for bash")


def named(text: str, context: str) -> set[str]:
    return set(re.findall(rf"\b{context}\.([\w-]+)", text))


def test_every_input_that_is_named_exists_and_every_one_is_used():
    assert named(str(STEPS), "inputs") == set(ACTION["inputs"])
    assert all("description" in one and "default" in one for one in ACTION["inputs"].values())


def test_every_output_that_is_named_is_written():
    written = {
        f"{step['id']}.outputs.{name}"
        for step in SCRIPTS
        if "id" in step
        for name in re.findall(r'echo "([\w-]+)=', step["run"])
    }
    assert named(str(STEPS) + str(ACTION["outputs"]), "steps") <= {name.partition(".")[0] for name in written}
    asked = set(re.findall(r"steps\.(\w+\.outputs\.[\w-]+)", str(STEPS) + str(ACTION["outputs"])))
    assert asked <= written


def test_scripts_take_inputs_from_variables_only():
    for step in SCRIPTS:
        assert step["shell"] == "bash"
        assert not EXPRESSION.search(step["run"]), f"{step['name']} splices text into its script"
        used = set(re.findall(r"\$\{?#?([A-Z][A-Z_]*)", step["run"]))
        assert {name for name in used if not name.startswith("GITHUB_")} == set(step["env"])


@needs_bash
def test_scripts_parse():
    for step in SCRIPTS:
        subprocess.run(["bash", "-n"], input=step["run"], text=True, check=True)


def test_evidence_is_kept_and_reported_also_on_failure():
    kept = {step["name"]: step.get("if") for step in STEPS if step.get("name")}
    assert (kept["Report"], kept["Keep the evidence"]) == ("always()", "always()")


def used_actions(steps: list[dict[str, Any]]) -> list[str]:
    return [step["uses"] for step in steps if "uses" in step]


def test_everything_used_is_pinned_by_commit():
    used = used_actions(STEPS)
    for path in WORKFLOWS:
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
        used += [name for job in jobs for name in used_actions(job["steps"])]
    foreign = [name for name in used if not name.startswith("OWNER/")]
    assert len(foreign) >= 4
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name) for name in foreign)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_passes_known_inputs_and_keeps_secrets_from_forks(path: Path):
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    events = workflow[True]  # YAML 1.1 reads `on` so
    assert "pull_request" in events
    assert "pull_request_target" not in events
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("OWNER/seatrial@"):
                assert set(step["with"]) <= set(ACTION["inputs"])
        if "secrets." in str(job):
            assert job["if"] == "github.event_name != 'pull_request'"


def test_the_documentation_shows_the_workflow_and_every_input():
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    for path in WORKFLOWS:
        assert path.read_text(encoding="utf-8") in page
    assert re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE) == list(ACTION["inputs"])


# --- the scripts, run ------------------------------------------------------------------------------------------------


@dataclass
class Job:
    """What the runner does with the scripts of the action, as far as they need it."""

    folder: Path
    inputs: dict[str, str]
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""
    codes: dict[str, int] = field(default_factory=dict)

    def value(self, expression: str) -> str:
        for part in expression.split(" || "):
            kind, name, *rest = part.split(".")
            found = self.inputs[name] if kind == "inputs" else self.outputs.get(name, {}).get(rest[-1], "")
            if found:
                return found
        return ""

    def run(self, step: dict[str, Any]) -> None:
        output, summary = self.folder / "output.txt", self.folder / "step-summary.md"
        output.write_text("")
        env = {name: EXPRESSION.sub(lambda found: self.value(found[1]), text) for name, text in step["env"].items()}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            env={"PATH": path, "PYTHONUTF8": "1", "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
            | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )
        self.log += done.stdout
        self.codes[step["name"]] = done.returncode
        lines = output.read_text().splitlines()
        self.outputs[step.get("id", step["name"])] = dict(line.split("=", 1) for line in lines)


def job(folder: Path, **inputs: str) -> Job:
    """The action's own scripts on the project in `folder/evals`, installing and uploading apart."""
    defaults = {name: str(one["default"]) for name, one in ACTION["inputs"].items()}
    done = Job(folder, defaults | {"project": "evals"} | inputs)
    for step in SCRIPTS:
        skipped = step["name"] == "Install" or (step["name"] == "Decide" and done.inputs["gate"] == "false")
        if not skipped:
            done.run(step)
    return done


def project(folder: Path, **files: str) -> None:
    cases = {"cases/a.yaml": case("good"), "policies/release_policy.yaml": POLICY}
    write_project(folder / "evals", cases | files)


@needs_bash
@pytest.mark.slow
def test_a_good_build_passes(tmp_path: Path):
    project(tmp_path)
    done = job(tmp_path, trials="2")
    assert done.codes == {"Run": 0, "Decide": 0, "Report": 0, "Verdict": 0}, done.log
    assert done.outputs["gate"] == {"exit-code": "0", "verdict": "pass"}
    assert (tmp_path / "step-summary.md").read_text(encoding="utf-8").startswith("## ✅ PASS")
    assert {path.name for path in (tmp_path / "seatrial-output").iterdir()} == {
        "run",
        "release-decision.json",
        "junit.xml",
        "summary.md",
    }


@needs_bash
@pytest.mark.slow
def test_a_bad_build_fails_with_its_evidence(tmp_path: Path):
    project(tmp_path, **{"cases/b.yaml": case("bad", "::error::injected", "hello")})
    done = job(tmp_path)
    assert done.codes == {"Run": 0, "Decide": 0, "Report": 0, "Verdict": 1}, done.log
    assert done.outputs["gate"]["verdict"] == "block"
    root = etree.parse(tmp_path / "seatrial-output" / "junit.xml").getroot()
    assert root.get("failures") == "1"
    lines = done.log.splitlines()
    (annotation,) = [line for line in lines if line.startswith("::error")]
    assert annotation.startswith("::error file=evals/cases/b.yaml,line=1,title=bad failed::")
    tokens = [line.rpartition("::")[2] for line in lines if line.startswith("::stop-commands::")]
    assert len(set(tokens)) == 2
    ends = [lines.index(f"::{token}::") for token in tokens]
    assert max(ends) < lines.index(annotation), "commands are on again for the annotations alone"


@needs_bash
@pytest.mark.slow
def test_without_a_gate_the_run_decides(tmp_path: Path):
    project(tmp_path, **{"cases/b.yaml": case("bad", "hi", "hello")})
    assert job(tmp_path, gate="false", select="good", output="first").codes["Verdict"] == 0
    assert job(tmp_path, gate="false", select="good\nbad", output="second").codes["Verdict"] == 1


@needs_bash
@pytest.mark.slow
def test_a_wrong_input_ends_with_its_own_code_and_no_decision(tmp_path: Path):
    project(tmp_path)
    done = job(tmp_path, select="$(touch spliced) --help")
    assert done.codes == {"Run": 0, "Decide": 0, "Report": 0, "Verdict": 5}, done.log
    assert done.outputs["gate"] == {}
    assert "there is no run to report" in done.log
    assert not list(tmp_path.rglob("spliced"))
