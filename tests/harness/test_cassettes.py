"""Recorded and replayed runs, through the real OpenAI client and a scripted model."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import seatrial
from projects import case, killed_at, write_project
from seatrial.core.encoding import dumps
from seatrial.environment.loopback import Exchange, LoopbackServer
from seatrial.errors import StorageError, UsageError
from seatrial.testing.model_server import Call, CutOff, Held, HttpError, Line, ModelServer, NotJson, Reply, Request

AGENT = """
import os
from openai import OpenAI

import seatrial


def ask(client, messages, stream=False):
    answer = client.chat.completions.create(model="m", messages=messages, stream=stream)
    if not stream:
        return answer.choices[0].message.content
    return "".join(chunk.choices[0].delta.content or "" for chunk in answer)


def answer(message):
    with OpenAI(api_key=os.environ.get("MODEL_KEY", "sk-nothing-1234"), max_retries=2) as client:
        return ask(client, [{"role": "user", "content": message}])


def streamed(message):
    with OpenAI(api_key="sk-nothing-1234", max_retries=0) as client:
        return ask(client, [{"role": "user", "content": message}], stream=True)


def by_environment(environment):
    def answer(message):
        with OpenAI(api_key="k", base_url=environment.model_base_url, max_retries=0) as client:
            first = ask(client, [{"role": "user", "content": message}])
            return ask(client, [{"role": "user", "content": message + first}])
    return answer


def careless(message):
    try:
        return answer(message + os.environ.get("MORE", ""))
    except Exception:
        return "hello anyway"
"""


def project(folder: Path, agent: str = "answer", **cases: str) -> Path:
    files = {f"cases/smoke/{name}.yaml": text for name, text in (cases or {"greets": case("greets")}).items()}
    return write_project(
        folder, {"seatrial.yaml": f"version: 1\nagent: my_agent:{agent}\n", "my_agent.py": AGENT, **files}
    )


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Gives a server that answers every request by a function, and points OPENAI_BASE_URL to it."""
    opened: list[ModelServer] = []

    def serve(answer: Any) -> ModelServer:
        server = ModelServer(otherwise=answer)
        server.__enter__()
        opened.append(server)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        return server

    yield serve
    for server in opened:
        server.close()


def echo(request: Request) -> Line:
    return Reply(f"hello: {request.body['messages'][-1]['content']}")


def run(folder: Path, mode: str, name: str, **options: Any) -> seatrial.Run:
    return seatrial.run(folder, cassettes=folder / "tapes", cassette_mode=mode, output=folder / name, **options)


def results(run: seatrial.Run) -> str:
    """`results.json` without its times."""
    data = json.loads((run.folder / "results.json").read_text("utf-8"))
    del data["times"]
    return dumps(data)


def outputs(run: seatrial.Run) -> dict[str, Any]:
    return {str(record.key): record.output for record in run.trials}


