from __future__ import annotations

import pytest

from seatrial.errors import UsageError
from seatrial.loading.check import check


def test_the_printed_project_has_nothing_wrong(printed) -> None:
    assert check(printed.root) == ()


def test_every_file_of_a_project_is_checked_in_one_go(printed) -> None:
    printed.write(
        {
            "seatrial.yaml": "agnet: a:b\n",
            "cases/smoke/a.yaml": "{id: a, qery: x}",
            "cases/smoke/empty.yaml": "",
            "cases/smoke/b.yaml": "{id: b, query: x, environment: {fixture: refund_order_o100, state: none.json}}",
            "fixtures/unused/fixture.yaml": "satte: {}",
            "fixtures/broken.py": "def broken(:\n",
            "policies/tool_permissions.yaml": "unlistd: deny",
            "policies/release_policy.yaml": "a: 007",
            "policies/exceptions.yaml": "a: 1\na: 2\n",
        }
    )
    assert sorted((problem.path, problem.rule) for problem in check(printed.root)) == [
        ("cases/smoke/a.yaml", "unknown-key"),
        ("cases/smoke/b.yaml", "missing-file"),
        ("cases/smoke/empty.yaml", "no-cases"),
        ("fixtures/broken.py", "python-syntax"),
        ("fixtures/unused/fixture.yaml", "unknown-key"),
        ("policies/exceptions.yaml", "duplicate-key"),
        ("policies/exceptions.yaml", "unknown-key"),
        ("policies/release_policy.yaml", "leading-zero"),
        ("policies/release_policy.yaml", "no-gates"),
        ("policies/release_policy.yaml", "unknown-key"),
        ("policies/tool_permissions.yaml", "unknown-key"),
        ("seatrial.yaml", "unknown-key"),
    ]


def test_overrides_are_checked_with_their_fixture_and_files_without_cases_are_warned_about(printed) -> None:
    printed.write(
        {
            "cases/smoke/empty.yaml": "",
            "cases/smoke/b.yaml": "{id: b, query: x, environment: {fixture: refund_order_o100, state: none.json}}",
        }
    )
    found = check(printed.root)
    assert [(problem.path, problem.rule, problem.severity) for problem in found] == [
        ("cases/smoke/b.yaml", "missing-file", "error"),
        ("cases/smoke/empty.yaml", "no-cases", "warning"),
    ]


def test_nothing_of_the_project_is_imported(printed) -> None:
    printed.write({"my_module.py": "raise SystemExit", "fixtures/f.py": "raise SystemExit\ndef f(e): yield\n"})
    assert check(printed.root) == ()


def test_a_folder_that_is_no_project_is_a_usage_error(folder) -> None:
    with pytest.raises(UsageError):
        check(folder.root)
