from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.core.case import Case
from seatrial.errors import NothingSelected, UsageError
from seatrial.loading.selection import Selection, select

CASES = tuple(
    Case.model_validate(data)
    for data in (
        {"id": "refund_ok", "suite": "smoke", "tags": ["refund"], "path": "cases/smoke/a.yaml"},
        {"id": "refund_slow", "suite": "regression", "tags": ["refund", "slow"], "path": "cases/regression/x/b.yaml"},
        {"id": "m[a=1]", "base_id": "m", "suite": "regression", "risk": "high", "path": "cases/regression/c.yaml"},
        {"id": "m[a=2]", "base_id": "m", "suite": "regression", "risk": "high", "path": "cases/regression/c.yaml"},
    )
)


def ids(root: Path, **given) -> list[str]:
    return [case.id for case in select(CASES, Selection(**given), root)]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, ["refund_ok", "refund_slow", "m[a=1]", "m[a=2]"]),
        ({"select": ("smoke",)}, ["refund_ok"]),
        ({"select": ("m",)}, ["m[a=1]", "m[a=2]"]),
        ({"select": ("m[a=2]",)}, ["m[a=2]"]),
        ({"select": ("m", "refund_ok")}, ["refund_ok", "m[a=1]", "m[a=2]"]),
        ({"select": ("cases/regression",)}, ["refund_slow", "m[a=1]", "m[a=2]"]),
        ({"select": ("cases/regression/c.yaml",)}, ["m[a=1]", "m[a=2]"]),
        ({"select": ("regression/x/",)}, ["refund_slow"]),
        ({"suites": ("regression",), "tags": ("refund",)}, ["refund_slow"]),
        ({"suites": ("smoke", "regression"), "risks": ("high",)}, ["m[a=1]", "m[a=2]"]),
        ({"keyword": "REFUND"}, ["refund_ok", "refund_slow"]),
        ({"keyword": "refund and not slow"}, ["refund_ok"]),
        ({"keyword": "not (refund or a=1)"}, ["m[a=2]"]),
        ({"keyword": "smoke or a=2"}, ["refund_ok", "m[a=2]"]),
        ({"ids": frozenset({"m[a=2]", "refund_ok", "gone"})}, ["refund_ok", "m[a=2]"]),
        ({"select": ("smoke",), "ids": frozenset({"refund_ok"})}, ["refund_ok"]),
    ],
)
def test_a_selection_keeps_the_cases_it_names_in_their_order(tmp_path: Path, given, wanted: list[str]) -> None:
    assert ids(tmp_path, **given) == wanted


def test_a_path_is_also_relative_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cases" / "regression"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert ids(tmp_path, select=("c.yaml",)) == ["m[a=1]", "m[a=2]"]
    assert ids(tmp_path, select=(".",)) == ["refund_slow", "m[a=1]", "m[a=2]"]
    assert ids(tmp_path, select=(str(folder / "x"),)) == ["refund_slow"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"select": ("refund_okk",)}, "did you mean 'refund_ok'"),
        ({"select": ("smoke", "nowhere/x.yaml")}, "'nowhere/x.yaml' is no path, suite or case id"),
        ({"suites": ("smok",)}, "did you mean 'smoke'"),
        ({"tags": ("refnd",)}, "did you mean 'refund'"),
        ({"risks": ("low",)}, "no case has the risk 'low'"),
        ({"keyword": "zebra"}, "no case fits -k 'zebra'"),
        ({"suites": ("smoke",), "tags": ("slow",)}, "no case fits --suite smoke with --tag slow"),
        ({"ids": frozenset()}, "the 0 ids asked for"),
        ({"select": ("\x1b[31m\0",)}, r"\\x1b"),
    ],
)
def test_what_matches_nothing_is_said_with_the_nearest_name(tmp_path: Path, given, message: str) -> None:
    with pytest.raises(NothingSelected) as caught:
        ids(tmp_path, **given)
    assert message.replace(r"\\", "\\") in str(caught.value)


def test_no_cases_at_all_is_nothing_selected(tmp_path: Path) -> None:
    with pytest.raises(NothingSelected, match="there are no cases"):
        select((), Selection(), tmp_path)


@pytest.mark.parametrize("keyword", ["and", "refund and", "not", "(refund", "refund)", "refund slow", "()"])
def test_a_keyword_that_cannot_be_read_is_a_usage_error(tmp_path: Path, keyword: str) -> None:
    with pytest.raises(UsageError, match="-k"):
        ids(tmp_path, keyword=keyword)