# --- what a replay is -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["answer", "streamed", "by_environment"])
def test_a_replayed_run_has_equal_results_and_asks_no_model(tmp_path: Path, model: Any, agent: str) -> None:
    server = model(echo)
    folder = project(tmp_path, agent)
    first = run(folder, "record", "a", trials=3)
    asked = len(server.requests)
    assert asked == (6 if agent == "by_environment" else 3)
    server.close()
    second = run(folder, "replay", "b", trials=3)
    assert results(first) == results(second)
    assert first.exit_code == second.exit_code == 0
    assert {record.replayed for record in first.trials} == {0}
    assert {record.replayed for record in second.trials} == {asked // 3}
    assert {second.trace(record).replayed for record in second.trials} == {asked // 3}
    assert (first.info.cassettes, second.info.cassettes) == ("record", "replay")
    assert not any(record.leftovers for record in (*first.trials, *second.trials))


@pytest.mark.slow
def test_faults_are_replayed_as_they_came(tmp_path: Path, model: Any) -> None:
    faults: Iterator[Line] = iter(
        [HttpError(429, "slow down", retry_after=0.01), Reply("hello"), NotJson("<html>"), CutOff(Reply("hello"))]
        + [HttpError(500, "broke")] * 5
    )
    model(lambda request: next(faults))
    folder = project(tmp_path, "careless")
    first = run(folder, "record", "a", trials=3, concurrency=1)
    second = run(folder, "replay", "b", trials=3, concurrency=1)
    assert results(first) == results(second)
    assert [record.replayed for record in second.trials] == [2, 1, 3]


@pytest.mark.slow
def test_concurrent_trials_are_told_apart(tmp_path: Path, model: Any) -> None:
    together = threading.Barrier(10)
    number = itertools.count()

    def at_once(request: Request) -> Line:
        together.wait(20)
        return Reply(f"hello {next(number)}")

    model(at_once)
    folder = project(tmp_path, "answer", **{f"c{n}": case(f"c{n}", f"hello {n}") for n in range(2)})
    first = run(folder, "record", "a", trials=5, concurrency=10)
    assert len(set(outputs(first).values())) == 10
    second = run(folder, "replay", "b", trials=5, concurrency=10)
    assert outputs(first) == outputs(second)
    assert results(first) == results(second)


@pytest.mark.slow
def test_trials_in_processes_are_recorded_and_replayed(tmp_path: Path, model: Any) -> None:
    number = itertools.count()
    model(lambda request: Reply(f"hello {next(number)}"))
    folder = project(tmp_path, "answer")
    first = run(folder, "record", "a", trials=4, isolation="process")
    second = run(folder, "replay", "b", trials=4, isolation="process")
    assert sorted(outputs(first).values()) == [f"hello {n}" for n in range(4)]
    assert results(first) == results(second)
    assert {record.replayed for record in second.trials} == {1}


@pytest.mark.slow
def test_an_answer_that_never_came_stays_away(tmp_path: Path, model: Any) -> None:
    never = threading.Event()
    model(lambda request: Held(never))
    folder = project(tmp_path)
    first = run(folder, "record", "a", timeout_s=0.3)
    second = run(folder, "replay", "b", timeout_s=0.3)
    assert [record.stop_reason for record in (*first.trials, *second.trials)] == ["timeout"] * 2
    assert second.trials[0].replayed == 0


def test_recording_again_replaces_what_was_recorded(tmp_path: Path, model: Any) -> None:
    number = itertools.count()
    model(lambda request: Reply(f"hello {next(number)}"))
    folder = project(tmp_path)
    run(folder, "record", "a", trials=2, concurrency=1)
    again = run(folder, "record", "b", trials=2, concurrency=1)
    assert outputs(again) == {"greets#1": "hello 2", "greets#2": "hello 3"}
    assert outputs(run(folder, "replay", "c", trials=2)) == outputs(again)


def test_attempts_are_recorded_one_by_one(tmp_path: Path, model: Any) -> None:
    lines = iter([HttpError(400, "no"), Reply("hello"), Reply("hello again")])
    model(lambda request: next(lines))
    text = case("greets") + "retries: {attempts: 2, on: [BadRequestError], backoff_s: 0}\n"
    folder = project(tmp_path, greets=text)
    first = run(folder, "record", "a", trials=2, concurrency=1)
    second = run(folder, "replay", "b", trials=2, concurrency=1)
    assert [(r.trial_index, r.attempt, r.output) for r in second.trials] == [
        (1, 1, None),
        (1, 2, "hello"),
        (2, 1, "hello again"),
    ]
    assert results(first) == results(second)


@pytest.mark.slow
def test_what_is_drawn_by_chance_is_drawn_as_it_was_recorded(tmp_path: Path, model: Any) -> None:
    model(echo)
    folder = project(tmp_path)
    (folder / "my_agent.py").write_text(
        AGENT + "\n\ndef drawn(environment):\n    return lambda m: answer(f'hello {environment.seed}')\n"
    )
    first = run(folder, "record", "a", trials=2, agent="my_agent:drawn")
    again = run(folder, "record", "b", trials=3, agent="my_agent:drawn")
    replayed = run(folder, "replay", "c", trials=3, agent="my_agent:drawn")
    assert outputs(first).items() <= outputs(again).items()
    assert outputs(replayed) == outputs(again)
    assert run(folder, "replay", "d", agent="my_agent:drawn", seed=7).exit_code == 4


def test_a_call_while_the_project_is_loaded_is_refused_and_never_waits(tmp_path: Path, model: Any) -> None:
    model(echo)
    folder = project(tmp_path)
    (folder / "my_agent.py").write_text(AGENT + "\nEARLY = careless('x')\nearly = lambda m: EARLY\n")
    assert run(folder, "record", "a", agent="my_agent:early").trials[0].output == "hello anyway"


# --- misses -----------------------------------------------------------------------------------------------------------


def test_a_miss_makes_the_trial_invalid_and_names_the_first_difference(
    tmp_path: Path, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = model(echo)
    folder = project(tmp_path, "careless")
    run(folder, "record", "a")
    monkeypatch.setenv("MORE", " there")
    missed = run(folder, "replay", "b")
    (record,) = missed.trials
    assert (record.status, record.invalid_reason, record.replayed) == ("invalid", "harness", 0)
    assert record.detail == (
        "cassettes: request 1 of the trial, POST /chat/completions: "
        'body.messages[0].content: recorded "hello", now "hello there"'
    )
    assert missed.exit_code == 4
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"trials": 2}, "there is no recording of trial 2; recorded trials: 1"),
        ({"build_id": "other"}, "there is no recording of build 'other' in "),
        ({"agent": "my_agent:careless"}, "was recorded with other settings of the agent (target, config, tools)"),
        ({"select": ["hidden_from_tape"]}, "there is no recording of case hidden_from_tape in "),
    ],
)
def test_what_was_not_recorded_is_said(tmp_path: Path, model: Any, options: dict[str, Any], why: str) -> None:
    server = model(echo)
    folder = project(tmp_path, greets=case("greets"), other=case("hidden_from_tape"))
    run(folder, "record", "a", select=["greets"])
    missed = run(folder, "replay", "b", **({"select": ["greets"]} | options))
    assert missed.exit_code == 4
    last = max(missed.trials, key=lambda record: record.trial_index)
    assert (last.status, last.invalid_reason) == ("invalid", "harness")
    assert why in last.detail
    assert len(server.requests) == 1


