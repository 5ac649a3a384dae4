"""The embedded store beyond the contract: the disk, other processes, threads, what is refused at open."""

from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from wellhead.backends.stores.embedded import connection as connection_module
from wellhead.backends.stores.embedded import keeper
from wellhead.backends.stores.embedded.connection import FILE_NAME
from wellhead.backends.stores.embedded.schema import FORMAT
from wellhead.backends.stores.embedded.segment import FOLDER
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import CorruptStore, StaleIndex, StorageFull, StoreError, UsageError, WriterBusy
from wellhead.index.asking import steady
from wellhead.records import Document
from wellhead.testing.contracts import assert_same_view, put, refusal
from wellhead.testing.fakes import document_row


@pytest.fixture
def folder(tmp_path):
    """A closed index of two documents in its own folder."""
    store = EmbeddedStore(tmp_path / "kb")
    store.set_settings({"embedder": "hash"})
    put(store, [Document(id="a", text="one\ntwo"), Document(id="b", text="three\none")])
    store.close()
    return tmp_path / "kb"


def run_sql(folder, sql: str) -> None:
    """Change the file behind the store's back."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as raw:
        raw.execute(sql)
        raw.commit()


class TestOpening:
    def test_a_closed_store_is_one_file_and_opens_again_as_it_was(self, folder):
        assert [path.name for path in folder.iterdir()] == [FILE_NAME]
        again = EmbeddedStore(str(folder))
        assert (again.version(), again.settings(), list(again.states(""))) == (2, {"embedder": "hash"}, ["a", "b"])
        assert again.counts() == (3, (folder / FILE_NAME).stat().st_size)
        again.close()

    def test_folders_are_made_on_the_way(self, tmp_path):
        EmbeddedStore(tmp_path / "x" / "y").close()
        assert (tmp_path / "x" / "y" / FILE_NAME).exists()

    def test_read_only_makes_nothing(self, tmp_path):
        error = refusal(StoreError, lambda: EmbeddedStore(tmp_path / "kb", read_only=True))
        assert "wellhead index" in error.fix
        assert not (tmp_path / "kb").exists()

    def test_a_file_in_the_way_is_named(self, tmp_path):
        (tmp_path / "kb").write_text("a file")
        refusal(StoreError, lambda: EmbeddedStore(tmp_path / "kb"))
        assert (tmp_path / "kb").read_text() == "a file"

    def test_another_programs_database_is_left_alone(self, tmp_path):
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
            other.execute("CREATE TABLE theirs (x)")
            other.commit()
        before = (tmp_path / FILE_NAME).read_bytes()
        assert "not a Wellhead index" in refusal(CorruptStore, lambda: EmbeddedStore(tmp_path)).what
        assert (tmp_path / FILE_NAME).read_bytes() == before

    def test_a_file_that_is_no_database_is_left_alone(self, tmp_path):
        (tmp_path / FILE_NAME).write_bytes(b"precious notes " * 100)
        refusal(CorruptStore, lambda: EmbeddedStore(tmp_path))
        assert (tmp_path / FILE_NAME).read_bytes() == b"precious notes " * 100

    def test_a_newer_format_is_refused(self, folder):
        run_sql(folder, f"PRAGMA user_version = {FORMAT + 1}")
        assert "upgrade" in refusal(StaleIndex, lambda: EmbeddedStore(folder)).fix

    def test_tables_that_we_did_not_write_are_refused(self, folder):
        run_sql(folder, "CREATE TRIGGER t AFTER INSERT ON terms BEGIN DELETE FROM documents; END")
        assert "triggers" in refusal(CorruptStore, lambda: EmbeddedStore(folder)).why

    def test_processes_that_create_one_index_at_once_all_succeed(self, tmp_path):
        with ThreadPoolExecutor(8) as pool:
            stores = list(pool.map(lambda _: EmbeddedStore(tmp_path / "kb"), range(8)))
        for n, store in enumerate(stores):
            put(store, [Document(id=f"d{n}", text="x")])
        assert len(stores[0].view("")) == 8
        for store in stores:
            store.close()


class TestReadOnly:
    def test_reads_work_and_writes_are_refused(self, folder):
        store = EmbeddedStore(folder, read_only=True)
        assert store.read_only
        assert len(store.view("")) == 4
        for write in (
            lambda: store.set_settings({}),
            lambda: put(store, [Document(id="c", text="x")]),
            lambda: store.delete("", ["a"]),
        ):
            assert "read-only" in refusal(StoreError, write).what
        store.close()

    def test_a_reader_sees_what_a_writer_writes_meanwhile(self, folder):
        reader, writer = EmbeddedStore(folder, read_only=True), EmbeddedStore(folder)
        before = reader.view("")
        put(writer, [Document(id="c", text="new")])
        assert (len(before), len(reader.view(""))) == (4, 5)
        writer.close()
        reader.close()

    @pytest.mark.promise("B52")
    def test_an_unwritable_folder_is_opened_without_a_file_beside_it(self, folder, monkeypatch):
        """A log or lock file in a read-only image cannot be made: SQLite must be told that nothing changes."""
        monkeypatch.setattr(connection_module.os, "access", lambda path, mode: False)
        store = EmbeddedStore(folder)
        assert store.read_only
        assert len(store.view("")) == 4
        assert store.verify()[3] == []
        assert [path.name for path in folder.iterdir()] == [FILE_NAME]
        store.close()

    @pytest.mark.promise("B52")
    def test_a_read_only_mount_is_opened(self, folder, tmp_path):
        image = tmp_path / "image"
        image.mkdir()
        bind = ["mount", "--bind", str(folder), str(image)]
        if os.name != "posix" or os.geteuid() != 0 or subprocess.run(bind, capture_output=True, check=False).returncode:
            pytest.skip("needs the right to mount a folder read-only")
        try:
            subprocess.run(["mount", "-o", "remount,ro,bind", str(image)], check=True)
            store = EmbeddedStore(image)
            assert store.read_only
            assert len(store.view("")) == 4
            store.close()
        finally:
            subprocess.run(["umount", str(image)], check=True)


class TestWriting:
    def test_a_second_writer_waits_then_says_who_is_in_the_way(self, folder):
        first, second = EmbeddedStore(folder), EmbeddedStore(folder, timeout_s=0.05)
        with first._database.write():
            error = refusal(WriterBusy, lambda: put(second, [Document(id="c", text="x")]))
            assert error.retryable
            assert len(second.view("")) == 4
        put(second, [Document(id="c", text="x")])
        assert len(first.view("")) == 5
        first.close()
        second.close()

    def test_a_full_disk_is_named_and_nothing_is_half_written(self, folder):
        store = EmbeddedStore(folder)
        with store._database.write() as connection:
            connection.execute("PRAGMA max_page_count = 40")
        long = Document(id="c", text="\n".join(f"line {n}" for n in range(2000)))
        refusal(StorageFull, lambda: put(store, [Document(id="a", text="changed"), long]))
        assert store.get("", "a").text == "one\ntwo"
        assert store.version() == 2
        assert store.verify()[3] == []
        store.close()

    def test_an_interrupt_inside_a_write_undoes_it(self, folder):
        store = EmbeddedStore(folder)

        class Interrupting(dict):
            def items(self):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.put([document_row(Document(id="a", text="changed"), with_vectors=False)], Interrupting({b"k": 1}))
        assert store.get("", "a").text == "one\ntwo"
        put(store, [Document(id="a", text="changed")])
        assert store.get("", "a").text == "changed"
        store.close()

    def test_a_write_that_fails_late_is_undone(self, folder, monkeypatch):
        store = EmbeddedStore(folder)
        monkeypatch.setattr("wellhead.backends.stores.embedded.write._prune", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            put(store, [Document(id="a", text="changed")])
        monkeypatch.undo()
        assert store.get("", "a").text == "one\ntwo"
        assert store.verify()[3] == []
        store.close()


class TestSharing:
    def test_threads_share_one_handle(self, folder):
        store = EmbeddedStore(folder)
        stop = threading.Event()

        def texts_of_a(view):
            return [passage.text for passage in view.passages(view.rows_of("a"))]

        def read(_):
            while not stop.is_set():
                assert steady(lambda: store.view(""), texts_of_a) == ["one", "two"]
            return True

        with ThreadPoolExecutor(4) as pool:
            readers = [pool.submit(read, n) for n in range(3)]
            try:
                for n in range(30):
                    put(store, [Document(id="c", text=f"text {n}")])
            finally:
                stop.set()
            assert all(reader.result() for reader in readers)
        store.close()

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
    def test_parent_and_child_go_on_after_a_fork(self, folder):
        store = EmbeddedStore(folder)
        put(store, [Document(id="c", text="before")])
        inherited = dict(store._database._connections)
        child = os.fork()
        if child == 0:
            try:
                fresh = inherited.keys() and not store._database._connections
                put(store, [Document(id="child", text="from the child")])
                os._exit(0 if fresh and len(store.view("")) == 6 else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        put(store, [Document(id="parent", text="from the parent")])
        assert list(store.states("")) == ["a", "b", "c", "child", "parent"]
        assert store.verify()[3] == []
        store.close()

    def test_a_handle_says_that_it_cannot_be_pickled(self, folder):
        store = EmbeddedStore(folder)
        with pytest.raises(TypeError, match="open the index again"):
            pickle.dumps(store)
        store.close()

    def test_a_closed_store_refuses_every_use(self, folder):
        store = EmbeddedStore(folder)
        store.close()
        store.close()
        for use in (store.settings, store.verify, store.counts, lambda: store.put([], {})):
            refusal(UsageError, use)


class TestVerify:
    def test_lost_vectors_are_counted_and_their_documents_called_incomplete(self, folder):
        """langchain-ai/langchain#39937: the ledger said indexed where the store had lost it."""
        run_sql(folder, "DELETE FROM vectors WHERE rowid IN (SELECT rowid FROM vectors ORDER BY rowid LIMIT 1)")
        store = EmbeddedStore(folder)
        findings = store.verify()[3]
        assert [(finding.kind, finding.where) for finding in findings] == [
            ("missing_vector", "document 'a'"),
            ("missing_vector", "document 'b'"),
        ]
        assert "cannot see 1 of its passages" in findings[0].why
        assert [state.incomplete for state in store.states("").values()] == [True, True]
        view = store.view("")
        assert (len(view), view.with_vectors) == (4, 2)
        put(store, [Document(id="a", text="one\ntwo")])
        assert store.verify()[3] == []
        store.close()

    @pytest.mark.parametrize(
        ("sql", "kind"),
        [
            ("UPDATE passages SET stop = stop + 1 WHERE passage = 1", "passage"),
            ("UPDATE passages SET context = 'x' WHERE passage = 1", "passage"),
            ("UPDATE passages SET words = x'0100000002000000' WHERE passage = 1", "passage"),
            ("UPDATE passages SET vector_key = NULL WHERE passage = 1", "passage"),
            ('UPDATE documents SET metadata = \'{"tenant":"b"}\' WHERE doc = 1', "document"),
            ("UPDATE documents SET scope = 'other' WHERE doc = 1", "document"),
            ("UPDATE texts SET text = 'two' || char(10) || 'one' WHERE doc = 1", "document"),
            ("UPDATE vectors SET data = zeroblob(64) WHERE rowid = 1", "vector"),
            ("UPDATE terms SET word = 'other' WHERE term = 1", "term"),
            ("UPDATE settings SET value = 'other'", "setting"),
            ("DELETE FROM passages WHERE passage = 1", "passages"),
            ("DELETE FROM documents WHERE doc = 1", "count"),
            ("DELETE FROM terms WHERE term = 1", "term"),
            ("DELETE FROM texts WHERE doc = 1", "document"),
            ("INSERT INTO vectors VALUES (x'01', x'02', x'03')", "orphan_vector"),
        ],
    )
    def test_every_kind_of_damage_is_named_by_verify_and_by_a_read(self, folder, sql, kind):
        run_sql(folder, "PRAGMA foreign_keys = OFF")
        run_sql(folder, sql)
        store = EmbeddedStore(folder)
        findings = store.verify()[3]
        assert kind in {finding.kind for finding in findings}
        assert all(finding.where and finding.why and finding.fix for finding in findings)
        if kind != "orphan_vector":
            with pytest.raises(CorruptStore):
                read_all(store)
        store.close()


