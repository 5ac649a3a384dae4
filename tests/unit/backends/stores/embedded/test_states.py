"""States of many documents: as if each were looked at by itself, in a few statements; and sources set afterwards."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.backends.stores.embedded import states as states_module
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.backends.stores.embedded.rows import is_sound
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage
from wellhead.backends.stores.embedded.states import read_states
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.backends.stores.memory import MemoryStore
from wellhead.ports import DocumentState, Store
from wellhead.records import Document
from wellhead.testing.contracts import put
from wellhead.testing.fakes import document_row

NAMES = [f"{n}.md" for n in range(12)]
# By the number of a document: "0.md" has number 1.
DAMAGE = {
    "text": "UPDATE texts SET text = 'x' WHERE doc = {}",
    "text gone": "DELETE FROM texts WHERE doc = {}",
    "title": "UPDATE documents SET title = 'x' WHERE doc = {}",
    "source": "UPDATE documents SET source = x'00' WHERE doc = {}",
    "passages said": "UPDATE documents SET passages = passages + 1 WHERE doc = {}",
    "document": "DELETE FROM documents WHERE doc = {}",
    "passage": "UPDATE passages SET start = start + 1 WHERE doc = {} AND ordinal = 0",
    "passage gone": "DELETE FROM passages WHERE doc = {} AND ordinal = 0",
    "passage moved": "UPDATE passages SET doc = doc % 12 + 1, ordinal = 9 WHERE doc = {} AND ordinal = 0",
    "vector": "UPDATE vectors SET data = zeroblob(64) WHERE rowid = {}",
    "vector gone": "DELETE FROM vectors WHERE rowid = {}",
    "vector without its key": "UPDATE passages SET vector_key = NULL WHERE doc = {}",
}


def documents() -> list[Document]:
    """Documents of none to three passages; some share a passage, and so a vector."""
    texts = ["", "own {}", "own {}\nshared", "own {}\nshared\nmore {}"]
    return [Document(id=name, text=texts[n % 4].replace("{}", str(n))) for n, name in enumerate(NAMES)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    store = EmbeddedStore(folder)
    put(
        store,
        [msgspec.structs.replace(document_row(one, origin="docs"), source=one.id.encode()) for one in documents()],
    )
    put(store, [document_row(Document(id="torn", text="torn"), incomplete=True)])
    put(store, [Document(id="0.md", text="elsewhere")], scope="acme")
    store.close()
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "kb"))


def opened(folder: Path) -> closing[sqlite3.Connection]:
    connection = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
    connection.text_factory = bytes
    return closing(connection)


def damage(folder: Path, kind: str, doc: int) -> None:
    with opened(folder) as raw:
        raw.execute(DAMAGE[kind].format(doc))


def one_by_one(connection: sqlite3.Connection, scope: str, names: list[str]) -> dict[str, DocumentState]:
    """What states are, said in the plainest way: each document by itself, each of its rows by itself."""
    states = {}
    for name in sorted(names):
        sql = "SELECT * FROM documents WHERE scope = ? AND id = ?"
        for values in connection.execute(sql, (scope, name)).fetchall():
            row = StoredDocument(*values)
            whole = is_sound(row) and _is_whole(connection, row)
            origin = row.origin.decode("utf-8", "replace")
            states[name] = DocumentState(row.digest, origin, bool(row.incomplete) or not whole, row.source)
    return states


def _is_whole(connection: sqlite3.Connection, row: StoredDocument) -> bool:
    texts = connection.execute("SELECT text, checksum FROM texts WHERE doc = ?", (row.doc,)).fetchall()
    if [checksum("texts", row.doc, text) == stored for text, stored in texts] != [True]:
        return False
    found = connection.execute("SELECT * FROM passages WHERE doc = ?", (row.doc,))
    passages = [StoredPassage(*values) for values in found]
    if len(passages) != row.passages or not all(map(is_sound, passages)):
        return False
    for passage in passages:
        if passage.vector_key is not None:
            sql = "SELECT data, checksum FROM vectors WHERE key = ?"
            vectors = connection.execute(sql, (passage.vector_key,)).fetchall()
            if [checksum("vectors", passage.vector_key, data) == stored for data, stored in vectors] != [True]:
                return False
    return True


@given(
    st.lists(st.tuples(st.sampled_from(sorted(DAMAGE)), st.integers(1, 12)), max_size=5),
    st.lists(st.sampled_from([*NAMES, "torn", "nobody"]), max_size=16),
    st.integers(1, 20),
)
@settings(max_examples=100)
def test_states_of_many_are_those_of_each(
    template: Path,
    tmp_path_factory: pytest.TempPathFactory,
    damages: list[tuple[str, int]],
    asked: list[str],
    chunk: int,
) -> None:
    folder = Path(shutil.copytree(template, tmp_path_factory.mktemp("kb") / "kb"))
    for kind, doc in damages:
        damage(folder, kind, doc)
    with opened(folder) as raw, pytest.MonkeyPatch.context() as patch:
        patch.setattr(states_module, "_CHUNK", chunk)
        told = read_states(raw, "", asked, "here")
        assert list(told.items()) == list(one_by_one(raw, "", list(dict.fromkeys(asked))).items())
        if "document" not in dict(damages):
            every = read_states(raw, "", None, "here")
            assert list(every.items()) == list(one_by_one(raw, "", [*NAMES, "torn"]).items())


@pytest.mark.parametrize("kind", sorted(set(DAMAGE) - {"document", "passage moved"}))
def test_damage_to_one_document_makes_that_one_incomplete(folder: Path, kind: str) -> None:
    doc = 4  # three passages, of which one vector is shared
    if kind.startswith("vector") and "key" not in kind:
        with opened(folder) as raw:
            sql = (
                "SELECT v.rowid FROM passages p JOIN vectors v ON v.key = p.vector_key WHERE p.doc = 4 AND ordinal = 0"
            )
            (doc,) = raw.execute(sql).fetchone()
    damage(folder, kind, doc)
    with closing(EmbeddedStore(folder)) as store:
        states = store.states("")
        assert [name for name, state in states.items() if state.incomplete] == ["3.md", "torn"]
        assert [name for name, state in store.states("", NAMES).items() if state.incomplete] == ["3.md"]


def test_a_vector_that_several_use_makes_all_of_them_incomplete(folder: Path) -> None:
    with opened(folder) as raw:
        sql = "DELETE FROM vectors WHERE key = (SELECT vector_key FROM passages GROUP BY 1 HAVING count(*) = 6)"
        assert raw.execute(sql).rowcount == 1
    with closing(EmbeddedStore(folder)) as store:
        incomplete = [name for name, state in store.states("", NAMES).items() if state.incomplete]
        assert incomplete == ["10.md", "11.md", "2.md", "3.md", "6.md", "7.md"]


def test_a_vector_that_only_the_table_shows_is_there(folder: Path) -> None:
    """One bit of SQLite's own index differs: it finds nothing where there is something."""
    path = folder / FILE_NAME
    data = path.read_bytes()
    with opened(folder) as raw:
        (key,) = raw.execute("SELECT vector_key FROM passages WHERE doc = 4 AND ordinal = 0").fetchone()
    seen = 0
    for place in [found.start() for found in re.finditer(re.escape(key), data)]:
        path.write_bytes(data[:place] + bytes([key[0] ^ 1]) + data[place + 1 :])
        with opened(folder) as raw:
            by_index = raw.execute("SELECT data FROM vectors WHERE key = ?", (key,)).fetchone()
            by_table = raw.execute("SELECT data FROM vectors NOT INDEXED WHERE key = ?", (key,)).fetchone()
            if by_index is None and by_table is not None:
                seen += 1
                assert not read_states(raw, "", ["3.md"], "here")["3.md"].incomplete
    assert seen == 1