def test_a_request_that_is_repeated_more_often_than_recorded_is_a_miss(tmp_path: Path, model: Any) -> None:
    model(lambda request: Reply("hello"))
    folder = project(tmp_path)
    run(folder, "record", "a")
    (folder / "my_agent.py").write_text(
        AGENT + "\n\nonce = answer\n\n\ndef answer(m):\n    once(m)\n    return once(m)\n"
    )
    (record,) = run(folder, "replay", "b").trials
    assert record.detail.endswith("POST /chat/completions: was recorded once, and is asked for once more")


def test_a_shared_client_is_told_apart_only_when_one_trial_runs(tmp_path: Path, model: Any) -> None:
    model(echo)
    folder = project(tmp_path)
    (folder / "my_agent.py").write_text(
        AGENT + "\nimport threading\nshared = OpenAI(api_key='k', max_retries=0)\nboth = threading.Barrier(2)\n\n"
        "def alone(m):\n    return ask(shared, [{'role': 'user', 'content': m}])\n\n"
        "def together(m):\n    both.wait(20)\n    try:\n        return alone(m)\n    finally:\n        both.wait(20)\n"
    )
    one_by_one = run(folder, "record", "a", trials=2, concurrency=1, agent="my_agent:alone")
    assert one_by_one.exit_code == 0
    replayed = run(folder, "replay", "b", trials=2, concurrency=1, agent="my_agent:alone")
    assert [record.replayed for record in replayed.trials] == [1, 1]
    at_once = run(folder, "record", "c", trials=2, concurrency=2, agent="my_agent:together")
    assert {record.status for record in at_once.trials} == {"invalid"}
    assert "make the client inside the trial" in at_once.trials[0].detail


# --- files ------------------------------------------------------------------------------------------------------------


