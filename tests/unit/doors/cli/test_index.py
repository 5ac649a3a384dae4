from __future__ import annotations

import json
from typing import Any

import pytest

from wellhead.errors import IngestStopped
from wellhead.records import Refusal, SyncReport


@pytest.fixture
def docs(run: Any, tmp_path: Any) -> Any:
    (tmp_path / "docs" / "sub").mkdir(parents=True)
    return tmp_path / "docs"


def test_every_setting_reaches_the_sync(run: Any, fake: Any, docs: Any) -> None:
    words = "index docs --into other --include *.md --exclude a --exclude b --no-prune --prefix p/ --scope tenant=acme"
    ended = run(*words.split(), "--origin", "old", "--embedder", "static", "--chunker", "fixed", "--date-key", "made")
    assert ended.exit_code == 0
    args, opened = fake.called("open")
    assert args == ("other",)
    assert opened == {
        "scope_key": "tenant",
        "embedder": "static",
        "chunker": "fixed",
        "date_keys": ["made"],
        "read_only": False,
    }
    path, synced = fake.called("sync")
    assert path == ("docs",)
    assert synced == {
        "include": ("*.md",),
        "exclude": ("a", "b"),
        "prune": False,
        "prune_all": False,
        "origin": "old",
        "prefix": "p/",
        "dry_run": False,
        "progress": None,
    }
    assert fake.calls[-1][0] == "close"


def test_the_report_is_data_and_the_next_command_is_talk(run: Any, fake: Any, docs: Any) -> None:
    ended = run("index", "docs", "--into", "kb")
    assert ended.stdout == f"{fake.report}\n"
    assert ended.stderr == "next: wellhead search 'your question' --index kb\n"


def test_a_partial_ingest_exits_with_8(run: Any, fake: Any, docs: Any) -> None:
    fake.report = SyncReport(read=1, added=1, refused=(Refusal(id="x.pdf", reason="it is encrypted"),))
    ended = run("index", "docs")
    assert ended.exit_code == 8
    assert "refused x.pdf: it is encrypted" in ended.stdout
    assert "1 document could not be taken in, so the exit code is 8" in ended.stderr
    told = json.loads(run("index", "docs", "--json").stdout)
    assert (told["schema"], told["complete"]) == (1, False)
    assert told["reports"][0]["refused"] == [{"id": "x.pdf", "reason": "it is encrypted"}]


def test_skipped_files_are_no_failure(run: Any, fake: Any, docs: Any) -> None:
    fake.report = SyncReport(read=1, added=1, skipped={"binary": 3})
    assert run("index", "docs").exit_code == 0


def test_a_dry_run_makes_no_index_and_suggests_no_search(run: Any, fake: Any, docs: Any, tmp_path: Any) -> None:
    fake.report = SyncReport(read=1, added=1, dry_run=True)
    ended = run("index", "docs", "--into", "fresh", "--dry-run")
    assert ended.exit_code == 0
    assert fake.called("open")[0] == (":memory:",)
    assert not (tmp_path / "fresh").exists()
    assert "nothing was written" in ended.stderr
    assert "wellhead search" not in ended.stderr


def test_nothing_read_is_said(run: Any, fake: Any, docs: Any) -> None:
    fake.report = SyncReport()
    assert "no document was read under 'docs'" in run("index", "docs").stderr


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        (("missing",), "'missing' does not exist"),
        (("docs", "docs/"), "'docs/' is given twice"),
        (("docs", "docs/sub"), "lie in one another"),
        (("docs/sub", "."), "lie in one another"),
        (("kb",), "lies inside the index"),
        (("kb/deep",), "lies inside the index"),
        ((), "Missing argument"),
    ],
)
def test_paths_that_make_no_sense_are_refused_before_anything_is_opened(
    run: Any, fake: Any, docs: Any, tmp_path: Any, paths: tuple[str, ...], says: str
) -> None:
    (tmp_path / "kb" / "deep").mkdir()
    ended = run("index", *paths)
    assert ended.exit_code == 2
    assert says in ended.stderr
    assert not fake.calls


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("",), "PATH is blank"),
        (("docs", " "), "PATH is blank"),
        (("docs", "--into", ""), "--into is blank"),
        (("x" * 5000,), "PATH cannot be looked at"),
        (("a\0b",), "PATH cannot be looked at"),
        (("docs", "more", "--origin", "old"), "--origin names one folder"),
        (("docs", "--no-prune", "--prune-all"), "contradict one another"),
    ],
)
def test_what_would_index_or_remove_another_thing_than_meant_is_refused(
    run: Any, fake: Any, docs: Any, tmp_path: Any, words: tuple[str, ...], says: str
) -> None:
    (tmp_path / "more").mkdir()
    ended = run("index", *words)
    assert ended.exit_code == 2
    assert says in ended.stderr
    assert not fake.calls


def test_prune_all_reaches_the_sync(run: Any, fake: Any, docs: Any) -> None:
    assert run("index", "docs", "--prune-all").exit_code == 0
    synced = fake.called("sync")[1]
    assert (synced["prune"], synced["prune_all"], synced["origin"]) == (True, True, None)


def test_a_link_to_the_same_folder_is_the_same_folder(run: Any, fake: Any, docs: Any, tmp_path: Any) -> None:
    (tmp_path / "alias").symlink_to(docs)
    assert "is given twice" in run("index", "docs", "alias").stderr


def test_several_folders_give_several_reports(run: Any, fake: Any, docs: Any, tmp_path: Any) -> None:
    (tmp_path / "more").mkdir()
    ended = run("index", "docs", "more")
    assert [line for line in ended.stdout.splitlines() if line.endswith(":")] == ["docs:", "more:"]
    assert [call[1] for call in fake.calls if call[0] == "sync"] == [("docs",), ("more",)]
    told = json.loads(run("index", "docs", "more", "--json").stdout)
    assert [report["path"] for report in told["reports"]] == ["docs", "more"]


def test_an_ingest_that_stopped_tells_what_was_done_and_why_it_stopped(
    run: Any, fake: Any, docs: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more").mkdir()
    done = SyncReport(read=1, added=1, stopped="the embedder does not answer")
    stopped = IngestStopped("the embedder failed", fix="run it again", report=done)
    monkeypatch.setattr(fake, "sync", lambda *_args, **_options: _raise(stopped))
    ended = run("index", "docs", "more")
    assert ended.exit_code == 8
    assert ended.stdout.count("stopped early: the embedder does not answer") == 1
    assert "error: the embedder failed\n  mend: run it again" in ended.stderr
    told = json.loads(run("index", "docs", "--json").stdout)
    assert (told["complete"], told["reports"][0]["added"]) == (False, 1)


def _raise(error: Exception) -> SyncReport:
    raise error


def test_a_vector_that_could_not_be_made_is_a_partial_ingest(run: Any, fake: Any, docs: Any) -> None:
    fake.report = SyncReport(read=1, added=1, failed=(Refusal(id="a.md#2", reason="a vector of zeros"),))
    ended = run("index", "docs")
    assert ended.exit_code == 8
    assert "not indexed a.md#2: a vector of zeros" in ended.stdout
