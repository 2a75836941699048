"""What cannot be read in a file hides nothing else of it: reading goes on, and stand-ins cause no errors."""

from __future__ import annotations

import pytest

from seatrial.errors import Diagnostic
from seatrial.loading.check import check


def told(problems: tuple[Diagnostic, ...]) -> list[tuple[int | None, int | None, str]]:
    return [(problem.line, problem.column, problem.rule) for problem in problems]


@pytest.mark.parametrize(
    ("text", "rule", "line", "column"),
    [
        ("trials: 007", "leading-zero", 3, 9),
        ("id: 007", "leading-zero", 3, 5),
        ("risk: 007", "leading-zero", 3, 7),
        ("expected: {answer: 007}", "leading-zero", 3, 20),
        ("expected: {answer: {number: 007}}", "leading-zero", 3, 29),
        ("expected: {required_tools: 007}", "leading-zero", 3, 28),
        ("thresholds: {max_latency_ms: .inf}", "not-finite", 3, 30),
        ("metadata: {1: x}", "key-not-text", 3, 12),
        ("expected: {1: x}", "key-not-text", 3, 12),
        ("tags: *x", "unknown-alias", 3, 7),
        ("tags: &x [*x]", "alias-cycle", 3, 11),
        ("trials: !mine 3", "custom-tag", 3, 9),
        ("trials: !!int x", "wrong-tag", 3, 9),
    ],
)
def test_a_lexical_error_is_reported_alone_and_hides_no_other(folder, text: str, rule: str, line, column) -> None:
    identity = "query: x\n" if text.startswith("id") else "id: a\n"
    folder.case(f"{identity}owner: me\n{text}\nqery: y\nlimits: {{steps: 0}}\n")
    assert told(folder.problems()) == [(line, column, rule), (4, 1, "unknown-key"), (5, 17, "wrong-value")]


def test_a_key_given_twice_a_line_separator_and_a_second_document_hide_nothing(folder) -> None:
    folder.case('id: a\nid: a\nquery: "x\u2028y"\nqery: 1\n---\nmore: [\n')
    assert [rule for _, _, rule in told(folder.problems())] == [
        "duplicate-key",
        "line-separator",
        "unknown-key",
        "several-documents",
    ]


def test_ids_after_an_unreadable_one_are_still_compared(folder) -> None:
    folder.case("- {id: 01, query: x}\n- {id: a, query: x}\n- {id: a, query: x}\n")
    assert told(folder.problems()) == [(1, 8, "leading-zero"), (3, 8, "duplicate-id")]


def test_json_numbers_and_words_that_are_none_hide_nothing(folder) -> None:
    lines = ['{"id": "a", "query": "x", "trials": 01, "risk": "huge"}', '{"id": "b", "query": NaN, "qery": 1}']
    folder.write({"cases/smoke/a.jsonl": "\n".join(lines), "cases/smoke/b.json": '{"id": "c", "query": None, "x": 1}'})
    assert [(problem.path[-7:], problem.line, problem.rule) for problem in folder.problems()] == [
        ("a.jsonl", 1, "leading-zero"),
        ("a.jsonl", 1, "wrong-value"),
        ("a.jsonl", 2, "json-syntax"),
        ("a.jsonl", 2, "unknown-key"),
        ("/b.json", 1, "json-syntax"),
        ("/b.json", 1, "unknown-key"),
    ]