def test_many_documents_take_a_few_statements(folder: Path) -> None:
    with closing(EmbeddedStore(folder)) as store:
        put(store, [Document(id=f"many/{n}", text=f"text {n}\nmore {n}") for n in range(400)])
        names = [f"many/{n}" for n in range(400)]
        with store._database.read() as connection:
            said: list[str] = []
            connection.set_trace_callback(said.append)
            states = read_states(connection, "", names, "here")
            connection.set_trace_callback(None)
        assert len(states) == 400
        assert len(said) <= 6


# -- sources ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["embedded", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = EmbeddedStore(tmp_path / "kb") if request.param == "embedded" else MemoryStore()
    put(made, documents(), origin="docs")
    put(made, [Document(id="0.md", text="elsewhere")], scope="acme", origin="docs")
    with closing(made):
        yield made


def test_a_source_that_is_set_is_told_and_nothing_else_changes(store: Store) -> None:
    before, version, view = store.states(""), store.version(), store.view("")
    assert before["3.md"].source == b""
    store.set_sources("", {"3.md": before["3.md"]._replace(source=b"s" * 32)})
    assert store.states("") == {**before, "3.md": before["3.md"]._replace(source=b"s" * 32)}
    assert store.states("acme")["0.md"].source == b""
    assert store.version() == version
    assert store.view("") is view
    assert store.verify()[3] == []


def test_a_source_is_not_set_where_the_document_is_another_by_now(store: Store) -> None:
    states = store.states("")
    put(store, [Document(id="3.md", text="edited meanwhile")], origin="docs")
    put(store, [documents()[2]], origin="")
    before = store.states("")
    wanted = {**states, "nobody": states["3.md"]}
    store.set_sources("", {name: state._replace(source=b"s" * 32) for name, state in wanted.items()})
    after = store.states("")
    assert {name for name, state in after.items() if state.source} == {*NAMES} - {"2.md", "3.md"}
    assert (after["2.md"], after["3.md"]) == (before["2.md"], before["3.md"])


def test_a_source_does_not_bless_a_damaged_row(folder: Path) -> None:
    damage(folder, "title", 4)
    with closing(EmbeddedStore(folder)) as store:
        state = store.states("", ["3.md"])["3.md"]
        store.set_sources("", {"3.md": state._replace(source=b"s" * 32)})
        assert store.states("", ["3.md"])["3.md"] == state
        assert state.incomplete
