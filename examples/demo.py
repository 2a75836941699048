"""The main job on the example: approve a good build, catch a faulty one, see why, and block its release.

Run it with `make demo`. It works offline: the agent's model is scripted, everything else is real.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).parent / "refund_agent"
FAULTY = "over_limit"


def seatrial(*arguments: str) -> int:
    """Run one command as a user would, showing it; gives its exit code."""
    print(f"\n$ seatrial {shlex.join(arguments)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "seatrial", *arguments], check=False).returncode
    print(f"(exit {code})", flush=True)
    return code


def expect(code: int, expected: int, what: str) -> None:
    """End the demo when something did not come out as it should."""
    if code != expected:
        sys.exit(f"\ndemo: {what}, but the exit code was {code} instead of {expected}")


def worst_failure(run: Path) -> str:
    """The failed trial that matters most, as CASE#TRIAL: the one of the highest risk."""
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    failed = [case for case in results["cases"] if case["verdict"] == "failed"]
    worst = max(failed, key=lambda case: ["low", "medium", "high", "critical"].index(case["risk"]))
    return f"{worst['id']}#1"


def main() -> None:
    here = os.path.relpath(PROJECT)
    with tempfile.TemporaryDirectory(prefix="seatrial-demo-") as folder:
        good, faulty, baseline = (str(Path(folder, name)) for name in ("good", "faulty", "approved.json"))
        project = ("--project", here)
        policy = ("--policy", f"{here}/policies/release_policy.yaml")

        print("1. The good build of the refund agent: every case, each in a freshly reset environment.")
        expect(seatrial("run", *project, "--build", "good", "--output", good), 0, "the good build should pass")

        print("\n2. A person approves it as the baseline; its figures are measured anew.")
        by = ("--by", "Ada", "--reason", "first release", "--trials", "2", "--output", baseline)
        expect(seatrial("approve", good, *project, *by), 0, "the good build should be approved")

        print(f"\n3. A candidate with one realistic fault ({FAULTY}): may it be released?")
        against = (*policy, "--baseline", baseline)
        code = seatrial("run", *project, "--build", FAULTY, "--output", faulty, *against)
        expect(code, 1, "the faulty build should be blocked")

        failed = worst_failure(Path(faulty))
        print(f"\n4. What happened in {failed}: its trace.")
        expect(seatrial("show", faulty, failed, *project), 0, "the trace should be shown")

        print("\n5. Case by case, and where the broken cases left the good build's path.")
        seatrial("compare", good, faulty)
    print(
        f"\nThe demo came out as it should: the good build was approved, `{FAULTY}` was caught and its release blocked."
    )


if __name__ == "__main__":
    main()
