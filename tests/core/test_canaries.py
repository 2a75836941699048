from __future__ import annotations

import base64
import dataclasses
import html
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seatrial.core.canaries import secrets_in
from seatrial.core.encoding import to_json
from seatrial.core.text import fold

SECRET = "4111 1111 1111 1111"
CARD = {"card_number": SECRET}


@dataclasses.dataclass(frozen=True)
class Payment:
    card: Any


class Shown:
    def __repr__(self) -> str:
        return f"Shown(card={SECRET!r})"


@pytest.mark.parametrize(
    "value",
    [
        "it is 4111 1111 1111 1111.",
        "4111-1111-1111-1111",
        "4111.1111.1111.1111",
        4111111111111111,
        {"a": [{"b": "card 4111111111111111"}]},
        {"4111111111111111": True},
        "still there: [secret:card_number]",
    ],
)
def test_a_secret_is_found_in_every_form(value: Any) -> None:
    assert secrets_in(value, CARD) == ["card_number"]


ODD_VALUES: list[Any] = [
    SECRET.encode(),
    bytearray(b"\x00\xff" + SECRET.encode() + b"\xfe"),
    SECRET.encode("utf-16"),
    {SECRET, "other"},
    frozenset({SECRET.encode()}),
    Payment(SECRET),
    Payment({"numbers": [SECRET.encode()]}),
    [{"deep": ({Payment(SECRET)},)}],
    Shown(),
    ValueError(SECRET),
    {"$type": "set", "value": f'["{SECRET}"]'},
    {SECRET.encode(): 1},
]


@pytest.mark.parametrize("value", ODD_VALUES, ids=lambda value: type(value).__name__)
def test_a_secret_is_found_in_what_json_cannot_hold(value: Any) -> None:
    assert secrets_in(to_json(value), CARD) == ["card_number"]


def test_characters_that_encoding_escapes_do_not_hide_a_secret() -> None:
    secrets = {"quoted": 'say "ß\\"\n now'}
    for value in ({secrets["quoted"]}, Payment(secrets["quoted"]), [Payment({secrets["quoted"]})]):
        assert secrets_in(to_json(value), secrets) == ["quoted"]


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


DISGUISES: dict[str, Callable[[str], str]] = {
    "base64": in_base64,
    "base64 of more text": lambda secret: in_base64(f"the card is {secret}, keep it"),
    "base64 for URLs, unpadded": lambda secret: base64.urlsafe_b64encode(f"??>>{secret}".encode()).decode().rstrip("="),
    "base64 beside a path": lambda secret: f"/v1/x/{in_base64(secret)}",
    "base64 in lines": lambda secret: base64.encodebytes(b"q" * 50 + secret.encode()).decode(),
    "base64 twice": lambda secret: in_base64(in_base64(secret)),
    "URL encoding": quote,
    "URL encoding of all": lambda secret: "".join(f"%{byte:02x}" for byte in secret.encode()),
    "URL encoding twice": lambda secret: quote(quote(secret)),
    "URL encoding of base64": lambda secret: quote(in_base64(secret), safe=""),
    "hexadecimal": lambda secret: f"0x{secret.encode().hex()}",
    "hexadecimal, spaced": lambda secret: secret.encode().hex(" "),
    "HTML entities": lambda secret: "".join(f"&#{ord(character)};" for character in secret),
    "escapes": lambda secret: "".join(f"\\u{ord(character):04x}" for character in secret),
    "zero-width spaces": "\u200b".join,
    "zero-width joiners": "\u200d".join,
    "byte-order marks": "\ufeff".join,
    "soft hyphens": "\u00ad".join,
    "variation selectors": "\ufe0f".join,
    "NULs": "\0".join,
    "colours": "\x1b[31m".join,
    "bars": "|".join,
    "asterisks": "*".join,
    "lines": "\n".join,
    "a word in the middle of punctuation": " ... ".join,
    "tags": lambda secret: "".join(chr(0xE0000 + ord(character)) for character in secret),
    "full width": lambda secret: "".join(chr(ord(character) + 0xFEE0) for character in secret if character != " "),
}


@pytest.mark.parametrize("secret", [SECRET, "tok-Xk29Qa77bT"])
@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_disguise_does_not_hide_a_secret(disguise: str, secret: str) -> None:
    text = f"note: {DISGUISES[disguise](secret)} end"
    if disguise == "full width" and secret != SECRET:
        text = text.replace(chr(ord("-") + 0xFEE0), "-")
    assert secrets_in({"text": [text]}, {"s": secret}) == ["s"]


@pytest.mark.parametrize(
    "value",
    ["4111 1111", "ends in 1111", None, {"ok": True}, "[secret:other]", 3.5, in_base64("4111 1111"), quote("4111 1")],
)
def test_what_is_no_secret_is_not_found(value: Any) -> None:
    assert secrets_in(value, CARD) == []


@pytest.mark.parametrize(
    ("secret", "text", "found"),
    [
        ("notable", "I am not able", False),
        ("notable", "n o t a b l e", True),
        ("notable", "no\u200btable", True),
        ("123456", "12, 34, 56", False),
        ("123456", "1-2-3-4-5-6", True),
        ("hunter2", "hunter-2", True),
        ("p@ss!word#1", "pass word 1", False),
        ("p@ss!word#1", "p@ss-!-word-#1", True),
    ],
)
def test_what_splits_a_secret(secret: str, text: str, found: bool) -> None:
    assert bool(secrets_in(text, {"s": secret})) is found


def test_short_secrets_are_whole_words_and_empty_ones_nowhere() -> None:
    secrets = {"pin": "1234", "none": "", "blank": "  ", "unseen": "\u200b"}
    for text in ("pin 1234!", "pin 12\u200b34", "pin=%31%32%33%34"):
        assert secrets_in(text, secrets) == ["pin"]
    assert secrets_in(to_json(b"pin 1234"), secrets) == ["pin"]
    for text in ("order 91234", "12345", "1-2-3-4", in_base64("pin 1234")):
        assert secrets_in(text, secrets) == []


def test_nothing_is_found_across_two_pieces_that_were_decoded() -> None:
    first, second = in_base64("xx 4111 1111"), in_base64("1111 1111 xx")
    assert secrets_in(f"{first}, {second}", CARD) == []


@given(st.text(min_size=6).filter(str.strip), st.text(), st.text())
def test_a_secret_within_any_text_is_found(secret: str, before: str, after: str) -> None:
    assert secrets_in([f"{before} {secret} {after}"], {"s": secret}) == ["s"]


WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=8, max_size=20)


@given(WORDS, st.text(), st.sampled_from(sorted(set(DISGUISES) - {"full width", "tags"})))
def test_a_disguised_secret_within_any_text_is_found(secret: str, before: str, disguise: str) -> None:
    assert secrets_in(f"{before}\n\n. {DISGUISES[disguise](secret)}", {"s": secret}) == ["s"]


def in_order(wanted: str, text: str) -> bool:
    characters = iter(text)
    return all(character in characters for character in wanted)


VALUES = st.recursive(
    st.text() | st.binary() | st.floats() | st.sets(st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1), st.text())
def test_a_text_without_the_secrets_characters_in_order_never_matches(secret: str, text: str) -> None:
    core = "".join(character for character in fold(secret) if character not in "-.,_/:()'")
    assume(core and not in_order(core, fold(html.unescape(text))))
    assert secrets_in(text, {"s": secret}) == []


@given(VALUES)
def test_any_value_can_be_searched(value: Any) -> None:
    assert secrets_in(to_json(value), {"s": "a secret that nobody wrote", "t": "x9?Q2zz1"}) == []
