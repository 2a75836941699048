from __future__ import annotations

import pytest

from seatrial.core.case import Case
from seatrial.core.project import Project
from seatrial.errors import InputError
from seatrial.loading.fixtures import fixture_for, fixture_names, load_fixture


def project(folder) -> Project:
    return Project(root=str(folder.root))


def problems(folder, name: str = "f"):
    with pytest.raises(InputError) as caught:
        load_fixture(project(folder), name)
    return caught.value.diagnostics


def case(**environment) -> Case:
    return Case.model_validate({"id": "a", "environment": environment})


def test_the_printed_fixture_loads(printed) -> None:
    spec = load_fixture(project(printed), "refund_order_o100")
    assert spec.state == {"order": {"id": "O-100"}}
    assert spec.database is not None
    assert spec.database.sqlite == "orders.sql"
    assert spec.identity["tenant"] == "acme"
    assert spec.tools["search_web"][1].returns == "No results"
    assert [fault.tool for fault in spec.faults] == ["inventory", "pay", "search", "crm"]
    assert spec.outcome["refund_status"].default == "none"
    assert spec.folder == str(printed.root / "fixtures/refund_order_o100")


@pytest.mark.parametrize("name", ["orders.sql", "state.json", "files/note.txt"])
def test_the_digest_covers_every_file_a_fixture_reads(printed, name: str) -> None:
    before = load_fixture(project(printed), "refund_order_o100").content_digest
    assert load_fixture(project(printed), "refund_order_o100").content_digest == before
    content = b'{"order": {"id": "O-101"}}' if name.endswith("json") else b"CREATE TABLE other (x);"
    printed.write({f"fixtures/refund_order_o100/{name}": content})
    assert load_fixture(project(printed), "refund_order_o100").content_digest != before


def test_the_digest_does_not_depend_on_the_place(folder, tmp_path_factory) -> None:
    other = type(folder)(tmp_path_factory.mktemp("other").resolve())
    for each in (folder, other):
        each.write({"fixtures/f/fixture.yaml": "state: {a: 1}", "fixtures/g.py": "def g(environment):\n    yield\n"})
    for name in ("f", "g"):
        first, second = (load_fixture(project(each), name) for each in (folder, other))
        assert first.content_digest == second.content_digest
        assert first.model_dump(exclude={"folder"}) == second.model_dump(exclude={"folder"})


def test_overrides_merge_mappings_deeply_and_replace_lists(printed) -> None:
    wanted = case(
        fixture="refund_order_o100",
        state={"order": {"status": "open"}},
        identity={"user": "other"},
        faults=[],
        secrets={"pin": "1234"},
        tools={"search_web": [{"returns": 1}]},
    )
    spec = fixture_for(project(printed), wanted)
    assert spec.state == {"order": {"id": "O-100", "status": "open"}}
    assert spec.identity == {"agent": "refund_agent", "user": "other", "tenant": "acme"}
    assert spec.faults == ()
    assert len(spec.approvals) == 1
    assert set(spec.secrets) == {"card_number", "pin"}
    assert [rule.returns for rule in spec.tools["search_web"]] == [1]
    assert spec.content_digest != load_fixture(project(printed), "refund_order_o100").content_digest


def test_a_case_without_a_fixture_has_what_it_says_itself(folder) -> None:
    assert fixture_for(project(folder), case()).name == ""
    assert fixture_for(project(folder), case(state={"a": [1]})).state == {"a": [1]}


def test_a_fixture_shared_by_cases_is_read_once(printed) -> None:
    read: dict = {}
    first = fixture_for(project(printed), case(fixture="refund_order_o100"), read=read)
    (printed.root / "fixtures/refund_order_o100/fixture.yaml").unlink()
    assert fixture_for(project(printed), case(fixture="refund_order_o100"), read=read) is first
    changed = fixture_for(project(printed), case(fixture="refund_order_o100", faults=[]), read=read)
    assert (changed.faults, changed.digest != first.digest) == ((), True)


@pytest.mark.parametrize(
    "source",
    [
        "def f(environment):\n    yield\n",
        "@decorated\nasync def f(environment): ...\n",
        "def f(environment):\n    return made(environment)\n",
        "from elsewhere import g as f\n",
        "f = None\n",
    ],
)
def test_a_python_fixture_is_found_without_being_run(folder, source: str) -> None:
    folder.write({"fixtures/f.py": source + "raise SystemExit\n"})
    spec = load_fixture(project(folder), "f")
    assert spec.function == "../f.py:f"
    assert spec.folder == str(folder.root / "fixtures/f")


