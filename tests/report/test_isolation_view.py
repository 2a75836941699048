"""What `seatrial isolate` prints: who depends on what, calmly, and the verdict last."""

from __future__ import annotations

import io
import json
import unicodedata
from dataclasses import replace
from typing import Any

import pytest

from decisions import HOSTILE
from seatrial.report.isolation_view import isolation_data, print_isolation
from seatrial.report.screen import console
from seatrial.verdict.isolation import CaseIsolation, Change, Finding, Isolation, Seen

PASSED = Seen({"status": "passed", "grade answer": "pass 1"})
FAILED = Seen({"status": "failed", "grade answer": "fail 0"}, "answer: 'hello' is not in the output 'hi'")
DEPENDENT = CaseIsolation(
    "greet",
    suite="smoke",
    finding=Finding.DEPENDENT,
    alone=PASSED,
    otherwise=FAILED,
    differs=("grade answer", "status"),
    where="in reversed order",
    company=("login", "greet"),
    shared=(Change("global", "shop:SEEN", "+ 1"), Change("environment", "MODE", "new")),
)
FLAKY = CaseIsolation(
    "coin",
    suite="smoke",
    finding=Finding.FLAKY,
    alone=PASSED,
    otherwise=FAILED,
    differs=("status",),
    where="alone: ...",
)


def result(*cases: CaseIsolation, **more: Any) -> Isolation:
    fields = {"orders": ("alone", "in reversed order"), "seed": 7, "trials": 40, "processes": 9} | more
    return Isolation(cases=cases, **fields)


def shown(found: Isolation, encoding: str = "utf-8", width: int = 100, **how: Any) -> str:
    raw = io.BytesIO()
    target = console(io.TextIOWrapper(raw, encoding=encoding, write_through=True, newline=""))
    target.width = width
    print_isolation(target, found, **how)
    return raw.getvalue().decode(encoding)


def test_the_whole_report_reads_like_this() -> None:
    assert shown(result(DEPENDENT, CaseIsolation("plain"), FLAKY)) == (
        "\n"
        "DEPENDENT  greet  smoke\n"
        "    alone         passed · grade answer: pass 1\n"
        "    after others  failed · answer: 'hello' is not in the output 'hi'\n"
        "    seen          in reversed order\n"
        "    because of    login, greet (itself)\n"
        "    suspects      shop:SEEN  + 1\n"
        "                  variable MODE  new\n"
        "\n"
        "FLAKY  coin  smoke\n"
        "    alone         passed\n"
        "    another time  failed · answer: 'hello' is not in the output 'hi'\n"
        "    seen          alone: ...\n"
        "\n"
        "DEPENDENT  3 cases · 1 dependent on order or company · 1 flaky · 40 trials in 9 processes · seed 7\n"
    )


@pytest.mark.parametrize(
    ("found", "word", "code"),
    [
        (result(CaseIsolation("a")), "INDEPENDENT  1 case · 40 trials", 0),
        (result(FLAKY), "UNDECIDED  1 case · 1 flaky", 4),
        (result(CaseIsolation("a"), unseen=("a",)), "UNDECIDED  1 case", 4),
        (result(DEPENDENT, FLAKY), "DEPENDENT", 1),
    ],
)
def test_the_last_line_and_the_exit_code_say_the_same(found: Isolation, word: str, code: int) -> None:
    assert shown(found).splitlines()[-1].startswith(word)
    assert found.exit_code == code


def test_what_is_not_covered_is_said() -> None:
    text = shown(result(CaseIsolation("a"), unseen=tuple("abcdefghij"), notes=("too large",)), width=200)
    assert (
        "never reached in company, because a trial before them ended the process: a, b, c, d, e, f and 4 more" in text
    )
    assert "Note  too large" in text


def test_outcomes_that_differ_are_told_key_by_key() -> None:
    one = Seen({"status": "passed", "outcome id": '"O-1"'})
    other = Seen({"status": "passed", "outcome id": '"O-2"'})
    case = replace(DEPENDENT, alone=one, otherwise=other, differs=("outcome id",), shared=())
    text = shown(result(case))
    assert 'passed · outcome id: "O-1"' in text
    assert 'passed · outcome id: "O-2"' in text
    assert "nothing that Seatrial looks at changed" in text


def test_long_lists_are_cut_unless_all_is_asked_for() -> None:
    names = tuple(f"case-{number}" for number in range(20))
    shared = tuple(Change("file", f"file-{number}", "new") for number in range(20))
    case = replace(DEPENDENT, company=names, fewest=False, together=True, shared=shared)
    text, whole = shown(result(case), width=200), shown(result(case), verbosity=1)
    assert "among" in text
    assert "and 14 more" in text
    assert "one or more of these 20" in text
    assert "and 12 more; -v shows all" in text
    assert "file-19" in whole
    assert "case-19" in whole
    assert "Orders" in whole


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("text", [*HOSTILE, "\x1b[2J\x1b]0;t\x07"])
def test_hostile_text_cannot_steer_the_terminal(encoding: str, text: str) -> None:
    case = replace(
        DEPENDENT,
        case_id=text,
        otherwise=Seen({"status": "failed"}, text),
        company=(text,),
        shared=(Change("global", text, text),),
    )
    printed = shown(result(case, notes=(text,)), encoding=encoding)
    assert not any(unicodedata.category(character) in ("Cc", "Cf") for character in printed.replace("\n", ""))


def test_the_json_document_holds_the_same() -> None:
    data = isolation_data(result(DEPENDENT, CaseIsolation("plain", alone=PASSED)))
    assert json.loads(json.dumps(data)) == data
    assert (data["verdict"], data["seed"], data["trials"]) == ("dependent", 7, 40)
    first, second = data["cases"]
    assert (first["finding"], first["company"], first["fewest"]) == ("dependent", ["login", "greet"], True)
    assert first["shared"][0] == {"kind": "global", "what": "shop:SEEN", "how": "+ 1"}
    assert (second["finding"], second["otherwise"]) == ("independent", None)
