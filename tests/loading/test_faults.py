"""Faults seen in the field: each test is named after its entry."""

from __future__ import annotations

import pytest

CASES = (("a", "hi, you", "4"), ("b", "ho", "five"), ("c", "é", "6"))


def test_bl_022_an_empty_list_differs_from_an_absent_key(folder) -> None:
    folder.case("- {id: none, query: x, graders: []}\n- {id: both, query: x}\n")
    defaults = {"graders": ["my_module:g1", "my_module:g2"]}
    none, both = folder.load(suites={"smoke": {"defaults": defaults}}).cases
    assert none.graders == ()
    assert [use.use for use in both.graders] == ["my_module:g1", "my_module:g2"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("id: a\nquery: x\nexpected: {answer: x}\nexpected: {answer: y}\n", "lines 3 and 4"),
        (
            "id: a\nquery: x\nexpected:\n  required_tools:\n  - name: t\n    arguments:\n      k: 1\n      k: 2\n",
            "lines 7 and 8",
        ),
    ],
)
def test_bl_088_a_key_given_twice_is_refused_at_every_level(folder, text: str, lines: str) -> None:
    (problem,) = folder.case(text).problems()
    assert problem.rule == "duplicate-key"
    assert lines in problem.message


def test_bl_088_merge_keys_stay_allowed(folder) -> None:
    folder.case("- &first\n  id: a\n  query: x\n  tags: [t]\n- <<: *first\n  id: b\n")
    assert [(case.id, case.tags) for case in folder.load().cases] == [("a", ("t",)), ("b", ("t",))]


def _yaml() -> str:
    return "\n".join(
        f'- id: {name}\n  query: "{query}"\n  expected_answer: "{answer}"' for name, query, answer in CASES
    )


def _json() -> str:
    return "[\n" + ",\n".join(_lines().splitlines()) + "\n]"


def _lines() -> str:
    return "\n".join(
        f'{{"id": "{name}", "query": "{query}", "expected_answer": "{answer}"}}' for name, query, answer in CASES
    )


def _csv() -> str:
    rows = [f'{name},"{query}",{answer}' for name, query, answer in CASES]
    return "\n".join(["id,query,expected_answer", *rows])


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""], ids=["bom", "no bom"])
@pytest.mark.parametrize("line_end", ["\r\n", "\n"], ids=["crlf", "lf"])
@pytest.mark.parametrize(
    ("suffix", "text"), [("yaml", _yaml()), ("json", _json()), ("jsonl", _lines()), ("csv", _csv())], ids=str
)
def test_bl_090_bom_crlf_and_no_final_newline_are_accepted_by_every_loader(
    folder, suffix: str, text: str, line_end: str, mark: bytes
) -> None:
    folder.write({f"cases/smoke/a.{suffix}": mark + text.replace("\n", line_end).encode()})
    loaded = [(case.id, case.input, case.expected.answer.text) for case in folder.load().cases]
    assert loaded == list(CASES)


@pytest.mark.parametrize(
    ("files", "first", "second"),
    [
        ({"a.yaml": "- {id: a, query: x}\n- {id: a, query: y}"}, "a.yaml:1:8", "a.yaml:2:8"),
        ({"a.yaml": "- {id: a, query: x}\n- {id: 'a ', query: y}"}, "a.yaml:1:8", "a.yaml:2:8"),
        ({"a.yaml": '- {id: "\\u00e9", query: x}\n- {id: "e\\u0301", query: y}'}, "a.yaml:1:8", "a.yaml:2:8"),
        ({"a.yaml": "- {id: a, query: x}", "b.jsonl": '{"id": "a", "query": "y"}'}, "a.yaml:1:8", "b.jsonl:1:8"),
    ],
)
def test_bl_092_one_id_for_two_cases_is_refused_naming_both_places(
    folder, files: dict[str, str], first: str, second: str
) -> None:
    folder.write({f"cases/smoke/{name}": text for name, text in files.items()})
    (problem,) = [problem for problem in folder.problems() if problem.rule == "duplicate-id"]
    assert problem.place.endswith(second)
    assert first in problem.message


def test_bl_092_ids_that_are_refused_are_shown_literally(folder) -> None:
    folder.case('- {id: "\\u00e9", query: x}\n- {id: "e\\u0301", query: y}')
    refused = [problem for problem in folder.problems() if problem.rule == "bad-id"]
    assert [problem.line for problem in refused] == [1, 2]
    assert r"'\xe9'" in refused[0].message
    assert r"'e\u0301'" in refused[1].message
