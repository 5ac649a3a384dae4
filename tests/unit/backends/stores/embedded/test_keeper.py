"""What is to do with the segments, that it is done whole or not at all, and the thread that does it."""

from __future__ import annotations

import errno
import logging
import math
import os
import pickle
import threading
import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from histories import assert_only_listed_files, at, by_hand, few_rows, next_job, state_of
from wellhead import Index
from wellhead.backends.stores.embedded import failpoint, keeper
from wellhead.backends.stores.embedded.counters import read_counter
from wellhead.backends.stores.embedded.keeper import Job, Keeper, carry_out, plan
from wellhead.backends.stores.embedded.schema import StoredSegment
from wellhead.backends.stores.embedded.segment import FOLDER, file_of
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.backends.stores.memory import MemoryStore
from wellhead.errors import StorageFull, StoreError, UsageError
from wellhead.records import Document
from wellhead.testing.contracts import assert_same_view, put, refusal
from wellhead.testing.fakes import HashEmbedder


@pytest.fixture
def store(tmp_path):
    """An empty store without its thread."""
    store = by_hand(EmbeddedStore(tmp_path / "kb"))
    yield store
    store.close()


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """An empty store with its thread, to which ten rows are worth a file."""
    monkeypatch.setattr(keeper, "FLUSH_ROWS", 10)
    store = EmbeddedStore(tmp_path / "kb")
    yield store
    store.close()


def documents(first: int, last: int) -> list[Document]:
    """Of one passage each."""
    return [Document(id=f"d{n}", text=f"note number {n}") for n in range(first, last)]


def fill(store: EmbeddedStore, *sizes: int) -> None:
    """Segments of so many rows, one after the other."""
    for size in sizes:
        upto = state_of(store)[1]
        put(store, documents(upto, upto + size))
        assert carry_out(store._database, Job((), upto + 1, upto + size))


def rows_of(store: EmbeddedStore) -> list[int]:
    return [one.rows for one in state_of(store)[0]]


def segments_of(*rows: int) -> list[StoredSegment]:
    """Entries of segments with so many rows; each covers ten times as many numbers."""
    ends = [10 * sum(rows[: place + 1]) for place in range(len(rows))]
    return [
        StoredSegment(b"s%d" % place, end - 10 * size + 1, end, size, 1, b"", b"")
        for place, (size, end) in enumerate(zip(rows, ends, strict=True))
    ]


def files_of(store: EmbeddedStore) -> list[str]:
    return sorted(path.name for path in (store.folder / FOLDER).iterdir())


