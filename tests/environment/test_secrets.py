"""After masking no secret is left in any form, and nothing else has changed."""

from __future__ import annotations

import ast
import base64
import dataclasses
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.encoding import dumps, line_of, to_json
from seatrial.environment.secrets import Redactor
from seatrial.errors import UsageError

FAKE_KEY = "sk-test-0000000000000000"

secret_values = st.text(st.sampled_from('abcAB12-+/"\\é \n'), min_size=6, max_size=14).filter(
    lambda text: len(text.strip()) >= 6
)
secrets = st.dictionaries(st.from_regex(r"[A-Z]{1,8}_KEY", fullmatch=True), secret_values, min_size=1, max_size=4)
filling = st.text(st.sampled_from('abcAB12-+/"\\é \n{}:,'), max_size=20)


@st.composite
def leaks(draw: st.DrawFn) -> tuple[dict[str, str], str]:
    """Secrets, and a text in which some stand, beside and inside each other."""
    known = draw(secrets)
    forms = st.sampled_from(sorted(known.values())).flatmap(
        lambda value: (
            st.sampled_from([value, quote(value), quote_plus(value), json.dumps(value), repr(value)])
            | st.integers(0, len(value)).map(lambda at: value[:at])
        )
    )
    return known, "".join(draw(st.lists(forms | filling, max_size=6)))


@given(leaks())
def test_after_masking_no_secret_remains(leak: tuple[dict[str, str], str]) -> None:
    known, text = leak
    masked = Redactor(known).text(text)
    for value in known.values():
        for form in (value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1], repr(value)[1:-1]):
            assert form not in masked


@given(leaks())
def test_masking_again_changes_nothing(leak: tuple[dict[str, str], str]) -> None:
    known, text = leak
    redactor = Redactor(known, [r"\d{2,}"])
    masked = redactor.text(text)
    assert redactor.text(masked) is masked


@given(filling, secrets)
def test_text_without_a_secret_is_the_same_object(text: str, known: dict[str, str]) -> None:
    redactor = Redactor({name: f"zz{value}" for name, value in known.items()})
    assert redactor.text(text) is text
    value = {"a": [text, 1, None, True], text: {"b": 1.5}}
    assert redactor.value(value) is value


@given(secret_values, filling)
def test_an_unmasked_text_is_the_text_again(value: str, around: str) -> None:
    redactor = Redactor({"THE_KEY": value})
    text = f"{around} zz{value}zz {around}"
    if redactor.text(around) is around:
        assert value in redactor.unmask(redactor.text(text))


def test_bl_104_a_key_that_the_agent_prints_or_raises_is_masked() -> None:
    redactor = Redactor({"FAKE_KEY": FAKE_KEY})
    record = {
        "output": f"calling with Authorization: Bearer {FAKE_KEY}",
        "error": {"message": f"401 for {FAKE_KEY}!"},
        "headers": {FAKE_KEY: ["x", FAKE_KEY]},
    }
    text = dumps(redactor.value(to_json(record)))
    assert FAKE_KEY not in text
    assert text.count("[secret:FAKE_KEY]") == 4


@pytest.mark.parametrize(
    "leaked",
    [
        "p@ss/wörd+1",
        quote("p@ss/wörd+1", safe=""),
        quote("p@ss/wörd+1"),
        quote_plus("p@ss/wörd+1").lower(),
        json.dumps("p@ss/wörd+1")[1:-1],
        base64.b64encode("user:p@ss/wörd+1".encode()).decode(),
        base64.urlsafe_b64encode("admin:p@ss/wörd+1:x".encode()).decode(),
    ],
)
def test_a_value_is_recognised_in_the_forms_it_travels_in(leaked: str) -> None:
    masked = Redactor({"DB_PASSWORD": "p@ss/wörd+1"}).text(f"before {leaked} after")
    assert "[secret:DB_PASSWORD]" in masked
    assert leaked not in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


def test_json_inside_a_text_is_masked() -> None:
    value = 'quo"te\\back\nline'
    inside = json.dumps({"password": value})
    assert Redactor({"A_KEY": value}).text(inside) == '{"password": "[secret:A_KEY]"}'


def test_digits_are_recognised_as_number_and_with_separators() -> None:
    redactor = Redactor({"CARD_TOKEN": "4111 1111 1111 1111"})
    assert (
        redactor.value([4111111111111111, 4111111111111111.0, "4111-1111-1111-1111", "4111111111111111"])
        == ["[secret:CARD_TOKEN]"] * 4
    )
    untouched = [41111111111111112, 5.5, True, 0]
    assert redactor.value(untouched) is untouched


def test_a_longer_value_goes_before_one_inside_it() -> None:
    redactor = Redactor({"SHORT_KEY": "abcdef", "LONG_KEY": "xxabcdefxx"})
    assert redactor.text("xxabcdefxx and abcdef") == "[secret:LONG_KEY] and [secret:SHORT_KEY]"


def test_overlapping_values_leave_no_rest() -> None:
    redactor = Redactor({"A_KEY": "abcdef", "B_KEY": "defghi"})
    assert redactor.text("-abcdefghi-") == "-[secret:A_KEY][secret:B_KEY]-"
    assert Redactor({"A_KEY": "aaaaaa"}).text("aaaaaaaaa") == "[secret:A_KEY]"


def test_a_value_that_its_own_mark_holds_is_masked_once() -> None:
    redactor = Redactor({"MY_SECRET": "secret", "OTHER_KEY": "MY_SECRET"})
    masked = redactor.text("a secret MY_SECRET")
    assert masked == "a [secret:MY_SECRET] [secret:OTHER_KEY]"
    assert redactor.text(masked) is masked


