"""The types of the public API: as `make types` sees them (pyright and mypy, strict), and as they are at run time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import assert_type

from wellhead import (
    BackendError,
    CallableModel,
    ConfigError,
    Context,
    Document,
    Executor,
    Explanation,
    Guarded,
    Hit,
    Hits,
    Index,
    IndexStats,
    LoopResult,
    Message,
    Passage,
    RateLimited,
    Registry,
    StaleIndex,
    SyncReport,
    Tool,
    ToolResult,
    UsageError,
    VerifyReport,
    WellheadError,
    run_tool_loop_sync,
    search_tool,
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


def test_a_guard_and_a_tool() -> None:
    guarded: Retriever = Guarded(filled(), name="handbook")
    assert assert_type(guarded.search("rotate a key", k=1), Hits)
    tool = assert_type(search_tool(filled(), k=1, filters=lambda ctx: {"product": ctx.user_id}), Tool)
    result = assert_type(tool.run({"query": "rotate a key"}, Context(user_id="vault")), ToolResult)
    assert assert_type(result.hits, Hits | None)
    assert assert_type(result.text, str)
    assert assert_type(result.data, Mapping[str, object])["outcome"] == "hits"


async def wait(guarded: Guarded, tool: Tool) -> None:
    assert_type(await guarded.asearch("rotate a key"), Hits)
    assert_type(await tool.arun({"query": "rotate a key"}), ToolResult)


def test_a_loop() -> None:
    def answer(messages: Sequence[Message], tools: Sequence[Mapping[str, object]]) -> str:
        return f"{len(messages)} and {len(tools)}"

    registry = Registry(search_tool(filled()))
    model = CallableModel(answer, provider="test", model="small")
    result = assert_type(
        run_tool_loop_sync(model, registry, [Message("user", "?")], executor=Executor(registry)), LoopResult
    )
    assert assert_type(result.final.text, str) == "1 and 1"


def test_an_index_tells_its_scope_and_its_version(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb", scope_key="tenant") as index:
        assert assert_type(index.scope_key, str | None) == "tenant"
        assert assert_type(index.scope, str | None) is None
        acme = index.scoped(tenant="acme")
        assert (acme.scope_key, acme.scope) == ("tenant", "acme")
        before = assert_type(acme.index_version, int)
        acme.add([Document(id="a", text="One.")])
        assert acme.index_version == index.index_version > before
    with Index.open(tmp_path / "other") as index:
        assert (index.scope_key, index.scope) == (None, None)
        assert (index.scoped(team="a").scope_key, index.scoped(team="a").scope) == ("team", "a")
