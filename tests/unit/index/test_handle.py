"""A handle as a program holds it: opened, closed, told of, shared by threads and event loops."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from wellhead import Document, Index, UsageError
from wellhead.errors import BackendError, ConfigError, IngestStopped, StaleIndex, StoreError
from wellhead.events import Event, EventLog
from wellhead.testing.fakes import HashEmbedder

MARK = "xyzzy-marker"


class Moody(HashEmbedder):
    """Embeds documents well; what becomes of queries is `answer`'s."""

    def __init__(self, answer: Callable[[str], object]) -> None:
        super().__init__()
        self._answer = answer
        self._well = HashEmbedder()

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._well.embed_documents(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._answer(text)  # type: ignore[return-value]


def failing(text: str) -> object:
    raise TimeoutError(f"no answer for {text}")


def open_index(path: str | Path = ":memory:", **options: object) -> Index:
    return Index.open(path, **{"embedder": HashEmbedder(), "languages": ["en"], **options})  # type: ignore[arg-type]


def notes(count: int = 3) -> list[Document]:
    return [Document(id=f"d{n}", text=f"the {MARK} note {n}") for n in range(count)]


# -- opening and closing ----------------------------------------------------------------------------------------------


def test_what_was_written_is_there_after_reopening(kb: Path) -> None:
    with open_index(kb) as index:
        index.add(notes())
        before = index.search("note 2", cut="off")
    with open_index(kb, create=False) as index:
        assert index.search("note 2", cut="off").hits == before.hits


def test_a_closed_index_says_so_and_closes_twice(kb: Path) -> None:
    index = open_index(kb)
    index.add(notes())
    index.close()
    index.close()
    with pytest.raises(UsageError, match="closed"):
        index.search("note")


def test_no_index_where_none_may_be_made(kb: Path) -> None:
    with pytest.raises(UsageError, match="no index"):
        open_index(kb, create=False)
    assert not kb.exists()


@pytest.mark.parametrize(
    "wrong", [{"embedder": "statik"}, {"chunker": "structured"}, {"languages": ["tlh"]}, {"on_degrade": "ignore"}]
)
def test_a_wrong_option_leaves_no_index_behind(kb: Path, wrong: dict[str, object]) -> None:
    with pytest.raises((ConfigError, UsageError)) as raised:
        open_index(kb, **wrong)
    assert raised.value.fix
    assert not kb.exists()


def test_read_only_reads_and_never_writes(kb: Path) -> None:
    with open_index(kb) as index:
        index.add(notes())
    with open_index(kb, read_only=True) as index:
        assert len(index.search("note", cut="off")) == 3
        for way in (lambda: index.add([Document(id="new", text="more")]), lambda: index.remove("d0")):
            with pytest.raises(StoreError, match="read-only"):
                way()
        assert len(list(index.documents())) == 3


def test_a_passage_by_its_id_or_its_first_characters() -> None:
    with open_index() as index:
        index.add(notes())
        (passage,) = index.passages("d1")
        assert index.passage(passage.id) == index.passage(passage.id[:6]) == passage
        for wrong in (passage.id[:5], "0" * 64, "", "%", "zzzzzz"):
            with pytest.raises(UsageError, match="no passage"):
                index.passage(wrong)


def test_an_id_that_stands_twice_in_one_call_is_refused_the_second_time() -> None:
    with open_index() as index:
        report = index.add([Document(id="a", text="first"), Document(id="a", text="second")])
        assert ([one.id for one in report.refused], report.added, report.complete) == (["a"], 1, False)
        assert index.passages("a")[0].text == "first"


# -- events -----------------------------------------------------------------------------------------------------------


def test_events_carry_counts_and_ids_but_no_text(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG)
    log = EventLog()
    (tmp_path / "a.txt").write_text(f"another {MARK}")
    (tmp_path / "bad.json").write_text(f'{{"{MARK}')
    with open_index(sinks=[log]) as index:
        index.add(notes())
        index.sync(tmp_path)
        hits = index.search(f"note {MARK}", k=2, cut="off")
        with pytest.raises(UsageError):
            index.search(MARK, k=0)
    names = [event.name for event in log.events]
    assert names == [
        *("ingest.batch", "ingest.finished", "ingest.batch", "ingest.finished"),
        *("retrieval.searched", "retrieval.failed"),
    ]
    finished = log.of_type("ingest.finished")[1].data
    assert [finished[name] for name in ("verb", "read", "refused", "passages", "embedded")] == ["sync", 1, 1, 1, 1]
    (searched,) = log.of_type("retrieval.searched")
    assert searched.data["ids"] == [hit.id for hit in hits]
    assert [searched.data[name] for name in ("count", "k", "outcome", "degraded")] == [2, 2, "hits", []]
    assert log.of_type("retrieval.failed")[0].data["error_kind"] == "UsageError"
    assert MARK not in repr(log.events)
    assert MARK not in caplog.text


def test_capture_content_puts_query_and_texts_into_events() -> None:
    log = EventLog()
    with open_index(sinks=[log], capture_content=True) as index:
        index.add(notes(1))
        index.search(f"note {MARK}", cut="off")
    (searched,) = log.of_type("retrieval.searched")
    assert searched.data["query"] == f"note {MARK}"
    assert searched.data["texts"] == [f"the {MARK} note 0"]


def test_a_sink_that_raises_breaks_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = EventLog()

    def broken(event: Event) -> None:
        raise RuntimeError(f"{MARK} {event}")

    with open_index(sinks=[broken, log], capture_content=True) as index:
        assert index.add(notes()).complete
        assert len(index.search("note", cut="off")) == 3
    assert len(log.of_type("retrieval.searched")) == 1
    assert "RuntimeError on retrieval.searched" in caplog.text
    assert MARK not in caplog.text


# -- when the query cannot be embedded --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (failing, "TimeoutError"),
        (lambda text: np.zeros(16, np.float32), "zeros"),
        (lambda text: np.full(16, np.nan, np.float32), "finite"),
        (lambda text: np.ones(8, np.float32), "shape"),
        (lambda text: "vector", "ValueError"),
    ],
    ids=["raises", "zeros", "nan", "dims", "text"],
)
def test_a_failed_query_embedding_is_flagged_or_fails(answer: Callable[[str], object], why: str) -> None:
    log = EventLog()
    with open_index(embedder=Moody(answer), sinks=[log]) as index:
        index.add(notes())
        hits = index.search("note 1", cut="off")
        assert len(hits) == 3
        (degraded,) = hits.degraded
        assert (degraded.leg, bool(degraded.fix), why in degraded.why) == ("dense", True, True)
        assert {hit.signals.cosine for hit in hits} == {None}
        assert log.of_type("retrieval.searched")[0].data["degraded"] == ["dense"]
        assert index.search("note 1", mode="lexical", cut="off").degraded == ()
        with pytest.raises(BackendError):
            index.search("note 1", mode="dense")
    with open_index(embedder=Moody(answer), on_degrade="fail") as index:
        index.add(notes())
        with pytest.raises(BackendError) as raised:
            index.search("note 1")
        assert why in str(raised.value)


