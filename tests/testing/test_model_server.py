"""The scripted model server, through the real OpenAI client."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from seatrial.testing.model_server import (
    Call,
    CutOff,
    Held,
    HttpError,
    Line,
    ModelServer,
    NotJson,
    Reply,
    Request,
    Usage,
)

ASK: Any = [{"role": "user", "content": "hello"}]
TWO_CALLS = Reply(calls=[Call("add", {"a": 1}, "c-1"), Call("boom", '{"x": ', "c-2")], usage=Usage(input=11, output=3))
COUNTED = Usage(input=100, output=40, cached=60, reasoning=30)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def clients() -> Iterator[Any]:
    made: list[OpenAI] = []

    def client(server: ModelServer, key: str = "trial-1", **options: Any) -> OpenAI:
        made.append(OpenAI(base_url=server.base_url, api_key=key, **({"max_retries": 0} | options)))
        return made[-1]

    yield client
    for one in made:
        one.close()


def test_a_chat_completion_carries_the_scripts_exact_ids_arguments_model_and_usage(
    server: ModelServer, clients: Any
) -> None:
    server.script("trial-1", [TWO_CALLS, Reply("the sum is 3", model="scripted-1", usage=COUNTED)])
    client = clients(server)
    first = client.chat.completions.create(model="m", messages=ASK)
    calls = first.choices[0].message.tool_calls
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
        ("c-1", "add", '{"a":1}'),
        ("c-2", "boom", '{"x": '),
    ]
    assert (first.model, first.choices[0].finish_reason) == ("m", "tool_calls")
    assert (first.usage.prompt_tokens, first.usage.completion_tokens, first.usage.total_tokens) == (11, 3, 14)
    second = client.chat.completions.create(model="m", messages=ASK)
    assert (second.choices[0].message.content, second.model) == ("the sum is 3", "scripted-1")
    assert second.usage.prompt_tokens_details.cached_tokens == 60
    assert second.usage.completion_tokens_details.reasoning_tokens == 30
    assert server.left("trial-1") == 0


def test_a_streamed_chat_completion_adds_up_to_the_whole_one(server: ModelServer, clients: Any) -> None:
    reply = Reply("let me see,  twice", calls=TWO_CALLS.calls, usage=COUNTED)
    server.script("trial-1", [reply, reply])
    client = clients(server)
    whole = client.chat.completions.create(model="m", messages=ASK)
    options = {"include_usage": True}
    with client.chat.completions.stream(model="m", messages=ASK, stream_options=options) as stream:
        streamed = stream.get_final_completion()
    mine, theirs = (answer.choices[0].message for answer in (whole, streamed))
    assert theirs.content == mine.content == "let me see,  twice"
    assert [(c.id, c.function.name, c.function.arguments) for c in theirs.tool_calls] == [
        (c.id, c.function.name, c.function.arguments) for c in mine.tool_calls
    ]
    assert streamed.usage == whole.usage
    assert streamed.choices[0].finish_reason == whole.choices[0].finish_reason


def test_a_stream_tells_its_usage_only_where_it_is_asked_for(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [Reply("a b")])
    chunks = list(clients(server).chat.completions.create(model="m", messages=ASK, stream=True))
    assert [chunk.usage for chunk in chunks] == [None] * len(chunks)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "a b"


def test_a_response_carries_the_same_script_whole_and_streamed(server: ModelServer, clients: Any) -> None:
    reply = Reply("one moment", calls=[Call("add", {"a": 1}, "c-1")], usage=COUNTED)
    server.script("trial-1", [reply, reply])
    client = clients(server)
    whole = client.responses.create(model="m", input="hello")
    with client.responses.stream(model="m", input="hello") as stream:
        numbers = [event.sequence_number for event in stream]
        streamed = stream.get_final_response()
    for answer in (whole, streamed):
        assert (answer.status, answer.output_text) == ("completed", "one moment")
        call = answer.output[1]
        assert (call.type, call.call_id, call.name, call.arguments) == ("function_call", "c-1", "add", '{"a":1}')
        assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (100, 40, 140)
        assert answer.usage.input_tokens_details.cached_tokens == 60
        assert answer.usage.output_tokens_details.reasoning_tokens == 30
    assert numbers == list(range(len(numbers)))


def test_a_reply_that_ran_out_of_tokens_says_so_at_both_endpoints(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [Reply("half a", finish="length")] * 2)
    client = clients(server)
    assert client.chat.completions.create(model="m", messages=ASK).choices[0].finish_reason == "length"
    response = client.responses.create(model="m", input="hello")
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_a_reply_without_usage_says_nothing_of_it(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [Reply("a", usage=None)] * 2)
    client = clients(server)
    assert client.chat.completions.create(model="m", messages=ASK).usage is None
    assert client.responses.create(model="m", input="hello").usage is None


# --- which script ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["api key", "header", "path"])
def test_interleaved_trials_play_their_own_scripts(server: ModelServer, by: str) -> None:
    for key in ("case/a#1", "case/a#2"):
        server.script(key, [Reply(f"{key} {n}") for n in range(3)])

    def client(key: str) -> OpenAI:
        options: dict[str, Any] = {"base_url": server.base_url, "api_key": "none"}
        options |= {
            "api key": {"api_key": key},
            "header": {"default_headers": {"X-Script": key}},
            "path": {"base_url": server.url_of(key)},
        }[by]
        return OpenAI(**options, max_retries=0)

    said: dict[str, list[str]] = {}
    with client("case/a#1") as first, client("case/a#2") as second:
        for _ in range(3):
            for key, each in (("case/a#1", first), ("case/a#2", second)):
                answer = each.chat.completions.create(model="m", messages=ASK)
                said.setdefault(key, []).append(answer.choices[0].message.content or "")
    assert said == {key: [f"{key} {n}" for n in range(3)] for key in ("case/a#1", "case/a#2")}


def test_twenty_concurrent_trials_get_their_own_lines(server: ModelServer) -> None:
    keys = [f"trial-{n}" for n in range(20)]
    for key in keys:
        server.script(key, [Reply(f"{key}:{n}") for n in range(5)])

    def converse(key: str) -> list[str | None]:
        with OpenAI(base_url=server.base_url, api_key=key, max_retries=0) as client:
            answers = [client.chat.completions.create(model="m", messages=ASK) for _ in range(5)]
        return [answer.choices[0].message.content for answer in answers]

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(converse, keys)) == [[f"{key}:{n}" for n in range(5)] for key in keys]
    assert {len(server.requests_of(key)) for key in keys} == {5}


def test_a_call_beyond_the_script_is_a_clear_error_that_no_client_retries(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [Reply("only")])
    client = clients(server, max_retries=2)
    client.chat.completions.create(model="m", messages=ASK)
    with pytest.raises(openai.BadRequestError, match="script of 'trial-1' is exhausted: it has 1 lines") as caught:
        client.chat.completions.create(model="m", messages=ASK)
    assert caught.value.code == "script_exhausted"
    assert len(server.requests) == 2


def test_a_key_without_a_script_is_named_with_the_nearest(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [Reply("x")])
    with pytest.raises(openai.BadRequestError, match="no script for key 'trail-1'; did you mean 'trial-1'"):
        clients(server, "trail-1").chat.completions.create(model="m", messages=ASK)


def test_a_function_answers_by_the_request_for_one_key_or_for_all_others(clients: Any) -> None:
    def echo(request: Request) -> Line:
        return Reply(f"{request.key} {request.number}: {request.body['messages'][-1]['content']}")

    with ModelServer(otherwise=echo) as server:
        server.script("mine", lambda request: Reply("mine"))
        answers = [
            clients(server, key).chat.completions.create(model="m", messages=ASK).choices[0].message.content
            for key in ("mine", "other", "other")
        ]
    assert answers == ["mine", "other 1: hello", "other 2: hello"]


def test_the_log_holds_every_request_and_no_api_key(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [Reply("x"), Reply("y")])
    client = clients(server)
    client.chat.completions.create(model="m", messages=ASK, temperature=0.5)
    list(client.responses.create(model="m", input="hello", stream=True))
    first, second = server.requests
    assert (first.path, first.body["temperature"], first.stream, first.number) == (
        "/v1/chat/completions",
        0.5,
        False,
        1,
    )
    assert (second.path, second.body["input"], second.stream, second.number) == ("/v1/responses", "hello", True, 2)
    assert "authorization" not in first.headers
    assert [model.id for model in client.models.list()] == ["m", "scripted"]


# --- faults ---------------------------------------------------------------------------------------------------------


def test_a_client_waits_as_long_as_429_says_and_goes_on_with_the_next_line(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [HttpError(429, "slow down", retry_after=0.01), Reply("ok")])
    client = clients(server, max_retries=1)
    assert client.chat.completions.create(model="m", messages=ASK).choices[0].message.content == "ok"
    assert len(server.requests) == 2


def test_errors_carry_status_message_code_and_retry_after(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [HttpError(429, "slow down", retry_after=7, code="rate"), HttpError(500, "broke")])
    client = clients(server)
    with pytest.raises(openai.RateLimitError, match="slow down") as limited:
        client.chat.completions.create(model="m", messages=ASK)
    assert (limited.value.code, limited.value.response.headers["retry-after"]) == ("rate", "7")
    with pytest.raises(openai.InternalServerError, match="broke"):
        client.responses.create(model="m", input="hello", stream=True)


def test_a_held_answer_goes_out_once_the_event_is_set(server: ModelServer, clients: Any) -> None:
    until = threading.Event()
    server.script("trial-1", [Held(until, Reply("late"))])
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(clients(server).chat.completions.create, model="m", messages=ASK)
        while not server.requests:
            assert not waiting.done()
        assert not waiting.done()
        until.set()
        assert waiting.result().choices[0].message.content == "late"


def test_a_held_answer_meets_the_clients_own_time_limit(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [Held(threading.Event())])
    with pytest.raises(openai.APITimeoutError):
        clients(server, timeout=0.05).chat.completions.create(model="m", messages=ASK)


def test_a_stream_that_is_cut_off_breaks_after_its_events(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [CutOff(Reply("one two three"), after=3)])
    said: list[Any] = []
    chunks = clients(server).chat.completions.create(model="m", messages=ASK, stream=True)
    with pytest.raises((openai.APIConnectionError, httpx.RemoteProtocolError)):
        _collect(chunks, said)
    assert said == ["", "one", " two"]


def _collect(chunks: Any, said: list[Any]) -> None:
    for chunk in chunks:
        said.append(chunk.choices[0].delta.content)


def test_a_whole_answer_that_is_cut_off_is_a_connection_error(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [CutOff(Reply("one two three"))])
    with pytest.raises(openai.APIConnectionError):
        clients(server).chat.completions.create(model="m", messages=ASK)


def test_malformed_json_reaches_the_client_as_it_is(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [NotJson("<html>bad gateway"), NotJson("{")])
    client = clients(server)
    with pytest.raises((openai.APIResponseValidationError, json.JSONDecodeError)):
        client.chat.completions.create(model="m", messages=ASK)
    with pytest.raises(json.JSONDecodeError):
        list(client.chat.completions.create(model="m", messages=ASK, stream=True))


def test_requests_that_no_model_would_answer_take_no_line(server: ModelServer, clients: Any) -> None:
    server.script("trial-1", [Reply("x")])
    client = clients(server)
    with pytest.raises(openai.NotFoundError, match=r"there is no /v1/embeddings here"):
        client.embeddings.create(model="m", input="x")
    with pytest.raises(openai.BadRequestError, match="missing required parameter: 'messages'"):
        client.post("/chat/completions", body={"model": "m"}, cast_to=object)
    assert server.left("trial-1") == 1


def test_the_server_ends_with_its_connections_and_threads() -> None:
    before = set(threading.enumerate())
    with ModelServer(lambda _: Held(threading.Event())) as server:
        request = urllib.request.Request(f"{server.base_url}/chat/completions", b'{"messages": []}')
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(urllib.request.urlopen, request)
            while not server.requests:
                assert not waiting.done()
            server.close()
            assert isinstance(waiting.exception(), OSError)
    assert set(threading.enumerate()) <= before
