"""Every kind of damage to a document: it is named with a command that mends it, and both commands do."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest

from wellhead.backends.stores.embedded import keeper
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.backends.stores.embedded.segment import FOLDER
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import CorruptStore
from wellhead.index import Index
from wellhead.records import Document, Passage
from wellhead.testing.contracts import assert_same_view, live_rows, put, refusal
from wellhead.testing.fakes import HashEmbedder, document_row, vectors_of

pytestmark = pytest.mark.faults

DOCUMENTS = [Document(id=f"{n}.md", text=f"own {n}\nshared\nmore {n}", title=f"T{n}") for n in range(4)]
# The documents table numbers them from 1; "1.md" is number 2 and has the passages 4, 5, 6.
KINDS = {
    "text": "UPDATE texts SET text = 'x' WHERE doc = 2",
    "text gone": "DELETE FROM texts WHERE doc = 2",
    "title": "UPDATE documents SET title = 'x' WHERE doc = 2",
    "number of passages": "UPDATE documents SET passages = 7 WHERE doc = 2",
    "passage": "UPDATE passages SET start = 1 WHERE passage = 4",
    "terms of a passage": "UPDATE passages SET words = x'0100000002000000' WHERE passage = 4",
    "passage gone": "DELETE FROM passages WHERE passage = 4",
    "vector": "UPDATE vectors SET data = zeroblob(64) WHERE rowid = 4",
    "vector of another size": "UPDATE vectors SET data = zeroblob(32) WHERE rowid = 1",
    "vector gone": "DELETE FROM vectors WHERE rowid = 4",
}
OF_VECTORS = ("vector", "vector of another size", "vector gone")
MOVED = {
    "scope": "UPDATE documents SET scope = 'other' WHERE doc = 2",
    "id": "UPDATE documents SET id = 'other.md' WHERE doc = 2",
    "row gone": "DELETE FROM documents WHERE doc = 2",
    "last row gone": "DELETE FROM documents WHERE doc = 4",
    "passage under another document": "UPDATE passages SET doc = 3, ordinal = 9 WHERE passage = 4",
}


@pytest.fixture(params=["tail", "segment"])
def held(request, monkeypatch):
    """Where the rows lie beside the tables: nowhere but in memory, or in the file of a segment."""
    if request.param == "segment":
        monkeypatch.setattr(keeper, "FLUSH_ROWS", 1)
    return request.param


@pytest.fixture
def folder(tmp_path, held):
    """A closed index of four documents that share a passage."""
    store = EmbeddedStore(tmp_path)
    put(store, DOCUMENTS)
    store.settle()
    store.close()
    assert (tmp_path / FOLDER).exists() == (held == "segment")
    return tmp_path


def run_sql(folder, sql: str) -> None:
    """Change the file behind the store's back."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as raw:
        raw.execute(sql)
        raw.commit()


def index_again(store: EmbeddedStore) -> list[str]:
    """As an ingest does: write what is new or incomplete, with the vectors that are not known; what was written."""
    states = {document.id: store.states("", [document.id]).get(document.id) for document in DOCUMENTS}
    changed = [document for document in DOCUMENTS if (state := states[document.id]) is None or state.incomplete]
    rows = [document_row(document) for document in changed]
    vectors = vectors_of(rows, HashEmbedder())
    known = store.known_vectors(list(vectors))
    store.put(rows, {key: vector for key, vector in vectors.items() if key not in known})
    return [document.id for document in changed]


def check_as_new(store: EmbeddedStore, tmp_path_factory, documents) -> None:
    # A vector that only a lost passage used is nobody's: harmless.
    assert [finding for finding in store.verify()[3] if finding.kind != "orphan_vector"] == []
    fresh = EmbeddedStore(tmp_path_factory.mktemp("fresh"))
    put(fresh, documents)
    assert_same_view(store.view(""), fresh.view(""), ["own", "shared", "more"])
    fresh.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_document_is_indexed_again(folder, tmp_path_factory, kind):
    run_sql(folder, KINDS[kind])
    store = EmbeddedStore(folder)
    assert [name for name, state in store.states("").items() if state.incomplete] == index_again(store)
    check_as_new(store, tmp_path_factory, DOCUMENTS)
    store.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "vector of another size"])
