"""The types of the public API: as `make types` sees them (pyright and mypy, strict), and as they are at run time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import assert_type

from wellhead import (
    BackendError,
    ConfigError,
    Document,
    Explanation,
    Hit,
    Hits,
    Index,
    IndexStats,
    Passage,
    RateLimited,
    StaleIndex,
    SyncReport,
    UsageError,
    VerifyReport,
    WellheadError,
)
from wellhead.ports import Retriever
from wellhead.records import Metadata, Outcome, Signals, Source, Threshold, Verdict


def filled() -> Index:
    index = Index.open(":memory:")
    index.add([Document(id="keys", title="Keys", text="Rotate a key once a year.", metadata={"product": "vault"})])
    return index


def test_opening_writing_and_reading(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb", create=True) as index:
        assert_type(index, Index)
        report = assert_type(index.add([Document(id="a", text="One.")]), SyncReport)
        assert report.added == 1
        assert assert_type(report.complete, bool)
        assert assert_type(index.get("a"), Document | None) is not None
        assert [each.id for each in assert_type(index.documents(), Iterator[Document])] == ["a"]
        passages = assert_type(index.passages("a"), list[Passage])
        assert assert_type(index.passage(passages[0].id), Passage) == passages[0]
        assert assert_type(index.stats(), IndexStats).documents == 1
        assert assert_type(index.verify(), VerifyReport).ok
        assert assert_type(index.remove("a"), int) == 1
        assert assert_type(index.sync(tmp_path, dry_run=True), SyncReport).dry_run


def test_scoping(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "kb", scope_key="tenant")
    assert assert_type(index.scoped(tenant="acme"), Index).search("anything").outcome == "empty_index"


def test_searching() -> None:
    hits = filled().search("rotate a key", k=5, filters={"product": "vault"}, mode="hybrid", fusion="blend", cut="off")
    assert_type(hits, Hits)
    assert assert_type(hits.outcome, Outcome) == "hits"
    assert assert_type(hits.why_empty, str) == ""
    assert_type(hits.near_misses, tuple[Hit, ...])
    assert_type(hits.threshold, Threshold | None)
    assert_type(hits.timings, Mapping[str, float])
    assert assert_type(len(hits), int) == 1
    assert assert_type(hits[0], Hit) == assert_type(hits[:1], tuple[Hit, ...])[0]
    for hit in hits:
        check_hit(hit)


def check_hit(hit: Hit) -> None:
    assert assert_type(hit.rank, int) == 1
    assert assert_type(hit.score, float | None) is not None
    assert assert_type(hit.citation, str)
    assert assert_type(hit.text, str)
    assert assert_type(hit.metadata, Metadata)["product"] == "vault"
    assert assert_type(hit.passage.heading, tuple[str, ...]) == ()
    assert_type(hit.passage, Passage)
    assert_type(hit.signals, Signals)
    assert_type(hit.signals.cosine, float | None)
    assert_type(hit.verdict, Verdict)
    assert_type(hit.also_in, tuple[Source, ...])


async def ask(index: Index) -> Hits:
    return assert_type(await index.asearch("rotate a key"), Hits)


def test_explaining() -> None:
    index = filled()
    explanation = index.explain("rotate a key", index.passages("keys")[0].id)
    assert_type(explanation, Explanation)
    assert assert_type(explanation.rank, int | None) == 1
    assert assert_type(explanation.terms[0].term, str)


def test_an_index_is_a_retriever() -> None:
    retriever: Retriever = filled()
    assert assert_type(retriever.search("rotate a key", k=1), Hits)


def test_hits_are_a_sequence() -> None:
    assert isinstance(filled().search("rotate a key"), Sequence)


def test_errors_have_the_bases_that_callers_rely_on() -> None:
    limited = RateLimited("slow down", fix="wait", retry_after_s=2.0)
    assert assert_type(limited.retry_after_s, float | None) == 2.0
    error: WellheadError = limited
    assert assert_type(error.exit_code, int) == 4
    assert assert_type(error.retryable, bool)
    assert assert_type(error.to_dict(), dict[str, object])["fix"] == "wait"
    assert isinstance(error, BackendError)
    assert isinstance(error, ConnectionError)
    usage: ValueError = UsageError("k must be 1 to 100")
    config: RuntimeError = StaleIndex("made with another embedder")
    assert isinstance(usage, WellheadError)
    assert isinstance(config, ConfigError)