def read_all(store: EmbeddedStore) -> None:
    """Every read there is."""
    store.settings()
    view = store.view("")
    view.passages(range(len(view)))
    list(store.documents(""))


def test_a_view_of_the_disk_equals_one_before_closing(folder):
    store, again = EmbeddedStore(folder), EmbeddedStore(folder)
    put(store, [Document(id="c", text="café naïve", metadata={"n": 1}, language="fr")])
    assert_same_view(store.view(""), again.view(""), ["café", "one"])
    store.close()
    again.close()


class TestFreshness:
    """A view is given again without a look at the tables only while nobody at all has written."""

    def test_it_is_the_same_until_somebody_writes(self, folder):
        store, other = EmbeddedStore(folder), EmbeddedStore(folder)
        view = store.view("")
        assert store.view("") is view
        put(other, [Document(id="theirs", text="x")])
        theirs = store.view("")
        assert theirs is not view
        assert len(theirs.rows_of("theirs")) == 1
        put(store, [Document(id="own", text="x")])
        assert len(store.view("").rows_of("own")) == 1
        store.delete("", ["own"])
        assert not store.view("").rows_of("own")
        store.close()
        other.close()

    def test_what_no_view_shows_makes_none_anew(self, folder):
        store = EmbeddedStore(folder)
        view = store.view("")
        with store._database.write() as connection:
            connection.execute("UPDATE documents SET source = source")
        assert store.view("") is view
        assert store.view("") is view
        store.close()

    def test_a_search_that_finds_nothing_written_reads_one_number(self, folder):
        store = EmbeddedStore(folder)
        store.view("")
        statements: list[str] = []
        store._database._connection("reader").set_trace_callback(statements.append)
        store.view("")
        assert statements == ["PRAGMA data_version"]
        store.close()

    def test_threads_never_get_a_view_older_than_a_write_before_their_call(self, folder):
        store = EmbeddedStore(folder)
        stop, wrong = threading.Event(), []

        def ask() -> None:
            while not stop.is_set():
                before = written[-1]
                if store.view("").version < before:
                    wrong.append(before)

        written = [store.version()]
        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(60):
            put(store, [Document(id=f"d{number}", text="x")])
            written.append(store.version())
        stop.set()
        for thread in threads:
            thread.join()
        assert not wrong
        store.close()


