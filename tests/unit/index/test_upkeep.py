"""An index is told about, compacted, backed up and repaired through its handle, and comes back when it is deleted."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from wellhead import Document, Index, UsageError
from wellhead.backends.stores.embedded import keeper
from wellhead.errors import ConfigError, CorruptStore, IngestStopped, ScopeError, StaleIndex, StoreError
from wellhead.records import CompactReport, RepairReport, Storage
from wellhead.testing.fakes import HashEmbedder


class Counting(HashEmbedder):
    """Keeps the texts that it was asked to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.stack([self.embed_query(text) for text in texts])


class Broken(HashEmbedder):
    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise TimeoutError("no answer")


def open_index(path: str | Path = ":memory:", **options: object) -> Index:
    return Index.open(path, **{"embedder": HashEmbedder(), "languages": ["en"], **options})  # type: ignore[arg-type]


def notes(count: int = 5) -> list[Document]:
    return [Document(id=f"d{n}", text=f"the key of note {n}", title=f"Note {n}") for n in range(count)]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.md").write_text(f"# Title {number}\n\nWords of file {number}, and a key.\n")
    return folder


def spoil(kb: Path, *statements: str) -> None:
    with closing(sqlite3.connect(kb / "wellhead.sqlite")) as raw:
        for sql in statements:
            raw.execute(sql)
        raw.commit()


def answers(index: Index) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in index.search("the key of file 3", cut="off")]


def held(kb: Path) -> tuple[int, bool] | str:
    """How many documents an index holds and whether it is sound; or what keeps it from telling."""
    try:
        with open_index(kb) as index:
            return len(list(index.documents())), index.verify().ok
    except StoreError as error:
        return error.what


