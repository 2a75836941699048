"""The recording proxy: what is compared, masked and said again, byte for byte where a client looks."""

from __future__ import annotations

import base64
import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.cassette import Cassette, Part, RecordedResponse, Take
from seatrial.core.encoding import dumps
from seatrial.environment.loopback import Exchange, LoopbackServer
from seatrial.environment.model_proxy.address import Mode
from seatrial.environment.model_proxy.content import (
    Masks,
    bytes_of,
    event_bytes,
    recorded_response,
    request_of,
    split,
)
from seatrial.environment.model_proxy.proxy import ModelProxy
from seatrial.environment.secrets import Redactor

SECRETS = {"VAULT_TOKEN": "tok-654321-abc", "CARD": "4111 1111 1111 1111"}
MASKS = Masks(Redactor(SECRETS))
EVENTS = {"content-type": "text/event-stream"}


def asked(body: bytes, path: str = "/chat", **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return request_of("u", "POST", path, named, body, MASKS.of(named))


# --- what is compared -------------------------------------------------------------------------------------------------


def test_requests_are_equal_whatever_the_order_of_keys_and_what_changes_from_call_to_call() -> None:
    one = asked(b'{"a": 1, "b": [1.5, "x"]}', x_request_id="1", user_agent="p/1", authorization="Bearer sk-abcdef-1")
    other = asked(b'{"b":[1.5,"x"],"a":1}', x_request_id="2", user_agent="p/2", authorization="Bearer sk-abcdef-2")
    assert one == other
    assert one != asked(b'{"a": 1, "b": [1.5, "y"]}')
    assert one != asked(b'{"a": 1, "b": [1.5, "x"]}', anthropic_version="2023-06-01")


def test_credentials_are_in_no_part_of_a_request() -> None:
    key = "sk-live-1234567890"
    for headers in ({"authorization": f"Bearer {key}"}, {"x-api-key": key}, {"api-key": key}):
        path = f"/v1beta/{key}/chat?key={key}&alt=sse&API_KEY=abc"
        request = request_of("u", "POST", path, headers, f'{{"echo": "{key}"}}'.encode(), MASKS.of(headers))
        assert key not in dumps(request.model_dump())
        assert request.path.endswith("/chat?alt=sse")
        assert request.body == {"echo": "[secret:credential-1]"}


BASIC = base64.b64encode(b"user:hunter2-hunter2").decode()


@pytest.mark.parametrize(
    ("headers", "query", "secret"),
    [
        *(({}, name, "abc-123456-xyz") for name in ("subscription-key", "code", "X-API-Key", "client_secret")),
        *(
            ({}, name, "abc-123456-xyz")
            for name in ("session_token", "sig", "X-Amz-Signature", "apiKey", "accessToken")
        ),
        *(({name: "abc-123456-xyz"}, "", "abc-123456-xyz") for name in ("ocp-apim-subscription-key", "x-auth-token")),
        ({"cookie": "lang=en; sid=abc-123456-xyz; theme=dark"}, "", "abc-123456-xyz"),
        ({"authorization": f"Basic {BASIC}"}, "", "hunter2-hunter2"),
        ({"authorization": f"Basic {BASIC}"}, "", BASIC),
        ({"authorization": "abc-123456-xyz"}, "", "abc-123456-xyz"),
    ],
)
def test_whatever_proves_who_asks_is_in_no_part_of_a_cassette(headers: dict[str, str], query: str, secret: str) -> None:
    path = f"/chat?{query}={secret}&alt=sse" if query else "/chat?alt=sse"
    mask = MASKS.of(headers, path)
    body = dumps({"echo": f"it is {secret}"}).encode()
    request = request_of("u", "POST", path, headers, body, mask)
    answer = recorded_response(200, {}, body, mask, cut=False)
    assert secret not in dumps(request.model_dump()) + dumps(answer.model_dump())
    assert request.path == "/chat?alt=sse"
    assert mask.unmask(answer.body) == {"echo": f"it is {secret}"}


@pytest.mark.parametrize("name", ["keyword", "max_tokens", "country_code", "monkeys", "encoding"])
def test_parameters_that_are_no_secret_take_part_in_the_comparison(name: str) -> None:
    assert asked(b"", f"/chat?{name}=one") != asked(b"", f"/chat?{name}=another")


def test_a_comment_in_a_stream_stays_an_event_of_its_own() -> None:
    data = b': waiting\n\ndata: {"a":1}\n\nid: 7\ndata: {}\n\ndata: [DONE]\n\n: cut o'
    response = recorded_response(200, EVENTS, data, MASKS.of({}), cut=True)
    assert b"".join(event_bytes(event) for event in response.events or ()) == data


BODIES = [
    *(b"NaN", b"[1e999]", b"[1.0]", b"null", b" null", b'{"$text": "x"}', b'{"$type": "bytes"}'),
    b'{"$type": "bytes", "value": "eA=="}',
]
"""What reads as JSON and is written otherwise, or looks like what a cassette marks."""


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | st.sampled_from(BODIES))
def test_any_body_comes_back_with_the_same_meaning(body: bytes) -> None:
    again = bytes_of(asked(body).body)
    try:
        expected = dumps(json.loads(body))
    except (ValueError, RecursionError):
        assert again == body
    else:
        assert dumps(json.loads(again)) == expected


