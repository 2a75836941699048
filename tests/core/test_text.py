from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.text import contains_phrase, fold, numbers, problem_with_pattern, unfenced, unmask, whole_number


def read(text: str) -> list[Decimal]:
    return [number.value for number in numbers(text)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("(3.14)", ["3.14"]),
        ("The total is **1,250.50**.", ["1250.50"]),
        ("_5_ `6` ~~7~~", ["5", "6", "7"]),
        ("5kg, O-100, GPT-4, item_5, v1.2.3, 10.0.0.1, 5²", []),
        ("5-3 and 2026-03-01", ["5", "3", "2026", "03", "01"]),
        ("−5 –6 ‑7 -8", ["-5", "-6", "-7", "-8"]),
        ("x−5", ["5"]),
        ("-$5 and $-6", ["-5", "-6"]),
        ("1'000 1_000 1\u202f000", ["1000", "1000", "1000"]),
        ("1.000", ["1.000"]),
        ("[1, 2], [3,4]", ["1", "2", "3", "4"]),
        ("1e3 2.5E-2", ["1E+3", "0.025"]),
        (".5", ["0.5"]),
        ("No.5", ["5"]),
        ("a 5-year plan", ["5"]),
        ("٣ five", ["3"]),
        ("", []),
    ],
)
def test_numbers_are_read_as_a_person_reads_them(text: str, values: list[str]) -> None:
    assert read(text) == [Decimal(value) for value in values]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9))
def test_every_decimal_is_read_back_with_and_without_separators(value: Decimal) -> None:
    for written in (f"{value}", f"{value:,}"):
        for around in ("{}", "it is {}.", "**{}**", "({})", "€ {} !", "{}%"):
            assert read(around.format(written)) == [value]


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    assert all(number.text in text for number in numbers(text))


def test_a_percentage_says_that_it_is_one() -> None:
    (number,) = numbers("about 20 % of it")
    assert (number.value, number.text, number.percent) == (20, "20 %", True)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,000.50", "1000.50"), (" -5 ", "-5"), ("+5", "5"), ("$5", "5"), ("5 apples", None), ("", None)],
)
def test_a_whole_text_may_be_a_number(text: str, number: str | None) -> None:
    assert whole_number(text) == (None if number is None else Decimal(number))


@pytest.mark.parametrize(
    ("text", "phrase", "found"),
    [
        ("13920", "392", False),
        ("It is 392.", "392", True),
        ("392.5", "392", False),
        ("1,392", "392", False),
        ("-392", "392", False),
        ("items 391-392", "392", True),
        ("Refund\n COMPLETED!", "refund completed", True),
        ("Refund **completed**", "refund completed", True),
        ("the refund_completed flag", "refund completed", False),
        ("refund not completed", "refund completed", False),
        ("preapproved", "approved", False),
        ("It hasn’t been issued", "hasn't been issued", True),
        ("Ｒｅｆｕｎｄ", "refund", True),
        ("STRASSE", "straße", True),
        ("我在北京工作", "北京", True),
        ("naïve", "nai", False),
        ("cost: 5 %", "5 %", True),
        ("anything", "", False),
    ],
)
def test_phrases_are_whole_folded_words(text: str, phrase: str, found: bool) -> None:
    assert contains_phrase(text, phrase) is found


@given(st.text(min_size=1).filter(lambda text: fold(text) != ""))
def test_a_text_contains_itself_and_folding_is_stable(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert contains_phrase(f"so: {text} !", text)


def test_one_fence_is_taken_off() -> None:
    assert unfenced('```json\n{"a": 1}\n```') == '{"a": 1}'
    assert unfenced("Here:\n```\n{}\n```") == "Here:\n```\n{}\n```"


def test_masked_values_come_back() -> None:
    stored = {"card": "[secret:card]", "note": ["for [secret:card], [secret:other]"]}
    assert unmask(stored, {"card": "4111"}) == {"card": "4111", "note": ["for 4111, [secret:other]"]}


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(?:\w*)*x", r"([a-z]+)*"])
def test_repeats_of_repeats_are_refused(pattern: str) -> None:
    assert "may never end" in str(problem_with_pattern(pattern))


@pytest.mark.parametrize("pattern", [r"(a+b)+", r"\(a+\)+", r"(\d+)\s*EUR", ""])
def test_usual_patterns_are_fine(pattern: str) -> None:
    assert problem_with_pattern(pattern) is None