def test_settings_fixtures_and_policies_are_read_on_too(folder) -> None:
    folder.write(
        {
            "seatrial.yaml": "concurrency: 010\nisolatoin: thread\n",
            ".env": "no line\n",
            "fixtures/f/fixture.yaml": "state: state.json\nsecrets: {pin: 0123}\ndatabse: {}\ndatabase: {sqlite: x}\n",
            "fixtures/f/state.json": '{"a": 01}',
            "policies/tool_permissions.yaml": "version: 01\nunlistd: deny\n",
            "policies/release_policy.yaml": "alpha: .nan\ngates: {tools: {minimum_pas_rate: 1}}\n",
            "policies/exceptions.yaml": "exceptions: [{gate: 01}]\nmore: 1\n",
        }
    )
    assert [(problem.path, problem.line, problem.rule) for problem in check(folder.root)] == [
        (".env", 1, "env-file"),
        ("fixtures/f/fixture.yaml", 2, "leading-zero"),
        ("fixtures/f/fixture.yaml", 3, "unknown-key"),
        ("fixtures/f/state.json", 1, "leading-zero"),
        ("policies/exceptions.yaml", 1, "missing-key"),
        ("policies/exceptions.yaml", 1, "missing-key"),
        ("policies/exceptions.yaml", 1, "missing-key"),
        ("policies/exceptions.yaml", 1, "leading-zero"),
        ("policies/exceptions.yaml", 2, "unknown-key"),
        ("policies/release_policy.yaml", 1, "not-finite"),
        ("policies/release_policy.yaml", 2, "unknown-metric"),
        ("policies/tool_permissions.yaml", 1, "leading-zero"),
        ("policies/tool_permissions.yaml", 2, "unknown-key"),
        ("seatrial.yaml", 1, "leading-zero"),
        ("seatrial.yaml", 2, "unknown-key"),
    ]


# --- tables --------------------------------------------------------------------------------------------------------


def table(folder, text: str) -> list[tuple[int | None, int | None, str]]:
    folder.write({"cases/smoke/a.csv": text})
    return told(folder.problems())


@pytest.mark.parametrize(
    ("header", "column", "rule"),
    [
        ("id,qery,query", 4, "unknown-key"),
        ("id,query,expected.anwser", 10, "unknown-key"),
        ('id,query,"expected.anwser"', 10, "unknown-key"),
        ("id,query,query", 10, "duplicate-key"),
        ("id,query,", 10, "csv-row"),
        ("id,query,expected..answer", 10, "csv-row"),
        ("id,query,path", 10, "unknown-key"),
        ("id,query,input", 4, "given-twice"),
    ],
)
def test_a_bad_column_is_named_once_at_its_cell_of_the_first_row(folder, header: str, column: int, rule: str) -> None:
    assert table(folder, f"{header}\na,x,y\nb,x,y\nc,x,y\n") == [(1, column, rule)]


def test_a_header_below_blank_lines_keeps_its_line(folder) -> None:
    assert table(folder, "\n\nid,query,nope\na,x,1\n") == [(3, 10, "unknown-key")]


def test_a_missing_id_column_is_named_once_and_the_rows_are_checked(folder) -> None:
    assert table(folder, "ID,query,max_steps\na,x,1\nb,x,0\n") == [
        (1, None, "missing-column"),
        (1, 1, "unknown-key"),
        (3, 5, "wrong-value"),
    ]
    assert "did you mean 'ID'?" in folder.problems()[0].hint


def test_every_bad_cell_has_its_line_and_column_and_hides_no_other(folder) -> None:
    text = 'id,query,max_steps,metadata\na,"two\nlines, ""so""",many,\n"b,c",x,3,"{""n"": 01}"\nd,x\ne,x,0,{]\n'
    assert table(folder, text) == [
        (3, 16, "wrong-value"),
        (4, 1, "bad-id"),
        (4, 11, "leading-zero"),
        (5, 1, "csv-row"),
        (6, 5, "wrong-value"),
        (6, 7, "json-syntax"),
    ]


def test_open_quotes_are_named_at_their_cell_after_the_rows_before_them(folder) -> None:
    assert table(folder, 'id,query\na b,x\nc,"open\n') == [(2, 1, "bad-id"), (3, 3, "csv-syntax")]


def test_a_row_with_one_cell_is_told_in_the_singular(folder) -> None:
    folder.write({"cases/smoke/a.csv": "id,query\na\n"})
    assert folder.problems()[0].message == "this row has 1 cell, the first has 2"