ANSWERS = [
    *BODIES,
    *(b'{ "a": 1 }', b'{"a":1e5}', b'{"a":1.10}', b'{"a":0.1234567890123456789}', b'{"a":1,"a":2}', b'{"a":1}\n'),
    *(
        rb'{"t":"\u00e9"}',
        rb'{"t":"\/"}',
        rb'{"t":"\ud83d\ude00"}',
        rb'{"t":"\ud83d"}',
        b'{"n":12345678901234567890123}',
    ),
]


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | st.sampled_from(ANSWERS))
def test_any_answer_comes_back_byte_for_byte(body: bytes) -> None:
    response = recorded_response(200, {}, body, MASKS.of({}), cut=False)
    kept = RecordedResponse.model_validate(json.loads(dumps(response.model_dump(mode="json"))))
    assert bytes_of(MASKS.of({}).unmask(kept.body)) == body


def test_an_answer_whose_values_say_it_all_is_kept_as_data_and_any_other_as_its_text() -> None:
    for body, kept in ((b'{"a":[1.5,"x"]}', {"a": [1.5, "x"]}), (b'{"a": 1}', {"$text": '{"a": 1}'})):
        assert recorded_response(200, {}, body, MASKS.of({}), cut=False).body == kept


spaces = st.text(" \n\t", max_size=2)


