"""Four reasons for an empty answer look like four reasons at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from wellhead.doors.cli.group import cli


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WELLHEAD_INDEX", raising=False)
    (tmp_path / "docs").mkdir()
    (tmp_path / "none").mkdir()
    for number in range(10):
        text = f"# Vault {number}\n\nHow the vault rotates signing keys, part {number}.\n"
        (tmp_path / "docs" / f"{number}.md").write_text(text, encoding="utf-8")
    assert run("index", "docs", "--into", "full").exit_code == 0
    assert run("index", "none", "--into", "empty").exit_code == 0


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, list(args))


CASES = {
    "no_match": ("search", "zqxv blorptang", "--threshold", "0.95", "--index", "full"),
    "filtered_out": ("search", "signing keys", "--filter", "area=nowhere", "--index", "full"),
    "empty_index": ("search", "signing keys", "--index", "empty"),
}


@pytest.mark.promise("D43")
@pytest.mark.parametrize("outcome", CASES)
def test_an_empty_answer_says_which_kind_it_is(outcome: str) -> None:
    """elizaOS/eliza#17138: "no match" was told as "no documents exist"."""
    ended = run(*CASES[outcome])
    assert ended.exit_code == 3
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"{outcome}: ")
    told = json.loads(run(*CASES[outcome], "--json").stdout)
    assert told["outcome"] == outcome
    assert told["why_empty"]


def test_the_kinds_differ_in_reason_and_in_advice() -> None:
    """elizaOS/eliza#17138: each kind needs another next step, so no two may read the same."""
    said = {outcome: run(*args).stderr for outcome, args in CASES.items()}
    reasons = {json.loads(run(*args, "--json").stdout)["why_empty"] for args in CASES.values()}
    assert len(reasons) == 3
    assert "wellhead index" in said["empty_index"]
    assert "wellhead index" not in said["no_match"] + said["filtered_out"]
    assert "--filter" in said["filtered_out"]
    assert "--filter" not in said["no_match"]


def test_an_index_that_cannot_be_used_is_an_error_and_no_empty_answer(tmp_path: Path) -> None:
    """elizaOS/eliza#17138: a failing backend is not "nothing found"."""
    for file in (tmp_path / "full").iterdir():
        file.write_bytes(b"not an index any more" * 400)
    ended = run("search", "signing keys", "--index", "full")
    assert ended.exit_code == 4
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ")


def test_a_question_with_an_answer_still_gets_it() -> None:
    """elizaOS/eliza#17138: the counterpart, so that the cases above cannot pass by refusing everything."""
    ended = run("search", "signing keys part 7", "--cut", "off", "--index", "full")
    assert ended.exit_code == 0
    assert ended.stdout.startswith("1. ")
    assert "7.md" in ended.stdout.splitlines()[0]
