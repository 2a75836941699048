"""What a test's author or a broken client does wrong, the model server says: it never leaves a client waiting."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from openai import OpenAI

from seatrial.testing.model_server import Call, CutOff, Held, HttpError, ModelServer, NotJson, Reply

ASK: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def ask(server: ModelServer, key: str = "k") -> Any:
    with OpenAI(base_url=server.base_url, api_key=key, max_retries=2) as client:
        return client.chat.completions.create(model="m", messages=ASK)


# --- a script ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["one"], r"line 1 of the script: a line of a script is a Reply, .*not 'one' \(str\); for a text say Reply"),
        ([Reply("x"), None], "line 2 of the script: a line of a script is a Reply"),
        ([HttpError(99)], "the status of an HttpError is a number from 200 to 599, not 99"),
        ([HttpError(429, retry_after="soon")], "the retry_after of an HttpError is a int or a float, not 'soon'"),  # type: ignore[arg-type]
        ([Reply(calls=[Call("f", {"a": {1}})])], "the arguments of the call of f are no JSON data"),
        ([Reply(calls=[Call("f", {"a": float("nan")})])], "the arguments of the call of f are no JSON data"),
        ([Reply(calls=["f"])], "the call of a Reply is a Call, not 'f'"),  # type: ignore[list-item]
        ([Reply(calls=Call("f"))], "the calls of a Reply is a list"),  # type: ignore[arg-type]
        ([Reply(5)], "the text of a Reply is a str, not 5"),  # type: ignore[arg-type]
        ([CutOff("x")], "a reply of a CutOff is a Reply, not 'x'"),  # type: ignore[arg-type]
        ([Held(None, "x")], "line 1 of the script: a line"),  # type: ignore[arg-type]
        ([NotJson(b"x")], "the text of a NotJson is a str"),  # type: ignore[arg-type]
        (Reply("x"), "a script is a list of lines or a function that gives one, not Reply"),
        ("text", "a script is a list of lines"),
    ],
)
def test_a_line_that_no_model_can_say_is_an_error_where_the_script_is_given(
    server: ModelServer, lines: Any, said: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        server.script("k", lines)


def raises(_: Any) -> Any:
    raise KeyError("city")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (raises, "the script of 'k', asked for request 1: KeyError: 'city'"),
        (lambda _: "text", r"TypeError: a line of a script is a Reply, .*for a text say Reply\('text'\)"),
        (lambda _: None, "TypeError: a line of a script"),
        (lambda _: HttpError(99), "ValueError: the status of an HttpError"),
    ],
)
@pytest.mark.parametrize("otherwise", [False, True])
def test_a_functions_mistake_is_an_error_that_no_client_repeats(script: Any, said: str, otherwise: bool) -> None:
    with ModelServer(script if otherwise else None) as server:
        if not otherwise:
            server.script("k", script)
        with pytest.raises(openai.BadRequestError, match=said) as caught:
            ask(server)
        assert caught.value.code == "script_error"
        assert len(server.requests) == 1


# --- a request --------------------------------------------------------------------------------------------------------


def answered(server: ModelServer, request: bytes) -> tuple[int, Any]:
    """Status and JSON body of the answer to these bytes; the client says no more after them."""
    place = urlsplit(server.base_url)
    with socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=20) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        heard = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = heard.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def post(body: bytes, *headers: bytes, path: bytes = b"/v1/chat/completions") -> bytes:
    return b"\r\n".join([b"POST " + path + b" HTTP/1.1", b"Host: x", *headers, b"", body])


DEEP = b"[" * 200_000


@pytest.mark.parametrize(
    ("request_bytes", "status", "said"),
    [
        (post(b"{}", b"Content-Length: -1"), 400, "the Content-Length is no number"),
        (post(b"{}", b"Content-Length: abc"), 400, "the Content-Length is no number"),
        (post(b"{}", b"Content-Length: 99999999999"), 400, "the request is larger than"),
        (post(b"{}", b"Content-Length: 50"), 400, "the request broke off"),
        (post(b"zz\r\n", b"Transfer-Encoding: chunked"), 400, "the size of a chunk is no number"),
        (post(b"-5\r\n", b"Transfer-Encoding: chunked"), 400, "the size of a chunk is no number"),
        (post(b"50\r\nab", b"Transfer-Encoding: chunked"), 400, "the request broke off"),
        (post(DEEP, b"Content-Length: %d" % len(DEEP)), 400, "the request is no JSON"),
        (post(b"\xff\xfe", b"Content-Length: 2"), 400, "the request is no JSON"),
        (post(b"{}", b"Content-Length: 2", path=b"/v2/x"), 404, "there is no /v2/x here"),
        (post(b"{}", b"Content-Length: 2", path=b"http://["), 404, "there is no http://[ here"),
    ],
)
def test_a_malformed_request_is_answered(server: ModelServer, request_bytes: bytes, status: int, said: str) -> None:
    found, body = answered(server, request_bytes)
    assert found == status
    assert said in body["error"]["message"]
    server.script("k", [Reply("still here")])
    assert ask(server).choices[0].message.content == "still here"


@pytest.mark.parametrize(
    ("path", "allowed", "method"),
    [
        *(("/v1/chat/completions", ("POST",), method) for method in ("PATCH", "HEAD", "GET", "BREW")),
        *(("/k/v1/responses", ("POST",), method) for method in ("DELETE", "OPTIONS")),
        *(("/v1/models/", ("GET", "HEAD"), method) for method in ("POST", "PATCH")),
    ],
)
def test_another_method_than_a_path_takes_is_refused_with_those_it_takes(
    server: ModelServer, path: str, allowed: tuple[str, ...], method: str
) -> None:
    place = urlsplit(server.base_url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=20)
    for _ in range(2):  # the connection goes on
        connection.request(method, path, body=b"no JSON")
        answer = connection.getresponse()
        said = answer.read()
        assert (answer.status, answer.headers["Allow"]) == (405, ", ".join(allowed))
        if method != "HEAD":
            message = json.loads(said)["error"]["message"]
            shown = path.removeprefix("/k").rstrip("/")
            assert message == f"there is no {method} of {shown} here; it takes {' and '.join(allowed)}"
    connection.close()
    assert server.requests == ()


def test_the_models_can_be_asked_for_without_content(server: ModelServer) -> None:
    place = urlsplit(server.base_url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=20)
    connection.request("HEAD", "/v1/models")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"")
    connection.request("GET", "/v1/models")
    assert len(connection.getresponse().read()) == int(answer.headers["Content-Length"])
    connection.close()


def test_a_chunked_request_is_read_whole(server: ModelServer) -> None:
    server.script("k", [Reply("x")])
    body = b'b\r\n{"messages"\r\n5\r\n: []}\r\n0\r\n\r\n'
    assert answered(server, post(body, b"Transfer-Encoding: chunked", b"X-Script: k", b"Connection: close"))[0] == 200
    assert server.requests[0].body == {"messages": []}


def test_a_model_that_is_no_name_is_not_listed(server: ModelServer) -> None:
    for model in (5, {"a": 1}, "m"):
        server.script("k", [Reply("x")])
        body = json.dumps({"model": model, "messages": []}).encode()
        answered(server, post(body, b"Content-Length: %d" % len(body), b"X-Script: k", b"Connection: close"))
    status, listed = answered(server, b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert (status, [model["id"] for model in listed["data"]]) == (200, ["m", "scripted"])