@st.composite
def json_texts(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    """Objects as anybody may write them: any white space, keys that stand there twice."""
    pairs = draw(st.lists(st.tuples(st.sampled_from(["a", "b", "tok-654321-abc"]), values), min_size=1, max_size=4))
    parts = [f"{draw(spaces)}{json.dumps(key)}{draw(spaces)}:{draw(spaces)}{value}" for key, value in pairs]
    return f"{{{','.join(parts)}{draw(spaces)}}}\n"


HIDDEN = [
    *('"tok-654321-abc"', '"it is tok-654321-abc."', r'"\u0074ok-654321-abc"', r'"say \"qu\\ote\" twice"'),
    *("4111111111111111", '"4111-1111-1111-1111"', r'"say \u0022qu\u005cote\" twice"'),
]
"""Secrets as JSON can write them."""


@given(json_texts(st.sampled_from(["1e5", "null", '"x"', "[1.10]", *HIDDEN])))
def test_a_text_that_holds_secrets_stays_json_and_shows_none_of_them(text: str) -> None:
    known = SECRETS | {"QUOTED": 'say "qu\\ote" twice'}
    mask = Masks(Redactor(known)).of({})
    kept = recorded_response(200, {}, text.encode(), mask, cut=False).body
    shown = bytes_of(kept).decode()
    for pairs in (json.loads(shown, object_pairs_hook=list), json.loads(bytes_of(kept), object_pairs_hook=list)):
        assert not any(secret in dumps(pairs) for secret in ("tok-654321-abc", "4111", r"say \"qu\\ote"))
    again = json.loads(bytes_of(mask.unmask(kept)), object_pairs_hook=list)
    assert [_plain(pair) for pair in again] == [_plain(pair) for pair in json.loads(text, object_pairs_hook=list)]


def _plain(pair: Any) -> Any:
    """A pair without what masking changes for good: how a card's number is written."""
    key, value = pair
    return [key, "card" if "4111" in str(value) else value]


# --- streams ----------------------------------------------------------------------------------------------------------

blocks = st.lists(
    st.sampled_from(
        [
            b'data: {"choices": [{"delta": {"content": "a"}}]}',
            b'event: x.y\ndata: {"type": "x.y", "delta": "b"}',
            b"data: [DONE]",
            b": ping",
            b"data: no json",
            b"id: 7\ndata: {}",
            b"event: only",
        ]
    ),
    max_size=6,
)


@given(blocks, st.booleans())
def test_a_stream_is_said_again_event_by_event(given_blocks: list[bytes], crlf: bool) -> None:
    end = b"\r\n\r\n" if crlf else b"\n\n"
    data = b"".join(block + end for block in given_blocks)
    response = recorded_response(200, EVENTS, data, MASKS.of({}), cut=False)
    said = [event_bytes(event) for event in response.events or ()]
    assert [_meaning(piece) for piece in said] == [_meaning(block) for block in split(data)[0]]


def _meaning(block: bytes) -> list[Any]:
    lines = [line.partition(": ") for line in block.decode().strip().splitlines()]
    return [(name, _json(value)) for name, _, value in lines]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_the_data_of_an_event_comes_back_byte_for_byte() -> None:
    data = b"".join(b"event: x\ndata: " + body + b"\n\n" for body in ANSWERS if b"\n" not in body)
    response = recorded_response(200, EVENTS, data, MASKS.of({}), cut=False)
    assert b"".join(event_bytes(event) for event in response.events or ()) == data


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("secret", ["tok-654321-abc", "4111111111111111"])
@given(st.data())
def test_a_secret_spoken_over_several_events_is_in_none_of_them(
    secret: str, separators: tuple[str, str], data: st.DataObject
) -> None:
    whole = f"it is {secret}, yes"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    stream = b"".join(
        b"data: " + json.dumps(_delta(piece), separators=separators).encode() + b"\n\n" for piece in pieces
    )
    events = recorded_response(200, EVENTS, stream, MASKS.of({}), cut=False).events or ()
    read = [json.loads(bytes_of(event["data"])) for event in events]
    said = "".join(each["choices"][0]["delta"]["content"] for each in read)
    assert secret not in said
    assert said.startswith("it is [secret:")
    assert said.endswith(", yes")
    assert len(events) == len(pieces)


def _delta(text: str) -> Any:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


def test_arguments_of_parallel_calls_are_not_mixed_up_by_masking() -> None:
    def delta(index: int, text: str) -> bytes:
        calls = [{"index": index, "function": {"arguments": text}}]
        return b"data: " + dumps({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}).encode() + b"\n\n"

    stream = delta(0, '{"a": "tok-654') + delta(1, '{"b": "x') + delta(0, '321-abc"}') + delta(1, 'yz"}')
    events = recorded_response(200, EVENTS, stream, MASKS.of({}), cut=False).events or ()
    said: dict[int, str] = {}
    for event in events:
        (call,) = event["data"]["choices"][0]["delta"]["tool_calls"]
        said[call["index"]] = said.get(call["index"], "") + call["function"]["arguments"]
    assert said == {0: '{"a": "[secret:VAULT_TOKEN]"}', 1: '{"b": "xyz"}'}


# --- the proxy itself -------------------------------------------------------------------------------------------------


class Shelf:
    """Cassettes in memory."""

    agent = "a"

    def __init__(self) -> None:
        self.held: dict[str, Cassette] = {}

    def read(self, case_id: str) -> Cassette:
        return self.held.get(case_id, Cassette(build="b", agent="a", case=case_id))

    def write(self, case_id: str, trial: int, part: Part, position: int, take: Take) -> None:
        self.held[case_id] = self.read(case_id).with_take(trial, part, position, take)

    def why_none(self, case_id: str, trial: int, part: Part, take: int) -> str:
        return f"nothing of {case_id}#{trial}"


@pytest.fixture
def upstream() -> Iterator[Any]:
    """A server that answers by a function of the exchange."""
    opened: list[LoopbackServer] = []

    def serve(respond: Any) -> str:
        server = LoopbackServer(respond)
        server.start()
        opened.append(server)
        return f"{server.url}/v1"

    yield serve
    for server in opened:
        server.close()


@pytest.fixture
def proxied() -> Iterator[Any]:
    opened: list[ModelProxy] = []

    def make(mode: Mode, url: str, shelf: Shelf) -> ModelProxy:
        proxy = ModelProxy(mode, {"u": url}, ())
        proxy.open(shelf, MASKS)
        opened.append(proxy)
        return proxy

    yield make
    for proxy in opened:
        proxy.close()


def call(
    url: str, body: bytes | None = b"{}", method: str | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, body, headers, method=method), timeout=10) as answer:
            return answer.status, dict(answer.headers.items()), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers.items()), error.read()


