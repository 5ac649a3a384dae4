"""Repair: what is derived is made anew, what is whole is saved, what is lost is named; killed anywhere, old or new."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from wellhead.backends.stores.embedded import salvage as salvage_module
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.keeper import Job, carry_out
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.backends.stores.embedded.repair import repair
from wellhead.backends.stores.embedded.segment import FOLDER
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import (
    CorruptStore,
    IngestStopped,
    StaleIndex,
    StoreError,
    UsageError,
    WellheadError,
    WriterBusy,
)
from wellhead.records import Document, RepairReport, SyncReport
from wellhead.testing.contracts import assert_same_view, put, refusal
from wellhead.testing.fakes import HashEmbedder, document_row, vectors_of

DOCUMENTS = [Document(id=f"{n}.md", text=f"own {n}\nshared\nmore {n}", title=f"T{n}") for n in range(12)]
OTHERS = [Document(id=f"{n}.md", text=f"of acme {n}") for n in range(3)]
MANY = [Document(id=f"d{n:03}", text=f"unique{n:03} text\n" + "filling words " * 20) for n in range(200)]
SETTINGS = {"embedder": "hash", "chunker": "lines"}
TERMS = ("own", "shared", "more", "of", "acme")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    store = EmbeddedStore(folder)
    store.set_settings(SETTINGS)
    put(store, DOCUMENTS[:10], origin="docs")
    put(store, OTHERS, scope="acme")
    carry_out(store._database, Job((), 1, 33))
    put(store, DOCUMENTS[10:])
    store.close()
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A closed index of two scopes with a segment and newer rows. "1.md" is document 2 with the passages 4, 5, 6."""
    return Path(shutil.copytree(made, tmp_path / "kb"))


@pytest.fixture(scope="module")
def made_large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    store = EmbeddedStore(folder)
    store.set_settings(SETTINGS)
    put(store, MANY)
    store.close()
    return folder


@pytest.fixture
def large(made_large, tmp_path):
    """A closed index of many documents, so that each table has many pages; and its documents by id."""
    return Path(shutil.copytree(made_large, tmp_path / "kb")), {one.id: one for one in MANY}


def refill(settings, kept, store) -> SyncReport:
    """As an ingest does: embed what is not known."""
    store.set_settings(settings)
    rows = [document_row(one.document, scope=one.scope, origin=one.origin) for one in kept]
    vectors = vectors_of(rows, HashEmbedder())
    known = store.known_vectors(list(vectors))
    new = {key: vector for key, vector in vectors.items() if key not in known}
    store.put(rows, new)
    passages = sum(len(row.passages) for row in rows)
    return SyncReport(read=len(rows), added=len(rows), passages=passages, embedded=len(new))


def run_sql(folder, *statements: str) -> list[tuple]:
    with closing(sqlite3.connect(folder / FILE_NAME)) as raw:
        for sql in statements:
            rows = raw.execute(sql).fetchall()
        raw.commit()
    return rows


def check_holds(folder, tmp_path, documents, others=OTHERS) -> None:
    """The index is sound and holds exactly these documents."""
    store, fresh = EmbeddedStore(folder), EmbeddedStore(tmp_path / "fresh")
    put(fresh, documents)
    put(fresh, others, scope="acme")
    assert store.verify() == fresh.verify()
    assert store.verify()[3] == []
    assert store.settings() == SETTINGS
    for scope in ("", "acme"):
        assert_same_view(store.view(scope), fresh.view(scope), TERMS)
        assert list(store.documents(scope)) == list(fresh.documents(scope))
    store.close()
    fresh.close()


def segment_file(folder) -> Path:
    (path,) = (folder / FOLDER).iterdir()
    return path


def with_row(table: str, *values) -> str:
    shown = ", ".join(f"x'{value.hex()}'" if isinstance(value, bytes) else repr(value) for value in values)
    return f"INSERT OR REPLACE INTO {table} VALUES ({shown}, x'{checksum(table, *values).hex()}')"


class TestNothingWrong:
    def test_a_sound_index_is_left_as_it_is(self, folder):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        report = repair(folder, refill)
        assert (report.findings, report.complete, report.segments, report.kept_as) == ((), True, 0, "")
        assert str(report) == "nothing is wrong, and nothing was done"
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


