from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.canaries import secrets_in

CARD = {"card_number": "4111 1111 1111 1111"}


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


@pytest.mark.parametrize("value", ["4111 1111", "ends in 1111", None, {"ok": True}, "[secret:other]", 3.5])
def test_what_is_no_secret_is_not_found(value: Any) -> None:
    assert secrets_in(value, CARD) == []


def test_short_secrets_are_whole_words_and_empty_ones_nowhere() -> None:
    secrets = {"pin": "1234", "none": ""}
    assert secrets_in("pin 1234!", secrets) == ["pin"]
    assert secrets_in("order 91234", secrets) == []


@given(st.text(min_size=6).filter(str.strip), st.text(), st.text())
def test_a_secret_within_any_text_is_found(secret: str, before: str, after: str) -> None:
    assert secrets_in([f"{before} {secret} {after}"], {"s": secret}) == ["s"]
