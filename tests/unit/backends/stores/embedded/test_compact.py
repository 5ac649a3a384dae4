"""Compact: what was deleted is gone from every byte of the folder, and nothing else is."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from wellhead.backends.stores.embedded import compact as compact_module
from wellhead.backends.stores.embedded import failpoint
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.keeper import Job, carry_out
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.backends.stores.embedded.segment import FOLDER
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import StoreError, WriterBusy
from wellhead.records import Document
from wellhead.testing.contracts import assert_same_view, put, refusal
from wellhead.testing.fakes import HashEmbedder

SECRET = Document(
    id="SecretIdentity.md",
    text="plain line\nthe zyzzyvaword stands here once\nanother line of it",
    title="TitleOfTheSecret",
    uri="https://secret-place.example/x",
    metadata={"customerkey": "MetadataOfTheSecret"},
)
PLAIN = [Document(id=f"{n}.md", text=f"plain line\nwords of {n}", metadata={"n": n}) for n in range(40)]
TRACES = (
    b"zyzzyvaword",
    b"SecretIdentity",
    b"TitleOfTheSecret",
    b"secret-place",
    b"customerkey",
    b"MetadataOfTheSecret",
    HashEmbedder().embed_query("the zyzzyvaword stands here once").tobytes(),
)
STEPS = ("compact.terms", "compact.vacuumed", "compact.checkpointed", "compact.swept")


@pytest.fixture
def store(tmp_path):
    """An open store with a secret in its tables, in a segment, and in SQLite's log."""
    store = EmbeddedStore(tmp_path / "kb", timeout_s=0.3)
    with store._database.write() as connection:
        connection.execute("PRAGMA secure_delete = OFF")  # some builds of SQLite overwrite what they delete
    put(store, PLAIN[:20])
    put(store, [SECRET], scope="acme")
    put(store, PLAIN[20:])
    carry_out(store._database, Job((), 1, 50))
    yield store
    store.close()


