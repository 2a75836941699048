from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import Diagnostic, InputError
from seatrial.loading.files import decoded
from seatrial.loading.located import Map, Seq, plain
from seatrial.loading.yaml import read_yaml

# Text as YAML files hold it: no control characters, and none of the line breaks that YAML 1.1 alone knows.
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\x85\u2028\u2029\ufeff\ufffe\uffff"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


def read(text: str) -> Any:
    return plain(read_yaml(text, "f.yaml"))


def problems(text: str) -> list[Diagnostic]:
    with pytest.raises(InputError) as caught:
        read_yaml(text, "f.yaml")
    return list(caught.value.diagnostics)


@given(JSON)
def test_json_data_written_as_yaml_reads_back_equal(data: Any) -> None:
    class Core(yaml.SafeDumper):
        pass

    # 1.2 writes: numbers in forms that both versions of YAML read alike, texts always in quotes.
    Core.add_representer(str, lambda d, s: d.represent_scalar("tag:yaml.org,2002:str", s, style='"'))
    Core.add_representer(float, lambda d, f: d.represent_scalar("tag:yaml.org,2002:float", json.dumps(f)))
    Core.ignore_aliases = lambda *_: True  # type: ignore[method-assign]
    assert read(yaml.dump(data, Dumper=Core, allow_unicode=True, width=10**6)) == data


@given(JSON)
def test_json_text_is_yaml(data: Any) -> None:
    assert read(json.dumps(data, ensure_ascii=False)) == data


@given(st.binary(max_size=200))
def test_any_bytes_give_data_or_an_input_error(data: bytes) -> None:
    try:
        read_yaml(decoded(data, "f.yaml"), "f.yaml")
    except InputError as error:
        found = error.diagnostics
    else:
        return
    assert all(problem.path == "f.yaml" for problem in found)


@given(st.text("ab:-[]{},&*!|>'\"%@`#?\n \t<0.1e+~$\r\\", max_size=60))
def test_any_punctuation_gives_data_or_an_input_error(text: str) -> None:
    try:
        read_yaml(text, "f.yaml")
    except InputError as error:
        found = error.diagnostics
    else:
        return
    assert all(problem.message and problem.line for problem in found)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("y", "y"),
        ("2026-03-01", "2026-03-01"),
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z"),
        ("12:30", "12:30"),
        ("190:20:30", "190:20:30"),
        ("1_000", "1_000"),
        ("0b101", "0b101"),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("1E-2", 0.01),
        (".5", 0.5),
        ("5.", 5.0),
        ("+12", 12),
        ("-0", 0),
        ("0.5", 0.5),
        ("true", True),
        ("False", False),
        ("tRue", "tRue"),
        ("null", None),
        ("~", None),
        ("", None),
        ("1.2.3", "1.2.3"),
        ("1e", "1e"),
        ("=", "="),
        ('"007"', "007"),
        ("'1e3'", "1e3"),
        ("!!str 5", "5"),
        ("!!float 5", 5.0),
        ("! 5", "5"),
        ("|\n  07\n", "07\n"),
    ],
)
def test_scalars_read_as_in_yaml_1_2(written: str, value: Any) -> None:
    found = read(f"a: {written}")["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "rule", "line", "column", "hint"),
    [
        ("a: 007", "leading-zero", 1, 4, '"007"'),
        ("a: -01.5", "leading-zero", 1, 4, ""),
        ("a: [1, 00]", "leading-zero", 1, 8, ""),
        ("a: .inf", "not-finite", 1, 4, '".inf"'),
        ("a: -.INF", "not-finite", 1, 4, ""),
        ("a: .nan", "not-finite", 1, 4, ""),
        ("a: 1e999", "not-finite", 1, 4, ""),
        ("a: " + "9" * 5000, "number-too-long", 1, 4, ""),
        ("1: a", "key-not-text", 1, 1, "quotes"),
        ("null: a", "key-not-text", 1, 1, "quotes"),
        ("~: a", "key-not-text", 1, 1, "quotes"),
        ("? [a, b]\n: c", "key-not-text", 1, 3, ""),
        ("a: 1\nb: 2\na: 3", "duplicate-key", 3, 1, "keep one"),
        ('a: 1\n"a": 3', "duplicate-key", 2, 1, "keep one"),
        ("a: {b: {c: 1, c: 2}}", "duplicate-key", 1, 15, "keep one"),
        ("a: &x {k: 1}\nb:\n  <<: *x\n  <<: *x", "duplicate-key", 4, 3, "<<: [*a, *b]"),
        ("a:\n  <<: 3", "merge-key", 2, 7, ""),
        ("a:\n\tb: 1", "yaml-syntax", 2, 1, "spaces, not tabs"),
        ("a: |\n\tb", "yaml-syntax", 2, 1, "spaces, not tabs"),
        ("a: b: c", "yaml-syntax", 1, 5, "': '"),
        ("a: @b", "yaml-syntax", 1, 4, "begins with @"),
        ("a: {n: ${amount}}", "yaml-syntax", 1, 9, '"${amount}"'),
        ("a: [${x}]", "yaml-syntax", 1, 6, '"${x}"'),
        ('a: "open', "yaml-syntax", 1, None, ""),
        ("a: \x01", "yaml-syntax", 1, 4, "escape"),
        ('a: "\\ud83d\\ude00"', "yaml-syntax", 1, 7, ""),
        ("a: *x", "unknown-alias", 1, 4, "begins with *"),
        ("a: &x [*x]", "alias-cycle", 1, 8, ""),
        ("a: !secret x", "custom-tag", 1, 4, "begins with !"),
        ("a: !!python/object/apply:os.system [ls]", "custom-tag", 1, 4, ""),
        ("a: !!timestamp 2026-01-01", "custom-tag", 1, 4, ""),
        ("a: !!set {b}", "custom-tag", 1, 4, ""),
        ("a: !!int x", "wrong-tag", 1, 4, ""),
        ("%YAML 1.1\n---\na: 1", "yaml-version", 1, 1, "remove"),
        ("a: 1\n---\nb: 2", "several-documents", 2, 1, "one list"),
        ("a: 'x\u2028y'", "line-separator", 1, 6, "\\u2028"),
        ("[" * 101 + "]" * 101, "too-deep", 1, 101, ""),
        ("[" * 5000, "yaml-syntax", 1, None, "levels"),
    ],
)
def test_what_yaml_versions_or_people_disagree_on_is_an_error(
    text: str, rule: str, line: int, column: int | None, hint: str
) -> None:
    first = problems(text)[0]
    assert (first.rule, first.path, first.line) == (rule, "f.yaml", line)
    assert column in (None, first.column)
    assert hint in first.hint


