from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import Diagnostic, InputError, UsageError
from seatrial.loading.config import agent_spec, load_project
from seatrial.loading.from_environment import options_from_environment
from seatrial.loading.project_folder import find_root
from seatrial.loading.settings import explain, places, unknown_variables


def load(folder, text: str, *, overrides: tuple[str, ...] = (), environ: dict[str, str] | None = None):
    folder.write({"seatrial.yaml": text})
    return load_project(folder=folder.root, overrides=overrides, environ=environ or {})


def problems(folder, text: str, **given) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        load(folder, text, **given)
    return caught.value.diagnostics


def settings(folder, **given) -> dict[str, tuple]:
    found = explain(folder=folder.root, **{"environ": {}, **given})
    return {setting.key: (setting.value, setting.origin) for setting in found}


# --- finding -------------------------------------------------------------------------------------------------------


def test_the_project_is_found_upward(folder) -> None:
    folder.write({"seatrial.yaml": "", "cases/smoke/deep/x.txt": ""})
    assert find_root(start=folder.root / "cases/smoke/deep") == folder.root


def test_cases_alone_make_a_project(folder) -> None:
    folder.write({"cases/x.txt": ""})
    assert find_root(start=folder.root) == folder.root
    project = load_project(folder=folder.root, environ={})
    assert (project.agent, project.build_id, project.concurrency) == (None, "dev", 10)


@pytest.mark.parametrize("files", [{}, {"seatrial.yml": ""}])
def test_no_project_is_a_usage_error(folder, files) -> None:
    folder.write({"x.txt": "", **files})
    with pytest.raises(UsageError, match=r"seatrial\.yaml"):
        find_root(start=folder.root)
    with pytest.raises(UsageError, match="no project"):
        find_root(folder.root)
    with pytest.raises(UsageError, match="does not exist"):
        find_root(folder.root / "nowhere")


def test_outside_a_project_it_is_said_what_makes_one(folder) -> None:
    with pytest.raises(UsageError, match=r"a new project is seatrial\.yaml with .*, and a case in cases/"):
        find_root(start=folder.root)


# --- the printed project and its forms -----------------------------------------------------------------------------


def test_the_printed_project_loads(printed) -> None:
    project = load_project(folder=printed.root, environ={})
    assert project.agent is not None
    assert project.agent.target == "refund_agent:build"
    assert project.builds["slow"].config == {"model": "small"}
    assert (project.build_id, project.hidden_cases) == ("dev", None)
    assert project.judge is not None
    assert project.judge.base_url is None
    assert not project.gates("capability")
    assert project.gates("smoke")
    assert Path(project.root) == printed.root
    assert project.redact == (r"\bACC-\d{8}\b",)


@pytest.mark.parametrize(
    ("text", "target", "command"),
    [
        ("agent: a.b:c.d", "a.b:c.d", None),
        ("agent: http://localhost:8000/run", "http://localhost:8000/run", None),
        ("agent: {command: [python, agent.py]}", None, ("python", "agent.py")),
        ("agent: {target: 'm:f', kind: langgraph, deterministic: true, tools: real}", "m:f", None),
    ],
)
def test_an_agent_is_a_target_or_a_command(folder, text, target, command) -> None:
    agent = load(folder, text).agent
    assert agent is not None
    assert (agent.target, agent.command) == (target, command)


def test_agent_given_by_flag() -> None:
    assert agent_spec("m:f").target == "m:f"
    with pytest.raises(UsageError, match="module:object"):
        agent_spec("my_agent.py")