class TestPlan:
    def test_of_an_empty_store_there_is_nothing_to_do(self, store):
        assert next_job(store) is None

    @pytest.mark.parametrize("rows", [8, 9, 10, 11, 25])
    def test_so_many_new_rows_are_worth_a_file(self, store, rows):
        put(store, documents(0, rows))
        with few_rows(10):
            assert next_job(store) == (Job((), 1, rows) if rows >= 10 else None)

    def test_what_counts_is_numbers_given_and_not_rows_left(self, store):
        fill(store, 20)
        put(store, documents(100, 110))
        store.delete("", [f"d{n}" for n in range(100, 109)])
        with few_rows(10):
            assert next_job(store) == Job((), 21, 30)

    def test_first_new_rows_then_merging_then_clearing(self, store):
        fill(store, 30, 5)
        put(store, documents(500, 510))
        store.delete("", [f"d{n}" for n in range(10)])
        with few_rows(10):
            jobs = []
            while (job := next_job(store)) is not None:
                jobs.append((len(job.sources), job.first, job.last))
                assert carry_out(store._database, job)
        # To the merging ten dead rows of the first 30 are rows; a larger neighbour stays alone.
        assert jobs == [(0, 36, 45), (2, 31, 45), (1, 1, 30)]
        assert rows_of(store) == [20, 15]

    def test_a_file_that_cannot_be_used_comes_first(self, store):
        fill(store, 30, 5)
        put(store, documents(500, 540))
        broken = state_of(store)[0][1]
        with few_rows(10), store._database.read() as connection:
            assert plan(connection, store.where, 1, frozenset([broken.name])) == Job((broken,), 31, 35)
            assert plan(connection, store.where, 1, frozenset([b"unknown"])) == Job((), 36, 75)

    @pytest.mark.parametrize(
        ("rows", "ratio", "first"),
        [
            ([], 1, None),
            ([5], 8, None),
            ([10, 9], 1, None),
            ([10, 10], 1, 0),
            ([9, 10], 1, 0),
            ([100, 10, 9], 1, None),
            ([100, 10, 10], 1, 1),
            ([100, 60, 40], 1, 0),
            ([100, 60, 40], 0.5, None),
            ([81, 10], 8, None),
            ([80, 10], 8, 0),
            ([1000, 100, 12], 8, None),
            ([1000, 100, 13], 8, 1),
            ([1000, 0], 8, None),
            ([0], 1, None),
            ([0, 0], 1, 0),
            ([0, 7], 1, 0),
            ([7, 0], 1, None),
        ],
    )
    def test_neighbours_are_merged_unless_the_older_is_much_larger(self, rows, ratio, first):
        segments = segments_of(*rows)
        job = keeper._merge(segments, ratio)
        if first is None:
            assert job is None
        else:
            assert job == Job(tuple(segments[first:]), segments[first].first, segments[-1].last)

    @given(st.lists(st.integers(0, 2_000), max_size=60), st.sampled_from([1, 8]))
    @settings(max_examples=100)
    def test_merging_ends_and_leaves_few(self, rows, ratio):
        rest: list[int] = []
        for size in rows:
            rest.append(size)
            while job := keeper._merge(segments_of(*rest), ratio):
                rest = [*rest[: -len(job.sources)], sum(one.rows for one in job.sources)]
        newer = [sum(rest[place + 1 :]) for place in range(len(rest))]
        assert all(size > ratio * later for size, later in zip(rest[:-1], newer, strict=False))
        assert len(rest) <= math.log2(sum(rest) + 1) + 2

    @given(st.integers(1, 200))
    @settings(max_examples=30)
    def test_a_row_is_merged_few_times(self, flushes):
        rest, moved = [], 0
        for _ in range(flushes):
            rest.append(1)
            while job := keeper._merge(segments_of(*rest), 1):
                size = sum(one.rows for one in job.sources)
                rest, moved = [*rest[: -len(job.sources)], size], moved + size
        assert moved <= flushes * (math.log2(flushes) + 1)

    @pytest.mark.parametrize(("dead", "cleared"), [(0, False), (1, False), (2, True), (20, True)])
    def test_a_tenth_of_dead_rows_is_cleared(self, store, dead, cleared):
        fill(store, 20)
        store.delete("", [f"d{n}" for n in range(dead)])
        job = next_job(store)
        assert (job is not None) == cleared
        if job is not None:
            assert (len(job.sources), job.first, job.last) == (1, 1, 20)
            assert carry_out(store._database, job)
            assert rows_of(store) == [20 - dead]
            assert next_job(store) is None

    def test_an_empty_segment_is_left_alone(self, store):
        fill(store, 20)
        store.delete("", [f"d{n}" for n in range(20)])
        job = next_job(store)
        assert carry_out(store._database, job)
        assert rows_of(store) == [0]
        assert next_job(store) is None
        fill(store, 3)
        assert carry_out(store._database, next_job(store))
        assert rows_of(store) == [3]


def everything(store: EmbeddedStore) -> tuple[object, ...]:
    """The list, the numbers that are gone, the version and the layout."""
    with store._database.read() as connection:
        gone = connection.execute("SELECT passage, version FROM gone ORDER BY 1").fetchall()
        counters = [read_counter(connection, name, store.where) for name in ("version", "layout")]
    return state_of(store), gone, counters