def test_requests_go_on_with_their_own_headers_and_answers_come_back(upstream: Any, proxied: Any) -> None:
    seen: dict[str, Any] = {}

    def respond(exchange: Exchange) -> None:
        seen.update(path=exchange.path, auth=exchange.headers["Authorization"], body=exchange.read_body())
        exchange.answer(207, {"Content-Type": "application/json", "Set-Cookie": "a=b", "Retry-After": "3"}, b'{"x": 1}')

    shelf = Shelf()
    proxy = proxied("record", upstream(respond), shelf)
    proxy.address.begin("c", 1, 1)
    url = proxy.address.of_trial("c", 1, 1)["u"]
    status, headers, body = call(f"{url}/chat/?x=1", b'{"m": 2}', Authorization="Bearer sk-abcdef-1")
    assert (status, body) == (207, b'{"x": 1}')
    assert headers["retry-after"] == "3"
    assert "set-cookie" not in {name.lower() for name in headers}
    assert seen == {"path": "/v1/chat/?x=1", "auth": "Bearer sk-abcdef-1", "body": b'{"m": 2}'}
    assert proxy.address.finish("c", 1, 1).recorded == 1
    assert proxy.address.finish("c", 1, 1).recorded == 0
    ((exchange,),) = shelf.read("c").of(1).agent
    assert exchange.request.path == "/chat/?x=1"
    assert "sk-abcdef-1" not in shelf.read("c").model_dump_json()