@pytest.mark.parametrize(
    ("text", "rule", "line", "column", "message", "hint"),
    [
        ("agnet: a:b", "unknown-key", 1, 1, "'agnet'", "did you mean 'agent'?"),
        ("trials: 3", "unknown-key", 1, 1, "'trials'", "stands under `defaults`"),
        ("root: /", "unknown-key", 1, 1, "'root'", ""),
        ("agent: my_agent", "wrong-value", 1, 8, "'my_agent' is no agent", ""),
        ("agent: {kind: x}", "wrong-value", 1, 8, "one of `target` and `command`", "module:object"),
        ("agent: {target: 'a:b', command: [x]}", "wrong-value", 1, 8, "one of `target` and `command`", ""),
        ("agent: {target: 'a:b', determinstic: true}", "unknown-key", 1, 24, "", "did you mean 'deterministic'?"),
        ("agent: [a, b]", "wrong-value", 1, 8, "not a list", ""),
        ("agent: 5", "needs-quotes", 1, 8, "`agent`", ""),
        ("builds: {good: nope}", "wrong-value", 1, 16, "`builds.good`", ""),
        ("version: 2", "wrong-value", 1, 10, "not 2", ""),
        ("concurrency: 0", "wrong-value", 1, 14, "1 or more", ""),
        ('concurrency: "5"', "wrong-value", 1, 14, "'5' (text)", "without quotes"),
        ("isolation: fork", "wrong-value", 1, 12, "'thread' or 'process'", ""),
        ("defaults: {trials: 0}", "wrong-value", 1, 20, "1 or more", ""),
        ("defaults: {timeot_s: 3}", "unknown-key", 1, 12, "", "did you mean 'timeout_s'?"),
        ("defaults: {id: a}", "unknown-key", 1, 12, "`id` belongs to a case", ""),
        ("suites: {smoke: {trails: 1}}", "unknown-key", 1, 18, "", "did you mean 'trials'?"),
        ("suites: {smoke: {gate: no}}", "wrong-value", 1, 24, "'no' (text)", "write false"),
        ("suites: {smoke: 1}", "wrong-value", 1, 17, "`suites.smoke` should be a mapping", ""),
        ("prices: {m: {input: 1}}", "missing-key", 1, 13, "`prices.m.output`", ""),
        ('prices: {m: {input: "1", output: 2}}', "wrong-value", 1, 21, "", "without quotes"),
        ("redact: ['(']", "bad-pattern", 1, 10, "regular expression", ""),
        ("retries: {attempts: 0}", "wrong-value", 1, 21, "1 or more", ""),
        ("build_id: 0123", "leading-zero", 1, 11, "", ""),
        ("build_id: 12", "needs-quotes", 1, 11, "`build_id`", '"12"'),
        ("build_id: ${NOPE}", "unknown-variable", 1, 11, "NOPE is not set", "${NOPE:-default}"),
        ("build_id: ${NO PE}", "unknown-variable", 1, 11, "'${NO PE}'", ""),
        ("- a", "wrong-value", 1, 1, "a project is a mapping", ""),
        ("a: b: c", "yaml-syntax", 1, 5, "", ""),
    ],
)
def test_a_bad_setting_is_named_with_place_rule_value_and_hint(folder, text, rule, line, column, message, hint) -> None:
    found = problems(folder, text)
    texts = [str(problem) for problem in found]
    assert len(found) == 1, texts
    (problem,) = found
    assert (problem.rule, problem.path, problem.line, problem.column) == (rule, "seatrial.yaml", line, column), texts
    assert message in problem.message, texts
    assert hint in problem.hint, texts


# --- variables and flags -------------------------------------------------------------------------------------------


def test_variables_come_from_the_environment_then_the_env_file_then_the_default(folder) -> None:
    folder.write({".env": "A=file\nB=file\n"})
    text = 'redact: ["${A:-x}", "${B:-x}", "${C:-x}", "p-${B}", "$${B}"]'
    assert load(folder, text, environ={"A": "outer"}).redact == ("outer", "file", "x", "p-file", "${B}")


@pytest.mark.parametrize("value", ["1234567", "12e4567", "0012", "true", "null", "0x1F"])
def test_a_variable_stays_text_where_text_is_wanted(folder, value: str) -> None:
    assert load(folder, "build_id: ${SHA:-dev}", environ={"SHA": value}).build_id == value
    assert load(folder, "", environ={"SEATRIAL_BUILD_ID": value}).build_id == value


def test_a_variable_is_a_number_where_a_number_is_wanted(folder) -> None:
    project = load(folder, "concurrency: ${N:-4}\ndefaults: {trials: '${T:-2}'}", environ={"N": "7"})
    assert (project.concurrency, project.defaults["trials"]) == (7, 2)


def test_an_empty_variable_counts_as_not_written(folder) -> None:
    project = load(folder, "build_id: ${SHA:-}\nhidden_cases: '${H}'\nredact: ['${R:-}']", environ={"H": ""})
    assert (project.build_id, project.hidden_cases, project.redact) == ("dev", None, ())


def test_flag_over_environment_over_file(folder) -> None:
    text = "concurrency: 2\nbuild_id: file\nisolation: thread"
    environ = {"SEATRIAL_CONCURRENCY": "3", "SEATRIAL_BUILD_ID": "outer"}
    project = load(folder, text, overrides=("concurrency=4",), environ=environ)
    assert (project.concurrency, project.build_id) == (4, "outer")


