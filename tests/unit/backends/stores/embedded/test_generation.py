"""One generation follows from another: what is known is kept, what is new is read, what is gone is masked."""

from __future__ import annotations

import logging
import math
import sqlite3
from contextlib import closing

import pytest

from histories import LAYOUTS, by_hand, few_rows, lay_out, next_job, state_of
from wellhead.backends.stores.embedded import generation as generation_module
from wellhead.backends.stores.embedded import place
from wellhead.backends.stores.embedded.connection import FILE_NAME
from wellhead.backends.stores.embedded.generation import Generation, advance
from wellhead.backends.stores.embedded.keeper import Job, carry_out
from wellhead.backends.stores.embedded.segment import FOLDER, SegmentDamaged, file_of
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.backends.stores.memory import MemoryStore
from wellhead.errors import CorruptStore, StoreError
from wellhead.records import Document
from wellhead.testing.contracts import assert_same_view, put, refusal


@pytest.fixture
def store(tmp_path):
    """An empty store without its thread."""
    store = by_hand(EmbeddedStore(tmp_path / "kb"))
    yield store
    store.close()


def documents(first: int, last: int) -> list[Document]:
    """Of one passage each."""
    return [Document(id=f"d{n}", text=f"note number {n}", metadata={"n": n}) for n in range(first, last)]


def flush(store: EmbeddedStore, last: int | None = None) -> None:
    """Put the newest rows, up to a number, into a segment."""
    segments, upto = state_of(store)
    assert carry_out(store._database, Job((), segments[-1].last + 1 if segments else 1, last or upto))


def next_of(store: EmbeddedStore, before: Generation | None, *, patient: bool = False) -> Generation:
    with store._database.read() as connection:
        return advance(connection, before, store.folder, store.where, patient=patient)


def sizes(generation: Generation) -> tuple[list[int], list[int]]:
    """The rows of each segment, and of each part of the tail."""
    held = [(len(one.part), one.segment is not None) for one in generation.held]
    return [size for size, is_segment in held if is_segment], [size for size, is_segment in held if not is_segment]


def run_sql(store: EmbeddedStore, sql: str) -> None:
    """Change the file behind the store's back."""
    with closing(sqlite3.connect(store.folder / FILE_NAME)) as raw:
        raw.execute(sql)
        raw.commit()