class TestCarryOut:
    def test_a_segment_is_entered_and_the_version_stays(self, store):
        put(store, documents(0, 6))
        store.delete("", ["d1"])
        before = everything(store)
        assert before[1] == [(2, 2)]
        assert carry_out(store._database, Job((), 1, 6))
        (segments, upto), gone, counters = everything(store)
        assert [(one.first, one.last, one.rows, one.version) for one in segments] == [(1, 6, 5, 2)]
        assert (upto, gone, counters) == (6, [], [before[2][0], before[2][1] + 1])
        assert_only_listed_files(store)

    def test_what_is_deleted_later_stays_listed_as_gone(self, store):
        put(store, documents(0, 6))
        with at("segment.written", lambda: store.delete("", ["d2"])):
            assert carry_out(store._database, Job((), 1, 6))
        (segments, _), gone, _ = everything(store)
        assert [one.rows for one in segments] == [6]
        assert gone == [(3, 2)]
        store.delete("", ["d3"])
        assert carry_out(store._database, Job(tuple(segments), 1, 6))
        assert (rows_of(store), everything(store)[1]) == ([4], [])

    @pytest.mark.parametrize("moment", ["segment.written", "segment.folder_synced", "swap.before"])
    def test_whoever_is_faster_wins(self, store, moment):
        fill(store, 4, 4)
        segments, _ = state_of(store)
        job, other = Job(tuple(segments), 1, 8), Job((segments[1],), 5, 8)
        with at(moment, lambda: carry_out(store._database, other)):
            assert carry_out(store._database, job) is False
        after, _ = state_of(store)
        assert after[0] == segments[0]
        assert (after[1].first, after[1].last, after[1].name != segments[1].name) == (5, 8, True)
        assert_only_listed_files(store)
        assert carry_out(store._database, job) is False
        assert_only_listed_files(store)

    def test_new_rows_that_another_put_into_a_file_are_not_entered_twice(self, store):
        put(store, documents(0, 6))
        with at("swap.before", lambda: carry_out(store._database, Job((), 1, 3))):
            assert carry_out(store._database, Job((), 1, 6)) is False
        assert [(one.first, one.last) for one in state_of(store)[0]] == [(1, 3)]
        assert_only_listed_files(store)

    def test_a_file_that_somebody_swept_up_is_not_entered(self, store):
        put(store, documents(0, 6))
        before = everything(store)

        def sweep() -> None:
            for path in (store.folder / FOLDER).iterdir():
                path.unlink()

        with at("swap.before", sweep):
            assert carry_out(store._database, Job((), 1, 6)) is False
        assert everything(store) == before

    @pytest.mark.parametrize(
        "moment", ["segment.written", "segment.synced", "segment.folder_synced", "swap.before", "swap.middle"]
    )
    @pytest.mark.parametrize("merging", [False, True])
    def test_a_failure_before_the_commit_leaves_everything_as_it_was(self, store, moment, merging):
        fill(store, 4, 4)
        put(store, documents(50, 53))
        store.delete("", ["d1"])
        before, files = everything(store), files_of(store)
        segments = tuple(state_of(store)[0])
        job = Job(segments, 1, 8) if merging else Job((), 9, 11)

        def fail() -> None:
            raise OSError(errno.ENOSPC, "no space")

        with at(moment, fail), pytest.raises((StorageFull, OSError)) as caught:
            carry_out(store._database, job)
        if moment.startswith("segment"):
            assert isinstance(caught.value, StorageFull)
        assert everything(store) == before
        assert files_of(store) == files
        assert carry_out(store._database, job)
        assert_only_listed_files(store)

    def test_a_failure_after_the_commit_keeps_the_file(self, store):
        put(store, documents(0, 6))

        def fail() -> None:
            raise KeyboardInterrupt

        with at("swap.after", fail), pytest.raises(KeyboardInterrupt):
            carry_out(store._database, Job((), 1, 6))
        assert rows_of(store) == [6]
        assert_only_listed_files(store)
        assert len(EmbeddedStore(store.folder, read_only=True).view("")) == 6