def test_values_of_fewer_than_six_characters_are_left_alone() -> None:
    redactor = Redactor({"A_KEY": "true", "B_KEY": "12345", "C_KEY": "  ab  "})
    assert redactor.text("true 12345 ab") == "true 12345 ab"
    assert redactor.value(12345) == 12345


def test_a_value_read_with_its_line_end_is_found_without_it() -> None:
    assert Redactor({"A_KEY": "abcdef\n"}).text("key=abcdef;") == "key=[secret:A_KEY];"


def test_patterns_mask_texts_keys_and_whole_numbers() -> None:
    redactor = Redactor({}, [r"\bACC-\d{8}\b", r"\d{11}"])
    assert redactor.value({"ACC-12345678": ["to ACC-87654321.", 12345678901, 1234]}) == {
        "[secret:redact]": ["to [secret:redact].", "[secret:redact]", 1234]
    }


def test_patterns_leave_marks_alone() -> None:
    redactor = Redactor({"A_KEY": "abcdef"}, [r"\w+"])
    assert redactor.text("x abcdef") == "[secret:redact] [secret:A_KEY]"
    assert redactor.text("[secret:redact] [secret:A_KEY]") == "[secret:redact] [secret:A_KEY]"


def test_a_pattern_that_matches_nothing_at_all_inserts_nothing() -> None:
    text = "abc"
    assert Redactor({}, ["x*"]).text(text) == text


def test_keys_that_mask_to_the_same_text_are_all_kept() -> None:
    redactor = Redactor({}, [r"ACC-\d{8}"])
    assert redactor.value({"ACC-12345678": 1, "ACC-87654321": 2}) == {"[secret:redact]": 1, "[secret:redact]#2": 2}


def test_unmasking_puts_known_values_back_and_leaves_other_marks() -> None:
    redactor = Redactor({"A_KEY": "abcdef"}, ["ACC"])
    assert redactor.unmask({"[secret:A_KEY]": ["x[secret:A_KEY]", "[secret:redact]", "[secret:B]", 5]}) == {
        "abcdef": ["xabcdef", "[secret:redact]", "[secret:B]", 5]
    }
    assert redactor.names == ("A_KEY",)


def test_a_pattern_that_cannot_be_used_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="redact: '\\(' is not a regular expression"):
        Redactor({}, ["("])


@given(leaks(), st.booleans())
def test_the_quick_look_at_json_text_never_misses_what_masking_would_find(
    leak: tuple[dict[str, str], str], as_key: bool
) -> None:
    known, text = leak
    redactor = Redactor(known)
    data = {text: 1} if as_key else {"a": [text, 7]}
    if redactor.value(data) is not data:
        assert redactor.may_hold(line_of(data))


def test_the_quick_look_sees_numbers_and_leaves_everything_to_patterns() -> None:
    assert Redactor({"CARD": "4111111111111111"}).may_hold(line_of({"card": 4111111111111111}))
    assert not Redactor({"CARD": "4111111111111111"}).may_hold(line_of({"card": 5}))
    assert Redactor({}, [r"\d{8}"]).may_hold(b"{}")


ESCAPES: tuple[tuple[Callable[[str], str], Callable[[str], str]], ...] = (
    (json.dumps, json.loads),
    (lambda text: json.dumps(text, ensure_ascii=False), json.loads),
    (repr, ast.literal_eval),
    (ascii, ast.literal_eval),
    (lambda text: str(text.encode()), lambda shown: ast.literal_eval(shown).decode()),
)
"""Ways to write a text in another, and back."""
odd_text = st.text(st.sampled_from("ab7-\"'\\\\\n\t\x01\x7f\x85ß\u200b密😀") | st.characters(codec="utf-8"), max_size=5)
around = st.text(st.sampled_from("x: {\"'}"), max_size=5)


@given(odd_text, odd_text, around, around, st.lists(st.sampled_from(ESCAPES), max_size=4))
def test_a_value_is_masked_and_nothing_else_however_it_was_escaped(
    start: str, end: str, before: str, after: str, chain: list[tuple[Callable[[str], str], Callable[[str], str]]]
) -> None:
    redactor = Redactor({"A_KEY": f"{start}Q7z4kW{end}"})
    text = f"{before}{start}Q7z4kW{end}{after}"
    for escape, _ in chain:
        text = escape(text)
    assert redactor.may_hold(line_of({"reason": text}))
    masked = redactor.text(text)
    assert redactor.text(masked) is masked
    for _, undo in reversed(chain):
        masked = undo(masked)
    assert masked == f"{before}[secret:A_KEY]{after}"


@given(st.text(st.sampled_from("\"'\\\nß密😀"), min_size=6, max_size=8).filter(lambda text: len(text.strip()) >= 6))
def test_a_value_without_a_plain_character_is_masked_too(value: str) -> None:
    shown = repr({"value": json.dumps([json.dumps(value)])})
    assert "[secret:A_KEY]" in Redactor({"A_KEY": value}).text(shown)


def test_odd_values_hold_no_secret_however_they_are_shown() -> None:
    @dataclasses.dataclass
    class Login:
        token: object

    value = 'abc"def\\9fgh77'
    redactor = Redactor({"A_KEY": value})
    pairs = {1: value, "1": {2: value, "2": 0}}
    for odd in (Login(value), {value}, Login(Login(value)), pairs, Login({value}), value.encode()):
        record = {"output": to_json(odd), "reason": f"got {to_json(odd)!r}"}
        text = dumps(redactor.value(record))
        assert "9fgh77" not in text
        assert text.count("[secret:A_KEY]") >= 2