class TestOverwritten:
    """A mapped file that somebody cuts off would end the process at the next look into it."""

    @pytest.mark.parametrize("change", ["cut", "overwritten", "another segment", "one bit", "deleted"])
    def test_a_file_that_is_changed_while_it_is_open_changes_no_answer(self, tmp_path, monkeypatch, change):
        monkeypatch.setattr(keeper, "FLUSH_ROWS", 1)
        kept = [Document(id=f"{n}.md", text=f"shared note number {n}") for n in range(40)]
        with closing(EmbeddedStore(tmp_path / "other")) as other:
            put(other, [Document(id="x", text="another thing")])
            other.settle()
            (foreign,) = (tmp_path / "other" / FOLDER).iterdir()
        store, fresh = EmbeddedStore(tmp_path / "kb"), EmbeddedStore(tmp_path / "fresh")
        put(store, kept)
        put(fresh, kept)
        store.settle()
        before = store.view("")
        (segment,) = (tmp_path / "kb" / FOLDER).iterdir()
        data = segment.read_bytes()
        if change == "cut":
            os.truncate(segment, 512)
        elif change == "overwritten":
            segment.write_bytes(b"rotten")
        elif change == "another segment":
            segment.write_bytes(foreign.read_bytes())
        elif change == "one bit":
            segment.write_bytes(data[:-100] + bytes([data[-100] ^ 1]) + data[-99:])
        else:
            segment.unlink()
        view = store.view("")
        assert (view is before) == (change == "deleted")
        assert_same_view(view, fresh.view(""), ["shared", "note"])
        store.settle()
        assert_same_view(store.view(""), fresh.view(""), ["shared", "note"])
        assert change == "deleted" or store.verify()[3] == []
        store.close()
        fresh.close()