def traces(folder) -> dict[bytes, list[str]]:
    """In which files each trace of the secret is found."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {trace: sorted(path.name for path in files if trace in path.read_bytes()) for trace in TRACES}


def fresh(tmp_path, documents) -> EmbeddedStore:
    other = EmbeddedStore(tmp_path / "fresh")
    put(other, documents)
    return other


def test_nothing_of_a_deleted_document_is_left_in_any_file(store, tmp_path):
    before = traces(store.folder)
    assert all(before.values()), "what is looked for must be there before"
    assert sum(any(name.endswith(".seg") for name in files) for files in before.values()) == 7
    store.delete("acme", [SECRET.id])
    assert all(traces(store.folder).values()), "deleting alone leaves traces"
    report = store.compact()
    assert {name for files in traces(store.folder).values() for name in files} == set()
    assert (report.rows, report.vectors, report.left) == (3, 0, ())
    assert report.terms > 3
    assert store.storage().log_bytes == 0
    with closing(sqlite3.connect(store.folder / FILE_NAME)) as raw:
        assert raw.execute("PRAGMA freelist_count").fetchone() == (0,)
    assert store.verify()[3] == []
    with closing(fresh(tmp_path, PLAIN)) as other:
        assert_same_view(store.view(""), other.view(""), ["plain", "words", "zyzzyvaword"])


def test_everything_lies_in_one_segment_and_no_list_of_deletions_is_left(store):
    put(store, [Document(id="new", text="newer")])
    store.delete("", ["3.md"])
    store.compact()
    storage = store.storage()
    assert (storage.segments, storage.dead_rows, storage.newest_rows) == (1, 0, 0)
    with closing(sqlite3.connect(store.folder / FILE_NAME)) as raw:
        assert raw.execute("SELECT count(*) FROM gone").fetchone() == (0,)
    assert len(list((store.folder / FOLDER).iterdir())) == 1
    assert (report := store.compact()).terms == report.rows == 0


def test_the_report_tells_of_bytes(store):
    store.delete("", [document.id for document in PLAIN])
    store.settle()
    before = store.storage().bytes
    report = store.compact()
    assert report.before == before
    assert report.after == store.storage().bytes < before


def test_an_empty_index_and_an_emptied_one_are_compacted(tmp_path):
    store = EmbeddedStore(tmp_path / "kb")
    assert store.compact().terms == 0
    put(store, PLAIN)
    store.delete("", [document.id for document in PLAIN])
    assert store.compact().terms > 40
    assert len(store.view("")) == 0
    put(store, PLAIN[:1])
    assert len(store.view("")) == 2
    assert store.verify()[3] == []
    store.close()


def test_a_reader_with_rows_in_memory_keeps_right_words_when_numbers_of_terms_are_given_again(store, tmp_path):
    """The last terms go, and their numbers with them; new words get these numbers."""
    put(store, [Document(id="last", text="qwertzword")])
    reader = EmbeddedStore(store.folder, read_only=True)
    assert reader.view("").words.posting("qwertzword") is not None
    store.delete("", ["last"])
    store.compact()
    put(store, [Document(id="again", text="asdfword")])
    assert reader.view("").words.posting("qwertzword") is None
    found = reader.view("").words.posting("asdfword")
    assert found is not None
    assert len(found.rows) == 1
    reader.close()


def test_a_reader_forgets_rows_that_came_and_went_while_it_worked(store, monkeypatch):
    """A row that was in memory alone: the number of its word is given to another one, and must not be taken for it."""
    reader, other = EmbeddedStore(store.folder, read_only=True), EmbeddedStore(store.folder)

    def come_and_go(name):
        if name == "swap.after" and store.storage().segments == 1:
            put(other, [Document(id="short", text="qwertzword")])
            assert reader.view("").words.posting("qwertzword") is not None
            other.delete("", ["short"])

    store.delete("acme", [SECRET.id])
    monkeypatch.setattr(failpoint, "hook", come_and_go)
    store.compact()
    monkeypatch.undo()
    put(store, [Document(id="again", text="asdfword")])
    assert reader.view("").words.posting("qwertzword") is None
    assert reader.view("").words.posting("asdfword") is not None
    reader.close()
    other.close()


def test_a_reader_goes_on_with_the_view_that_it_has(store):
    reader = EmbeddedStore(store.folder, read_only=True)
    view = reader.view("")
    rows = view.rows_of("1.md")
    store.delete("acme", [SECRET.id])
    store.compact()
    assert [passage.text for passage in view.passages(rows)] == ["plain line", "words of 1"]
    assert len(reader.view("acme")) == 0
    reader.close()


def test_somebody_who_reads_an_older_state_is_waited_for_and_then_named(store):
    store.delete("acme", [SECRET.id])
    with closing(sqlite3.connect(store.folder / FILE_NAME, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM documents").fetchone()
        error = refusal(WriterBusy, store.compact)
        assert "log" in error.what
        assert "run `wellhead compact` again" in error.fix
        assert error.retryable
        assert store.verify()[3] == []
    store.compact()
    assert {name for files in traces(store.folder).values() for name in files} == set()


def test_somebody_who_reads_shortly_is_waited_for(store):
    store.delete("acme", [SECRET.id])
    reader = sqlite3.connect(store.folder / FILE_NAME, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM documents").fetchone()
    threading.Timer(0.1, reader.close).start()
    assert store.compact().terms > 0
    assert store.storage().log_bytes == 0


def test_what_no_list_names_is_swept(store):
    stray = store.folder / FOLDER / ("0" * 32 + ".seg")
    stray.write_bytes(b"left by a run that was stopped")
    half = store.folder / "wellhead.repair-0"
    half.mkdir()
    (half / "x").write_bytes(b"x")
    assert store.storage().unlisted == (stray.name,)
    assert store.compact().files == 2
    assert not stray.exists()
    assert not half.exists()


def test_a_vector_that_nobody_uses_is_deleted(store):
    data = b"\1" * 64
    row = (b"nobody", data, checksum("vectors", b"nobody", data))
    with store._database.write() as connection:
        connection.execute("INSERT INTO vectors VALUES (?, ?, ?)", row)
    assert [finding.kind for finding in store.verify()[3]] == ["orphan_vector"]
    assert store.compact().vectors == 1
    assert store.verify()[3] == []


def test_files_that_are_not_ours_are_named_and_left(store):
    kept = store.folder / f"{FILE_NAME}.damaged-1"
    kept.write_bytes(b"zyzzyvaword")
    report = store.compact()
    assert report.left == (kept.name,)
    assert kept.name in str(report)
    assert kept.exists()


def test_a_damaged_segment_is_made_anew_on_the_way(store):
    (path,) = (store.folder / FOLDER).iterdir()
    path.write_bytes(b"x" * 5000)
    store.delete("acme", [SECRET.id])
    store.compact()
    assert store.verify()[3] == []


def test_writes_of_others_meanwhile_are_kept(store, monkeypatch):
    other = EmbeddedStore(store.folder)
    written = []

    def write(name):
        if name == "swap.before":
            written.append(f"meanwhile {len(written)}")
            put(other, [Document(id=written[-1], text=f"meanwhile words{len(written)}")])

    store.delete("acme", [SECRET.id])
    monkeypatch.setattr(failpoint, "hook", write)
    store.compact()
    monkeypatch.undo()
    assert written
    assert set(written) <= store.states("").keys()
    assert {name for files in traces(store.folder).values() for name in files} == set()
    assert store.verify()[3] == []
    other.close()


def test_what_is_deleted_while_it_works_waits_for_the_next_time(store, monkeypatch):
    """Its row is still in the new segment: so are its words, and their numbers are not given again."""

    def delete(name):
        if name == "swap.after" and store.storage().segments == 1:
            other.delete("acme", [SECRET.id])

    other = EmbeddedStore(store.folder)
    store.delete("", ["3.md"])
    monkeypatch.setattr(failpoint, "hook", delete)
    store.compact()
    monkeypatch.undo()
    assert store.storage().dead_rows == 3
    assert store.verify()[3] == []
    store.compact()
    assert {name for files in traces(store.folder).values() for name in files} == set()
    other.close()


def test_others_that_are_faster_each_time_are_named(store, monkeypatch):
    monkeypatch.setattr(compact_module, "carry_out", lambda database, job: False)
    store.delete("acme", [SECRET.id])
    assert "other processes" in refusal(WriterBusy, store.compact).why


@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_dies_on_the_way_loses_nothing(store, step):
    store.delete("acme", [SECRET.id])
    store.close()
    code = (
        "import os, sys; from wellhead.backends.stores.embedded import failpoint\n"
        "from wellhead.backends.stores.embedded.store import EmbeddedStore\n"
        "store = EmbeddedStore(sys.argv[1])\n"
        "failpoint.hook = lambda name: name == sys.argv[2] and os._exit(9)\n"
        "store.compact()"
    )
    assert subprocess.run([sys.executable, "-c", code, str(store.folder), step], check=False).returncode == 9
    again = EmbeddedStore(store.folder)
    assert list(again.states("")) == sorted(document.id for document in PLAIN)
    assert again.verify()[3] == []
    again.compact()
    assert {name for files in traces(store.folder).values() for name in files} == set()
    again.close()


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_on_the_way_leaves_the_handle_in_working_order(store, monkeypatch, step):
    def interrupt(name):
        if name == step:
            raise KeyboardInterrupt

    store.delete("acme", [SECRET.id])
    monkeypatch.setattr(failpoint, "hook", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.compact()
    monkeypatch.undo()
    put(store, [Document(id="after", text="after it")])
    assert store.verify()[3] == []
    store.compact()
    assert {name for files in traces(store.folder).values() for name in files} == set()
    assert len(store.view("")) == 81


def test_a_read_only_handle_refuses(store):
    with closing(EmbeddedStore(store.folder, read_only=True)) as reader:
        assert "read-only" in refusal(StoreError, reader.compact).what