class TestThread:
    def test_few_rows_start_no_thread(self, kept):
        put(kept, documents(0, 9))
        assert kept._keeper._thread is None
        assert not (kept.folder / FOLDER).exists()

    def test_settle_waits_until_the_files_are_in_shape(self, kept):
        for n in range(0, 100, 5):
            put(kept, documents(n, n + 5))
        kept.delete("", [f"d{n}" for n in range(0, 100, 2)])
        kept.settle()
        assert next_job(kept, keeper._BUSY_RATIO) is None
        segments, upto = state_of(kept)
        assert upto - segments[-1].last < 10
        assert sum(one.rows for one in segments) <= 50 * 1.12
        assert_only_listed_files(kept)
        assert len(kept.view("")) == 50

    def test_settle_without_anything_to_do_returns(self, kept):
        kept.settle()
        put(kept, documents(0, 3))
        kept.settle()
        assert rows_of(kept) == []

    def test_the_thread_ends_after_a_while_and_tidies_up_more_then(self, kept, monkeypatch):
        monkeypatch.setattr(keeper, "_IDLE_AFTER_S", 0.05)
        put(kept, documents(0, 60))
        kept.settle()
        put(kept, documents(60, 70))
        kept.settle()
        assert rows_of(kept) in ([60, 10], [70])
        thread = kept._keeper._thread
        if thread is not None:
            thread.join(10)
        assert kept._keeper._thread is None
        assert rows_of(kept) == [70]
        put(kept, documents(70, 200))
        kept.settle()
        assert sum(rows_of(kept)) == 200

    def test_closing_waits_for_the_job_at_hand(self, kept):
        held, go = threading.Event(), threading.Event()

        def wait(name: str) -> None:
            if name == "segment.written":
                held.set()
                assert go.wait(10)

        failpoint.hook = wait
        try:
            put(kept, documents(0, 30))
            assert held.wait(10)
            closing = threading.Thread(target=kept.close)
            closing.start()
            closing.join(0.05)
            assert closing.is_alive()
            go.set()
            closing.join(10)
            assert not closing.is_alive()
        finally:
            failpoint.hook = None
            go.set()
        again = by_hand(EmbeddedStore(kept.folder))
        assert rows_of(again) == [30]
        assert_only_listed_files(again)
        again.close()

    def test_after_closing_nothing_begins(self, kept):
        kept._keeper.close()
        put(kept, documents(0, 50))
        kept.settle()
        assert kept._keeper._thread is None
        assert rows_of(kept) == []

    def test_searches_and_writes_go_on_beside_a_job(self, kept):
        held, go = threading.Event(), threading.Event()

        def wait(name: str) -> None:
            if name == "segment.written" and not go.is_set():
                held.set()
                assert go.wait(10)

        memory = MemoryStore()
        failpoint.hook = wait
        try:
            for one in (kept, memory):
                put(one, documents(0, 30))
            assert held.wait(10)
            for one in (kept, memory):
                put(one, documents(30, 35))
                one.delete("", ["d3", "d33"])
                put(one, [Document(id="d4", text="written anew")])
            assert_same_view(kept.view(""), memory.view(""), ["note", "anew", "4"])
            assert rows_of(kept) == []
        finally:
            go.set()
            failpoint.hook = None
        kept.settle()
        assert_same_view(kept.view(""), memory.view(""), ["note", "anew", "4"])

    def test_writers_wait_where_the_thread_cannot_keep_up(self, kept, monkeypatch):
        monkeypatch.setattr(keeper, "_BEHIND", 3)
        held, go = threading.Event(), threading.Event()

        def wait(name: str) -> None:
            if name == "segment.written" and not go.is_set():
                held.set()
                assert go.wait(10)

        failpoint.hook = wait
        try:
            put(kept, documents(0, 10))
            assert held.wait(10)
            put(kept, documents(10, 28))
            writer = threading.Thread(target=lambda: put(kept, documents(28, 40)))
            writer.start()
            writer.join(0.1)
            assert writer.is_alive()
            assert len(kept.view("")) == 40  # what it wrote is there already
            go.set()
            writer.join(10)
            assert not writer.is_alive()
        finally:
            go.set()
            failpoint.hook = None


