"""The numbers of terms: each its own, never given twice, and remembered only as long as they hold."""

from __future__ import annotations

import pytest

from histories import by_hand
from wellhead.backends.stores.embedded.numbers import TermNumbers, delete_terms
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import CorruptStore


@pytest.fixture
def database(tmp_path):
    store = by_hand(EmbeddedStore(tmp_path / "kb"))
    yield store._database
    store.close()


def asked(database, numbers: TermNumbers, *terms: str) -> list[int]:
    with database.write() as connection:
        known = numbers.of(connection, terms, "here")
        return [known[term] for term in terms]


def stored(database) -> dict[str, int]:
    with database.read() as connection:
        return {word.decode(): term for term, word in connection.execute("SELECT term, word FROM terms")}


def test_new_terms_get_the_next_numbers_and_keep_them(database):
    numbers = TermNumbers()
    assert asked(database, numbers, "one", "two", "one") == [1, 2, 1]
    assert asked(database, numbers, "three", "two") == [3, 2]
    assert asked(database, TermNumbers(), "three", "four", "one") == [3, 4, 1]
    assert stored(database) == {"one": 1, "two": 2, "three": 3, "four": 4}


def test_what_is_known_is_not_looked_up_again(database):
    numbers = TermNumbers()
    asked(database, numbers, "one", "two")
    statements: list[str] = []
    with database.write() as connection:
        connection.set_trace_callback(statements.append)
        assert numbers.of(connection, ["two", "one"], "here")["two"] == 2
        connection.set_trace_callback(None)
    assert not [sql for sql in statements if "FROM terms" in sql]


def test_another_writer_makes_it_look_again(database):
    mine, other = TermNumbers(), TermNumbers()
    asked(database, mine, "one", "two")
    assert asked(database, other, "three") == [3]
    with database.write() as connection:
        delete_terms(connection, [1], "here")
    assert asked(database, mine, "one", "two", "three") == [5, 2, 3]  # 4 is what the deletion counted
    assert stored(database) == {"one": 5, "two": 2, "three": 3}


def test_numbers_of_an_undone_write_are_forgotten(database):
    mine, other = TermNumbers(), TermNumbers()

    def undone() -> None:
        with database.write() as connection:
            assert mine.of(connection, ["lost"], "here")["lost"] == 1
            raise RuntimeError

    with pytest.raises(RuntimeError):
        undone()
    mine.forget()
    assert asked(database, other, "found") == [1]
    assert asked(database, mine, "lost", "found") == [2, 1]


def test_an_entry_of_the_index_that_leads_elsewhere_is_named(database, monkeypatch):
    asked(database, TermNumbers(), "one", "two")
    with database.write() as connection:
        connection.execute("UPDATE terms SET word = 'uno' WHERE term = 1")
    monkeypatch.setattr(
        "wellhead.backends.stores.embedded.numbers.rows_among",
        lambda connection, sql, values: [(b"one", 1)] if "word IN" in sql else [(1, b"uno")],
    )
    with pytest.raises(CorruptStore, match="term 1"):
        asked(database, TermNumbers(), "one")