class TestDerived:
    @pytest.mark.parametrize(
        "damage",
        {
            "a flipped byte": lambda folder: segment_file(folder).write_bytes(
                segment_file(folder).read_bytes()[:-1] + b"\xff"
            ),
            "a missing file": lambda folder: segment_file(folder).unlink(),
            "an empty file": lambda folder: segment_file(folder).write_bytes(b""),
            "a damaged entry": lambda folder: run_sql(folder, "UPDATE segments SET version = 1"),
            "no entry": lambda folder: run_sql(folder, with_row("segments", "b" * 32, 50, 60, 3, 9, b"d" * 16)),
            "a deletion that was none": lambda folder: run_sql(folder, with_row("gone", 4, 5)),
            "a damaged deletion": lambda folder: run_sql(folder, "INSERT INTO gone VALUES (99, 1, x'00')"),
            "a deletion that is missing": lambda folder: run_sql(folder, "DELETE FROM gone"),
        }.values(),
    )
    def test_it_is_made_anew_and_nothing_else_is_touched(self, folder, tmp_path, damage):
        store = EmbeddedStore(folder)
        store.delete("", ["5.md"])
        store.close()
        rows = run_sql(folder, "SELECT passage FROM passages ORDER BY 1")
        (version,) = run_sql(folder, "SELECT value FROM counters WHERE name = 'version'")[0]
        damage(folder)
        reader = EmbeddedStore(folder, read_only=True)
        report = repair(folder, refill)
        assert report.findings
        assert (report.complete, report.documents, report.kept_as) == (True, 0, "")
        assert run_sql(folder, "SELECT passage FROM passages ORDER BY 1") == rows
        assert run_sql(folder, "SELECT value FROM counters WHERE name = 'version'") == [(version,)]
        check_holds(folder, tmp_path, [one for one in DOCUMENTS if one.id != "5.md"])
        assert len(reader.view("")) == 33
        reader.close()

    def test_only_the_wrong_one_of_several_segments_is_made_anew(self, folder):
        store = EmbeddedStore(folder)
        carry_out(store._database, Job((), 34, 39))
        store.close()
        first, second = (row[0] for row in run_sql(folder, "SELECT name FROM segments ORDER BY first"))
        (folder / FOLDER / f"{first}.seg").write_bytes(b"x")
        assert repair(folder, refill).segments == 1
        names = [row[0] for row in run_sql(folder, "SELECT name FROM segments ORDER BY first")]
        assert names[0] != first
        assert names[1] == second

    def test_a_vector_that_nobody_uses_is_deleted(self, folder, tmp_path):
        run_sql(folder, with_row("vectors", b"k", b"\0" * 64))
        report = repair(folder, refill)
        assert (report.findings[0].kind, report.kept_as) == ("orphan_vector", "")
        check_holds(folder, tmp_path, DOCUMENTS)


SAVED = {
    "a passage": "UPDATE passages SET start = 1 WHERE passage = 4",
    "terms of a passage": "UPDATE passages SET words = x'0100000002000000' WHERE passage = 4",
    "a passage is gone": "DELETE FROM passages WHERE passage = 4",
    "all passages are gone": "DELETE FROM passages",
    "a passage under another document": "UPDATE passages SET doc = 3, ordinal = 9 WHERE passage = 4",
    "a term": "UPDATE terms SET word = 'x' WHERE term = 3",
    "all terms are gone": "DELETE FROM terms",
    "counts": "UPDATE scopes SET documents = 99",
    "counts are gone": "DELETE FROM scopes",
    "a counter": "UPDATE counters SET value = 1 WHERE name = 'version'",
    "counters are gone": "DELETE FROM counters",
}
LOST = {
    "a text": ("UPDATE texts SET text = 'x' WHERE doc = 2", "its text is damaged"),
    "a text is gone": ("DELETE FROM texts WHERE doc = 2", "its text is gone"),
    "a title": ("UPDATE documents SET title = 'x' WHERE doc = 2", "its row is damaged"),
    "a scope": ("UPDATE documents SET scope = 'other' WHERE doc = 2", "its row is damaged"),
}