def test_all_duplicate_keys_and_bad_numbers_of_a_file_are_reported_together() -> None:
    found = problems("a: 1\na: 2\nb: {c: 01, c: 2}\n")
    assert [problem.rule for problem in found] == ["duplicate-key", "leading-zero", "duplicate-key"]
    assert "lines 1 and 2" in found[0].message


@pytest.mark.parametrize(
    "text",
    [
        "x: &a {p: 1, q: 2}\ny:\n  <<: *a\n  q: 3",
        "x: &a {p: 1}\nw: &b {p: 9, q: 3}\ny:\n  <<: [*a, *b]",
        "x: &a {p: 1}\ny: {q: 3, <<: *a}",
    ],
)
def test_merge_keys_are_filled_in_and_what_is_written_wins(text: str) -> None:
    assert read(text)["y"] == {"p": 1, "q": 3}


def test_a_quoted_merge_key_is_a_key_like_any_other() -> None:
    assert read('"<<": 1') == {"<<": 1}


def test_aliases_share_and_anchors_may_be_set_again() -> None:
    assert read("a: &x 1\nb: *x\nc: &x two\nd: *x\n*x : key") == {"a": 1, "b": 1, "c": "two", "d": "two", "two": "key"}


def test_an_alias_bomb_is_refused_before_it_unfolds() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert [problem.rule for problem in problems("\n".join(lines))] == ["too-many-aliases"]


def test_a_chain_of_aliases_is_as_deep_as_what_it_stands_for() -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 200))]
    assert problems("\n".join(lines))[0].rule == "too-deep"


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "--- \n...\n"])
def test_an_empty_file_has_no_value(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize("text", ["---\na: 1\n", "a: 1\n...\n", "%YAML 1.2\n---\na: 1", "a:\t1", "a: 1\r\n", "a: 1\r"])
def test_one_document_may_have_its_marks_tabs_between_and_any_line_end(text: str) -> None:
    assert read(text) == {"a": 1}


def test_values_keep_their_places_and_plain_scalars_their_text() -> None:
    document = read_yaml('a: 0x1F\nb:\n  - "c"\n  - {d: é, e: 1e3}\n', "f.yaml")
    assert isinstance(document, Map)
    assert document.keys_at["b"][:3] == ("f.yaml", 2, 1)
    assert document.values_at["a"][:4] == ("f.yaml", 1, 4, "0x1F")
    assert isinstance(document["b"], Seq)
    assert document["b"].values_at[0][:4] == ("f.yaml", 3, 5, None)
    assert document["b"][1].values_at["e"][:4] == ("f.yaml", 4, 15, "1e3")


@pytest.mark.parametrize(
    ("data", "rule", "line"),
    [
        (b"a: 1\nb: \xff", "not-utf-8", 2),
        ("a: 1".encode("utf-16"), "not-utf-8", 1),
        ("a: 1".encode("utf-32"), "not-utf-8", 1),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:2b2c\nsize 10410\n", "lfs-pointer", 1),
        (b"\xef\xbb\xbfversion https://git-lfs.github.com/spec/v1\noid sha256:2b2c\nsize 1\n", "lfs-pointer", 1),
    ],
)
def test_bytes_that_are_no_utf_8_text_are_refused(data: bytes, rule: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        decoded(data, "f.yaml")
    (problem,) = caught.value.diagnostics
    assert (problem.rule, problem.line) == (rule, line)
    assert problem.hint
