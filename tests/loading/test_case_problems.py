"""Bad case files: rule, place, message and hint of what is wrong."""

from __future__ import annotations

import pytest

HEAD = "id: a\nquery: hi\n"


@pytest.mark.parametrize(
    ("text", "rule", "line", "column", "message", "hint"),
    [
        # unknown and missing keys
        ("id: a\nqery: hi", "unknown-key", 2, 1, "'qery'", "did you mean 'query'?"),
        (HEAD + "expected: {anwser: x}", "unknown-key", 3, 12, "in `expected`", "did you mean 'answer'?"),
        (HEAD + "matirx: {a: [1]}", "unknown-key", 3, 1, "'matirx'", "did you mean 'matrix'?"),
        (HEAD + "required_tools: [x]", "unknown-key", 3, 1, "", "it belongs under `expected`"),
        (HEAD + "path: x", "unknown-key", 3, 1, "'path'", ""),
        (HEAD + "turns: [{user: x, expected: {max_step: 1}}]", "unknown-key", 3, 30, "", "did you mean 'max_steps'?"),
        (HEAD + "graders: [{use: 'm:f', wiht: {}}]", "unknown-key", 3, 24, "", "did you mean 'with'?"),
        ("query: hi", "missing-key", 1, 1, "`id` is missing", ""),
        (HEAD + "expected: {required_tools: [{arguments: {}}]}", "missing-key", 3, 29, "[0].name` is missing", ""),
        # text in quotes
        ("id: 5\nquery: x", "needs-quotes", 1, 5, "`id` takes text, not 5 (a number)", '"5"'),
        ("id: 0x1F\nquery: x", "needs-quotes", 1, 5, "not 0x1F (a number)", '"0x1F"'),
        ("id: a\nquery: true", "needs-quotes", 2, 8, "`query` takes text, not true (a boolean)", '"true"'),
        ("id: a\nquery: 0392", "leading-zero", 2, 8, "0392", '"0392"'),
        ("id: a\nquery:", "needs-quotes", 2, 7, "not nothing (null)", "write a text"),
        ("id: a\ninput: 12", "needs-quotes", 2, 8, "`input` takes text, not 12", '"12"'),
        ("id: a\ninput: {message: 1e3}", "needs-quotes", 2, 18, "`input.message` takes text, not 1e3", '"1e3"'),
        ("id: a\ninput: {messages: [hi, 3]}", "needs-quotes", 2, 24, "`input.messages[1]`", '"3"'),
        ("id: a\ninput: {messages: [{role: user, content: 3}]}", "needs-quotes", 2, 42, "", '"3"'),
        (HEAD + "expected_answer: 392", "needs-quotes", 3, 18, "`expected.answer`", '"392", or write {number: 392}'),
        (HEAD + "expected: {answer: ~}", "needs-quotes", 3, 20, "not ~ (null)", '"~"'),
        (HEAD + "expected: {answer: {any_of: [x, 1.50]}}", "needs-quotes", 3, 33, "not 1.50 (a number)", '"1.50"'),
        (HEAD + "expected: {response: {required_concepts: [1]}}", "needs-quotes", 3, 43, "", '"1"'),
        (HEAD + "expected: {response: {prohibited_concepts: [{any_of: [no, null]}]}}", "needs-quotes", 3, 59, "", ""),
        (HEAD + "turns: [{user: 3}]", "needs-quotes", 3, 16, "`turns[0].user`", '"3"'),
        (HEAD + "owner: 12", "needs-quotes", 3, 8, "`owner`", '"12"'),
        (HEAD + "tags: [a, 2026]", "needs-quotes", 3, 11, "`tags[1]`", '"2026"'),
        # numbers
        (HEAD + "trials: 0", "wrong-value", 3, 9, "`thresholds.trials` should be 1 or more, not 0 (a number)", ""),
        (HEAD + "trials: -3", "wrong-value", 3, 9, "1 or more", ""),
        (HEAD + 'trials: "3"', "wrong-value", 3, 9, "a whole number, not '3' (text)", "without quotes"),
        (HEAD + "trials: 2.5", "wrong-value", 3, 9, "a whole number, not 2.5", ""),
        (HEAD + "trials: true", "wrong-value", 3, 9, "not true (a boolean)", ""),
        (HEAD + "thresholds: {max_latency_ms: .inf}", "not-finite", 3, 30, ".inf", ""),
        (HEAD + "thresholds: {max_latency_ms: 0}", "wrong-value", 3, 30, "above 0", ""),
        (HEAD + 'thresholds: {max_latency_ms: "12"}', "wrong-value", 3, 30, "a number, not '12' (text)", "without"),
        (HEAD + "limits: {timeout_s: -1}", "wrong-value", 3, 21, "above 0", ""),
        (HEAD + 'max_steps: "10"', "wrong-value", 3, 12, "a whole number", "without quotes"),
        (HEAD + "thresholds: {trials: 2, required_successes: 3}", "too-many-successes", 3, 45, "is 3, but only 2", ""),
        (HEAD + "thresholds: {required_successes: 120%}", "wrong-value", 3, 34, "'120%'", ""),
        (HEAD + "thresholds: {required_successes: 0}", "wrong-value", 3, 34, "1 or more", ""),
        (HEAD + "expected: {answer: {number: '5'}}", "wrong-value", 3, 29, "a number, not '5' (text)", ""),
        (HEAD + "expected: {required_tools: [{name: x, times: {min: 3, max: 1}}]}", "wrong-value", 3, 46, "below", ""),
        # other values
        (HEAD + "deterministic: yes", "wrong-value", 3, 16, "'yes' (text)", "write true"),
        (HEAD + "expected: {exact_tools: off}", "wrong-value", 3, 25, "'off' (text)", "write false"),
        (HEAD + "expected: {error_handling: maybe}", "wrong-value", 3, 28, "true or false or a mapping", ""),
        (HEAD + "risk: hgih", "wrong-value", 3, 7, "'low', 'medium', 'high' or 'critical'", ""),
        (
            HEAD + "environment: {reset_before_trial: false}",
            "wrong-value",
            3,
            35,
            "should be true",
            "another left behind",
        ),
        (HEAD + "tags: refund", "wrong-value", 3, 7, "a list, not 'refund' (text)", "[ ]"),
        (HEAD + "metadata: [1]", "wrong-value", 3, 11, "a mapping, not a list", ""),
        (HEAD + "expected: {answer: {}}", "wrong-value", 3, 20, "{number: ...}", ""),
        (HEAD + "user: {simulated: {goal: x}, use: 'm:f'}", "wrong-value", 3, 7, "simulated, scripted, use", ""),
        (HEAD + "user: {use: 'm:f'}\nturns: [{user: x}]", "wrong-value", 1, 1, "exclude each other", ""),
        ("5", "wrong-value", 1, 1, "not 5 (a number)", ""),
        ("- 5", "wrong-value", 1, 3, "a case is a mapping, not 5", ""),
        ("cases: {}", "wrong-value", 1, 8, "`cases` should be a list, not a mapping", ""),
        ("version: 2\ncases: []", "wrong-value", 1, 10, "`version` should be 1, not 2", ""),
        ("cases: []\ndefault: {}", "unknown-key", 2, 1, "", "did you mean 'defaults'?"),
        ("defaults: {id: a}\ncases: []", "unknown-key", 1, 12, "an id belongs to one case", ""),
        (HEAD + "input: hi", "given-twice", 2, 1, "`query` is the short form of `input`", "keep one"),
        (HEAD + "max_steps: 3\nexpected: {max_steps: 4}", "given-twice", 3, 1, "a.yaml:4:12", ""),
        # ids
        ("id: 'a b'\nquery: x", "bad-id", 1, 5, "'a b'", ""),
        ("id: a/../b\nquery: x", "bad-id", 1, 5, "'..'", ""),
        ("id: a//b\nquery: x", "bad-id", 1, 5, "empty", ""),
        ('id: "a\\e[31m"\nquery: x', "bad-id", 1, 5, "'a\\x1b[31m'", ""),
        ('id: ""\nquery: x', "bad-id", 1, 5, "''", ""),
        # matchers, patterns, fixtures
        (HEAD + "expected: {output: {$lt: 1, $foo: 2}}", "bad-matcher", 3, 20, "$foo", ""),
        (HEAD + "expected: {required_tools: [{name: x, arguments: {a: {$ltt: 1}}}]}", "bad-matcher", 3, 50, "$ltt", ""),
        (HEAD + "expected: {outcome: {a: {$regex: '('}}}", "bad-matcher", 3, 25, "", ""),
        (HEAD + "expected: {response: {matches: '('}}", "bad-pattern", 3, 32, "regular expression", ""),
        (HEAD + "expected: {response: {json_schema: {type: 5}}}", "bad-schema", 3, 36, "", ""),
        (HEAD + "environment: {fixture: refnd}", "unknown-fixture", 3, 24, "'refnd'", "did you mean 'refund'?"),
        (HEAD + "environment: {fixture: ../../etc}", "unknown-fixture", 3, 24, "'../../etc'", ""),
        (HEAD + "environment: {faults: [{tool: x}]}", "wrong-value", 3, 24, "one of error", ""),
        (HEAD + "environment: {tools: {x: [{whne: {}}]}}", "unknown-key", 3, 28, "", "did you mean 'when'?"),
        (HEAD + "environment: {secrets: {card: 4111}}", "needs-quotes", 3, 31, "`environment.secrets.card`", '"4111"'),
        # attachments
        ("id: a\ninput: {attachments: [phto.jpg]}", "attachment", 2, 23, "does not exist", "did you mean 'photo.jpg'?"),
        ("id: a\ninput: {attachments: [../../../etc/passwd]}", "attachment", 2, 23, "outside the project", ""),
        ("id: a\ninput: {attachments: [/etc/passwd]}", "attachment", 2, 23, "outside the project", ""),
        ("id: a\ninput: {attachments: [{path: photo.jpg, sha256: ab}]}", "attachment", 2, 23, "its digest says", ""),
        ("id: a\ninput: {attachments: [pointer.png]}", "attachment", 2, 23, "Git LFS pointer", ""),
        ("id: a\ninput: {attachments: photo.jpg}", "wrong-value", 2, 22, "should be a list", ""),
        # matrix
        (HEAD + "matrix: {}", "matrix", 3, 9, "empty", ""),
        (HEAD + "matrix: 5", "matrix", 3, 9, "not 5 (a number)", ""),
        (HEAD + "matrix: {a: 5}", "matrix", 3, 13, "`matrix.a` is a list", "[ ]"),
        (HEAD + "matrix: {a: []}", "matrix", 3, 13, "one value or more", ""),
        (HEAD + "matrix: [5]", "matrix", 3, 10, "not 5 (a number)", ""),
        (HEAD + "matrix: {a: [1, 1]}", "duplicate-id", 3, 9, "'a[a=1]' twice", ""),
        (HEAD + "owner: ${b}\nmatrix: {a: [1]}", "unknown-variable", 3, 8, "`${b}`", "`$${b}`"),
        (HEAD + "owner: ${amuont}\nmatrix: {amount: [1]}", "unknown-variable", 3, 8, "", "did you mean 'amount'?"),
        (
            "id: a\nquery: ${q}\nmatrix: {q: [5]}",
            "needs-quotes",
            2,
            8,
            "not 5 (a number)",
            "value that ${q} stands for",
        ),
        (HEAD + "expected_answer: ${q}\nmatrix: {q: [5]}", "needs-quotes", 3, 18, "not 5", 'write {number: "${q}"}'),
        (HEAD + "expected: {safety: {blocked_events: []}}", "wrong-value", 3, 37, "a list of one or more", ""),
        (
            HEAD + "expected: {tool_order: [a]}",
            "wrong-value",
            3,
            25,
            "`expected.tool_order[0]` should be a list",
            "[ ]",
        ),
        ("id: a\ninput: {n: ${n}}\nmatrix: {n: [1]}", "yaml-syntax", 2, 13, "", '"${n}"'),
    ],
)
def test_a_bad_case_is_named_with_place_rule_value_and_hint(
    folder, text: str, rule: str, line: int, column: int, message: str, hint: str
) -> None:
    folder.write(
        {
            "fixtures/refund/fixture.yaml": "",
            "cases/smoke/photo.jpg": b"x",
            "cases/smoke/pointer.png": b"version https://git-lfs.github.com/spec/v1\noid sha256:2b\nsize 1\n",
        }
    )
    found = folder.case(text).problems()
    texts = [str(problem) for problem in found]
    matching = [problem for problem in found if (problem.rule, problem.line) == (rule, line)]
    assert len(found) == 1, texts
    assert matching, texts
    assert (matching[0].path, matching[0].column) == ("cases/smoke/a.yaml", column), texts
    assert message in matching[0].message, texts
    assert hint in matching[0].hint, texts