class TestTables:
    @pytest.mark.parametrize("what", SAVED)
    def test_what_is_whole_is_saved(self, folder, tmp_path, what):
        run_sql(folder, SAVED[what])
        report = repair(folder, refill)
        assert report.findings
        assert (report.documents, report.passages, report.embedded) == (15, 39, 0)
        assert (report.complete, report.lost, report.unnamed) == (True, (), 0)
        assert report.kept_as == f"{FILE_NAME}.damaged-1"
        check_holds(folder, tmp_path, [*DOCUMENTS])

    @pytest.mark.parametrize("what", LOST)
    def test_what_is_not_whole_is_lost_and_named(self, folder, tmp_path, what):
        sql, reason = LOST[what]
        run_sql(folder, sql)
        report = repair(folder, refill)
        ((lost,), complete) = report.lost, report.complete
        assert (lost.id, complete, report.documents) == ("1.md", False, 14)
        assert reason in lost.reason
        assert "lost 1.md" in str(report)
        check_holds(folder, tmp_path, [one for one in DOCUMENTS if one.id != "1.md"])

    def test_the_scope_of_what_is_lost_is_named_too(self, folder):
        run_sql(folder, "UPDATE texts SET text = 'x' WHERE doc = 11")
        (lost,) = repair(folder, refill).lost
        assert (lost.id, "scope 'acme'" in lost.reason) == ("0.md", True)

    def test_what_has_no_row_at_all_is_counted(self, folder, tmp_path):
        run_sql(folder, "DELETE FROM documents WHERE doc = 2")
        report = repair(folder, refill)
        assert (report.lost, report.unnamed, report.complete) == ((), 1, False)
        assert "1 more documents" in str(report)
        check_holds(folder, tmp_path, [one for one in DOCUMENTS if one.id != "1.md"])

    @pytest.mark.parametrize(
        "sql", ["UPDATE vectors SET data = zeroblob(64) WHERE rowid = 4", "DELETE FROM vectors WHERE rowid = 4"]
    )
    def test_only_lost_vectors_are_embedded(self, folder, tmp_path, sql):
        run_sql(folder, sql)
        report = repair(folder, refill)
        assert (report.documents, report.embedded, report.complete) == (15, 1, True)
        check_holds(folder, tmp_path, DOCUMENTS)

    def test_numbers_go_on_above_the_old_ones_and_origins_stay(self, folder):
        highest = dict(run_sql(folder, "SELECT name, value FROM counters"))
        run_sql(folder, SAVED["a term"])
        repair(folder, refill)
        counted = dict(run_sql(folder, "SELECT name, value FROM counters"))
        assert counted["version"] > highest["version"]
        assert run_sql(folder, "SELECT min(passage) FROM passages")[0][0] > highest["passage"]
        assert run_sql(folder, "SELECT DISTINCT origin FROM documents ORDER BY 1") == [("",), ("docs",)]
        # The next sync reads each file again.
        assert run_sql(folder, "SELECT DISTINCT source FROM documents") == [(b"",)]

    @pytest.mark.parametrize("what", ["a counter", "counters are gone"])
    def test_a_lost_count_of_writes_does_not_go_back(self, folder, what):
        (version,) = run_sql(folder, "SELECT value FROM counters WHERE name = 'version'")[0]
        (passage,) = run_sql(folder, "SELECT value FROM counters WHERE name = 'passage'")[0]
        run_sql(folder, SAVED[what])
        repair(folder, refill)
        store = EmbeddedStore(folder)
        assert store.version() > version
        assert run_sql(folder, "SELECT min(passage) FROM passages")[0][0] > passage
        store.close()

    def test_where_nothing_tells_how_many_writes_there_were_the_count_begins_above_any(self, tmp_path):
        store = EmbeddedStore(tmp_path / "kb")
        for number in range(40):
            store.set_settings({**SETTINGS, "number": str(number)})
        put(store, DOCUMENTS[:1])
        version = store.version()
        store.close()
        run_sql(tmp_path / "kb", "DELETE FROM counters")
        repair(tmp_path / "kb", refill)
        store = EmbeddedStore(tmp_path / "kb")
        assert store.version() > version
        store.close()

    def test_the_damaged_file_is_kept_under_a_name_of_its_own_each_time(self, folder):
        for number in (1, 2):
            run_sql(folder, "DELETE FROM terms")
            damaged = (folder / FILE_NAME).read_bytes()
            report = repair(folder, refill)
            assert report.kept_as == f"{FILE_NAME}.damaged-{number}"
            # But for its header: it has no log any more.
            assert (folder / report.kept_as).read_bytes()[100:] == damaged[100:]
        names = sorted(path.name for path in folder.iterdir())
        assert names == [FOLDER, FILE_NAME, f"{FILE_NAME}.damaged-1", f"{FILE_NAME}.damaged-2"]

    def test_nothing_of_the_old_segments_is_left(self, folder):
        old = segment_file(folder)
        run_sql(folder, "DELETE FROM terms")
        repair(folder, refill)
        assert not old.exists()
        store = EmbeddedStore(folder)
        assert store.storage().unlisted == ()
        store.close()

    def test_what_stands_in_the_log_of_a_process_that_died_is_saved_too(self, folder, tmp_path):
        code = (
            "import os, sys; from wellhead.backends.stores.embedded.store import EmbeddedStore\n"
            "from wellhead.records import Document; from wellhead.testing.contracts import put\n"
            "store = EmbeddedStore(sys.argv[1]); put(store, [Document(id='late', text='own late')])\n"
            "with store._database.write() as connection: connection.execute('DELETE FROM terms WHERE term = 3')\n"
            "os._exit(0)"
        )
        subprocess.run([sys.executable, "-c", code, str(folder)], check=True)
        assert (folder / f"{FILE_NAME}-wal").stat().st_size > 0
        assert repair(folder, refill).documents == 16
        assert not (folder / f"{FILE_NAME}-wal").exists()
        check_holds(folder, tmp_path, [*DOCUMENTS, Document(id="late", text="own late")])

    def test_the_rights_of_the_file_stay(self, folder):
        (folder / FILE_NAME).chmod(0o640)
        run_sql(folder, "DELETE FROM terms")
        repair(folder, refill)
        assert (folder / FILE_NAME).stat().st_mode & 0o777 == 0o640

    def test_a_file_system_without_hard_links_will_do(self, folder, tmp_path, monkeypatch):
        def refused(*_):
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr("wellhead.backends.stores.embedded.repair.os.link", refused)
        run_sql(folder, "DELETE FROM terms")
        monkeypatch.setattr("wellhead.backends.stores.embedded.place.os.link", refused)
        assert (folder / repair(folder, refill).kept_as).stat().st_size > 0
        check_holds(folder, tmp_path, DOCUMENTS)


