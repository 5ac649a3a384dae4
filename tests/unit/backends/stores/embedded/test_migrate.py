"""Every format that was ever written opens: read, searched, verified and written to as on its first day."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from fixtures.make_format import DOCUMENTS, KEPT
from wellhead import Document, Index
from wellhead.backends.stores.embedded import failpoint, keeper
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.backends.stores.embedded.schema import FORMAT, create_schema
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import CorruptStore, StaleIndex
from wellhead.records import Hits
from wellhead.testing.contracts import assert_same_view, refusal
from wellhead.testing.fakes import HashEmbedder

FIXTURES = Path(__file__).parents[4] / "fixtures"
NUMBERS = range(1, FORMAT + 1)
QUERIES = ("replica backup FRY-4012", "schlussel", "寿司", "brulee cafe", "restore")


def copy_of(number: int, to: Path) -> Path:
    """A copy of the index that is kept of a format."""
    return Path(shutil.copytree(FIXTURES / f"format-{number}", to / f"format-{number}"))


def open_index(folder: Path) -> Index:
    return Index.open(folder, embedder=HashEmbedder(), languages=["en", "de", "ja"], scope_key="tenant")


def tables(folder: Path) -> tuple[int, dict[str, list[tuple[object, ...]]]]:
    """The number of the format, and all rows."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as raw:
        raw.text_factory = bytes
        names = [name.decode() for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        (number,) = raw.execute("PRAGMA user_version").fetchone()
        return number, {name: raw.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def run_sql(folder: Path, *statements: str) -> None:
    """Change the file behind the store's back."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as raw:
        for sql in statements:
            raw.execute(sql)
        raw.commit()


def test_an_index_of_every_format_is_kept(tmp_path: Path) -> None:
    assert sorted(path.name for path in FIXTURES.glob("format-*")) == [f"format-{number}" for number in NUMBERS]
    assert [tables(copy_of(number, tmp_path))[0] for number in NUMBERS] == list(NUMBERS)
    assert list((tmp_path / f"format-{FORMAT}").glob("segments/*.seg"))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_kept_index_is_small_and_names_no_machine(number: int) -> None:
    files = [path for path in (FIXTURES / f"format-{number}").rglob("*") if path.is_file()]
    contents = b"".join(path.read_bytes() for path in files)
    assert len(contents) < 150_000
    for place in (Path(__file__).parents[5], Path.home(), Path(shutil.__file__).parent):
        assert str(place).encode() not in contents


def answers(index: Index) -> list[list[tuple[str, float | None]]]:
    found: list[Hits] = []
    for tenant in ("acme", "globex"):
        handle = index.scoped(tenant=tenant)
        found += [handle.search(query, mode=mode, cut="off") for query in QUERIES for mode in ("lexical", "hybrid")]
        found.append(handle.search("restore", filters={"n": {"$gte": 2}}, cut="off"))
    return [[(hit.id, hit.score and round(hit.score, 5)) for hit in hits] for hits in found]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_kept_index_opens_searches_verifies_and_writes(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "FLUSH_ROWS", 1)
    with Index.open(":memory:", embedder=HashEmbedder(), languages=["en", "de", "ja"], scope_key="tenant") as fresh:
        fresh.add(KEPT)
        with open_index(copy_of(number, tmp_path)) as index:
            assert index.verify().ok, index.verify().findings
            for tenant in ("acme", "globex"):
                own = sorted((one for one in KEPT if one.metadata["tenant"] == tenant), key=lambda one: one.id)
                assert list(index.scoped(tenant=tenant).documents()) == own
                for one in own:
                    same = [handle.scoped(tenant=tenant).passages(one.id) for handle in (index, fresh)]
                    assert same[0] == same[1]
            assert answers(index) == answers(fresh)
            assert index.add(DOCUMENTS).added == 1
            assert index.add(DOCUMENTS).unchanged == len(DOCUMENTS)
            fresh.add(DOCUMENTS)
            index._house.store.settle()  # type: ignore[attr-defined]
            assert answers(index) == answers(fresh)
            assert index.verify().ok
    with open_index(tmp_path / f"format-{number}") as again:
        assert again.verify().ok


def test_a_migrated_index_has_the_tables_and_rows_of_a_new_one(tmp_path: Path) -> None:
    one, other = EmbeddedStore(copy_of(1, tmp_path)), EmbeddedStore(copy_of(FORMAT, tmp_path))
    for scope in ("acme", "globex"):
        assert_same_view(one.view(scope), other.view(scope), ["replica", "fry-4012", "schlüssel", "寿司", "shared"])
        assert one.states(scope) == other.states(scope)
        assert one.summaries(scope) == other.summaries(scope)
    assert one.settings() == other.settings()
    assert one.version() == other.version()
    for store in (one, other):
        store.close()
    with closing(sqlite3.connect(":memory:")) as fresh, closing(sqlite3.connect(one.folder / FILE_NAME)) as migrated:
        create_schema(fresh)
        sql = "SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2"
        assert migrated.execute(sql).fetchall() == fresh.execute(sql).fetchall()
        assert migrated.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert migrated.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize("asked", [True, False])
def test_an_older_format_is_refused_where_nothing_may_be_written(
    asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_of(1, tmp_path)
    before = (folder / FILE_NAME).read_bytes()
    if not asked:
        monkeypatch.setattr("wellhead.backends.stores.embedded.place.os.access", lambda path, mode: False)
    error = refusal(StaleIndex, lambda: EmbeddedStore(folder, read_only=asked))
    assert "format 1" in error.what
    assert "for writing once" in error.fix
    assert "wellhead index" in error.fix
    assert (folder / FILE_NAME).read_bytes() == before


DAMAGE = {
    "setting": "UPDATE settings SET value = 'other' WHERE name = 'model'",
    "document": "UPDATE documents SET title = 'other' WHERE doc = 2",
    "scope of a document": "UPDATE documents SET scope = 'globex' WHERE doc = 2",
    "document gone": "DELETE FROM documents WHERE doc = 2",
    "last document gone": "DELETE FROM documents WHERE doc = (SELECT max(doc) FROM documents)",
    "text": "UPDATE texts SET text = 'other' WHERE doc = 2",
    "text gone": "DELETE FROM texts WHERE doc = 2",
    "text of nobody": "INSERT INTO texts VALUES (99, x'00', 'other')",
    "passage": "UPDATE passages SET start = start + 1 WHERE passage = 3",
    "terms of a passage": "UPDATE passages SET stems = x'' WHERE passage = 3",
    "passage gone": "DELETE FROM passages WHERE passage = 3",
    "passages of nobody": "UPDATE passages SET doc = 99 WHERE doc = 2",
    "term": "UPDATE terms SET word = 'other' WHERE term = 3",
    "term gone": "DELETE FROM terms WHERE term = 3",
    "counter": "UPDATE counters SET value = 'many'",
    "vector": "UPDATE vectors SET data = zeroblob(64) WHERE rowid = 3",
    "count": "UPDATE scopes SET documents = documents + 1 WHERE scope = 'acme'",
    "another table": "CREATE TABLE theirs (x)",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON terms BEGIN DELETE FROM documents; END",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_an_index_that_is_not_whole_is_left_as_it_is(kind: str, tmp_path: Path) -> None:
    folder = copy_of(1, tmp_path)
    run_sql(folder, "PRAGMA foreign_keys = OFF", DAMAGE[kind])
    before = tables(folder)
    error = refusal(CorruptStore, lambda: EmbeddedStore(folder))
    assert "format 1" in error.what
    assert "nothing was changed" in error.why
    assert tables(folder) == before
    assert before[0] == 1


@contextmanager
def failing_at(point: str) -> Iterator[None]:
    """Raise at a failpoint."""

    def hook(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    failpoint.hook = hook
    try:
        yield
    finally:
        failpoint.hook = None


@pytest.mark.parametrize("point", ["migrate.middle", "migrate.before_commit"])
def test_a_migration_that_is_interrupted_has_changed_nothing(point: str, tmp_path: Path) -> None:
    folder = copy_of(1, tmp_path)
    before = tables(folder)
    with failing_at(point), pytest.raises(KeyboardInterrupt):
        EmbeddedStore(folder)
    assert tables(folder) == before
    with open_index(folder) as index:
        assert index.verify().ok
        assert len(list(index.scoped(tenant="acme").documents())) == 4


def test_many_may_open_an_older_index_at_once(tmp_path: Path) -> None:
    folder = copy_of(1, tmp_path)
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: EmbeddedStore(folder), range(4)))
    assert {len(store.view("globex")) for store in stores} == {10}
    for store in stores:
        store.close()


def test_an_empty_index_of_an_older_format_is_migrated(tmp_path: Path) -> None:
    folder = copy_of(1, tmp_path)
    for table in ("passages", "texts", "documents", "terms", "vectors", "scopes", "counters", "settings"):
        run_sql(folder, f"DELETE FROM {table}")
    store = EmbeddedStore(folder)
    assert (store.version(), store.settings(), len(store.view("acme")), store.verify()[3]) == (0, {}, 0, [])
    store.close()
    with open_index(folder) as index:
        index.add([Document(id="a", text="x", metadata={"tenant": "acme"})])
        assert len(index.scoped(tenant="acme").search("x", cut="off")) == 1
