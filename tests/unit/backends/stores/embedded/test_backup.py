"""A backup is an index of its own, as the other was at one moment; to restore it is to copy it."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from wellhead.backends.stores.embedded import backup as backup_module
from wellhead.backends.stores.embedded import connection as connection_module
from wellhead.backends.stores.embedded.keeper import Job, carry_out
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.backends.stores.embedded.schema import APPLICATION_ID, FORMAT
from wellhead.backends.stores.embedded.segment import FOLDER
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import CorruptStore, StorageFull, StoreError, UsageError
from wellhead.records import Document
from wellhead.testing.contracts import assert_same_view, put, refusal

DOCUMENTS = [Document(id=f"{n}.md", text=f"one line\nwords of {n}", metadata={"n": n}) for n in range(30)]
TERMS = ("one", "line", "words", "7")


@pytest.fixture
def store(tmp_path):
    """An open store with a segment, a deleted row in it, newer rows, and a log."""
    store = EmbeddedStore(tmp_path / "kb")
    store.set_settings({"embedder": "hash"})
    put(store, DOCUMENTS[:25])
    put(store, DOCUMENTS[:3], scope="acme")
    carry_out(store._database, Job((), 1, 56))
    store.delete("", ["3.md"])
    put(store, DOCUMENTS[25:])
    yield store
    store.close()


def check_equal(folder: Path, store: EmbeddedStore) -> None:
    copy = EmbeddedStore(folder)
    assert copy.verify() == store.verify()
    assert copy.verify()[3] == []
    assert (copy.version(), copy.settings()) == (store.version(), store.settings())
    for scope in ("", "acme"):
        assert_same_view(copy.view(scope), store.view(scope), TERMS)
    copy.close()


def test_a_backup_is_an_index_that_equals_the_other(store, tmp_path):
    report = store.backup(tmp_path / "deep" / "copy")
    assert (report.path, report.index_version, report.segments) == (str(tmp_path / "deep" / "copy"), store.version(), 1)
    assert (report.documents, report.passages) == store.verify()[:2]
    files = [path for path in (tmp_path / "deep" / "copy").rglob("*") if path.is_file()]
    assert report.bytes == sum(path.stat().st_size for path in files)
    assert sorted(path.relative_to(tmp_path / "deep" / "copy").parts[0] for path in files) == [FOLDER, FILE_NAME]
    check_equal(tmp_path / "deep" / "copy", store)


def test_the_copy_is_a_file_like_the_original(store, tmp_path):
    store.backup(tmp_path / "copy")
    with closing(sqlite3.connect(tmp_path / "copy" / FILE_NAME)) as raw:
        told = [
            raw.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version", "journal_mode")
        ]
    assert told == [APPLICATION_ID, FORMAT, "wal"]


def test_it_is_restored_by_copying_the_folder(store, tmp_path):
    store.backup(tmp_path / "copy")
    shutil.copytree(tmp_path / "copy", tmp_path / "restored")
    check_equal(tmp_path / "restored", store)
    again = EmbeddedStore(tmp_path / "restored")
    put(again, [Document(id="new", text="goes on")])
    assert again.verify()[3] == []
    again.close()


def test_a_read_only_handle_makes_one(store, tmp_path):
    with closing(EmbeddedStore(store.folder, read_only=True)) as reader:
        reader.backup(tmp_path / "copy")
    check_equal(tmp_path / "copy", store)


@pytest.mark.promise("B52")
def test_an_image_that_cannot_be_written_is_backed_up(store, tmp_path, monkeypatch):
    store.close()
    monkeypatch.setattr(connection_module.os, "access", lambda path, mode: False)
    with closing(EmbeddedStore(store.folder)) as reader:
        reader.backup(tmp_path / "copy")
        monkeypatch.undo()
        check_equal(tmp_path / "copy", reader)


def test_what_is_there_is_never_written_over(store, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    for dest in (tmp_path / "full", tmp_path / "file"):
        assert "not empty" in refusal(UsageError, lambda dest=dest: store.backup(dest)).what
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes.txt"]
    (tmp_path / "empty").mkdir()
    store.backup(tmp_path / "empty")
    check_equal(tmp_path / "empty", store)


@pytest.mark.parametrize("inside", [".", "copy", "segments/copy"])
def test_a_place_within_the_index_is_refused(store, inside):
    assert "within the index" in refusal(UsageError, lambda: store.backup(store.folder / inside)).what


@pytest.mark.parametrize("loss", ["gone", "damaged"])
def test_a_segment_that_cannot_be_copied_is_left_to_be_made_anew(store, tmp_path, loss):
    (path,) = (store.folder / FOLDER).iterdir()
    if loss == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    report = store.backup(tmp_path / "copy")
    assert report.segments == 0
    assert not (tmp_path / "copy" / FOLDER).exists()
    copy = EmbeddedStore(tmp_path / "copy")
    assert copy.verify()[3] == []
    assert_same_view(copy.view(""), store.view(""), TERMS)
    copy.close()


def test_a_segment_that_is_merged_away_while_the_tables_are_copied_is_in_it(store, tmp_path, monkeypatch):
    copying = backup_module._copy_tables

    def merging(database, made):
        copying(database, made)
        store.delete("", [document.id for document in DOCUMENTS[:20]])
        store.settle()

    (before,) = (store.folder / FOLDER).iterdir()
    monkeypatch.setattr(backup_module, "_copy_tables", merging)
    report = store.backup(tmp_path / "copy")
    assert not before.exists()
    assert report.segments == 1
    copy = EmbeddedStore(tmp_path / "copy")
    assert (copy.verify()[3], len(copy.view(""))) == ([], 58)
    copy.close()


@pytest.mark.parametrize("step", ["_copy_tables", "_copy_segments", "_finish"])
def test_one_that_fails_leaves_nothing_behind(store, tmp_path, monkeypatch, step):
    working = getattr(backup_module, step)

    def failing(*args):
        working(*args)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup_module, step, failing)
    with pytest.raises(OSError, match="No space"):
        store.backup(tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []


def test_a_full_disk_is_named(store, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    refusal(StorageFull, lambda: store.backup(tmp_path / "copy"))
    assert list((tmp_path / "copy").iterdir()) == []


def test_a_place_that_cannot_be_made_is_named(store, tmp_path):
    (tmp_path / "file").write_text("x")
    refusal(StoreError, lambda: store.backup(tmp_path / "file" / "copy"))


def test_damaged_tables_are_not_copied_silently(store, tmp_path):
    with store._database.write() as connection:
        connection.execute("UPDATE segments SET rows = 1")
    assert "wellhead repair" in refusal(CorruptStore, lambda: store.backup(tmp_path / "copy")).fix
    assert list((tmp_path / "copy").iterdir()) == []


WRITER = """
import sys
from wellhead.backends.stores.embedded import keeper
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.records import Document
from wellhead.testing.contracts import put
keeper.FLUSH_ROWS = 40
store = EmbeddedStore(sys.argv[1])
print("ready", flush=True)
for version in range(2, 100_000):
    # At each version the same number stands in all documents, so that a mixture of two would show.
    put(store, [Document(id=f"{n}", text=f"at {version}\\nof {n} at {version}") for n in range(10)])
"""


def test_one_made_while_another_process_writes_equals_one_whole_version(tmp_path):
    folder = tmp_path / "kb"
    store = EmbeddedStore(folder)
    store.set_settings({"embedder": "hash"})
    with subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        try:
            reports = []
            for number in range(8):
                while store.version() < 2 + 12 * number:
                    pass
                reports.append(store.backup(tmp_path / f"copy {number}"))
        finally:
            writer.kill()
    store.close()
    assert len({report.index_version for report in reports}) == 8
    for report in reports:
        with closing(EmbeddedStore(Path(report.path))) as copy:
            assert copy.version() == report.index_version
            assert copy.verify() == (10, 20, 11, [])
            assert {copy.get("", str(n)).text for n in range(10)} == {
                f"at {report.index_version}\nof {n} at {report.index_version}" for n in range(10)
            }
            assert sorted(copy.view("").words.posting(str(report.index_version)).rows.tolist()) == sorted(
                row for n in range(10) for row in copy.view("").rows_of(str(n))
            )