def test_set_reaches_any_key_and_replaces_it(folder) -> None:
    text = "agent: m:f\nprices: {gpt-4.1: {input: 1, output: 2}}\nredact: [a]"
    overrides = ('prices."gpt-4.1".input=3', "agent.config.model=small", "redact=[b, c]", "suites.smoke.trials=5")
    project = load(folder, text, overrides=overrides)
    assert project.prices["gpt-4.1"].input == 3
    assert project.agent is not None
    assert (project.agent.target, project.agent.config) == ("m:f", {"model": "small"})
    assert project.redact == ("b", "c")
    assert project.suites["smoke"].defaults == {"trials": 5}


@pytest.mark.parametrize(
    ("override", "rule", "message"),
    [
        ("concurrency", "usage", "--set takes key=value"),
        ("=5", "usage", "--set takes key=value"),
        ("redact.x=5", "usage", "'redact' is a list"),
        ("concurency=5", "unknown-key", "'concurency'"),
        ("concurrency=many", "wrong-value", "'many' (text)"),
        ("redact=[a", "yaml-syntax", ""),
    ],
)
def test_a_bad_set_is_named(folder, override: str, rule: str, message: str) -> None:
    (problem,) = problems(folder, "redact: [a]", overrides=(override,))
    assert problem.rule == rule
    assert message in problem.message


def test_run_options_come_from_the_environment() -> None:
    environ = {"SEATRIAL_TRIALS": "3", "SEATRIAL_TIMEOUT_S": "2.5", "SEATRIAL_TOOLS": "real", "SEATRIAL_SEED": ""}
    assert options_from_environment(environ) == {"trials": 3, "timeout_s": 2.5, "tools": "real"}
    with pytest.raises(UsageError, match="SEATRIAL_TRIALS is 0"):
        options_from_environment({"SEATRIAL_TRIALS": "0"})


# --- secrets -------------------------------------------------------------------------------------------------------


def test_secrets_are_what_variables_the_env_file_and_telling_names_hold(folder) -> None:
    folder.write({".env": "DB=from-the-file\nSHORT=12345\n"})
    environ = {"URL": "https://judge", "API_KEY": "sk-abcdef", "my_password": "hunter2", "HOME": "/home/someone"}
    project = load(folder, 'judge: {model: m, base_url: "${URL}"}', environ=environ)
    assert project.secrets == {
        "API_KEY": "sk-abcdef",
        "DB": "from-the-file",
        "URL": "https://judge",
        "my_password": "hunter2",
    }


def test_names_of_builds_and_agents_are_no_secrets_unless_they_say_so(folder) -> None:
    text = "build_id: ${GIT_SHA}\nagent: ${AGENT}\nbuilds: {a: '${BUILD_TOKEN}:f'}\nredact: ['${BOTH}', '${GIT_SHA}x']"
    environ = {"GIT_SHA": "abcdef12", "AGENT": "module:function", "BUILD_TOKEN": "module", "BOTH": "both-of-them"}
    assert set(load(folder, text, environ=environ).secrets) == {"BUILD_TOKEN", "BOTH", "GIT_SHA"}
    assert set(load(folder, "build_id: ${GIT_SHA}", environ=environ).secrets) == {"BUILD_TOKEN"}


def test_secrets_show_in_no_representation_message_or_setting(folder) -> None:
    environ = {"API_KEY": "sk-abcdef"}
    text = "judge: {model: m, base_url: 'http://x/${API_KEY}'}"
    assert "sk-abcdef" not in repr(load(folder, text, environ=environ).secrets.keys())
    assert settings(folder, environ=environ)["judge.base_url"][0] == "http://x/[secret:API_KEY]"
    (problem,) = problems(folder, "concurrency: ${API_KEY}", environ=environ)
    assert "sk-abcdef" not in str(problem)
    assert "[secret:API_KEY]" in str(problem)


# --- explaining ----------------------------------------------------------------------------------------------------


def test_every_setting_is_explained_with_its_origin(folder) -> None:
    folder.write({"seatrial.yaml": "agent: m:f\nbuild_id: ${SHA:-dev}\ndefaults:\n  trials: 3\nconcurrency: 2\n"})
    found = settings(folder, environ={"SEATRIAL_ISOLATION": "process", "SHA": "abc"}, overrides=("concurrency=5",))
    assert found["agent"] == ("m:f", "seatrial.yaml:1:8")
    assert found["build_id"] == ("abc", "seatrial.yaml:2:11, from ${SHA}")
    assert found["defaults.thresholds.trials"] == (3, "seatrial.yaml:4:11")
    assert found["concurrency"] == (5, "--set concurrency=5")
    assert found["isolation"] == ("process", "environment variable SEATRIAL_ISOLATION")
    assert found["defaults.limits.timeout_s"] == (60, "built-in")
    assert list(found) == sorted(found)


