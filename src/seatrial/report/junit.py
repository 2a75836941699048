"""A run as JUnit XML, in the form that Jenkins, GitLab and the test reporters of GitHub read.

A suite is a `testsuite`, a case a `testcase` whose time is that of its trials together. A failed case is a `failure`,
an invalid one an `error` (nothing is said about the agent), one that was not graded or not run is `skipped`. A case of
a suite that does not gate is never more than `skipped`, with what became of it in the message: whoever reads the file
comes to the same verdict as the run's exit code.

Data is literal: what XML 1.0 cannot hold, and what no reader could see, stands there as an escape such as `\\x1b`.
Nothing but durations, times of day, ids and the note on cassettes differs between two runs that behave alike.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from seatrial.core.encoding import shortened
from seatrial.report.literal import lines, literal, value_text
from seatrial.report.reasons import case_reasons, trial_list, verdict_word
from seatrial.report.replays import cassette_note

__all__ = ["junit_text"]

Row = Mapping[str, Any]

MESSAGE = 400
"""Characters of a `message`, which readers show as one line."""
_ELEMENTS = {"failed": "failure", "invalid": "error", "ungraded": "skipped", "not_run": "skipped"}
_ATTRIBUTES = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def junit_text(summary: Row, *, run: str = "") -> str:
    """The content of `results.json` as a JUnit file.

    `run` is how the shell names this run (`latest`, a folder): with it, each case that did not pass tells the command
    that shows its trace.
    """
    spent = _spent(summary["times"]["trials"])
    root = Element("testsuites", name="seatrial")
    suites = [_suite(root, suite, summary, spent, run) for suite in summary["suites"]]
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.set("time", _seconds(sum(spent.values())))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _spent(trials: Iterable[Row]) -> dict[str, float]:
    """Milliseconds of each case's trials together; a duration that is not known counts nothing."""
    spent: dict[str, float] = defaultdict(float)
    for trial in trials:
        spent[trial["id"]] += trial["ms"] or 0
    return spent


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"


def _suite(root: Element, suite: Row, summary: Row, spent: Mapping[str, float], run: str) -> Element:
    cases = [case for case in summary["cases"] if case["suite"] == suite["suite"]]
    element = SubElement(root, "testsuite", name=literal(suite["suite"]), tests=str(len(cases)))
    elements = [_element(case) for case in cases]
    for kind, attribute in _ATTRIBUTES.items():
        element.set(attribute, str(elements.count(kind)))
    element.set("time", _seconds(sum(spent.get(case["id"], 0) for case in cases)))
    if summary["times"]["started"]:
        element.set("timestamp", literal(summary["times"]["started"].removesuffix("Z")))
    _properties(element, suite, summary["times"], cassette_note(summary))
    for case in cases:
        _case(element, case, spent.get(case["id"], 0), run)
    return element


def _properties(parent: Element, suite: Row, times: Row, cassettes: str) -> None:
    rate = suite["rate"]
    found = {
        "build": times["build_id"],
        "run": times["run_id"],
        "gates": "yes" if suite["gate"] else "no, reported only",
        "pass_rate": "none" if rate is None else f"{rate['rate']:.4f}",
        "trials": f"{suite['trials']['passed']} of {suite['trials']['planned']} passed",
    } | ({"cassettes": cassettes} if cassettes else {})
    properties = SubElement(parent, "properties")
    for name, value in found.items():
        SubElement(properties, "property", name=name, value=literal(value))


def _element(case: Row) -> str | None:
    """The element that tells why the case did not pass; None when it passed."""
    if case["verdict"] == "passed":
        return None
    return _ELEMENTS[case["verdict"]] if case["gate"] else "skipped"


def _case(parent: Element, case: Row, milliseconds: float, run: str) -> None:
    element = SubElement(
        parent,
        "testcase",
        name=literal(case["id"]),
        classname=literal(case["suite"]),
        time=_seconds(milliseconds),
    )
    kind = _element(case)
    if kind is not None:
        verdict = verdict_word(case["verdict"])
        reason = f"{case['passes']}/{case['trials']} passed, {case['required']} needed: {case['reason']}"
        message = reason if case["gate"] else f"reported only, {verdict}: {reason}"
        told = SubElement(element, kind, message=literal(shortened(message, MESSAGE)), type=verdict)
        told.text = _body(_why(case))
    SubElement(element, "system-out").text = _body(_trials(case, run))


def _why(case: Row) -> list[str]:
    """Every different reason with the trials that say so."""
    reasons = case_reasons(case)
    if not reasons:
        return [case["reason"]]
    return [f"{what}: {why} ({trial_list(trials)})" for (what, why), trials in reasons.items()]


def _trials(case: Row, run: str) -> Iterable[str]:
    for trial in case["trials_detail"]:
        status = trial["status"]
        yield f"trial {trial['trial']}: {verdict_word(status)}"
        if status == "passed":
            continue
        if trial["output"] is not None:
            yield f"output: {shortened(value_text(trial['output']))}"
        if run:
            yield f"trace: seatrial show {shlex.quote(run)} {shlex.quote(case['id'] + '#' + str(trial['trial']))}"


def _body(texts: Iterable[str]) -> str:
    return "\n".join(line for text in texts for line in lines(text))