def test_all_problems_of_all_files_come_at_once(folder) -> None:
    folder.write(
        {
            "cases/smoke/a.yaml": "- {id: a, qery: x}\n- {id: b, query: 1, expected: {response: {matches: '('}}}\n",
            "cases/smoke/b.yaml": "a: [",
            "cases/smoke/c.jsonl": '{"id": "c", "query": 3}\n{"id": "d", }\n',
            "cases/smoke/d.csv": "id,query\ne\n",
            "cases/smoke/e.yaml": b"\xff",
        }
    )
    assert [(problem.path, problem.line, problem.rule) for problem in folder.problems()] == [
        ("cases/smoke/a.yaml", 1, "unknown-key"),
        ("cases/smoke/a.yaml", 2, "needs-quotes"),
        ("cases/smoke/a.yaml", 2, "bad-pattern"),
        ("cases/smoke/b.yaml", 2, "yaml-syntax"),
        ("cases/smoke/c.jsonl", 1, "needs-quotes"),
        ("cases/smoke/c.jsonl", 2, "json-syntax"),
        ("cases/smoke/d.csv", 2, "csv-row"),
        ("cases/smoke/e.yaml", 1, "not-utf-8"),
    ]


def test_a_problem_in_shared_defaults_names_their_line_once(folder) -> None:
    folder.case("defaults:\n  expected: {anwser: x}\ncases: [{id: a, query: x}, {id: b, query: x}]\n")
    (problem,) = folder.problems()
    assert (problem.rule, problem.line, problem.column) == ("unknown-key", 2, 14)


