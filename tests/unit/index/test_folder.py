"""A synced folder: an unchanged file is not read into a document again, any other one is, and damage is mended."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from wellhead import Document, Index
from wellhead.backends.readers import folder as reader_folder
from wellhead.errors import CorruptStore
from wellhead.index import folder as index_folder
from wellhead.index.folder import FolderReading
from wellhead.ingest.incoming import Incoming, Unread
from wellhead.records import Refusal
from wellhead.testing.fakes import HashEmbedder

PAGES = {
    "a/one.md": "# One\n\nThe first page, about oaks.\n\n# More\n\nAnd about elms.\n",
    "a/two.md": "# Two\n\nThe second page, about firs.\n",
    "b/three.html": "<title>Three</title><p>The third page, about pines.</p><script>build = 1</script>",
    "four.txt": "The fourth page, about yews.",
}
Read = list[str]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for name, text in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def open_index(path: str | Path, **options: object) -> Index:
    return Index.open(path, **({"embedder": HashEmbedder(), "languages": ["en"]} | options))  # type: ignore[arg-type]


@pytest.fixture
def index(kb: Path) -> Iterator[Index]:
    with open_index(kb) as opened:
        yield opened


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """The names of the files that were read into documents."""
    names: Read = []
    read_bytes = reader_folder.read_bytes

    def spied(data: bytes, name: str) -> object:
        names.append(name)
        return read_bytes(data, name)

    monkeypatch.setattr(reader_folder, "read_bytes", spied)
    return names


def write_unseen(path: Path, text: str) -> None:
    """An edit that leaves size and times as they were."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


# -- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.promise("D24")
def test_an_unchanged_folder_is_not_read_into_documents(index: Index, docs: Path, read: Read) -> None:
    assert index.sync(docs).added == 4
    assert len(read) == 4
    read.clear()
    report = index.sync(docs)
    assert (report.read, report.unchanged, report.complete, read) == (4, 4, True, [])


def test_an_edit_that_keeps_time_and_size_is_seen(index: Index, docs: Path, read: Read) -> None:
    index.sync(docs)
    read.clear()
    write_unseen(docs / "a/two.md", PAGES["a/two.md"].replace("firs", "figs"))
    report = index.sync(docs)
    assert (report.updated, report.unchanged, read) == (1, 3, ["a/two.md"])
    held = index.get("a/two.md")
    assert held is not None
    assert "figs" in held.text


def test_a_touched_file_is_unchanged(index: Index, docs: Path, read: Read) -> None:
    index.sync(docs)
    read.clear()
    os.utime(docs / "four.txt", (0, 0))
    assert (index.sync(docs).unchanged, read) == (4, [])


def test_bytes_that_hold_the_same_document_are_read_once_more(index: Index, docs: Path, read: Read) -> None:
    """A page that is built anew, with another number in its script."""
    index.sync(docs)
    read.clear()
    version = index.stats().index_version
    (docs / "b/three.html").write_text(PAGES["b/three.html"].replace("build = 1", "build = 2"))
    assert (index.sync(docs).unchanged, read) == (4, ["b/three.html"])
    assert (index.sync(docs).unchanged, read) == (4, ["b/three.html"])
    assert index.stats().index_version == version
    assert index.verify().ok