def test_options_of_a_run_that_the_environment_gives_are_in_force_with_their_origin(folder) -> None:
    folder.write(
        {
            "seatrial.yaml": "agent: {target: 'm:f', tools: stand_in}\nbuilds: {b: {target: 'm:f', tools: stand_in}}\n"
            "defaults: {trials: 3, limits: {timeout_s: 9}}\nsuites: {smoke: {trials: 1, timeout_s: 2, risk: low}}\n"
        }
    )
    environ = {"SEATRIAL_TRIALS": "5", "SEATRIAL_TIMEOUT_S": "2.5", "SEATRIAL_SEED": "7", "SEATRIAL_TOOLS": "real"}
    found = settings(folder, environ=environ)
    for key, value, name in (
        ("defaults.thresholds.trials", 5, "TRIALS"),
        ("suites.smoke.trials", 5, "TRIALS"),
        ("defaults.limits.timeout_s", 2.5, "TIMEOUT_S"),
        ("suites.smoke.timeout_s", 2.5, "TIMEOUT_S"),
        ("seed", 7, "SEED"),
        ("agent.tools", "real", "TOOLS"),
        ("builds.b.tools", "real", "TOOLS"),
    ):
        assert found[key] == (value, f"environment variable SEATRIAL_{name}")
    assert found["suites.smoke.risk"] == ("low", "seatrial.yaml:4:49")
    without = settings(folder, environ={"SEATRIAL_TRIALS": ""})
    assert without["defaults.thresholds.trials"] == (3, "seatrial.yaml:3:20")
    assert "seed" not in without
    with pytest.raises(UsageError, match="SEATRIAL_TRIALS is 0"):
        settings(folder, environ={"SEATRIAL_TRIALS": "0"})


def test_options_of_a_run_are_in_force_over_what_is_built_in(folder) -> None:
    folder.write({"seatrial.yaml": ""})
    assert settings(folder)["agent.tools"] == ("stand_in", "built-in")
    found = settings(folder, environ={"SEATRIAL_TRIALS": "4", "SEATRIAL_TOOLS": "real"})
    assert found["defaults.thresholds.trials"] == (4, "environment variable SEATRIAL_TRIALS")
    assert found["agent.tools"] == ("real", "environment variable SEATRIAL_TOOLS")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("SEATRIAL_TRAILS", "did you mean SEATRIAL_TRIALS?"),
        ("seatrial_trials", "did you mean SEATRIAL_TRIALS?"),
        ("SEATRIAL_CONCURENCY", "did you mean SEATRIAL_CONCURRENCY?"),
        ("SEATRIAL_9", ""),
    ],
)
def test_an_environment_variable_that_nothing_reads_is_warned_about(folder, name: str, hint: str) -> None:
    folder.write({"seatrial.yaml": "build_id: ${SEATRIAL_COMMIT:-dev}"})
    environ = {name: "1", "SEATRIAL_TRIALS": "2", "SEATRIAL_COMMIT": "abc", "TRIALS": "3"}
    (problem,) = unknown_variables(folder.root, environ)
    assert (problem.severity, problem.rule, problem.hint) == ("warning", "unknown-variable", hint)
    assert name in problem.message
    load_project(folder=folder.root, environ=environ)


def test_settings_have_their_places(folder) -> None:
    folder.write({"seatrial.yaml": "agent: m:f\nbuilds:\n  a.b: {target: 'm:g'}\n"})
    found = {key: (spot.line, spot.column) for key, spot in places(folder.root).items() if spot.path == "seatrial.yaml"}
    assert found == {"agent": (1, 8), 'builds."a.b".target': (3, 17)}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("A=1\nexport B = two words # note\n# c\n\nC=x#y", {"A": "1", "B": "two words", "C": "x#y"}),
        ('A=\'x # y\'\nB="a\\nb\\"" # note\nC=', {"A": "x # y", "B": 'a\nb"', "C": ""}),
        ("\ufeffA=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
    ],
)
def test_env_files_are_read(folder, text: str, values: dict[str, str]) -> None:
    from seatrial.loading.variables import read_env_file

    folder.write({".env": text})
    assert read_env_file(folder.root / ".env") == values


def test_a_bad_env_line_is_named(folder) -> None:
    folder.write({".env": "A=1\nnot a line\nB='open\n"})
    assert [(problem.path, problem.line) for problem in problems(folder, "")] == [(".env", 2), (".env", 3)]