class TestClosing:
    """Every process after this one would read from the tables what is in no file."""

    @pytest.mark.parametrize(("rows", "files"), [(9, 0), (10, 1), (64, 1)])
    def test_what_was_written_lies_in_one_file_but_for_a_few_rows(self, kept, rows, files):
        for first in range(0, rows, 8):
            put(kept, documents(first, min(first + 8, rows)))
        kept.close()
        again = EmbeddedStore(kept.folder, read_only=True)
        assert len(rows_of(again)) == files
        assert len(again.view("")) == rows < sum(rows_of(again)) + 10
        assert_only_listed_files(again)
        again.close()

    def test_little_is_written_again_for_little_that_was_new(self, store):
        fill(store, 40, 12, 3)
        store._keeper = Keeper(store._database)
        put(store, documents(55, 57))
        store.close()
        again = by_hand(EmbeddedStore(store.folder))
        assert rows_of(again) == [40, 12, 3]
        again.close()

    def test_whoever_only_read_writes_nothing(self, store):
        fill(store, 4, 4)
        reader = EmbeddedStore(store.folder)
        assert len(reader.view("")) == 8
        reader.close()
        assert rows_of(store) == [4, 4]

    def test_an_interrupt_closes_all_the_same(self, kept, monkeypatch):
        monkeypatch.setattr(keeper, "FLUSH_ROWS", 1000)  # all is left for the end
        monkeypatch.setattr(keeper, "_LAST_ROWS", 5)
        put(kept, documents(0, 12))

        def interrupt() -> None:
            raise KeyboardInterrupt

        with at("segment.written", interrupt), pytest.raises(KeyboardInterrupt):
            kept.close()
        refusal(UsageError, kept.version)
        again = EmbeddedStore(kept.folder)
        assert len(again.view("")) == 12
        again.close()

    def test_a_full_disk_is_no_error(self, kept, monkeypatch, caplog):
        monkeypatch.setattr(keeper, "FLUSH_ROWS", 1000)
        monkeypatch.setattr(keeper, "_LAST_ROWS", 5)
        put(kept, documents(0, 12))

        def fail() -> None:
            raise OSError(errno.ENOSPC, "no space")

        with at("segment.written", fail):
            kept.close()
        assert "no space left" in caplog.text
        again = EmbeddedStore(kept.folder, read_only=True)
        assert rows_of(again) == []
        assert len(again.view("")) == 12
        again.close()


class TestFailure:
    def test_it_is_kept_told_and_gone_once_it_works_again(self, kept, monkeypatch, caplog):
        def fail(name: str) -> None:
            if name == "segment.written":
                raise OSError(errno.ENOSPC, "no space")

        monkeypatch.setattr(failpoint, "hook", fail)
        with caplog.at_level(logging.WARNING, "wellhead"):
            put(kept, documents(0, 30))
            assert "no space left" in refusal(StorageFull, kept.settle).what
        assert isinstance(kept._keeper.failure, StorageFull)
        assert "could not be kept in shape" in caplog.text
        put(kept, documents(30, 33))
        assert len(kept.view("")) == 33
        assert rows_of(kept) == []
        monkeypatch.setattr(failpoint, "hook", None)
        kept.settle()
        assert kept._keeper.failure is None
        assert rows_of(kept) == [33]

    def test_an_index_that_was_taken_away_stops_the_thread_alone(self, kept):
        put(kept, documents(0, 9))
        kept._database.place.path.rename(kept.folder / "elsewhere")
        assert refusal(StoreError, kept.settle).what
        (kept.folder / "elsewhere").rename(kept._database.place.path)


CHILD_IS_WELL = 42