def test_a_damaged_document_is_removed(folder, tmp_path_factory, kind):
    run_sql(folder, KINDS[kind])
    store = EmbeddedStore(folder)
    assert store.delete("", ["1.md"]) == 1
    check_as_new(store, tmp_path_factory, [document for document in DOCUMENTS if document.id != "1.md"])
    store.close()


def read(store: EmbeddedStore) -> list[Passage]:
    """Every passage, in the order of their ids."""
    view = store.view("")
    return view.passages(live_rows(view))


def by_id(passage: Passage) -> str:
    return passage.id


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OF_VECTORS])
def test_a_read_names_the_document_and_what_mends_it_unless_a_segment_holds_it(folder, held, tmp_path_factory, kind):
    run_sql(folder, KINDS[kind])
    store = EmbeddedStore(folder)
    if held == "segment":
        with closing(EmbeddedStore(tmp_path_factory.mktemp("fresh"))) as fresh:
            put(fresh, DOCUMENTS)
            assert sorted(read(store), key=by_id) == sorted(read(fresh), key=by_id)
        assert store.verify()[3] != []
        store.close()
        return
    error = refusal(CorruptStore, lambda: read(store))
    if kind != "passage gone":  # the counts tell it, and they are not kept by document
        assert "'1.md'" in error.what
        assert "wellhead rm 1.md" in error.fix
    assert "index" in error.fix
    store.close()


@pytest.mark.parametrize("kind", ["vector", "vector of another size"])
def test_a_damaged_vector_is_refused_unless_a_segment_holds_it(folder, held, tmp_path_factory, kind):
    """What is searched is the segment: it is checked by its own digest, and was made of sound rows."""
    run_sql(folder, KINDS[kind])
    store = EmbeddedStore(folder)
    assert "vector" in {finding.kind for finding in store.verify()[3]}
    assert store.states("")["1.md" if kind == "vector" else "0.md"].incomplete
    if held == "tail":
        error = refusal(CorruptStore, lambda: store.view(""))
        assert "wellhead index FOLDER" in error.fix
    else:
        fresh = EmbeddedStore(tmp_path_factory.mktemp("fresh"))
        put(fresh, DOCUMENTS)
        assert_same_view(store.view(""), fresh.view(""), ["own", "shared", "more"])
        fresh.close()
    store.close()


@pytest.mark.parametrize("kind", MOVED)
def test_what_damage_gave_to_another_owner_is_taken_back(folder, tmp_path_factory, kind):
    run_sql(folder, MOVED[kind])
    store = EmbeddedStore(folder)
    assert index_again(store)
    if kind == "passage under another document":
        index_again(store)
    check_as_new(store, tmp_path_factory, DOCUMENTS)
    store.close()


def test_an_id_that_only_the_table_lost_is_mended(folder, tmp_path_factory):
    """The row and SQLite's index over it differ by one bit: a delete fails until the index is made anew."""
    data = (folder / FILE_NAME).read_bytes()
    place = data.index(b"1.mdT1")  # in the table the title follows; in an index it does not
    (folder / FILE_NAME).write_bytes(data[:place] + b"x" + data[place + 1 :])
    store = EmbeddedStore(folder)
    assert store.states("", ["1.md"])["1.md"].incomplete
    assert index_again(store) == ["1.md"]
    check_as_new(store, tmp_path_factory, DOCUMENTS)
    store.close()


def test_summaries_go_on_past_a_damaged_row(folder):
    run_sql(folder, KINDS["title"])
    store = EmbeddedStore(folder)
    told = store.summaries("")
    assert [(one.id, one.title, one.damaged) for one in told] == [
        ("0.md", "T0", False),
        ("1.md", "", True),
        ("2.md", "T2", False),
        ("3.md", "T3", False),
    ]
    store.close()