def test_a_get_without_a_body_is_recorded_and_said_again(upstream: Any, proxied: Any) -> None:
    shelf = Shelf()
    url = upstream(lambda exchange: exchange.answer(200, {"Content-Type": "text/plain"}, b"models"))
    for mode in ("record", "replay"):
        proxy = proxied(mode, url, shelf)
        proxy.address.begin("c", 1, 1)
        assert call(proxy.address.of_trial("c", 1, 1)["u"] + "/models", None)[::2] == (200, b"models")
        assert proxy.address.finish("c", 1, 1).replayed == (mode == "replay")


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE", "OPTIONS", "PROPFIND"])
@pytest.mark.parametrize("body", [None, b'{"a": 1}'])
def test_any_method_goes_on_as_it_is_and_is_said_again(
    upstream: Any, proxied: Any, method: str, body: bytes | None
) -> None:
    heard: list[tuple[str, bytes]] = []

    def respond(exchange: Exchange) -> None:
        heard.append((exchange.command, exchange.read_body()))
        exchange.answer(202, {"Content-Type": "text/plain"}, b"done")

    url, shelf = upstream(respond), Shelf()
    for mode in ("record", "replay"):
        proxy = proxied(mode, url, shelf)
        proxy.address.begin("c", 1, 1)
        assert call(proxy.address.of_trial("c", 1, 1)["u"] + "/files/1", body, method)[::2] == (202, b"done")
        assert proxy.address.finish("c", 1, 1).replayed == (mode == "replay")
    assert heard == [(method, body or b"")]


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_head_gets_no_content_and_leaves_its_connection_usable(upstream: Any, proxied: Any, kind: str) -> None:
    heard: list[str] = []

    def respond(exchange: Exchange) -> None:
        heard.append(exchange.command)
        exchange.answer(200 if exchange.path.endswith("/models") else 404, {"Content-Type": kind}, b"data: {}\n\n")

    url, shelf = upstream(respond), Shelf()
    for mode in ("record", "replay"):
        proxy = proxied(mode, url, shelf)
        proxy.address.begin("c", 1, 1)
        place = urlsplit(proxy.address.of_trial("c", 1, 1)["u"])
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=10)
        for method, below, status, content in (
            ("HEAD", "/models", 200, b""),
            ("HEAD", "/nothing", 404, b""),
            ("GET", "/models", 200, b"data: {}\n\n"),
        ):
            connection.request(method, place.path + below)
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Content-Type"], answer.read()) == (status, kind, content)
        connection.close()
        assert proxy.address.finish("c", 1, 1).problem == ""
    assert heard == ["HEAD", "HEAD", "GET"]


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("length", ["0", "77", None])
def test_the_length_that_head_asks_for_is_said_again(
    upstream: Any, proxied: Any, kind: str, length: str | None
) -> None:
    def respond(exchange: Exchange) -> None:
        exchange.answer(200, {"Content-Type": kind}, b"", length=None if length is None else int(length))

    url, shelf = upstream(respond), Shelf()
    for mode in ("record", "replay"):
        proxy = proxied(mode, url, shelf)
        proxy.address.begin("c", 1, 1)
        _, headers, _ = call(proxy.address.of_trial("c", 1, 1)["u"] + "/file", None, "HEAD")
        assert headers.get("Content-Length") == length
        assert "Transfer-Encoding" not in headers
        proxy.address.finish("c", 1, 1)


def test_an_answer_without_content_has_no_length(upstream: Any, proxied: Any) -> None:
    shelf = Shelf()
    url = upstream(lambda exchange: exchange.answer(204, {}, b""))
    for mode in ("record", "replay"):
        proxy = proxied(mode, url, shelf)
        proxy.address.begin("c", 1, 1)
        status, headers, body = call(proxy.address.of_trial("c", 1, 1)["u"] + "/files/1", None, "DELETE")
        assert (status, body) == (204, b"")
        assert "content-length" not in {name.lower() for name in headers}
        proxy.address.finish("c", 1, 1)


def test_nobody_without_the_runs_address_gets_anything(upstream: Any, proxied: Any) -> None:
    proxy = proxied("record", upstream(lambda exchange: exchange.answer(200, {}, b"live")), Shelf())
    proxy.address.begin("c", 1, 1)
    host = proxy.address.url.rpartition("/")[0]
    for path in ("", "/", "/any/u/v1/chat", "/wrong/trial/c/1/1/agent/u/v1/chat"):
        status, _, body = call(host + path)
        assert (status, b"no address of a run" in body) == (400, True), path
    for path in ("/trial", "/trial/c/x/1/agent/u/v1", "/nothing", "/any", "/any/v/v1/chat", "/trial/c/1/1/agent"):
        assert call(proxy.address.url + path)[0] == 400
    assert call(proxy.address.of_trial("other", 1, 1)["u"] + "/chat")[0] == 400


def test_calls_after_the_trial_are_refused(upstream: Any, proxied: Any) -> None:
    proxy = proxied("record", upstream(lambda exchange: exchange.answer(200, {}, b"live")), Shelf())
    proxy.address.begin("c", 1, 1)
    url = proxy.address.of_trial("c", 1, 1)["u"]
    proxy.address.finish("c", 1, 1)
    status, headers, body = call(f"{url}/chat")
    assert (status, headers["x-should-retry"]) == (400, "false")
    assert b"trial c#1 is over" in body
    assert b"no trial is running" in call(proxy.address.shared["u"] + "/chat")[2]


