"""The runner of the documentation finds what is untrue, and passes over nothing in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from executable_docs import PageError, blocks_of, run_page


def page(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def test_blocks_carry_the_marks_right_above_them() -> None:
    text = page(
        "<!-- file: a.yaml -->", "```yaml", "a: 1", "```", "", "<!-- exit: 2 -->", "", "```console", "$ x", "```"
    )
    first, second = blocks_of(text)
    assert (first.action, first.marks, first.text) == ("file", {"file": "a.yaml"}, "a: 1\n")
    assert (second.action, second.marks, second.line) == ("run", {"exit": "2"}, 8)


def test_a_block_in_a_list_loses_its_indentation() -> None:
    (block,) = blocks_of(page("- item", "", "  ```python", "  if 1:", "      print(2)", "  ```"))
    assert block.text == "if 1:\n    print(2)\n"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("```yaml", "a: 1", "```"), "needs a mark"),
        (("```", "a", "```"), "a bare block needs a mark"),
        (("```python", "1"), "not closed"),
        (("<!-- fiel: a -->", "```yaml", "```"), "unknown mark 'fiel'"),
        (("<!-- file: a -->", "prose"), "belongs to no block"),
        (("<!-- file: a -->", "<!-- output -->", "```yaml", "```"), "both 'file' and 'output'"),
        (("```console", "no command", "```"), "begins with"),
        (("<!-- exit: 0, 1, 2 -->", "```console", "$ true", "```"), "3 exit codes for 1 commands"),
        (("<!-- file: cases/a.yaml -->", "```yaml", "a: 1", "```"), "no command, program or check comes after it"),
        (("<!-- check: cas -->", "```yaml", "a: 1", "```"), "there is no kind 'cas'"),
        (("<!-- project: nowhere -->", "```python", "1", "```"), "no folder nowhere"),
    ],
)
def test_what_nobody_would_run_is_an_error(lines: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=message):
        run_page(page(*lines), "page", tmp_path)


def test_a_page_writes_files_and_runs_commands_in_order(tmp_path: Path) -> None:
    run_page(
        page(
            *("<!-- file: sub/a.txt -->", "```text", "one", "two three", "four", "```"),
            *(
                "<!-- exit: 0, 3 -->",
                "```console",
                "$ cat sub/a.txt",
                "one",
                "...",
                "four",
                "$ echo hi \\",
                "there; exit 3",
                "```",
            ),
            *("<!-- output -->", "```text", "hi ...", "```"),
            *("```python", "from pathlib import Path", "print(Path('sub/a.txt').read_text())", "```"),
            *("<!-- output -->", "```text", "two ...ee", "```"),
        ),
        "page",
        tmp_path,
    )


@pytest.mark.parametrize("shown", [("two",), ("one", "three"), ("three", "one"), ("one", "two", "three", "four")])
def test_output_that_is_not_printed_is_found(shown: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(PageError, match="does not print"):
        run_page(page("```console", "$ printf 'one\\ntwo words\\nthree\\n'", *shown, "```"), "page", tmp_path)


@pytest.mark.parametrize(
    ("mark", "command"), [("", "exit 1"), ("<!-- exit: 1 -->", "true"), ("<!-- exit: 1 -->", "exit 2")]
)
def test_another_exit_code_is_found(mark: str, command: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match="exits"):
        run_page(page(mark, "```console", f"$ {command}", "```"), "page", tmp_path)


def test_a_program_that_raises_is_found(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="ZeroDivisionError"):
        run_page(page("```python", "1 / 0", "```"), "page", tmp_path)


@pytest.mark.parametrize(
    ("kind", "good", "bad", "message"),
    [
        ("case", "{id: a, query: hello, expected_answer: b}", "{id: a, query: hello, expectd: b}", "unknown key"),
        ("case", "{id: a, query: hello, expected_answer: b}", "{id: a, query: b, graders: ['none:none']}", "none"),
        ("expected", "answer: b", "answr: b", "unknown key"),
        ("fixture", "state: {a: 1}", "stat: {a: 1}", "unknown key"),
        ("project", "agent: a:b", "agnt: a:b", "unknown key"),
        ("permissions", "tools: {a: {}}", "tool: {a: {}}", "unknown key"),
    ],
)
def test_a_fragment_is_checked_by_the_loader(kind: str, good: str, bad: str, message: str, tmp_path: Path) -> None:
    run_page(page(f"<!-- check: {kind} -->", "```yaml", good, "```"), "page", tmp_path)
    with pytest.raises(PageError, match=message):
        run_page(page(f"<!-- check: {kind} -->", "```yaml", bad, "```"), "page", tmp_path)


def test_a_project_is_a_copy(tmp_path: Path) -> None:
    mark = "<!-- project: examples/data_question_function -->"
    run_page(
        page(mark, "```console", "$ cat seatrial.yaml; rm data_agent.py", "...", "agent: ...", "```"), "page", tmp_path
    )
    run_page(page(mark, "```console", "$ ls", "...", "data_agent.py", "```"), "page", tmp_path)