class TestAdvance:
    def test_of_an_empty_store_there_is_nothing(self, store):
        generation = next_of(store, None)
        assert (generation.held, generation.upto, generation.broken) == ((), 0, frozenset())
        assert next_of(store, generation) is generation

    def test_nothing_is_read_where_nothing_was_written(self, store):
        put(store, documents(0, 5))
        generation = next_of(store, None)
        assert next_of(store, generation) is generation
        again = next_of(store, None)
        assert again is not generation
        assert sizes(again) == sizes(generation) == ([], [5])

    def test_parts_are_kept_over_writes(self, store):
        put(store, documents(0, 5))
        flush(store)
        put(store, documents(5, 9))
        first = next_of(store, None)
        put(store, documents(9, 10))
        second = next_of(store, first)
        assert sizes(second) == ([5], [4, 1])
        assert [one.part for one in second.held[:2]] == [one.part for one in first.held]
        store.set_settings({"name": "value"})
        third = next_of(store, second)
        assert third.version > second.version
        assert [one.part for one in third.held] == [one.part for one in second.held]

    def test_what_was_deleted_is_masked_in_the_new_one_alone(self, store):
        put(store, documents(0, 5))
        flush(store)
        put(store, documents(5, 9))
        first = next_of(store, None)
        store.delete("", ["d1", "d6"])
        second = next_of(store, first)
        assert [one.live for one in first.held] == [None, None]
        assert [one.live.tolist() for one in second.held] == [
            [True, False, True, True, True],
            [True, False, True, True],
        ]
        store.delete("", ["d2"])
        third = next_of(store, second)
        assert third.held[0].live.tolist() == [True, False, False, True, True]
        assert second.held[0].live.tolist() == [True, False, True, True, True]
        assert third.held[1].live is second.held[1].live
        anew = next_of(store, None)
        assert (anew.held[0].live.tolist(), anew.held[1].live) == ([True, False, False, True, True], None)
        assert sizes(anew) == ([5], [3])

    def test_a_new_file_is_seen_though_nobody_wrote(self, store):
        put(store, documents(0, 5))
        first = next_of(store, None)
        flush(store)
        second = next_of(store, first)
        assert (second.version, sizes(second)) == (first.version, ([5], []))
        assert second.layout > first.layout

    def test_rows_that_came_into_a_segment_are_not_in_the_tail_any_more(self, store):
        put(store, documents(0, 5))
        put(store, documents(5, 7))
        first = next_of(store, None)
        flush(store, 3)
        second = next_of(store, first)
        assert sizes(second) == ([3], [4])
        store.delete("", ["d3", "d1"])
        third = next_of(store, second)
        assert [one.live.sum() for one in third.held] == [2, 3]
        flush(store)
        assert sizes(next_of(store, third)) == ([3, 3], [])

    def test_after_a_compaction_all_is_read_anew(self, store):
        put(store, documents(0, 5))
        flush(store)
        first = next_of(store, None)
        store.delete("", ["d1"])
        store.compact()
        by_hand(store)
        second = next_of(store, first)
        assert second.epoch > first.epoch
        assert sizes(second) == ([4], [])
        assert [one.live for one in second.held] == [None]

    def test_the_parts_of_the_tail_stay_few_and_each_row_is_read_once(self, store, monkeypatch):
        read = []
        real = generation_module.load_sound
        monkeypatch.setattr(
            generation_module, "load_sound", lambda *drawn: read.append(drawn[1:3]) or real(*drawn), raising=True
        )
        generation = None
        for n in range(60):
            put(store, documents(n, n + 1))
            generation = next_of(store, generation)
            tail = sizes(generation)[1]
            assert sum(tail) == n + 1
            assert tail == sorted(tail, reverse=True)
            assert len(tail) == len(set(tail)) <= math.log2(n + 1) + 1
        assert read == [(n, n) for n in range(1, 61)]

    def test_a_scope_has_its_own_rows_of_each_part(self, store):
        for scope in ("b", "a", ""):
            put(store, [Document(id=name, text=f"{name} of {scope}") for name in ("x", "y")], scope=scope)
            if scope == "b":
                flush(store)
        store.delete("a", ["x"])
        generation = next_of(store, None)
        shown = {scope: generation.view(scope, store._lookup) for scope in ("", "a", "b", "aa")}
        assert {scope: len(view) for scope, view in shown.items()} == {"": 2, "a": 1, "b": 2, "aa": 0}
        assert shown["b"].live is None
        assert [passage.text for passage in shown["b"].passages([0, 1])] == ["x of b", "y of b"]


def spoil(store: EmbeddedStore, how: str) -> None:
    path = file_of(store.folder, state_of(store)[0][0].name.decode())
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "cut off":
        path.write_bytes(data[:-100])
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.write_bytes(data[:500] + bytes([data[500] ^ 1]) + data[501:])


