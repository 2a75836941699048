"""Case files that load, and what becomes of them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from seatrial.core.case import Case


def only(folder) -> Case:
    (case,) = folder.load().cases
    return case


def test_the_printed_case_loads_with_everything_in_it(printed) -> None:
    loaded = printed.load()
    ids = [case.id for case in loaded.cases]
    base = "refund_requires_supervisor_001"
    assert ids == [f"{base}[amount={amount}]" for amount in ("499.99", "500", "500.01")]
    case = loaded.cases[0]
    assert case.base_id == base
    assert (case.path, case.line) == ("cases/regression/refund.yaml", 1)
    assert case.suite == "regression"
    assert case.expected.required_tools is not None
    assert case.expected.required_tools[1].times is not None
    assert case.expected.required_tools[1].times.max == 1
    assert case.expected.output == {"answer": 3.0}
    assert case.turns[0].expected.required_tools is not None
    assert [use.use for use in case.graders] == ["my_module:polite", "my_module:score"]
    assert case.graders[1].options == {"n": 3}
    assert case.thresholds.successes_needed(1) == 1
    assert not loaded.warnings


def test_judges_simulated_users_and_attacks_load(folder) -> None:
    folder.case(
        "id: a\n"
        "query: hello\n"
        "user: {simulated: {persona: impatient, goal: get the money back, model: judge, max_turns: 6}}\n"
        "judges: [{rubric: response_quality, minimum: 2, advisory: false}]\n"
        "environment:\n"
        "  attack: {name: notice, seed: 7, place: {tool_result: lookup_order}, goal: {calls: process_refund}}\n"
    )
    case = only(folder)
    assert case.user is not None
    assert case.user.simulated is not None
    assert case.environment.attack is not None
    assert case.judges[0].minimum == 2


def test_the_short_form_is_the_long_one(folder) -> None:
    folder.write(
        {
            "cases/smoke/short.yaml": "id: short\nquery: hi\nexpected_answer: '4'\nexpected_tools: [add]\n"
            "forbidden_tools: [sub]\nmax_steps: 5\nreference_context: [x]\n",
            "cases/smoke/long.yaml": "id: long\ninput: hi\nexpected: {answer: '4', required_tools: [add], "
            "forbidden_tools: [sub], max_steps: 5}\nreference_context: [x]\n",
        }
    )
    long, short = folder.load().cases
    assert short.model_copy(update={"id": long.id}).digest == long.digest


def test_a_short_key_adds_to_the_long_mapping_beside_it(folder) -> None:
    folder.case("id: a\nquery: hi\nexpected: {answer: x}\nmax_steps: 5\ntrials: 2\ntimeout_s: 9\n")
    case = only(folder)
    assert case.expected.answer is not None
    assert (case.expected.max_steps, case.thresholds.trials, case.limits.timeout_s) == (5, 2, 9)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("one.yaml", "id: a\nquery: hi\n"),
        ("list.yml", "- {id: a, query: hi}\n"),
        ("wrapped.yaml", "version: 1\ndefaults: {query: hi}\ncases: [{id: a}]\n"),
        ("one.json", '{"id": "a", "query": "hi"}'),
        ("list.json", '[{"id": "a", "query": "hi"}]'),
        ("wrapped.json", '{"defaults": {"query": "hi"}, "cases": [{"id": "a"}]}'),
        ("lines.jsonl", '{"id": "a", "query": "hi"}\n'),
        ("table.csv", "id,query\na,hi\n"),
    ],
)
def test_every_shape_of_file_holds_cases(folder, name: str, text: str) -> None:
    folder.write({f"cases/smoke/{name}": text})
    case = only(folder)
    assert (case.id, case.input, case.suite) == ("a", "hi", "smoke")


def test_csv_cells_are_read_as_their_keys_ask(folder) -> None:
    rows = [
        "id,input.message,input.amount,input.zip,input.code,expected_tools,tags,expected.answer,expected.outcome,"
        "max_steps,deterministic,thresholds.required_successes,metadata.note",
        'a,"12, please",750,007,"""750""",add; sub,"[""x"", ""y""]",392,"{""state"": ""done""}",5,true,80%,',
    ]
    folder.write({"cases/smoke/a.csv": "\n".join(rows)})
    case = only(folder)
    assert case.input == {"message": "12, please", "amount": 750, "zip": "007", "code": "750"}
    assert case.expected.required_tools is not None
    assert [call.name for call in case.expected.required_tools] == ["add", "sub"]
    assert case.tags == ("x", "y")
    assert case.expected.answer is not None
    assert case.expected.answer.text == "392"
    assert case.expected.outcome == {"state": "done"}
    assert (case.expected.max_steps, case.deterministic, case.thresholds.required_successes) == (5, True, "80%")
    assert case.metadata == {}
    assert case.line == 2


def test_a_cell_may_span_lines_and_cases_keep_their_first_line(folder) -> None:
    folder.write({"cases/smoke/a.csv": 'id,query\na,"one\ntwo"\n\nb,three\n'})
    assert [(case.id, case.line, case.input) for case in folder.load().cases] == [
        ("a", 2, "one\ntwo"),
        ("b", 5, "three"),
    ]


def test_layers_merge_case_over_file_over_suite_over_project(folder) -> None:
    folder.write(
        {
            "seatrial.yaml": "defaults: {risk: low, trials: 2, limits: {steps: 9, timeout_s: 8}, tags: [p]}\n"
            "suites: {smoke: {risk: high, limits: {steps: 7}}}\nretries: {attempts: 4}\n",
            "cases/smoke/a.yaml": "defaults: {limits: {timeout_s: 5}, tags: [f, g]}\n"
            "cases:\n  - {id: a, query: x}\n  - {id: b, query: x, risk: critical, tags: [c], limits: {steps: 1}}\n",
            "cases/other/b.yaml": "{id: c, query: x}",
        }
    )
    from seatrial.loading.cases import load_cases
    from seatrial.loading.config import load_project

    c, a, b = load_cases(load_project(folder=folder.root, environ={})).cases
    assert (a.risk, a.thresholds.trials, a.limits.steps, a.limits.timeout_s, a.tags) == ("high", 2, 7, 5, ("f", "g"))
    assert (b.risk, b.limits.steps, b.limits.timeout_s, b.tags) == ("critical", 1, 5, ("c",))
    assert (c.risk, c.limits.steps, c.retries.attempts) == ("low", 9, 4)


def test_a_suite_is_named_by_case_then_file_then_first_folder(folder) -> None:
    folder.write(
        {
            "cases/regression/refunds/a.yaml": "- {id: a, query: x}\n- {id: b, query: x, suite: own}\n",
            "cases/regression/c.yaml": "defaults: {suite: file}\ncases: [{id: c, query: x}]\n",
            "cases/d.yaml": "{id: d, query: x}",
        }
    )
    assert {case.id: case.suite for case in folder.load().cases} == {
        "a": "regression",
        "b": "own",
        "c": "file",
        "d": "cases",
    }


def test_explicit_null_hand_off_target_differs_from_none_stated(folder) -> None:
    folder.case(
        "- {id: a, query: x, expected: {handoff: {target: null}}}\n"
        "- {id: b, query: x, expected: {handoff: {max_handoffs: 1}}}\n"
        "- {id: c, query: x, expected_tools: []}\n- {id: d, query: x}\n"
    )
    a, b, c, d = folder.load().cases
    assert a.expected.handoff is not None
    assert a.expected.handoff.expects_target
    assert b.expected.handoff is not None
    assert not b.expected.handoff.expects_target
    assert (c.expected.required_tools, d.expected.required_tools) == ((), None)


def test_attachments_are_digested_and_are_no_case_files(folder) -> None:
    content = b"id,total\n1,2\n"
    digest = hashlib.sha256(content).hexdigest()
    folder.write({"cases/smoke/invoice.csv": content, "cases/smoke/broken.json": b"{"})
    folder.case(
        "id: a\ninput:\n  message: see\n"
        f"  attachments: [invoice.csv, {{path: broken.json}}, {{path: invoice.csv, sha256: {digest}}}]\n"
    )
    first, second, third = only(folder).attachments
    assert (first.path, first.sha256, first.size) == ("invoice.csv", digest, len(content))
    assert Path(first.absolute) == folder.root / "cases/smoke/invoice.csv"
    assert second.name == "broken.json"
    assert third == first


def test_an_attachment_is_part_of_the_digest_of_its_case(folder) -> None:
    folder.case("id: a\ninput: {message: see, attachments: [photo.jpg]}\n")
    before = only(folder.write({"cases/smoke/photo.jpg": b"1"})).digest
    assert only(folder.write({"cases/smoke/photo.jpg": b"2"})).digest != before


def test_hidden_cases_come_from_outside_and_are_marked(folder, tmp_path_factory) -> None:
    hidden = tmp_path_factory.mktemp("hidden")
    (hidden / "secret.yaml").write_text("{id: h, query: x, suite: capability}")
    folder.case("{id: a, query: x}")
    loaded = folder.load(hidden_cases=str(hidden))
    assert [case.id for case in loaded.cases] == ["a", "h"]
    assert loaded.hidden == {"h"}


def test_hidden_and_private_files_and_others_are_passed_over(folder) -> None:
    folder.case("{id: a, query: x}")
    folder.write(dict.fromkeys(("cases/_old/b.yaml", "cases/.c.yaml", "cases/smoke/README.md"), "{id: b, query: x}"))
    assert only(folder).id == "a"


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]", "cases: []", "defaults: {risk: low}", "{}"])
def test_a_file_without_cases_is_warned_about(folder, text: str) -> None:
    loaded = folder.case(text).load()
    assert not loaded.cases
    assert [(warning.rule, warning.path, warning.severity) for warning in loaded.warnings] == [
        ("no-cases", "cases/smoke/a.yaml", "warning")
    ]


def test_a_project_without_cases_has_none(folder) -> None:
    assert folder.load().cases == ()
