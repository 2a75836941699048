"""The main job on the example: a good build passes, a faulty one is caught, and the trace says why.

Run it with `make demo`. It works offline: the agent's model is scripted, everything else is real.
"""

from __future__ import annotations

import json
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
    return subprocess.run([sys.executable, "-m", "seatrial", *arguments], check=False).returncode


def worst_failure(run: Path) -> str:
    """The failed trial that matters most, as CASE#TRIAL: the one of the highest risk."""
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    failed = [case for case in results["cases"] if case["verdict"] == "failed"]
    worst = max(failed, key=lambda case: ["low", "medium", "high", "critical"].index(case["risk"]))
    return f"{worst['id']}#1"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="seatrial-demo-") as folder:
        good, faulty = Path(folder, "good"), Path(folder, "faulty")
        project = ("--project", str(PROJECT.relative_to(Path.cwd()) if PROJECT.is_relative_to(Path.cwd()) else PROJECT))
        print("1. The good build of the refund agent, every case in a freshly reset environment.")
        if seatrial("run", *project, "--build", "good", "--output", str(good)) != 0:
            print("\ndemo: the good build did not pass, which it should", file=sys.stderr)
            return 1
        print(f"\n2. A build with one realistic fault ({FAULTY}), on the same cases.")
        if seatrial("run", *project, "--build", FAULTY, "--output", str(faulty)) != 1:
            print("\ndemo: the faulty build was not caught, which it should be", file=sys.stderr)
            return 1
        failed = worst_failure(faulty)
        print(f"\n3. Why {failed} failed: its trace.")
        seatrial("show", str(faulty), failed, *project)
        print("\n4. Case by case against the good build.")
        seatrial("compare", str(good), str(faulty))
    print(f"\nDemo finished as it should: the good build passed every case, the fault in `{FAULTY}` was caught.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