class TestDamagedFiles:
    @pytest.fixture
    def memory(self, store):
        """The same content as `store`, which has a segment, a tail and dead rows in both."""
        memory = MemoryStore()
        for one in (store, memory):
            put(one, documents(0, 6))
            if one is store:
                flush(store)
            put(one, documents(6, 9))
            one.delete("", ["d2", "d7"])
        return memory

    @pytest.mark.parametrize("how", ["gone", "cut off", "empty", "one bit"])
    def test_its_rows_are_read_from_the_tables_and_it_is_said(self, store, memory, how, caplog):
        spoil(store, how)
        with pytest.raises(SegmentDamaged):
            next_of(store, None, patient=True)
        with caplog.at_level(logging.WARNING, "wellhead"):
            view = store.view("")
        assert_same_view(view, memory.view(""), ["note", "2", "3", "nothing"])
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "read from the tables" in caplog.text
        caplog.clear()
        for one in (store, memory):
            put(one, documents(9, 10))
            one.delete("", ["d3"])
        with caplog.at_level(logging.WARNING, "wellhead"):
            assert_same_view(store.view(""), memory.view(""), ["note", "3"])
        assert caplog.records == []

    @pytest.mark.parametrize("how", ["gone", "one bit"])
    def test_a_reader_does_the_same_and_a_writer_mends_it(self, store, memory, how, caplog):
        spoil(store, how)
        reader = EmbeddedStore(store.folder, read_only=True)
        assert_same_view(reader.view(""), memory.view(""), ["note"])
        writer = EmbeddedStore(store.folder)
        assert_same_view(writer.view(""), memory.view(""), ["note"])
        assert "cannot be used" in caplog.text
        caplog.clear()
        writer.settle()
        assert [finding.kind for finding in writer.verify()[3]] == []
        for handle in (reader, writer, store):
            assert_same_view(handle.view(""), memory.view(""), ["note"])
            assert handle._generation.broken == frozenset()
        assert caplog.records == []
        reader.close()
        writer.close()

    def test_a_file_that_is_merged_comes_out_of_the_tables(self, store, memory):
        flush(store)
        spoil(store, "gone")
        segments, upto = state_of(store)
        assert carry_out(store._database, Job(tuple(segments), 1, upto))
        assert next_of(store, None, patient=True).broken == frozenset()
        assert_same_view(store.view(""), memory.view(""), ["note", "2"])

    def test_a_file_that_a_newer_one_replaced_meanwhile_is_no_damage(self, store, memory, monkeypatch, caplog):
        """Between the list and the file another process merged: a fresh snapshot is tried first."""
        other = by_hand(EmbeddedStore(store.folder))
        real, merged = generation_module.read_segment, []

        def read(path, digest):
            if not merged:
                merged.append(path)
                segments = state_of(other)[0]
                assert carry_out(other._database, Job(tuple(segments), 1, segments[-1].last))
                assert not path.exists()
            return real(path, digest)

        monkeypatch.setattr(generation_module, "read_segment", read)
        assert_same_view(store.view(""), memory.view(""), ["note"])
        assert store._generation.broken == frozenset()
        assert caplog.records == []
        other.close()


class TestUnwritableFolder:
    @pytest.mark.promise("B52")
    @pytest.mark.parametrize("layout", [*LAYOUTS, "a file lost"])
    def test_it_is_read_in_place_and_nothing_in_it_is_touched(self, store, layout, monkeypatch, caplog):
        memory = MemoryStore()
        for one in (store, memory):
            put(one, documents(0, 9))
        lay_out(store, "in many files" if layout == "a file lost" else layout)
        for one in (store, memory):
            one.delete("", ["d2", "d7"])
            put(one, documents(20, 22))
        store.close()
        if layout == "a file lost":
            next((store.folder / FOLDER).iterdir()).unlink()
        before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in store.folder.rglob("*")}
        monkeypatch.setattr(place.os, "access", lambda path, mode: False)
        reader = EmbeddedStore(store.folder)
        assert (reader.read_only, reader._keeper) == (True, None)
        assert_same_view(reader.view(""), memory.view(""), ["note", "2", "3", "20"])
        assert reader.verify()[:3] == memory.verify()[:3]
        refusal(StoreError, lambda: put(reader, documents(30, 31)))
        reader.settle()
        reader.close()
        after = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in store.folder.rglob("*")}
        assert after == before


class TestDamagedRows:
    @pytest.mark.parametrize(
        ("sql", "word"),
        [
            ("UPDATE segments SET last = last + 1", "segment"),
            ("UPDATE segments SET version = 99", "segment"),
            ("UPDATE segments SET name = 'other'", "segment"),
            ("UPDATE gone SET version = 99", "deleted"),
            ("UPDATE gone SET passage = 1", "deleted"),
            ("DELETE FROM gone", "list of passages"),
            ("UPDATE counters SET value = 1 WHERE name = 'passage'", "counter"),
            ("UPDATE counters SET value = 0 WHERE name = 'version'", "counter"),
        ],
    )
    def test_they_are_named_and_nothing_is_answered(self, store, sql, word):
        put(store, documents(0, 6))
        flush(store)
        store.delete("", ["d2"])
        run_sql(store, sql)
        again = by_hand(EmbeddedStore(store.folder))
        assert word in refusal(CorruptStore, lambda: again.view("")).what
        again.close()

    def test_a_segment_that_is_gone_from_the_list_is_read_from_the_tables(self, store):
        """Its rows are the newest again then, as if they had never been in a file."""
        put(store, documents(0, 6))
        flush(store)
        put(store, documents(6, 8))
        before = store.view("")
        run_sql(store, "DELETE FROM segments")
        again = by_hand(EmbeddedStore(store.folder))
        assert_same_view(again.view(""), before, ["note"])
        with few_rows(1):
            job = next_job(again)
        assert (job.sources, job.first, job.last) == ((), 1, 8)
        again.close()
