"""repair, compact and backup from a terminal, and what stats and verify tell of the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wellhead.errors import WriterBusy
from wellhead.records import (
    BackupReport,
    CompactReport,
    Finding,
    IndexStats,
    Refusal,
    RepairReport,
    Storage,
    VerifyReport,
)

FOUND = Finding(kind="document", where="kb, table texts", why="the text of document 'a.md' is damaged", fix="do this")
STORAGE = Storage(
    segments=2,
    segment_rows=5000,
    newest_rows=7,
    dead_rows=3,
    tables_bytes=1_234_567,
    log_bytes=0,
    segments_bytes=99,
)


def with_report(fake: Any, name: str, report: object) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Let the index answer a call with a report; the arguments of each call."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def answer(*args: Any, **options: Any) -> object:
        calls.append((args, options))
        return report

    setattr(fake, name, answer)
    return calls


class TestRepair:
    def test_nothing_wrong(self, run: Any, fake: Any) -> None:
        calls = with_report(fake, "repair_at", RepairReport())
        ended = run("repair")
        assert (ended.exit_code, ended.stdout) == (0, "nothing is wrong, and nothing was done\n")
        ((path,), options) = calls[0]
        assert path == "kb"
        assert {name for name, value in options.items() if value is not None} == set()

    def test_what_was_found_and_what_was_done(self, run: Any, fake: Any) -> None:
        report = RepairReport(
            findings=(FOUND,), documents=9, passages=20, embedded=1, kept_as="wellhead.sqlite.damaged-1"
        )
        with_report(fake, "repair_at", report)
        lines = run("repair").stdout.splitlines()
        assert lines[:3] == [
            "document: kb, table texts",
            "  why: the text of document 'a.md' is damaged",
            "  mend: do this",
        ]
        assert lines[3:] == [
            "9 documents made anew from their stored text: 20 passages, 1 texts embedded",
            "the damaged file is kept as wellhead.sqlite.damaged-1",
        ]

    def test_a_loss_is_named_and_is_exit_code_8(self, run: Any, fake: Any) -> None:
        report = RepairReport(
            findings=(FOUND,),
            documents=9,
            lost=(Refusal(id="a.md", reason="its text is damaged"),),
            unnamed=2,
            kept_as="x",
        )
        with_report(fake, "repair_at", report)
        ended = run("repair", "--index", "kb")
        assert ended.exit_code == 8
        assert "lost a.md: its text is damaged\nlost 2 more documents, whose ids cannot be told\n" in ended.stdout
        assert "next: wellhead index FOLDER --into kb" in ended.stderr
        plain = json.loads(run("repair", "--json").stdout)
        assert (plain["schema"], plain["complete"], plain["unnamed"]) == (1, False, 2)
        assert plain["lost"] == [{"id": "a.md", "reason": "its text is damaged"}]

    def test_what_the_index_was_made_with_can_be_given(self, run: Any, fake: Any) -> None:
        calls = with_report(fake, "repair_at", RepairReport())
        given = ("--embedder", "static", "--chunker", "fixed", "--scope-key", "tenant", "--date-key", "when")
        run("repair", *given, "--language", "en", "--language", "de")
        options = calls[0][1]
        assert (options["embedder"], options["chunker"], options["scope_key"]) == ("static", "fixed", "tenant")
        assert (options["date_keys"], options["languages"]) == (["when"], ["en", "de"])

    def test_blank_stands_for_none_at_all(self, run: Any, fake: Any) -> None:
        calls = with_report(fake, "repair_at", RepairReport())
        run("repair", "--scope-key", "", "--date-key", "", "--language", "")
        options = calls[0][1]
        assert (options["scope_key"], options["date_keys"], options["languages"]) == ("", [], [])


class TestCompact:
    REPORT = CompactReport(
        rows=3, terms=40, vectors=0, files=1, before=12_345, after=999, left=("wellhead.sqlite.old",)
    )

    def test_what_it_took_away(self, run: Any, fake: Any) -> None:
        with_report(fake, "compact", self.REPORT)
        ended = run("compact")
        assert ended.exit_code == 0
        assert ended.stdout.splitlines() == [
            "removed: 3 dead rows, 40 terms, 0 vectors, 1 files",
            "12,345 bytes before, 999 after",
            "wellhead.sqlite.old is not ours to delete, and may hold deleted text",
        ]
        assert fake.called("open")[1]["read_only"] is False
        assert json.loads(run("compact", "--json").stdout)["after"] == 999

    def test_somebody_in_the_way_is_named(self, run: Any, fake: Any) -> None:
        def busy() -> None:
            raise WriterBusy("the log could not be emptied", where="kb", why="somebody reads", fix="run it again")

        fake.compact = busy
        ended = run("compact")
        assert (ended.exit_code, "mend: run it again" in ended.stderr) == (4, True)


class TestBackup:
    REPORT = BackupReport(path="copy", index_version=7, documents=1, passages=20, segments=2, bytes=4_096)

    def test_what_was_copied_and_how_to_check_it(self, run: Any, fake: Any) -> None:
        calls = with_report(fake, "backup", self.REPORT)
        ended = run("backup", "copy")
        assert ended.stdout == "copied version 7 into copy: 1 document, 20 passages, 2 segments, 4,096 bytes\n"
        assert "next: wellhead verify --index copy" in ended.stderr
        assert calls[0][0] == ("copy",)
        assert fake.called("open")[1]["read_only"] is True
        assert json.loads(run("backup", "copy", "--json").stdout)["documents"] == 1

    def test_it_needs_a_place(self, run: Any, fake: Any) -> None:
        assert run("backup").exit_code == 2


class TestStorage:
    @pytest.fixture
    def stats(self, fake: Any) -> IndexStats:
        import msgspec

        held: IndexStats = msgspec.structs.replace(fake.stats(), storage=STORAGE)
        fake.stats = lambda: held
        fake.storage = lambda: STORAGE
        return held

    def test_stats_tell_of_the_disk_too(self, run: Any, stats: IndexStats) -> None:
        lines = dict(line.split(": ", 1) for line in run("stats").stdout.splitlines() if ": " in line)
        told = {name: value.strip() for name, value in lines.items()}
        assert told["documents"] == "2"
        assert told["segments"] == "2 with 5000 passages"
        assert told["newest passages"] == "7, in no segment yet"
        assert (told["dead rows"], told["bytes of tables"], told["bytes of segments"]) == ("3", "1,234,567", "99")
        assert "unusable segments" not in told
        assert json.loads(run("stats", "--json").stdout)["storage"]["dead_rows"] == 3

    def test_the_disk_alone_where_an_index_has_scopes(self, run: Any, stats: IndexStats) -> None:
        told = run("stats", "--storage").stdout
        assert "segments" in told
        assert "documents" not in told
        plain = json.loads(run("stats", "--storage", "--json").stdout)
        assert (plain["schema"], plain["segments"], plain["bytes"]) == (1, 2, 1_234_666)

    def test_what_is_wrong_is_told(self, run: Any, fake: Any) -> None:
        fake.storage = lambda: Storage(unusable=("abc",), unlisted=("d.seg",), failure="no space left: full")
        told = run("stats", "--storage").stdout
        assert "abc; mend: wellhead repair" in told
        assert "d.seg; harmless" in told
        assert "no space left: full" in told


def test_verify_tells_harmless_things_beside_the_data(run: Any, fake: Any) -> None:
    note = Finding(kind="unlisted_file", where="segments/x.seg", why="no list names it", fix="harmless")
    fake.verified = VerifyReport(documents=2, passages=2, vectors=2, notes=(note,))
    ended = run("verify")
    assert ended.exit_code == 0
    assert ended.stdout == "checked 2 documents, 2 passages, 2 vectors: ok\n"
    assert "note: segments/x.seg" in ended.stderr
    assert json.loads(run("verify", "--json").stdout)["notes"][0]["kind"] == "unlisted_file"


def test_the_commands_work_on_a_real_index(run: Any, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "keys.md").write_text("# Keys\n\nTurn the key twice.\n")
    (tmp_path / "kb").rmdir()
    assert run("index", "docs").exit_code == 0
    assert run("backup", "copies/monday").exit_code == 0
    assert run("verify", "--index", "copies/monday").exit_code == 0
    assert run("compact").exit_code == 0
    assert run("repair").stdout == "nothing is wrong, and nothing was done\n"
    (path,) = (tmp_path / "kb" / "segments").iterdir()
    path.write_bytes(b"x")
    assert run("verify").exit_code == 4
    assert "1 segments made anew" in run("repair").stdout
    assert run("verify").exit_code == 0