def test_an_attempt_that_is_made_again_leaves_no_recording(upstream: Any, proxied: Any) -> None:
    shelf = Shelf()
    answers = iter([b"first", b"second"])
    proxy = proxied("record", upstream(lambda exchange: exchange.answer(200, {}, next(answers))), shelf)
    for attempt, keep in ((1, False), (2, True)):
        proxy.address.begin("c", 1, attempt)
        call(proxy.address.of_trial("c", 1, attempt)["u"] + "/chat")
        proxy.address.finish("c", 1, attempt, keep=keep)
    (take,) = shelf.read("c").of(1).agent
    assert take[0].response is not None
    assert take[0].response.body == {"$text": "second"}


def test_a_replaying_proxy_never_opens_a_connection_upstream(upstream: Any, proxied: Any) -> None:
    reached = threading.Event()
    proxy = proxied("replay", upstream(lambda exchange: reached.set()), Shelf())
    proxy.address.begin("c", 1, 1)
    assert call(proxy.address.of_trial("c", 1, 1)["u"] + "/chat")[0] == 400
    assert proxy.address.finish("c", 1, 1).problem == "nothing of c#1"
    assert not reached.is_set()


def test_a_placeholder_key_that_stands_in_the_answer_is_said_again_as_it_was(upstream: Any, proxied: Any) -> None:
    shelf, said = Shelf(), b'{"say":"I run on ollama."}'
    events = b'data: {"delta": "I run on oll"}\n\ndata: {"delta": "ama."}\n\n'

    def respond(exchange: Exchange) -> None:
        stream = exchange.read_body() == b'{"stream": true}'
        exchange.answer(200, {"Content-Type": EVENTS["content-type"] if stream else "application/json"},
                        events if stream else said)  # fmt: skip

    heard: dict[str, list[Any]] = {}
    for mode in ("record", "replay"):
        proxy = proxied(mode, upstream(respond), shelf)
        proxy.address.begin("c", 1, 1)
        url = proxy.address.of_trial("c", 1, 1)["u"] + "/chat"
        whole = call(url, b"{}", Authorization="Bearer ollama")
        pieces = call(url, b'{"stream": true}', Authorization="Bearer ollama")[2].split(b"\n\n")[:-1]
        heard[mode] = [whole[2], "".join(json.loads(piece[6:])["delta"] for piece in pieces)]
        proxy.address.finish("c", 1, 1)
    assert heard["record"] == heard["replay"] == [said, "I run on ollama."]
    assert "ollama" not in dumps(shelf.held["c"].model_dump(mode="json"))


def test_true_is_not_one_in_a_request(upstream: Any, proxied: Any) -> None:
    shelf = Shelf()
    for mode, body in (("record", b'{"n": 1}'), ("replay", b'{"n": true}')):
        proxy = proxied(mode, upstream(lambda exchange: exchange.answer(200, {}, b"{}")), shelf)
        proxy.address.begin("c", 1, 1)
        call(proxy.address.of_trial("c", 1, 1)["u"] + "/chat", body)
        problem = proxy.address.finish("c", 1, 1).problem
    assert "body.n: recorded 1, now true" in problem


def test_compressed_answers_that_nobody_asked_for_are_refused(upstream: Any, proxied: Any) -> None:
    headers = {"Content-Encoding": "br", "Content-Type": "application/json"}
    proxy = proxied("record", upstream(lambda exchange: exchange.answer(200, headers, b"\x00\x01")), Shelf())
    proxy.address.begin("c", 1, 1)
    status, _, body = call(proxy.address.of_trial("c", 1, 1)["u"] + "/chat")
    assert (status, b"answers in br" in body) == (502, True)


def test_redirects_are_the_clients_business(upstream: Any, proxied: Any) -> None:
    proxy = proxied("record", upstream(lambda exchange: exchange.answer(307, {"Location": "http://x"}, b"")), Shelf())
    proxy.address.begin("c", 1, 1)
    assert call(proxy.address.of_trial("c", 1, 1)["u"] + "/chat")[0] == 307