def test_an_index_of_another_model_answers_by_words_and_says_so(kb: Path) -> None:
    with open_index(kb) as index:
        index.add(notes())
    with open_index(kb, embedder=HashEmbedder(name="newer")) as index:
        hits = index.search("note 1", cut="off")
        assert [one.leg for one in hits.degraded] == ["dense"]
        assert "hash:16" in hits.degraded[0].why
        with pytest.raises(StaleIndex):
            index.search("note 1", mode="dense")
    with open_index(kb, embedder=HashEmbedder(name="newer"), on_degrade="fail") as index, pytest.raises(StaleIndex):
        index.search("note 1")


def test_an_embedder_that_fails_while_writing_stops_the_run_with_its_report() -> None:
    class Failing(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise TimeoutError

    with open_index(embedder=Failing()) as index:
        with pytest.raises(IngestStopped) as stopped:
            index.add(notes())
        assert stopped.value.report is not None
        assert (stopped.value.report.read, stopped.value.report.stopped) == (0, "the embedder failed with TimeoutError")
        assert isinstance(stopped.value.__cause__, TimeoutError)
        assert list(index.documents()) == []


def test_a_vector_that_is_deleted_while_others_are_made_is_made_again() -> None:
    """Its last document goes between the moment when its text needs no embedding and the moment of the write."""

    class Slow(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if any("second" in text for text in texts):
                index.remove("owner")
            return super().embed_documents(texts)

    with open_index(embedder=Slow()) as index:
        index.add([Document(id="owner", text="shared words")])
        report = index.add([Document(id="a", text="shared words"), Document(id="b", text="second words")])
        assert (report.complete, report.embedded, report.reused) == (True, 2, 0)
        assert [one.id for one in index.documents()] == ["a", "b"]
        assert index.stats().with_vectors == 2


# -- loops and threads ------------------------------------------------------------------------------------------------


def test_asearch_leaves_the_loop_free() -> None:
    """run-llama/llama_index#21159: an async method called a blocking one, and the event loop stood still."""

    def slow(text: str) -> object:
        time.sleep(0.3)
        return HashEmbedder().embed_query(text)

    async def scene(index: Index) -> tuple[list[float], int]:
        gaps: list[float] = []
        search = asyncio.create_task(index.asearch("note 1", k=2, cut="off"))
        while not search.done():
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            gaps.append(time.perf_counter() - began)
        return gaps, len(await search)

    with open_index(embedder=Moody(slow)) as index:
        index.add(notes())
        index.search("warm", mode="lexical")
        gaps, count = asyncio.run(scene(index))
    assert count == 2
    assert len(gaps) >= 10
    assert sorted(gaps)[len(gaps) * 9 // 10] < 0.06  # one late tick on a busy machine is not a stopped loop


def test_asearch_answers_and_fails_as_search_does() -> None:
    with open_index() as index:
        index.add(notes())
        assert asyncio.run(index.asearch("note 2", cut="off")).hits == index.search("note 2", cut="off").hits
        with pytest.raises(UsageError, match="blank"):
            asyncio.run(index.asearch(" "))


@pytest.mark.parametrize("kind", ["embedded", "memory"])
def test_eight_threads_search_while_one_writes(kind: str, kb: Path) -> None:
    """Each answer is of one moment: all six documents of one edition, never a mixture and never an error."""
    done = threading.Event()

    def edition(number: int) -> list[Document]:
        return [Document(id=f"d{n}", text=f"steady note {n} of edition{number}") for n in range(6)]

    def search(index: Index) -> int:
        asked = 0
        while not done.is_set() or asked == 0:
            hits = index.search("steady note", k=20, cut="off")
            steady = [hit.text for hit in hits if hit.text.startswith("steady")]
            assert len(steady) == 6
            assert len({text.rpartition(" ")[2] for text in steady}) == 1
            asked += 1
        return asked

    with open_index(":memory:" if kind == "memory" else kb) as index:
        index.add(edition(0))
        with ThreadPoolExecutor(8) as pool:
            searches = [pool.submit(search, index) for _ in range(8)]
            for number in range(1, 40):
                index.add(edition(number))
                index.add([Document(id="passing", text="a passing thing")])
                index.remove("passing")
            done.set()
            assert min(one.result() for one in searches) >= 1
        assert index.verify().ok