def pages_with(data: bytes, words: bytes) -> list[int]:
    size = int.from_bytes(data[16:18], "big")
    return [number for number in range(len(data) // size) if words in data[number * size : (number + 1) * size]]


def spoil(folder, pages, with_what: bytes = b"\xa5") -> None:
    data = bytearray((folder / FILE_NAME).read_bytes())
    size = int.from_bytes(data[16:18], "big")
    for page in pages:
        data[page * size : (page + 1) * size] = with_what * size
    (folder / FILE_NAME).write_bytes(data)


class TestPages:
    @pytest.mark.parametrize("with_what", [b"\0", b"\xa5"])
    def test_a_page_of_texts_costs_its_documents_alone(self, large, with_what):
        folder, documents = large
        data = (folder / FILE_NAME).read_bytes()
        (page, *_) = pages_with(data, b"unique077 text\n")
        here = {
            name for name in documents if f"unique{name[1:]} text\n".encode() in data[page * 4096 : page * 4096 + 4096]
        }
        spoil(folder, [page], with_what)
        report = repair(folder, refill)
        assert {lost.id for lost in report.lost} == here
        assert 1 < len(here) < 50
        assert report.documents == 200 - len(here)
        assert report.unnamed == 0
        store = EmbeddedStore(folder)
        assert store.verify()[3] == []
        assert {document.id: document for document in store.documents("")} == {
            name: document for name, document in documents.items() if name not in here
        }
        store.close()

    def test_a_page_of_documents_costs_its_documents_alone_and_their_names_are_known(self, large):
        folder, documents = large
        data = (folder / FILE_NAME).read_bytes()
        digests = {name: document_row(document).digest for name, document in documents.items()}
        (page, *_) = pages_with(data, digests["d077"])
        here = {name for name, digest in digests.items() if digest in data[page * 4096 : page * 4096 + 4096]}
        spoil(folder, [page])
        report = repair(folder, refill)
        assert {lost.id for lost in report.lost} == here
        assert all("cannot be read" in lost.reason for lost in report.lost)
        assert report.documents == 200 - len(here)
        store = EmbeddedStore(folder)
        assert store.verify()[3] == []
        store.close()

    def test_any_one_page_is_repaired_or_refused(self, large):
        """Whatever page is spoiled: the index is sound again, and all but what stood in that page is there."""
        folder, documents = large
        sound = (folder / FILE_NAME).read_bytes()
        roots = {row[0] - 1 for row in run_sql(folder, "SELECT rootpage FROM sqlite_master")}
        fewest = len(documents)
        for page in range(0, len(sound) // 4096, 11):
            (folder / FILE_NAME).write_bytes(sound)
            spoil(folder, [page])
            if page == 0:
                assert "restore a backup" in refusal(CorruptStore, lambda: repair(folder, refill)).fix
                continue
            report = repair(folder, refill)
            store = EmbeddedStore(folder)
            assert store.verify()[3] == [], page
            held = {document.id: document for document in store.documents("")}
            store.close()
            assert held.items() <= documents.items()
            assert len(held) + len(report.lost) + report.unnamed == 200, page
            fewest = min(fewest, len(held) if page not in roots else fewest)
            for kept in folder.glob("*.damaged-*"):
                kept.unlink()
        assert 120 <= fewest < 200, "the root of a table costs all that hangs from it, a leaf only what is on it"

    def test_a_table_that_cannot_be_read_at_all_ends(self, large, monkeypatch):
        folder, _ = large
        monkeypatch.setattr(salvage_module, "_SILENCE", 2_000)
        (root,) = run_sql(folder, "SELECT rootpage FROM sqlite_master WHERE name = 'documents'")[0]
        spoil(folder, [root - 1])
        report = repair(folder, refill)
        assert (report.documents, len(report.lost) + report.unnamed) == (0, 200)
        assert {lost.id for lost in report.lost} >= {"d000", "d199"}

    def test_a_file_that_is_cut_off_says_that_others_may_be_lost(self, large, monkeypatch):
        monkeypatch.setattr(salvage_module, "_SILENCE", 2_000)
        folder, _ = large
        data = (folder / FILE_NAME).read_bytes()
        (folder / FILE_NAME).write_bytes(data[:8192])  # no more than the list of tables
        report = repair(folder, lambda settings, kept, store: refill(settings or SETTINGS, kept, store))
        assert (report.documents, report.uncounted, report.complete) == (0, True, False)
        assert "others may be lost too" in str(report)


class TestRefused:
    def test_a_file_of_which_nothing_can_be_read(self, folder):
        data = (folder / FILE_NAME).read_bytes()
        (folder / FILE_NAME).write_bytes(b"\0" * 4096 + data[4096:])
        error = refusal(CorruptStore, lambda: repair(folder, refill))
        assert "restore a backup" in error.fix
        assert "wellhead repair" not in error.fix
        assert sorted(path.name for path in folder.iterdir()) == [FOLDER, FILE_NAME]

    def test_another_programs_database_is_left_alone(self, tmp_path):
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as other:
            other.execute("CREATE TABLE theirs (x)")
            other.commit()
        before = (tmp_path / FILE_NAME).read_bytes()
        assert "no index" in refusal(CorruptStore, lambda: repair(tmp_path, refill)).what
        assert (tmp_path / FILE_NAME).read_bytes() == before

    def test_a_newer_format(self, folder):
        run_sql(folder, "PRAGMA user_version = 99")
        assert "upgrade" in refusal(StaleIndex, lambda: repair(folder, refill)).fix

    def test_a_folder_without_an_index(self, tmp_path):
        assert "no index" in refusal(StoreError, lambda: repair(tmp_path / "none", refill)).what
        assert not (tmp_path / "none").exists()

    def test_while_it_is_open_elsewhere(self, folder, tmp_path):
        run_sql(folder, "DELETE FROM terms WHERE term = 3")
        damaged = (folder / FILE_NAME).read_bytes()
        reader = EmbeddedStore(folder, read_only=True)
        assert reader.version() > 0
        error = refusal(WriterBusy, lambda: repair(folder, refill, timeout_s=0.1))
        assert "close all others" in error.fix
        assert (folder / FILE_NAME).read_bytes() == damaged
        reader.close()
        repair(folder, refill)
        check_holds(folder, tmp_path, DOCUMENTS)

    def test_nobody_opens_it_meanwhile(self, folder):
        seen = []

        def intruding(settings, kept, store):
            seen.append(refusal(WriterBusy, lambda: EmbeddedStore(folder, timeout_s=0.05).version()))
            return refill(settings, kept, store)

        run_sql(folder, "DELETE FROM terms")
        repair(folder, intruding)
        assert len(seen) == 1

    @pytest.mark.parametrize("error", [IngestStopped("the embedder failed"), KeyboardInterrupt()])
    def test_a_refill_that_fails_leaves_the_old_file(self, folder, tmp_path, error):
        def failing(settings, kept, store):
            refill(settings, list(kept)[:3], store)
            raise error

        run_sql(folder, "DELETE FROM terms")
        before = (folder / FILE_NAME).read_bytes()
        with pytest.raises(type(error)):
            repair(folder, failing)
        assert (folder / FILE_NAME).read_bytes() == before
        assert sorted(path.name for path in folder.iterdir()) == [FOLDER, FILE_NAME]
        repair(folder, refill)
        check_holds(folder, tmp_path, DOCUMENTS)

    def test_a_new_file_that_is_damaged_too_does_not_come_into_its_place(self, folder):
        def spoiling(settings, kept, store):
            done = refill(settings, kept, store)
            with store._database.write() as connection:
                connection.execute("UPDATE texts SET text = 'x'")
            return done

        run_sql(folder, "DELETE FROM terms")
        before = (folder / FILE_NAME).read_bytes()
        assert "damaged too" in refusal(CorruptStore, lambda: repair(folder, spoiling)).what
        assert (folder / FILE_NAME).read_bytes() == before

    def test_a_folder_that_may_not_be_written_to(self, folder, monkeypatch):
        run_sql(folder, "DELETE FROM terms")
        monkeypatch.setattr("wellhead.backends.stores.embedded.place.os.access", lambda path, mode: False)
        assert "may not be written" in refusal(StoreError, lambda: repair(folder, refill)).what


KILLED = """
import os, sys
from pathlib import Path
from wellhead.backends.stores.embedded import failpoint
from wellhead.backends.stores.embedded.repair import repair
sys.path.insert(0, sys.argv[3])
from test_repair import refill
failpoint.hook = lambda name: name == sys.argv[2] and os._exit(9)
repair(Path(sys.argv[1]), refill)
"""


class TestKilled:
    @pytest.mark.parametrize(
        "step", ["append.after_commit", "repair.made", "repair.kept", "repair.unlogged", "repair.swapped"]
    )
    def test_it_is_the_old_or_the_new_one(self, folder, tmp_path, step):
        run_sql(folder, "DELETE FROM terms WHERE term = 3")
        command = [sys.executable, "-c", KILLED, str(folder), step, str(Path(__file__).parent)]
        assert subprocess.run(command, check=False).returncode == 9
        store = EmbeddedStore(folder)
        findings = store.verify()[3]
        assert {finding.kind for finding in findings} <= {"term", "row"}
        assert (findings == []) == (step == "repair.swapped")
        assert len(store.states("")) == 12
        put(store, [Document(id="after", text="own after")])
        store.close()
        report = repair(folder, refill)
        assert bool(report.findings) == (step != "repair.swapped")
        check_holds(folder, tmp_path, [*DOCUMENTS, Document(id="after", text="own after")])
        EmbeddedStore(folder).compact()
        assert not list(folder.glob("wellhead.repair-*"))


class TestOpenStore:
    def test_a_store_repairs_itself_and_goes_on(self, folder, tmp_path):
        run_sql(folder, SAVED["a passage"])
        store = EmbeddedStore(folder)
        assert [name for name, state in store.states("").items() if state.incomplete] == ["1.md"]
        report = store.repair(refill)
        assert report.complete
        put(store, [Document(id="after", text="own after")])
        assert len(store.view("")) == 37
        store.close()
        check_holds(folder, tmp_path, [*DOCUMENTS, Document(id="after", text="own after")])

    def test_one_that_is_read_only_refuses(self, folder):
        with closing(EmbeddedStore(folder, read_only=True)) as store:
            assert "read-only" in refusal(StoreError, lambda: store.repair(refill)).what
            assert len(store.view("")) == 36

    def test_one_that_is_closed_stays_so(self, folder):
        store = EmbeddedStore(folder)
        store.close()
        refusal(UsageError, lambda: store.repair(refill))
        refusal(UsageError, store.version)

    def test_after_one_that_failed_it_goes_on_as_before(self, folder):
        run_sql(folder, SAVED["a passage"])
        store = EmbeddedStore(folder)

        def failing(settings, kept, given):
            raise WellheadError("no")

        with pytest.raises(WellheadError, match="no"):
            store.repair(failing)
        assert len(store.states("")) == 12
        store.close()


def test_a_report_tells_what_was_done():
    report = RepairReport(findings=(), segments=2)
    assert str(report) == "nothing is wrong, and nothing was done"
    assert report.to_dict()["complete"] is True