def in_a_fork(action) -> int:
    """The exit code of a forked child that does this: 42 where nothing was raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is what is tried here
        child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(CHILD_IS_WELL)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system knows no fork")
class TestFork:
    def test_a_child_writes_searches_and_settles(self, kept):
        put(kept, documents(0, 25))
        kept.settle()
        view = kept.view("")

        def use() -> None:
            assert len(kept.view("")) == 25
            put(kept, documents(25, 60))
            kept.settle()
            assert next_job(kept, keeper._BUSY_RATIO) is None
            assert len(kept.view("")) == 60
            assert len(view) == 25
            assert [passage.text for passage in view.passages([3])] == ["note number 3"]
            kept.close()

        assert in_a_fork(use) == CHILD_IS_WELL
        assert len(kept.view("")) == 60
        put(kept, documents(60, 75))
        kept.settle()
        assert len(kept.view("")) == 75

    def test_a_fork_amid_a_job_has_no_thread_and_no_lock_of_it(self, kept):
        held, go = threading.Event(), threading.Event()

        def wait(name: str) -> None:
            if name == "segment.written" and not go.is_set():
                held.set()
                assert go.wait(10)

        failpoint.hook = wait
        try:
            put(kept, documents(0, 25))
            assert held.wait(10)

            def use() -> None:
                failpoint.hook = None
                put(kept, documents(25, 40))
                kept.settle()
                assert rows_of(kept) == [40]
                kept.close()

            assert in_a_fork(use) == CHILD_IS_WELL
        finally:
            go.set()
            failpoint.hook = None
        kept.settle()
        assert len(kept.view("")) == 40
        assert_only_listed_files(kept)

    def test_a_fork_while_the_thread_holds_its_lock_does_not_hang(self, kept):
        put(kept, documents(0, 25))
        kept.settle()
        with kept._keeper._changed:

            def use() -> None:
                put(kept, documents(25, 60))
                kept.settle()
                kept.close()

            assert in_a_fork(use) == CHILD_IS_WELL
        assert len(kept.view("")) == 60


class TestPickling:
    @pytest.mark.parametrize(
        ("path", "what"),
        [
            *((path, what) for path in ("kb", ":memory:") for what in ("index", "handle", "store")),
            ("kb", "view"),
            ("kb", "bound view"),
        ],
    )
    def test_it_is_refused_in_words_that_help(self, tmp_path, monkeypatch, path, what):
        monkeypatch.chdir(tmp_path)
        with Index.open(path, embedder=HashEmbedder(), languages=["en"]) as index:
            index.add([Document(id="a", text="a note", metadata={"tenant": "acme"})])
            handle = index.scoped(tenant="acme")
            made = {
                "index": index,
                "handle": handle,
                "store": index._house.store,
                "view": index._view(),
                "bound view": handle._view(),
            }
            with pytest.raises(TypeError, match="cannot be pickled: open the index again in the other process"):
                pickle.dumps(made[what])
            assert len(handle.search("note")) == 1


def test_a_keeper_of_a_store_that_may_not_be_written_to_is_not_made(tmp_path):
    EmbeddedStore(tmp_path).close()
    reader = EmbeddedStore(tmp_path, read_only=True)
    assert reader._keeper is None
    reader.settle()
    reader.close()
    assert isinstance(EmbeddedStore(tmp_path)._keeper, Keeper)
    assert file_of(tmp_path, "x").parent.name == FOLDER


def test_whatever_happens_in_the_thread_reaches_who_waits_for_it(kept, monkeypatch):
    def fail(database, job):
        raise ZeroDivisionError("out of nowhere")

    with monkeypatch.context() as patched:
        patched.setattr(keeper, "carry_out", fail)
        put(kept, documents(0, 10))
        error = refusal(StoreError, kept.settle)
        assert error.why == "ZeroDivisionError: out of nowhere"
    kept.settle()
    assert len(state_of(kept)[0]) == 1


def test_words_that_nothing_uses_any_more_are_forgotten_and_their_numbers_never_given_again(kept):
    put(kept, documents(0, 30))
    kept.settle()
    with kept._database.read() as connection:
        (before,) = connection.execute("SELECT max(term) FROM terms").fetchone()
    kept.delete("", [f"d{n}" for n in range(5, 30)])
    kept.settle()
    with kept._database.read() as connection:
        words = {word for (word,) in connection.execute("SELECT word FROM terms")}
    assert b"4" in words
    assert b"29" not in words
    put(kept, [Document(id="new", text="brandnew")])
    with kept._database.read() as connection:
        (number,) = connection.execute("SELECT term FROM terms WHERE word = 'brandnew'").fetchone()
    assert number > before
    assert kept.verify()[3] == []
    assert kept.view("").words.posting("brandnew") is not None