def test_cassettes_are_stable_and_hold_no_secret(tmp_path: Path, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-very-secret-key-1")
    monkeypatch.setenv("VAULT_TOKEN", "tok-654321-abc")
    said = []

    def leaks(request: Request) -> Line:
        said.append(request.body["messages"][0]["content"])
        return Reply("hello tok-654321-abc, your key is sk-very-secret-key-1")

    server = model(leaks)
    folder = project(tmp_path, greets=case("greets", "hello tok-654321-abc"))
    first = run(folder, "record", "a")
    path = folder / "tapes" / "dev" / "greets.json"
    text = path.read_text("utf-8")
    assert "tok-654321-abc" not in text
    assert "sk-very-secret-key-1" not in text
    assert "[secret:VAULT_TOKEN]" in text
    server = model(leaks)
    run(folder, "record", "b")
    assert path.read_text("utf-8") == text
    assert said == ["hello tok-654321-abc"] * 2
    server.close()
    second = run(folder, "replay", "c")
    assert results(first) == results(second)
    assert second.trials[0].replayed == 1


def test_a_torn_cassette_is_an_error_before_anything_runs(tmp_path: Path, model: Any) -> None:
    server = model(echo)
    folder = project(tmp_path)
    run(folder, "record", "a")
    path = folder / "tapes" / "dev" / "greets.json"
    path.write_bytes(path.read_bytes()[:-40])
    for mode, name in (("record", "b"), ("replay", "c")):
        with pytest.raises(StorageError, match=r"greets\.json: is no whole cassette .*; remove it and record"):
            run(folder, mode, name)
    assert len(server.requests) == 1


def test_a_run_is_resumed_with_its_cassettes_and_in_no_other_mode(tmp_path: Path, model: Any) -> None:
    model(echo)
    folder = project(tmp_path)
    run(folder, "record", "a", trials=1)
    resumed = seatrial.run(folder, output=folder / "a", resume=True, trials=2)
    assert len(resumed.trials) == 2
    assert {record.replayed for record in run(folder, "replay", "b", trials=2).trials} == {1}
    with pytest.raises(UsageError, match='cassettes: was "record", now "replay"'):
        run(folder, "replay", "a", resume=True, trials=3)


@pytest.mark.slow
def test_a_recording_that_was_killed_goes_on_and_replays_whole(tmp_path: Path, model: Any) -> None:
    server = model(echo)
    folder = project(tmp_path, "of_planner")
    (folder / "my_agent.py").write_text(
        AGENT + "\n\ndef of_planner(environment):\n    def answer(m):\n"
        "        with OpenAI(api_key='k', base_url=environment.model_base_urls['planner']) as client:\n"
        "            return ask(client, [{'role': 'user', 'content': f'{m} {environment.trial_index}'}])\n"
        "    return answer\n"
    )
    settings = (
        folder / "seatrial.yaml"
    ).read_text() + f"model_proxy: {{upstreams: {{planner: '{server.base_url}'}}}}\n"
    (folder / "seatrial.yaml").write_text(settings)
    tapes = ("--cassettes", str(folder / "tapes"), "--cassette-mode", "record", "--concurrency", "1")
    arguments = ("run", "--output", "a", "--trials", "8", *tapes)
    assert killed_at(0, folder / "tapes" / "dev" / "greets.json", *arguments, cwd=folder)
    assert len(seatrial.load(folder / "a").trials) < 8
    whole = seatrial.run(folder, output=folder / "a", resume=True)
    assert len(whole.trials) == 8
    server.close()
    replayed = run(folder, "replay", "b", trials=8)
    assert outputs(replayed) == outputs(whole)
    assert {record.replayed for record in replayed.trials} == {1}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"cassettes": "x"}, "say with --cassette-mode whether to record or replay"),
        ({"cassette_mode": "record"}, "--cassette-mode record needs --cassettes DIR"),
        ({"cassettes": "x", "cassette_mode": "play"}, "cassette_mode should be off, record or replay, not 'play'"),
        ({"cassettes": "nowhere", "cassette_mode": "replay"}, "nowhere: there is no such folder of cassettes"),
        ({"cassettes": "x", "cassette_mode": "record", "executor": "dask"}, "cassettes need trials on this machine"),
        (
            {"cassettes": "x", "cassette_mode": "record", "set": ["model_proxy.env=[OTHER_URL]"]},
            "model_proxy.env: OTHER_URL is not set",
        ),
        (
            {"cassettes": "x", "cassette_mode": "record", "set": ["model_proxy.upstreams={a: nothing}"]},
            "model_proxy: a is 'nothing', which is no http",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=why):
        seatrial.run(project(tmp_path), **options)


def test_off_leaves_everything_as_it_is(tmp_path: Path, model: Any) -> None:
    server = model(echo)
    folder = project(tmp_path, "by_environment")
    done = run(folder, "off", "a")
    assert (done.exit_code, done.info.cassettes, len(server.requests)) == (0, "", 2)
    assert not (folder / "tapes").exists()