def test_hostile_text_is_shown_escaped(folder) -> None:
    folder.case('id: a\nquery: hi\n"\\e[2Jkey": 1\nrisk: "\\e[31mhigh\\u202e"\n')
    for problem in folder.problems():
        assert str(problem).isprintable()


@pytest.mark.parametrize(
    ("name", "text", "rule", "line"),
    [
        ("a.csv", "id,query\na,b,c\n", "csv-row", 2),
        ("a.csv", "id;query\na;b\n", "csv-row", 1),
        ("a.csv", "id,,query\na,b,c\n", "csv-row", 1),
        ("a.csv", "id,id\na,b\n", "duplicate-key", 1),
        ("a.csv", 'id,query\na,"open\n', "csv-syntax", 2),
        ("a.csv", "id,query,expected.nope\na,b,c\n", "unknown-key", 1),
        ("a.csv", "id,query,max_steps\na,b,many\n", "wrong-value", 2),
        ("a.csv", 'id,query,metadata\na,b,{"x": \n', "json-syntax", 2),
        ("a.csv", "id,input,input.x\na,b,c\n", "csv-row", 2),
        ("a.csv", 'id,query\n\na,b\n"a ",c\n', "bad-id", 4),
        ("a.json", '{"id": "a", "query": 5}', "needs-quotes", 1),
        ("a.json", '{"id": "a", "query": "\ud83d"}'.encode("utf-8", "surrogatepass"), "not-utf-8", 1),
        ("a.json", "{\n  'id': 1}", "json-syntax", 2),
    ],
)
def test_tables_and_json_are_held_to_the_same_rules(folder, name: str, text: str | bytes, rule: str, line: int) -> None:
    found = folder.write({f"cases/smoke/{name}": text}).problems()
    assert (found[0].rule, found[0].line) == (rule, line), [str(problem) for problem in found]


def test_a_missing_folder_of_hidden_cases_is_an_error(folder) -> None:
    (problem,) = folder.problems(hidden_cases="nowhere")
    assert problem.rule == "hidden-cases"


def test_variables_without_a_matrix_stay_and_are_warned_about(folder) -> None:
    loaded = folder.case("id: a\nquery: echo ${HOME} $${x}\n").load()
    assert loaded.cases[0].input == "echo ${HOME} $${x}"
    assert [(warning.rule, warning.line, warning.column) for warning in loaded.warnings] == [("no-matrix", 2, 8)]