# --- names of grades -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "column", "rule", "message", "hint"),
    [
        ("advisory: [anwser]", 4, 12, "unknown-grade", "no grade is called 'anwser'", "did you mean 'answer'?"),
        ("advisory: [answer, outcome]", 4, 20, "unknown-grade", "'outcome'", "known: answer"),
        ("graders: [{use: 'm:f', name: answer}]", 4, 11, "duplicate-grade", "called 'answer'", "`name:`"),
        (
            "graders: [{use: 'm:f', name: b}, {use: 'm:g', name: b}]",
            4,
            34,
            "duplicate-grade",
            "called 'b'",
            "give one of the graders",
        ),
        ("graders: [{use: 'm:f', name: b}]\nadvisory: [c]", 5, 12, "unknown-grade", "'c'", "known: answer, b"),
        (
            "turns: [{user: x, expected: {max_steps: 1}}]\nadvisory: ['turn[2].max_step']",
            5,
            12,
            "unknown-grade",
            "",
            "did you mean 'turn[2].step_efficiency'?",
        ),
    ],
)
def test_a_wrong_name_of_a_grade_is_found_while_loading(folder, text, line, column, rule, message, hint) -> None:
    (problem,) = folder.case(f"id: a\nquery: x\nexpected: {{answer: x}}\n{text}\n").problems()
    assert (problem.line, problem.column, problem.rule) == (line, column, rule), str(problem)
    assert message in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    "text",
    [
        "advisory: [answer]",
        "max_steps: 3\nadvisory: [max_steps]",
        "max_steps: 3\nadvisory: [step_efficiency]",
        "advisory: [permissions]",
        "graders: ['m:f', 'm:f']\nadvisory: ['m:f#2']",
        "graders: ['m:f']\nadvisory: [what_its_author_calls_it]",
        "graders: [{use: 'm:f', name: permissions}]",
        "turns: [{user: x, expected: {max_steps: 1}}]\nadvisory: ['turn[2].max_steps']",
    ],
)
def test_a_name_that_may_be_right_is_left_to_whoever_imports_the_graders(folder, text: str) -> None:
    assert len(folder.case(f"id: a\nquery: x\nexpected: {{answer: x}}\n{text}\n").load().cases) == 1


def test_a_rules_file_takes_the_name_permissions(folder) -> None:
    folder.write({"policies/tool_permissions.yaml": ""})
    folder.case("id: a\nquery: x\ngraders: [{use: 'm:f', name: permissions}]\n")
    assert told(folder.problems()) == [(3, 11, "duplicate-grade")]


# --- databases -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "line", "message"),
    [
        ("CREATE TABLE a (x);\n\nCREATE TABEL b (y);\n", 3, 'near "TABEL"'),
        (
            "CREATE TABLE a (x);\nINSERT INTO a VALUES ('one;two\nthree');\nINSERT INTO b VALUES (1);\n",
            4,
            "no such table",
        ),
        ("CREATE TABLE a (x)", None, None),
        ("-- nothing; here\n", None, None),
        ("CREATE TABLE a (x);\nINSERT INTO a VALUES (1\n", 2, "incomplete input"),
        (
            "CREATE TABLE a (x);\nCREATE TRIGGER t AFTER INSERT ON a BEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\n"
            "SELECT z FROM a;\n",
            6,
            "no such column",
        ),
    ],
)
def test_a_script_that_does_not_execute_is_named_with_the_line_of_its_statement(folder, script, line, message) -> None:
    folder.write(
        {"seatrial.yaml": "", "fixtures/f/fixture.yaml": "database: {sqlite: o.sql}", "fixtures/f/o.sql": script}
    )
    found = check(folder.root)
    if line is None:
        assert found == ()
        return
    (problem,) = found
    assert (problem.path, problem.line, problem.rule) == ("fixtures/f/o.sql", line, "bad-sql")
    assert message in problem.message


def test_a_file_that_is_no_database_is_named(folder) -> None:
    folder.write(
        {"seatrial.yaml": "", "fixtures/f/fixture.yaml": "database: {sqlite: o.db}", "fixtures/f/o.db": b"x" * 200}
    )
    (problem,) = check(folder.root)
    assert (problem.path, problem.rule) == ("fixtures/f/o.db", "bad-database")