class TestStats:
    def test_they_tell_how_the_index_lies_on_the_disk(self, kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(keeper, "FLUSH_ROWS", 20)
        with open_index(kb) as index:
            index.add(notes(24))
            index._house.store.settle()  # type: ignore[attr-defined]
            index.add([Document(id="new", text="newer")])
            index.remove("d0")
            stats = index.stats()
            assert stats.storage is not None
            storage = stats.storage
            assert (storage.segments, storage.segment_rows, storage.newest_rows, storage.dead_rows) == (1, 23, 1, 1)
            assert (stats.documents, stats.passages, stats.with_vectors, stats.incomplete) == (24, 24, 24, 0)
            sizes = {path.name: path.stat().st_size for path in kb.rglob("*") if path.is_file()}
            assert storage.tables_bytes == sizes["wellhead.sqlite"]
            assert storage.log_bytes == sizes["wellhead.sqlite-wal"]
            assert storage.segments_bytes == sum(size for name, size in sizes.items() if name.endswith(".seg")) > 0
            assert (
                stats.bytes == storage.bytes == sum(size for name, size in sizes.items() if not name.endswith("-shm"))
            )
            assert (storage.unusable, storage.unlisted, storage.failure) == ((), (), "")
            assert index.storage() == storage

    def test_a_segment_that_cannot_be_used_and_a_stray_file_are_named(self, kb: Path) -> None:
        with open_index(kb) as index:
            index.add(notes())
            index.compact()
        (path,) = (kb / "segments").iterdir()
        path.write_bytes(b"x" * 5_000)
        (kb / "segments" / "stray.seg").write_bytes(b"x")
        with open_index(kb, read_only=True) as index:
            assert len(index.search("key", cut="off")) == 5
            storage = index.storage()
            assert (storage.unusable, storage.unlisted) == ((path.stem,), ("stray.seg",))

    def test_what_stopped_the_keeping_in_shape_is_told(self, kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object) -> bytes:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(keeper, "FLUSH_ROWS", 3)
        monkeypatch.setattr(keeper, "write_segment", full)
        with open_index(kb) as index:
            index.add(notes())
            with pytest.raises(StoreError):
                index._house.store.settle()  # type: ignore[attr-defined]
            assert "no space left" in index.storage().failure
            assert len(index.search("key", cut="off")) == 5

    @pytest.mark.parametrize("scope_key", ["tenant", None])
    def test_a_handle_of_one_scope_tells_its_own_counts_alone(self, kb: Path, scope_key: str | None) -> None:
        with open_index(kb, scope_key=scope_key) as index:
            index.scoped(tenant="acme").add(notes(3))
            before = index.scoped(tenant="acme").stats()
            index.scoped(tenant="globex").add([Document(id="g", text="another key")])
            after = index.scoped(tenant="acme").stats()
            assert (after.storage, after.passages) == (None, 3)
            assert (before.documents, before.passages, before.with_vectors) == (3, 3, 3)
            assert index.storage().newest_rows == 4

    def test_in_memory_nothing_lies_on_a_disk(self) -> None:
        with open_index() as index:
            index.add(notes())
            assert (index.stats().storage, index.stats().bytes, index.storage()) == (None, 0, Storage())


class TestVerify:
    def test_what_is_harmless_is_a_note_and_no_finding(self, kb: Path) -> None:
        with open_index(kb) as index:
            index.add(notes())
            index.compact()
            assert index.verify().notes == ()
            (kb / "segments" / "stray.seg").write_bytes(b"x")
            report = index.verify()
            assert report.ok
            (note,) = report.notes
            assert (note.where, "wellhead compact" in note.fix) == ("segments/stray.seg", True)
            index.compact()
            assert index.verify().notes == ()

    def test_damage_of_every_kind_is_a_report_and_no_error(self, kb: Path) -> None:
        with open_index(kb) as index:
            index.add(notes())
        spoil(kb, "UPDATE segments SET rows = 0", "DELETE FROM terms", "DELETE FROM counters WHERE name = 'passage'")
        with open_index(kb) as index:
            assert {finding.kind for finding in index.verify().findings} >= {"term", "counter"}


class TestCompact:
    def test_deleted_text_is_gone_from_every_file(self, kb: Path) -> None:
        with open_index(kb) as index:
            index.add([*notes(), Document(id="secret", text="the zyzzyva clause", metadata={"of": "Nobody"})])
            index.remove("secret")
            files = [path for path in kb.rglob("*") if path.is_file()]
            assert any(b"zyzzyva" in path.read_bytes() for path in files)
            report = index.compact()
            assert report.terms > 0
            files = [path for path in kb.rglob("*") if path.is_file()]
            assert [
                path.name for path in files if b"zyzzyva" in path.read_bytes() or b"Nobody" in path.read_bytes()
            ] == []
            assert len(index.search("key", cut="off")) == 5
            assert index.verify().ok

    def test_in_memory_there_is_nothing_to_do(self) -> None:
        with open_index() as index:
            index.add(notes())
            assert index.compact() == CompactReport()
            assert index.repair() == RepairReport()


class TestBackup:
    def test_the_copy_answers_as_the_index_does(self, kb: Path, docs: Path, tmp_path: Path) -> None:
        with open_index(kb) as index:
            index.sync(docs)
            before = answers(index)
            report = index.backup(tmp_path / "copy")
            assert (report.documents, report.index_version) == (5, index.stats().index_version)
            index.remove([document.id for document in index.documents()])
        shutil.copytree(tmp_path / "copy", tmp_path / "elsewhere" / "kb")
        with open_index(tmp_path / "elsewhere" / "kb", create=False) as restored:
            assert answers(restored) == before
            assert restored.verify().ok

    def test_the_file_alone_beside_an_old_log_is_no_backup(self, kb: Path, tmp_path: Path) -> None:
        """What the how-to warns of: SQLite replays the log that it finds under the name of the file."""
        with open_index(kb) as index:
            index.add(notes())
            index.backup(tmp_path / "copy")
            for number in range(20):
                index.add([Document(id=f"later {number}", text=f"later {number}")])
            shutil.copytree(kb, tmp_path / "crashed")
        (tmp_path / "crashed" / "wellhead.sqlite").unlink()
        shutil.copy(tmp_path / "copy" / "wellhead.sqlite", tmp_path / "crashed")
        assert held(tmp_path / "crashed") != (5, True)
        shutil.rmtree(tmp_path / "crashed")
        shutil.copytree(tmp_path / "copy", tmp_path / "crashed")
        assert held(tmp_path / "crashed") == (5, True)

    @pytest.mark.parametrize("scope_key", ["tenant", None])
    def test_a_handle_of_one_scope_cannot_copy_mend_or_measure_all(
        self, kb: Path, tmp_path: Path, scope_key: str | None
    ) -> None:
        with open_index(kb, scope_key=scope_key) as index:
            acme = index.scoped(tenant="acme")
            acme.add(notes())
            for act in (lambda: acme.backup(tmp_path / "copy"), acme.repair, acme.compact, acme.verify, acme.storage):
                with pytest.raises(ScopeError, match="bound to a scope"):
                    act()
            assert not (tmp_path / "copy").exists()
            assert index.backup(tmp_path / "copy").documents == 5
            assert index.compact().after > 0

    def test_an_index_in_memory_cannot_be_backed_up(self, tmp_path: Path) -> None:
        with open_index() as index, pytest.raises(UsageError, match="in memory"):
            index.backup(tmp_path / "copy")

    @pytest.mark.parametrize("dest", ["", "  ", ":memory:", None, 3, "a\0b"])
    def test_what_is_no_folder_is_refused(self, kb: Path, dest: object) -> None:
        with open_index(kb) as index, pytest.raises(UsageError, match="path of a folder"):
            index.backup(dest)  # type: ignore[arg-type]


class TestRepair:
    def test_an_open_index_repairs_itself_and_answers_as_before(self, kb: Path, docs: Path) -> None:
        embedder = Counting()
        (docs / "guides").mkdir()
        (docs / "guides" / "one.md").write_text("A guide to the key.\n")
        with open_index(kb, embedder=embedder) as index:
            index.sync(docs)
            before, version = answers(index), index.stats().index_version
        spoil(kb, "UPDATE passages SET start = 1 WHERE doc = 2", "DELETE FROM vectors WHERE rowid = 4")
        embedder.asked = []
        told: list[tuple[int, int, str]] = []
        with open_index(kb, embedder=embedder) as index:
            guides = index.scoped(area="guides")
            report = index.repair(progress=lambda done, total, name: told.append((done, total, name)))
            assert (report.documents, report.embedded, report.complete) == (6, 1, True)
            assert len(embedder.asked) == 1
            assert told[-1][0] == 6
            assert index.verify().ok
            assert answers(index) == before
            assert index.stats().index_version > version
            assert len(guides.search("key", cut="off")) == 1
            embedder.asked = []
            assert index.sync(docs).unchanged == 6
            assert embedder.asked == []

    def test_what_is_lost_comes_back_with_its_folder(self, kb: Path, docs: Path) -> None:
        with open_index(kb) as index:
            index.sync(docs)
            before = answers(index)
        spoil(kb, "UPDATE texts SET text = 'other' WHERE doc = 3")
        with open_index(kb) as index:
            report = index.repair()
            assert ([lost.id for lost in report.lost], report.complete) == (["2.md"], False)
            assert index.get("2.md") is None
            assert index.sync(docs).added == 1
            assert answers(index) == before

    def test_scopes_stay_apart(self, kb: Path) -> None:
        with open_index(kb, scope_key="tenant") as index:
            index.scoped(tenant="acme").add(notes())
            index.scoped(tenant="globex").add(notes(2))
        spoil(kb, "DELETE FROM terms")
        report = Index.repair_at(kb, embedder=HashEmbedder())
        assert report.documents == 7
        with open_index(kb) as index:
            assert len(index.scoped(tenant="acme").search("key", cut="off")) == 5
            assert len(index.scoped(tenant="globex").search("key", cut="off")) == 2
            with pytest.raises(ScopeError):
                index.search("key")

    def test_derived_damage_costs_nothing_and_needs_no_embedder(self, kb: Path) -> None:
        with open_index(kb) as index:
            index.add(notes())
            index.compact()
            before = answers(index)
        (path,) = (kb / "segments").iterdir()
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
        report = Index.repair_at(kb)
        assert (report.segments, report.documents, report.kept_as) == (1, 0, "")
        with open_index(kb) as index:
            assert index.verify().ok
            assert answers(index) == before

    def test_with_every_vector_there_no_embedder_is_needed(self, kb: Path) -> None:
        """The index was made with an object of the program's own, which the command line does not have."""
        with open_index(kb) as index:
            index.add(notes())
        spoil(kb, "DELETE FROM terms")
        assert Index.repair_at(kb).complete
        with open_index(kb) as index:
            assert index.verify().ok
            assert index.stats().fingerprint["embedder"] == "hash"

    def test_an_embedder_that_fails_leaves_the_index_as_it_was(self, kb: Path) -> None:
        with open_index(kb) as index:
            index.add(notes())
        spoil(kb, "DELETE FROM vectors")
        with open_index(kb, embedder=Broken()) as index:
            with pytest.raises(IngestStopped):
                index.repair()
            assert len(list(index.documents())) == 5
        assert sorted(path.name for path in kb.iterdir()) == ["wellhead.sqlite"]
        assert Index.repair_at(kb, embedder=HashEmbedder()).embedded == 5

    def test_an_index_that_was_made_otherwise_is_not_repaired_into_another(self, kb: Path) -> None:
        with open_index(kb) as index:
            index.add(notes())
        spoil(kb, "DELETE FROM terms")
        with open_index(kb, embedder=HashEmbedder(name="other")) as index, pytest.raises(StaleIndex):
            index.repair()
        with pytest.raises(ConfigError, match="was made with embedder='hash', not 'other'"):
            Index.repair_at(kb, embedder=HashEmbedder(name="other"))

    def test_lost_settings_are_asked_for_and_never_guessed(self, kb: Path) -> None:
        with open_index(kb, scope_key="tenant", date_keys=["when"]) as index:
            index.scoped(tenant="acme").add(notes())
        spoil(kb, "UPDATE settings SET value = 'x'")
        with pytest.raises(CorruptStore, match="--scope-key"):
            open_index(kb)
        with pytest.raises(ConfigError, match="lost: chunker, date_keys, embedder, languages, scope_key") as caught:
            Index.repair_at(kb)
        assert "--date-key ..." in caught.value.fix
        with pytest.raises(ConfigError, match="lost: date_keys, languages"):
            Index.repair_at(kb, embedder=HashEmbedder(), chunker="structure", scope_key="tenant")
        report = Index.repair_at(
            kb, embedder=HashEmbedder(), chunker="structure", scope_key="tenant", date_keys=[], languages=["en"]
        )
        assert (report.complete, report.documents) == (True, 5)
        with open_index(kb) as index:
            assert len(index.scoped(tenant="acme").search("key", cut="off")) == 5
            assert index.verify().ok

    def test_settings_that_are_gone_are_asked_for_too(self, kb: Path) -> None:
        with open_index(kb) as index:
            index.add(notes())
        spoil(kb, "DELETE FROM settings WHERE name IN ('chunker', 'analyzer')")
        with pytest.raises(CorruptStore, match="wellhead repair"):
            open_index(kb)
        with pytest.raises(ConfigError, match="lost: chunker"):
            Index.repair_at(kb, embedder=HashEmbedder())
        report = Index.repair_at(kb, embedder=HashEmbedder(), chunker="structure")
        assert ([finding.kind for finding in report.findings], report.complete) == (["setting"], True)
        with open_index(kb) as index:
            assert len(index.search("key", cut="off")) == 5

    def test_an_index_that_does_not_open_any_more_is_repaired(self, kb: Path) -> None:
        with open_index(kb) as index:
            index.add(notes())
        spoil(kb, "DROP INDEX documents_by_id")
        with pytest.raises(CorruptStore, match="wellhead repair"):
            open_index(kb)
        assert Index.repair_at(kb, embedder=HashEmbedder()).documents == 5
        with open_index(kb) as index:
            assert index.verify().ok

    def test_what_is_no_index_is_refused(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "none"):
            with pytest.raises(UsageError, match="there is no index"):
                Index.repair_at(path)
        with pytest.raises(UsageError, match="path of a folder"):
            Index.repair_at(":memory:")


class TestDeleted:
    @pytest.mark.promise("D33")
    def test_a_deleted_index_is_made_anew_once_and_then_loaded(self, kb: Path, docs: Path) -> None:
        embedder = Counting()
        asked = []
        for deleted in (False, True, False):
            if deleted:
                shutil.rmtree(kb)
            embedder.asked = []
            with open_index(kb, embedder=embedder) as index:
                report = index.sync(docs)
                asked.append((report.added, report.unchanged, len(embedder.asked)))
                told = answers(index)
            assert (kb / "wellhead.sqlite").is_file()
        assert asked == [(5, 0, 5), (5, 0, 5), (0, 5, 0)]
        assert len(told) == 5

    @pytest.mark.promise("D33")
    def test_deleted_segments_come_back_without_embedding_anything(
        self, kb: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        embedder = Counting()
        with open_index(kb, embedder=embedder) as index:
            index.sync(docs)
            index.compact()
            before = answers(index)
        shutil.rmtree(kb / "segments")
        embedder.asked = []
        with open_index(kb, embedder=embedder) as index:
            assert answers(index) == before
            assert index.sync(docs).unchanged == 5
            index._house.store.settle()  # type: ignore[attr-defined]
            assert len(list((kb / "segments").iterdir())) == 1
            assert index.verify().ok
        assert embedder.asked == []
