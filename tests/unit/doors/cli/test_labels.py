"""wellhead labels: check, export and import from a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from wellhead import Document, Index
from wellhead.bench.exchange import FORMS
from wellhead.bench.labels import read_labels
from wellhead.doors.cli import labels as command

TEXT = "# Keys\n\nRotate a key once a year. The old one stays valid for an hour.\n"
Run = Callable[..., Result]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A collection of one document in a file, with two labels."""
    folder = tmp_path / "mine"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "keys.md").write_text(TEXT)
    put_labels(folder, span=[TEXT.index("once"), TEXT.index("once") + 11])
    return folder


def put_labels(folder: Path, **fields: Any) -> None:
    answers = [
        {"document_id": "keys.md", "quote": "once a year", "grade": 2} | fields,
        {"document_id": "keys.md", "quote": "an hour", "grade": 1},
    ]
    (folder / "labels.jsonl").write_text(json.dumps({"query_id": "q1", "query": "how often?", "answers": answers}))


def test_the_forms_of_the_options_are_those_of_the_library() -> None:
    assert command.FORMS == FORMS


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    ended = run("labels")
    assert ended.exit_code == 0
    listed = [line.split()[0] for line in ended.stdout.partition("Commands:")[2].splitlines() if line[:3].strip()]
    assert listed == ["check", "export", "import"]
    slip = run("labels", "chekc")
    assert slip.exit_code == 2
    assert "did you mean 'check'?" in slip.stderr


class TestCheck:
    def test_all_in_place(self, run: Run, mine: Path) -> None:
        ended = run("labels", "check", "mine")
        assert (ended.exit_code, ended.stdout, ended.stderr) == (
            0,
            "1 query, 2 labels: 2 in place, 0 moved, 0 stale\n",
            "",
        )

    def test_moved_and_stale_are_named_and_stale_is_exit_code_2(self, run: Run, mine: Path) -> None:
        (mine / "docs" / "keys.md").write_text("# All keys\n\n" + TEXT[8:].replace("an hour", "a day"))
        ended = run("labels", "check", "mine")
        assert ended.exit_code == 2
        assert ended.stdout.splitlines() == [
            "1 query, 2 labels: 0 in place, 1 moved, 1 stale",
            "moved: q1, keys.md, 'once a year': from 21 to 25",
            "stale: q1, keys.md, 'an hour': the text does not hold the quote",
        ]
        assert ended.stderr.splitlines()[:2] == ["error: 1 label is stale", "  where: mine/labels.jsonl"]
        allowed = run("labels", "check", "mine", "--allow-stale", "q1")
        assert (allowed.exit_code, allowed.stdout, allowed.stderr) == (0, ended.stdout, "")

    def test_as_json(self, run: Run, mine: Path) -> None:
        (mine / "docs" / "keys.md").write_text(TEXT.replace("once a year. ", ""))
        ended = run("labels", "check", "mine", "--json")
        told = json.loads(ended.stdout)
        assert ended.exit_code == 2
        assert (told["schema"], told["queries"], told["labels"], told["in_place"], told["moved"]) == (1, 1, 2, 1, [])
        assert told["stale"] == [
            {
                "query_id": "q1",
                "document_id": "keys.md",
                "quote": "once a year",
                "span": None,
                "note": "the text does not hold the quote",
            }
        ]
        assert told["error"]["type"] == "UsageError"
        assert json.loads(run("labels", "check", "mine", "--json", "--allow-stale", "q1").stdout)["error"] is None

    def test_an_allowance_that_is_not_needed_is_told_and_a_slip_is_refused(self, run: Run, mine: Path) -> None:
        fresh = run("labels", "check", "mine", "--allow-stale", "q1:keys.md")
        assert fresh.exit_code == 0
        assert fresh.stderr == "nothing of q1:keys.md is stale: --allow-stale q1:keys.md can go\n"
        slip = run("labels", "check", "mine", "--allow-stale", "q7")
        assert slip.exit_code == 2
        assert "no label has the name 'q7'" in slip.stderr

    def test_doubts_about_a_label_in_place_are_noted(self, run: Run, mine: Path) -> None:
        put_labels(mine, quote="o")
        assert (
            "note: q1, keys.md, 'o': it stands there 6 times, the first was taken"
            in run("labels", "check", "mine").stdout.splitlines()
        )

    def test_an_index_is_asked_in_place_of_the_files(self, run: Run, mine: Path, tmp_path: Path) -> None:
        with Index.open(tmp_path / "held") as index:
            index.add([Document(id="keys.md", text=TEXT.replace("an hour", "a day"))])
        ended = run("labels", "check", "mine", "--index", "held")
        assert ended.exit_code == 2
        assert "1 in place, 0 moved, 1 stale" in ended.stdout
        assert run("labels", "check", "mine").exit_code == 0

    def test_what_is_not_there_or_not_in_order_is_told(self, run: Run, mine: Path) -> None:
        for folder in ("nowhere", "kb"):
            ended = run("labels", "check", folder)
            assert ended.exit_code == 2
            assert "cannot read labels.jsonl" in ended.stderr
        (mine / "labels.jsonl").write_text("{}")
        broken = run("labels", "check", "mine", "--json")
        assert json.loads(broken.stdout)["error"]["where"] == "mine/labels.jsonl, line 1"
        put_labels(mine)
        assert run("labels", "check", "mine", "--index", "nowhere").exit_code == 2