def test_documents_that_are_gone_are_not_passed_over(folder, held):
    run_sql(folder, "DELETE FROM passages WHERE doc = 2")
    run_sql(folder, "DELETE FROM documents WHERE doc = 2")
    store = EmbeddedStore(folder)
    for ask in (lambda: store.states(""), lambda: store.summaries(""), *([lambda: read(store)] * (held == "tail"))):
        assert "wellhead repair" in refusal(CorruptStore, ask).fix
    store.close()


def test_a_damaged_setting_has_its_own_advice(folder):
    store = EmbeddedStore(folder)
    store.set_settings({"embedder": "hash"})
    store.close()
    run_sql(folder, "UPDATE settings SET value = 'other'")
    store = EmbeddedStore(folder)
    error = refusal(CorruptStore, store.settings)
    assert "what the index was made with" in error.fix
    assert "wellhead rm" not in error.fix
    store.close()


@pytest.mark.parametrize("kind", ["text", "title", "passage", "vector"])
def test_the_same_sync_again_mends_what_a_search_refused(tmp_path, held, kind):
    (tmp_path / "docs").mkdir()
    for number in range(3):
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Title {number}\n\nWords of file {number}.\n")
    with Index.open(tmp_path / "kb", embedder=HashEmbedder()) as index:
        index.sync(tmp_path / "docs")
        index._house.store.settle()
    sql = {"passage": "UPDATE passages SET start = 1 WHERE doc = 2", "vector": KINDS["vector"].replace("4", "2")}
    run_sql(tmp_path / "kb", sql.get(kind, KINDS[kind]))
    with Index.open(tmp_path / "kb", embedder=HashEmbedder()) as index:
        if held == "tail":  # what a segment holds is sound
            with pytest.raises(CorruptStore, match=r"1\.md"):
                index.search("words of file 1", cut="off")
        report = index.sync(tmp_path / "docs")
        assert (report.updated, report.unchanged) == (1, 2)
        assert len(index.search("words of file 1", cut="off")) == 3
        assert index.verify().ok


OF_GLOBEX = {
    "document": "UPDATE documents SET title = 'forged' WHERE scope = 'globex'",
    "document of another scope": "UPDATE documents SET scope = 'initech' WHERE scope = 'globex'",
    "document gone": "DELETE FROM documents WHERE scope = 'globex'",
    "passage": "UPDATE passages SET start = start + 1 WHERE doc = (SELECT doc FROM documents WHERE scope = 'globex')",
    "passage gone": "DELETE FROM passages WHERE doc = (SELECT doc FROM documents WHERE scope = 'globex')",
    "vector": """UPDATE vectors SET checksum = x'00' WHERE key IN (SELECT vector_key FROM passages p JOIN documents d
                 ON d.doc = p.doc WHERE d.scope = 'globex')""",
}


@pytest.mark.parametrize("lost", [False, True], ids=["newest", "segment lost"])
@pytest.mark.parametrize("kind", OF_GLOBEX)
def test_a_damaged_row_of_one_scope_stops_no_other_and_is_told_to_nobody_else(tmp_path, monkeypatch, kind, lost):
    monkeypatch.setattr(keeper, "FLUSH_ROWS", 1 if lost else 1000)
    with closing(EmbeddedStore(tmp_path)) as store:
        for scope in ("acme", "globex", "initech"):
            put(store, [Document(id=f"{scope}-{n}", text=f"note of {scope} {n}") for n in range(3)], scope=scope)
        store.settle()
    if lost:
        shutil.rmtree(tmp_path / FOLDER)
    run_sql(tmp_path, OF_GLOBEX[kind])
    store = EmbeddedStore(tmp_path)
    for scope in ("acme", "initech"):
        view = store.view(scope)
        assert sorted(passage.document_id for passage in view.passages(live_rows(view))) == [
            f"{scope}-{n}" for n in range(3)
        ]
    error = refusal(CorruptStore, lambda: store.view("globex"))
    assert "wellhead" in error.fix
    assert kind not in ("document", "passage", "vector") or "'globex-" in error.what
    assert store.verify()[3] != []
    store.close()