def test_other_variables_and_named_upstreams_go_through_the_proxy_too(
    tmp_path: Path, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = model(echo)
    monkeypatch.setenv("OTHER_URL", server.url_of("other"))
    folder = project(tmp_path)
    (folder / "my_agent.py").write_text(
        AGENT + "\n\ndef several(environment):\n    def answer(m):\n        said = []\n"
        "        for url in (os.environ['OTHER_URL'], environment.model_base_urls['planner']):\n"
        "            with OpenAI(api_key='k', base_url=url, max_retries=0) as client:\n"
        "                said.append(ask(client, [{'role': 'user', 'content': m}]))\n"
        "        return ' '.join(said)\n    return answer\n"
    )
    settings = ["model_proxy.env=[OTHER_URL]", f"model_proxy.upstreams={{planner: '{server.url_of('planner')}'}}"]
    options: dict[str, Any] = {"agent": "my_agent:several", "set": settings}
    first = run(folder, "record", "a", **options)
    assert [request.key for request in server.requests] == ["other", "planner"]
    server.close()
    second = run(folder, "replay", "b", **options)
    assert results(first) == results(second)
    assert second.trials[0].replayed == 2


def test_variables_are_afterwards_as_they_were(tmp_path: Path, model: Any) -> None:
    server = model(echo)
    before = dict(os.environ)
    store = type(os.environ._data)  # type: ignore[attr-defined]
    run(project(tmp_path), "record", "a")
    assert dict(os.environ) == before
    assert os.environ["OPENAI_BASE_URL"] == server.base_url
    assert type(os.environ._data) is store  # type: ignore[attr-defined]
    os.environ["SEATRIAL_TEST_X"] = "1"
    assert os.environb[b"SEATRIAL_TEST_X"] == b"1"
    del os.environ["SEATRIAL_TEST_X"]


def test_a_model_that_cannot_be_reached_is_said_to_the_client(tmp_path: Path, model: Any) -> None:
    server = model(echo)
    server.close()
    folder = project(tmp_path, "streamed")
    (record,) = run(folder, "record", "a").trials
    assert record.stop_reason == "agent_error"
    assert "cannot be reached: Connection refused" in record.detail
    (again,) = run(folder, "replay", "b").trials
    assert again.detail == record.detail


def test_tool_calls_travel_through_a_cassette_unchanged(tmp_path: Path, model: Any) -> None:
    calls = [Call("add", {"a": 1}, "c-1"), Call("boom", '{"x": ', "c-2")]
    model(lambda request: Reply("hello", calls=calls))
    folder = project(tmp_path)
    (folder / "my_agent.py").write_text(
        AGENT + "\n\ndef calls(m):\n    with OpenAI(api_key='k') as client:\n"
        "        with client.chat.completions.stream(model='m', messages=[{'role': 'user', 'content': m}]) as stream:\n"
        "            said = stream.get_final_completion().choices[0].message\n"
        "    return [said.content, [[c.id, c.function.name, c.function.arguments] for c in said.tool_calls]]\n"
    )
    first = run(folder, "record", "a", agent="my_agent:calls")
    second = run(folder, "replay", "b", agent="my_agent:calls")
    expected = ["hello", [["c-1", "add", '{"a":1}'], ["c-2", "boom", '{"x": ']]]
    assert first.trials[0].output == second.trials[0].output == expected


RAW = """
import json, os, urllib.request


def post(body):
    url = os.environ["OPENAI_BASE_URL"] + "/chat"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        return answer.read()


def answer(message):
    return [post(json.dumps({"t": text}).encode()).hex() for text in (message, "\\ud83d", "\\U0001f600")]
"""


@pytest.mark.parametrize(
    "body",
    [
        rb'{"t":"\ud800"}',
        b'{\n  "n": 1e5,\n  "n": 1.10,\n  "x": 0.1234567890123456789\n}\n',
        rb'{"t":"\u00e9 \ud83d\ude00"}',
    ],
)
def test_an_answer_is_replayed_byte_for_byte_whatever_its_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    def respond(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.answer(200, {"Content-Type": "application/json"}, body)

    server = LoopbackServer(respond)
    server.start()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    folder = project(tmp_path)
    (folder / "my_agent.py").write_text(RAW)
    first = run(folder, "record", "a")
    server.close()
    second = run(folder, "replay", "b")
    assert first.trials[0].output == second.trials[0].output == [body.hex()] * 3
    assert results(first) == results(second)
    assert second.trials[0].replayed == 3