class TestExchange:
    @pytest.mark.parametrize("form", FORMS)
    def test_there_and_back(self, run: Run, mine: Path, form: str, tmp_path: Path) -> None:
        there = run("labels", "export", "mine", "--to", form, "--out", "out")
        assert (there.exit_code, there.stdout) == (0, "wrote out: 1 query, 2 labels\n")
        back = run("labels", "import", "out", "--from", form)
        assert back.exit_code == 0
        assert back.stdout == f"wrote labels.jsonl: 1 query, {'2 labels' if form == 'csv' else '1 label'}\n"
        written, read = read_labels(mine / "labels.jsonl"), read_labels(tmp_path / "labels.jsonl")
        assert read.qrels == written.qrels == {"q1": {"keys.md": 2}}
        assert (read == written) == (form == "csv")

    def test_what_a_form_cannot_hold_is_said(self, run: Run, mine: Path) -> None:
        ended = run("labels", "export", "mine", "--to", "trec", "--out", "out")
        assert "note: TREC holds no quote: left out of 2 labels" in ended.stderr.splitlines()
        told = json.loads(run("labels", "export", "mine", "--to", "trec", "--out", "out2", "--json").stdout)
        assert (told["schema"], told["written"], told["queries"], told["labels"]) == (1, "out2", 1, 2)
        assert "TREC holds no quote: left out of 2 labels" in told["notes"]

    def test_nothing_is_written_over_unless_it_is_said(self, run: Run, mine: Path, tmp_path: Path) -> None:
        (tmp_path / "labels.jsonl").write_text("mine")
        run("labels", "export", "mine", "--to", "csv", "--out", "out.csv")
        for args in (
            ("export", "mine", "--to", "csv", "--out", "labels.jsonl"),
            ("import", "out.csv", "--from", "csv"),
        ):
            ended = run("labels", *args)
            assert ended.exit_code == 2
            assert "add --overwrite" in ended.stderr
            assert (tmp_path / "labels.jsonl").read_text() == "mine"
        assert run("labels", "import", "out.csv", "--from", "csv", "--overwrite").exit_code == 0
        assert read_labels(tmp_path / "labels.jsonl") == read_labels(mine / "labels.jsonl")

    def test_passages_are_looked_up_in_an_index(self, run: Run, tmp_path: Path) -> None:
        with Index.open(tmp_path / "held") as index:
            index.add([Document(id="keys.md", text=TEXT)])
            (passage,) = index.passages("keys.md")
        (tmp_path / "some.json").write_text(json.dumps({"how often?": [passage.content_hash]}))
        doubted = run("labels", "import", "some.json", "--from", "json")
        assert "looks like a passage's id" in doubted.stderr
        done = run("labels", "import", "some.json", "--from", "json", "--index", "held", "--overwrite")
        assert done.exit_code == 0
        ((_query, label),) = read_labels(tmp_path / "labels.jsonl")
        assert (label.document_id, label.quote) == ("keys.md", passage.text)
        (tmp_path / "some.json").write_text(json.dumps({"how often?": ["0123456789ab"]}))
        assert run("labels", "import", "some.json", "--from", "json", "--index", "held", "--overwrite").exit_code == 2

    def test_a_form_is_needed_and_suggested(self, run: Run, mine: Path) -> None:
        assert run("labels", "import", "x").exit_code == 2
        assert "did you mean 'trec'?" in run("labels", "import", "x", "--from", "treck").stderr
