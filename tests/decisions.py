"""Decisions and runs made by hand, for tests of what shows them."""

from __future__ import annotations

from typing import Any

from made import broken, case, failing, grade, invalid, passing, raising, record, run, tally
from seatrial.core.decision import Decision, DecisionVerdict, GateResult, UsedException
from seatrial.report.summary import summary

HOSTILE = (
    '"><script>x()</script><img src=x onerror=y()>',
    "</script>",
    "javascript:z()",
    "| a | b |\n|---|---|\n# heading <!-- -->",
    "`` ` ``` code` [link](https://evil.example) ![image](https://evil.example/x.png)",
    "@octocat please see #1, https://evil.example www.evil.example me@evil.example :tada:",
    "*bold* _it_ ~~gone~~ \\| \\\\| \\` &lt;b&gt; &#64; <https://evil.example>",
    "a\r\n::error::injected\n::set-output name=a::b\n##[error]old",
    "\x00\x1b[31m\x0b\x7f\x85\ufffe\uffff\ud800 \U000e0001\u202ereversed\u2028",
    "]]> <![CDATA[ &amp; %0A %25 %3A",
)
"""Texts with a meaning in HTML, XML, Markdown, terminals or workflow commands."""


def hostile_summary(text: str) -> dict[str, Any]:
    """A run in which every text is this one."""
    trials = [
        record(
            text,
            1,
            "failed",
            suite=text,
            output=text,
            tools={text: 1},
            tallies={f"safety/{text}": tally(1, 1), f"violations/{text}": tally(1, 1)},
            handoffs=((text, text),),
            grades=(grade(text, "fail", text), grade("g" + text, "abstain", text)),
            grader_failures=(broken("h" + text, text, text),),
        ),
        raising("crash", message=text),
        invalid("lost", detail=text),
        passing("fine"),
    ]
    cases = [case(text, suite=text, risk="critical"), case("crash"), case("lost"), case("fine")]
    return summary(run(build_id=text, run_id=text), cases, trials)


def gate(name: str, verdict: str = "pass", figure: float | None = 0, limit: float = 0, **more: Any) -> GateResult:
    bound = "minimum" if ".minimum_" in name else "maximum"
    metric = name.rpartition(".")[2].removeprefix("minimum_").removeprefix("maximum_").removesuffix("_exceeds")
    return GateResult(
        **{"name": name, "metric": metric, "bound": bound, "verdict": verdict, "figure": figure, "limit": limit} | more
    )


def decision(verdict: str = "pass", *gates: GateResult, **more: Any) -> Decision:
    fields = {"candidate": {"build_id": "new", "run_ids": ["run-1"], "agent": {"target": "a:b"}}} | more
    return Decision(verdict=DecisionVerdict(verdict), gates=gates, **fields)


def hostile_decision(text: str) -> Decision:
    """A decision in which every text is this one."""
    gates = (
        gate("safety.maximum_critical_failures", "block", 3, counts=text, reason=text, cases=(text, text)),
        gate(f"{text}.minimum_pass_rate", "incomplete", None, 0.9, counts=text, reason=text),
        gate("review.own_exceeds", metric=text, counts=text),
    )
    excepted = UsedException(target=text, reason=text, approver=text, expires=text, used=False, note=text)
    builds = {"candidate": {"build_id": text, "run_ids": [text]}, "baseline": {"build_id": text, "approver": text}}
    lists = dict.fromkeys(("new", "edited", "removed", "reasons"), (text,))
    return decision("block", *gates, exceptions=(excepted,), **builds, **lists)


def typical_summary(**more: Any) -> dict[str, Any]:
    """One case of each verdict in a suite that gates, and a failed one in a suite that does not."""
    cases = [case("good", 2), case("bad", 2), case("lost"), case("bare"), case("late"), case("extra", suite="extra")]
    trials = [
        *(passing("good", n, latency_ms=500.0) for n in (1, 2)),
        failing("bad", 1, output="5", latency_ms=250.0),
        failing("bad", 2, "expected 4, got 6", latency_ms=None),
        invalid("lost"),
        record("bare", 1, "ungraded"),
        failing("extra", suite="extra"),
    ]
    return summary(
        run(gating={"extra": False}, build_id="new", started="2026-01-02T03:04:05.678Z", **more), cases, trials
    )