def test_names_are_those_of_folders_and_modules(folder) -> None:
    folder.write(dict.fromkeys(("fixtures/b/fixture.yaml", "fixtures/a.py", "fixtures/_c.py", "fixtures/d/x.txt"), ""))
    assert fixture_names(project(folder)) == ["a", "b"]


@pytest.mark.parametrize("name", ["..", "../x", "/etc/passwd", "a/b", "a\\b", "", ".", ".hidden", "a\0b", "x" * 200])
def test_a_name_is_never_a_path(folder, name: str) -> None:
    folder.write({"x/fixture.yaml": ""})
    (problem,) = problems(folder, name)
    assert problem.rule == "bad-fixture-name"
    assert problem.message.isprintable()


def test_a_fixture_written_beside_its_folder_is_told_where_it_belongs(folder) -> None:
    folder.write({"fixtures/web.yaml": "state: {}\n", "fixtures/webs/fixture.yaml": "state: {}\n"})
    (problem,) = problems(folder, "web")
    assert problem.hint == "a fixture is a folder: fixtures/web.yaml belongs into fixtures/web/fixture.yaml"


def test_an_unknown_fixture_names_the_nearest(folder) -> None:
    folder.write({"fixtures/refund/fixture.yaml": ""})
    (problem,) = problems(folder, "refnud")
    assert "did you mean 'refund'?" in problem.hint


@pytest.mark.parametrize(
    ("text", "rule", "line", "message"),
    [
        ("databse: {sqlite: a.sql}", "unknown-key", 1, "'databse'"),
        ("folder: x", "unknown-key", 1, "'folder'"),
        ("version: 2", "wrong-value", 1, "`version`"),
        ("- a", "wrong-value", 1, "a fixture is a mapping"),
        ("secrets: {card: 4111}", "needs-quotes", 1, "`secrets.card`"),
        ("state: nope.json", "missing-file", 1, "`state`"),
        ("state: ../../../etc/passwd", "outside-project", 1, "outside the project"),
        ("database: {sqlite: nope.sql}", "missing-file", 1, "`database.sqlite`"),
        ("database: {sqlite: /etc/passwd}", "outside-project", 1, ""),
        ("files: nope/", "missing-file", 1, "`files`: there is no folder"),
        ("database: {sqlite: pointer.sql}", "lfs-pointer", 1, ""),
        ("faults: [{tool: x, error: a, latency_ms: 3}]", "wrong-value", 1, "one of error"),
        ("faults: [{tool: x, latency_ms: '3'}]", "wrong-value", 1, "'3' (text)"),
        ("faults: [{tool: x, error: a, probability: 2}]", "wrong-value", 1, "1 or less"),
        ("approvals: [{action: x, decision: denied, when: {a: {$foo: 1}}}]", "bad-matcher", 1, "$foo"),
        ("tools: {x: [{when: {q: {$regex: '('}}, returns: 1}]}", "bad-matcher", 1, ""),
        ("outcome: {x: {sql: a, state: b}}", "wrong-value", 1, "one of sql, state, file, function"),
        ("outcome: {x: 5}", "wrong-value", 1, "`outcome.x` should be a mapping"),
    ],
)
def test_a_bad_fixture_is_named_with_rule_place_and_value(folder, text, rule, line, message) -> None:
    folder.write(
        {
            "fixtures/f/fixture.yaml": text,
            "fixtures/f/pointer.sql": b"version https://git-lfs.github.com/spec/v1\noid sha256:2b\nsize 1\n",
        }
    )
    found = problems(folder)
    assert [(problem.rule, problem.line) for problem in found] == [(rule, line)], [str(p) for p in found]
    assert message in found[0].message


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"fixtures/f.py": "def f(:\n"}, "python-syntax"),
        ({"fixtures/f.py": "def g(environment): ...\n"}, "missing-key"),
        ({"fixtures/f.py": "def f(e): ...\n", "fixtures/f/fixture.yaml": ""}, "duplicate-fixture"),
        ({"fixtures/f.py": "def f(environment): ...\n"}, "no-generator"),
        ({"fixtures/f.py": "async def f(environment):\n    yield\n"}, "no-generator"),
        ({"fixtures/f.py": "def f(environment):\n    def inner():\n        yield\n"}, "no-generator"),
        ({"fixtures/f/fixture.yaml": "state: s.json", "fixtures/f/s.json": "{"}, "json-syntax"),
    ],
)
def test_bad_files_of_a_fixture_are_named(folder, files, rule: str) -> None:
    assert [problem.rule for problem in problems(folder.write(files))] == [rule]