def test_after_a_change_of_the_readers_every_file_is_read_once_more(
    index: Index, docs: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.sync(docs)
    read.clear()
    monkeypatch.setattr(index_folder, "REVISION", index_folder.REVISION + 1)
    assert (index.sync(docs).unchanged, sorted(read)) == (4, sorted(PAGES))
    read.clear()
    assert (index.sync(docs).unchanged, read) == (4, [])


def test_front_matter_that_does_not_parse_is_said_by_every_run(index: Index, docs: Path, read: Read) -> None:
    (docs / "bad.md").write_text("---\ntitle: [unclosed\n---\nAbout ashes.\n")
    first = index.sync(docs).notes
    read.clear()
    report = index.sync(docs)
    assert (report.unchanged, report.notes, read) == (5, first, ["bad.md"])
    assert [note.id for note in first] == ["bad.md"]


def test_a_file_that_holds_nothing_any_more_is_skipped_and_its_document_removed(index: Index, docs: Path) -> None:
    index.sync(docs)
    (docs / "four.txt").write_bytes(bytes(range(256)))
    (docs / "a/two.md").write_text(" \n")
    report = index.sync(docs)
    assert (report.unchanged, report.removed, report.skipped) == (2, 2, {"binary": 1, "empty": 1})


def test_a_file_that_is_refused_keeps_its_document_and_is_unchanged_once_it_is_back(index: Index, docs: Path) -> None:
    (docs / "data.json").write_text('{"tree": "larch"}')
    index.sync(docs)
    (docs / "data.json").write_text('{"tree": "larch"')
    report = index.sync(docs)
    assert ([one.id for one in report.refused], report.unchanged, report.removed) == (["data.json"], 4, 0)
    (docs / "data.json").write_text('{"tree": "larch"}')
    assert index.sync(docs).unchanged == 5


def test_a_file_is_opened_once_and_read_from_the_bytes_that_were_hashed(
    index: Index, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    os_open = os.open

    def spied(path: str | Path, *flags: int) -> int:
        opened.append(Path(path).name)
        return os_open(path, *flags)

    monkeypatch.setattr(os, "open", spied)
    (item,) = reading(index, docs / "a/two.md").incoming()
    assert isinstance(item, Unread)
    (docs / "a/two.md").write_text("Written over meanwhile.")
    made = item.read()
    assert isinstance(made, Incoming)
    assert (made.document.text, made.source) == (PAGES["a/two.md"], item.source)
    assert opened == ["two.md"]


def test_progress_is_told_of_unchanged_files_as_of_others(index: Index, docs: Path) -> None:
    for n in range(100):
        (docs / f"{n:03}.txt").write_text(f"the note numbered {n}")
    told: list[list[tuple[int, int, str]]] = []
    for _ in range(2):
        steps: list[tuple[int, int, str]] = []
        index.sync(docs, progress=lambda *step, steps=steps: steps.append(step))  # type: ignore[misc]
        told.append(steps)
    assert told[0] == told[1]
    assert [done for done, _, _ in told[0]] == [0, 64, 104]


# -- what a source depends on -----------------------------------------------------------------------------------------


def reading(index: Index, path: Path, *, prefix: str = "", origin: str | None = None) -> FolderReading:
    return FolderReading(index._house, index._scope, path, include=(), exclude=(), prefix=prefix, origin=origin)


def sources(index: Index, path: Path, prefix: str = "") -> dict[str, bytes]:
    items = list(reading(index, path, prefix=prefix).incoming())
    assert all(isinstance(item, Unread) for item in items)
    return {item.id: item.source for item in items if isinstance(item, Unread)}


def test_a_source_does_not_depend_on_place_or_time(index: Index, docs: Path, tmp_path: Path) -> None:
    first = sources(index, docs)
    assert {len(source) for source in first.values()} == {32}
    assert len(set(first.values())) == 4
    copy = Path(shutil.copytree(docs, tmp_path / "elsewhere"))
    os.utime(copy / "four.txt", (0, 0))
    with open_index(":memory:") as other:
        assert sources(other, copy) == first


OTHERWISE: dict[str, Callable[[], Index]] = {
    "chunker": lambda: open_index(":memory:", chunker="paragraph"),
    "model": lambda: open_index(":memory:", embedder=HashEmbedder(dims=8)),
    "languages": lambda: open_index(":memory:", languages=["en", "de"]),
    "date keys": lambda: open_index(":memory:", date_keys=["published"]),
    "a scope": lambda: open_index(":memory:").scoped(tenant="acme"),
    "another scope": lambda: open_index(":memory:").scoped(tenant="globex"),
    "another key": lambda: open_index(":memory:").scoped(team="acme"),
    "a scope key": lambda: open_index(":memory:", scope_key="tenant").scoped(tenant="acme umbrella"),
}


def test_a_source_depends_on_how_documents_and_rows_are_made(index: Index, docs: Path) -> None:
    first = sources(index, docs)
    found = {name: sources(make(), docs)["four.txt"] for name, make in OTHERWISE.items()}
    assert len({first["four.txt"], *found.values()}) == len(OTHERWISE) + 1


def test_a_source_depends_on_the_revision_of_the_readers(
    index: Index, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sources(index, docs)
    monkeypatch.setattr(index_folder, "REVISION", index_folder.REVISION + 1)
    assert first.items().isdisjoint(sources(index, docs).items())


def test_a_source_depends_on_prefix_and_name_each_by_itself(index: Index, docs: Path) -> None:
    """`a/` + `two.md` and `a/two.md` are one id, but only the second lies in the area `a`."""
    assert sources(index, docs)["a/two.md"] != sources(index, docs / "a", prefix="a/")["a/two.md"]
    assert sources(index, docs, prefix="x/")["x/four.txt"] != sources(index, docs)["four.txt"]


def test_a_prefix_that_is_renamed_moves_the_documents(index: Index, docs: Path) -> None:
    index.sync(docs, prefix="old/")
    report = index.sync(docs, prefix="new/")
    assert (report.added, report.removed, report.embedded) == (4, 4, 0)
    assert index.sync(docs, prefix="new/").unchanged == 4


def test_the_same_id_from_another_place_gets_its_own_area(index: Index, docs: Path) -> None:
    index.sync(docs / "a", prefix="a/", origin="trees")
    assert index.stats().areas == {"": 2}
    report = index.sync(docs, origin="trees")
    assert (report.updated, report.added) == (2, 2)
    assert index.stats().areas == {"": 1, "a": 2, "b": 1}


def test_a_handle_of_another_scope_does_not_pass_over_what_is_not_its_own(docs: Path) -> None:
    """In an index without a scope key all scopes share one space of ids."""
    with open_index(":memory:") as index:
        assert index.scoped(tenant="acme").sync(docs, origin="docs").added == 4
        assert index.scoped(tenant="acme").sync(docs, origin="docs").unchanged == 4
        report = index.scoped(tenant="globex").sync(docs, origin="docs")
        assert (report.unchanged, len(report.refused), report.removed) == (0, 4, 0)
        assert list(index.scoped(tenant="globex").documents()) == []


def test_a_prefix_that_is_no_text_that_can_be_stored_is_refused(index: Index, docs: Path) -> None:
    items = [item.read() for item in reading(index, docs, prefix="\ud800").incoming() if isinstance(item, Unread)]
    assert len(items) == 4
    assert all(isinstance(item, Refusal) and "surrogate" in item.reason for item in items)


# -- what is removed --------------------------------------------------------------------------------------------------


def test_pruning_asks_for_the_states_of_lost_documents_alone(
    index: Index, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add([Document(id="mine", text="A program's own.")])
    index.sync(docs)
    (docs / "four.txt").unlink()
    asked: list[object] = []
    store = index._house.store
    states = store.states
    monkeypatch.setattr(store, "states", lambda scope, ids=None: asked.append(ids) or states(scope, ids))
    assert index.sync(docs).removed == 1
    assert asked == [["a/one.md", "a/two.md", "b/three.html"], ["four.txt"]]
    assert [one.id for one in index.documents()] == ["a/one.md", "a/two.md", "b/three.html", "mine"]


def test_a_damaged_document_without_a_file_is_removed(index: Index, docs: Path, kb: Path) -> None:
    index.sync(docs)
    index.close()
    run_sql(kb, "UPDATE documents SET title = 'x' WHERE id = 'four.txt'")
    (docs / "four.txt").unlink()
    with open_index(kb) as index:
        assert index.sync(docs).removed == 1
        assert index.verify().ok


def test_a_damaged_document_of_a_program_is_kept(index: Index, docs: Path, kb: Path) -> None:
    index.add([Document(id="mine", text="A program's own.")])
    index.sync(docs)
    index.close()
    run_sql(kb, "UPDATE documents SET title = 'x' WHERE id = 'mine'")
    with open_index(kb) as index:
        assert index.sync(docs).removed == 0
        assert [one.id for one in index.summaries() if one.damaged] == ["mine"]


# -- what is damaged --------------------------------------------------------------------------------------------------


# Documents are numbered from 1 in the order of their names: "a/two.md" is number 2.
DAMAGE = {
    "text": "UPDATE texts SET text = 'x' WHERE doc = 2",
    "text gone": "DELETE FROM texts WHERE doc = 2",
    "title": "UPDATE documents SET title = 'x' WHERE doc = 2",
    "digest": "UPDATE documents SET digest = zeroblob(32) WHERE doc = 2",
    "number of passages": "UPDATE documents SET passages = 7 WHERE doc = 2",
    "row": "DELETE FROM documents WHERE doc = 2",
    "passage": "UPDATE passages SET start = 1 WHERE doc = 2",
    "terms": "UPDATE passages SET words = x'0100000002000000' WHERE doc = 2",
    "passage gone": "DELETE FROM passages WHERE doc = 2",
    "vector": "UPDATE vectors SET data = zeroblob(64) WHERE key = (SELECT vector_key FROM passages WHERE doc = 2)",
    "vector gone": "DELETE FROM vectors WHERE key = (SELECT vector_key FROM passages WHERE doc = 2)",
}


def run_sql(kb: Path, sql: str) -> None:
    """Change the file behind the index's back."""
    with closing(sqlite3.connect(kb / "wellhead.sqlite")) as raw:
        assert raw.execute(sql).rowcount == 1
        raw.commit()


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_mended_from_files_that_did_not_change(
    index: Index, docs: Path, kb: Path, read: Read, kind: str
) -> None:
    index.sync(docs)
    before = {one.id: index.passages(one.id) for one in index.documents()}
    index.close()
    run_sql(kb, DAMAGE[kind])
    read.clear()
    with open_index(kb) as index:
        report = index.sync(docs)
        assert (report.unchanged, report.added + report.updated, read) == (3, 1, ["a/two.md"])
        assert [one for one in index.verify().findings if one.kind != "orphan_vector"] == []
        assert {one.id: index.passages(one.id) for one in index.documents()} == before
        assert [hit.passage.document_id for hit in index.search("firs", mode="lexical", cut="off")] == ["a/two.md"]
        read.clear()
        assert (index.sync(docs).unchanged, read) == (4, [])


def test_a_source_that_is_damaged_is_written_anew(index: Index, docs: Path, kb: Path, read: Read) -> None:
    """Even where it became the source of another file: the row's checksum tells."""
    index.sync(docs)
    index.close()
    run_sql(kb, "UPDATE documents SET source = (SELECT source FROM documents WHERE doc = 1) WHERE doc = 2")
    with open_index(kb) as index:
        with pytest.raises(CorruptStore):
            index.search("firs")
        read.clear()
        assert (index.sync(docs).updated, read) == (1, ["a/two.md"])
        assert index.verify().ok
