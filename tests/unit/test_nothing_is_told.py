"""By default no query and no text reaches a log, an event or the text of an exception, however a call ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from wellhead import (
    Budget,
    CallableModel,
    Document,
    EmbeddingRetriever,
    EventLog,
    Executor,
    FunctionRetriever,
    Guarded,
    Hits,
    Index,
    Message,
    Registry,
    ToolCall,
    UsageError,
    WellheadError,
    function_tool,
    run_tool_loop_sync,
    search_tool,
)
from wellhead.testing.fakes import HashEmbedder
from wellhead.testing.liars import LIES, LyingRetriever

MARK = "marker-7f3a9c"
TEXT = f"Rotate the key once a year, says {MARK}."
QUERY = f"when do I rotate {MARK}"


class Embedder(HashEmbedder):
    """Fails where it is told to, and says the text that it failed on."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = ""

    def embed_query(self, text: str) -> Any:
        if self.fails == "query":
            raise ValueError(f"no vector for {text}")
        return super().embed_query(text)

    def embed_documents(self, texts: Any) -> Any:
        if self.fails == "documents":
            raise ConnectionError(f"no vectors for {texts}")
        return HashEmbedder().embed_documents(texts)


class World:
    """An index, its listeners, and everything that an exception said."""

    def __init__(self, place: Path, *, capture: bool) -> None:
        self.place = place
        self.log = EventLog()
        self.embedder = Embedder()
        self.capture = capture
        self.index = Index.open(
            place / "kb",
            embedder=self.embedder,
            languages=["en"],
            scope_key="tenant",
            sinks=[self.log, self.broken],
            capture_content=capture,
        )
        self.acme = self.index.scoped(tenant="acme")
        self.errors: list[Exception] = []

    def broken(self, event: object) -> None:
        raise RuntimeError(f"{event} {MARK}")

    def fails(self, action: Callable[[], object], kind: type[Exception] = WellheadError) -> None:
        with pytest.raises(kind) as caught:
            action()
        self.errors.append(caught.value)

    def guarded(self, retriever: Any, **options: Any) -> Guarded:
        return Guarded(retriever, sinks=[self.log, self.broken], capture_content=self.capture, **options)

    def executor(self, *tools: Any, **options: Any) -> Executor:
        return Executor(Registry(*tools), sink=[self.log, self.broken], capture_content=self.capture, **options)


def ingest(world: World) -> None:
    acme, files = world.acme, world.place / "files"
    files.mkdir()
    (files / "good.md").write_text(f"# {MARK}\n\n{TEXT}\n")
    (files / "broken.json").write_text(f'{{"{MARK}": "{MARK}" "{MARK}"}}')
    (files / "broken.ipynb").write_text(f'{{"cells": [{{"source": "{MARK}"')
    (files / "front.md").write_text(f"---\n{MARK}: [unclosed {MARK}\n: :\n---\n\n{TEXT}\n")
    (files / "binary.txt").write_bytes(f"{MARK}".encode() + b"\0\1\2" * 99)
    acme.add([Document(id="a", title=MARK, text=TEXT), Document(id="b", text=f"{TEXT}\n\nMore of {MARK}.")])
    report = acme.sync(files)
    assert [one.id for one in report.refused] == ["broken.ipynb", "broken.json"]
    assert MARK not in str(report)
    world.fails(lambda: acme.add([TEXT]))  # type: ignore[list-item]
    world.fails(lambda: acme.add(Document(id="c", text=TEXT)))  # type: ignore[arg-type]
    world.fails(lambda: Document(id="c", text=f"{TEXT}\ud800"))
    world.fails(lambda: Document(id="c", text=TEXT.encode()))  # type: ignore[arg-type]
    world.fails(lambda: Document(id="", text=TEXT))
    world.fails(lambda: acme.add([Document(id="c", text=TEXT, metadata={"tenant": "globex"})]))
    world.fails(lambda: world.index.add([Document(id="c", text=TEXT)]))
    world.embedder.fails = "documents"
    world.fails(lambda: acme.add([Document(id="new", text=f"{TEXT} And again.")]))
    world.embedder.fails = ""
    acme.remove("b")


def search(world: World) -> None:
    acme = world.acme
    acme.add([Document(id="a", text=TEXT)])
    assert len(acme.search(QUERY, cut="off"))
    (passage,) = acme.passages("a")
    assert acme.explain(QUERY, passage).query == QUERY
    assert acme.search(f"{MARK} peru vaccinations", mode="dense", threshold=0.99).outcome == "no_match"
    assert acme.search(QUERY, filters={"year": 1}).outcome == "filtered_out"
    for wrong in ({"k": 0}, {"mode": "best"}, {"cut": "none"}, {"weight": 7}, {"threshold": "x"}, {"language": "?"}):
        world.fails(lambda wrong=wrong: acme.search(QUERY, **wrong))  # type: ignore[misc]
        world.fails(lambda wrong=wrong: acme.explain(QUERY, passage, **wrong))  # type: ignore[misc]
    world.fails(lambda: acme.search(f"{QUERY} {'x' * 8_000}"))
    world.fails(lambda: acme.search(QUERY.encode()))  # type: ignore[arg-type]
    world.fails(lambda: acme.search([QUERY]))  # type: ignore[arg-type]
    world.fails(lambda: acme.explain(QUERY, "0" * 64))
    world.fails(lambda: world.index.search(QUERY))
    world.fails(lambda: asyncio.run(world.index.asearch(QUERY)))
    world.embedder.fails = "query"
    assert acme.search(QUERY, cut="off").degraded
    world.fails(lambda: acme.search(QUERY, mode="dense"))
    world.embedder.fails = ""


def guards(world: World) -> None:
    world.acme.add([Document(id="a", text=TEXT)])
    assert len(world.guarded(world.acme).search(QUERY))

    def raising(query: str, k: int, filters: Mapping[str, Any]) -> list[str]:
        raise ConnectionError(f"{query} {MARK}")

    def slow(query: str, k: int, filters: Mapping[str, Any]) -> list[str]:
        time.sleep(0.1)
        return [TEXT]

    def strange(query: str, k: int, filters: Mapping[str, Any]) -> list[Any]:
        return [TEXT, {"words": TEXT}]

    for fn in (raising, slow, strange):
        guarded = world.guarded(FunctionRetriever(fn, timeout=0.02 if fn is slow else None))
        world.fails(lambda guarded=guarded: guarded.search(QUERY))  # type: ignore[misc]
        world.fails(lambda guarded=guarded: asyncio.run(guarded.asearch(QUERY)))  # type: ignore[misc]
    world.fails(lambda: world.guarded(FunctionRetriever(slow)).search(f"{QUERY} {'x' * 8_000}"))
    for lie in LIES:
        if lie not in ("exits", "hangs", "huge texts"):
            liar = world.guarded(LyingRetriever(lie, secret=MARK), scope_key="tenant", scope="acme")
            try:
                hits = liar.search(QUERY)
            except WellheadError as error:
                world.errors.append(error)
            else:
                # None of the lies reaches whom they are told to: `SECRET` stands in what others hold.
                assert MARK not in repr(hits)
    in_memory = EmbeddingRetriever(world.embedder, [Document(id="a", text=TEXT)])
    world.embedder.fails = "documents"
    world.fails(lambda: world.guarded(in_memory).search(QUERY))
    world.embedder.fails = "query"
    world.fails(lambda: world.guarded(in_memory).search(QUERY))
    world.embedder.fails = ""
    world.fails(lambda: in_memory.add([TEXT]))  # type: ignore[list-item]


def tools(world: World) -> None:
    world.acme.add([Document(id="a", text=TEXT)])

    def down(query: str, k: int, filters: Mapping[str, Any]) -> Hits:
        raise TimeoutError(f"{query} {MARK}")

    def broken(words: str) -> str:
        """A tool with a bug."""
        raise KeyError(f"{words} {MARK}")

    def forgotten(ctx: Any) -> Mapping[str, object]:
        raise LookupError(MARK)

    found = search_tool(world.index, filters=lambda ctx: {"tenant": ctx.user_id or "acme"}, cache_ttl=300)
    registry = (
        found,
        search_tool(FunctionRetriever(down), name="search_down"),
        search_tool(world.acme, name="search_bug", filters=forgotten),
        search_tool(world.index, name="search_nobody", filters=lambda ctx: {"tenant": " "}),
        function_tool(broken),
    )

    def refuse(call: ToolCall, ctx: Any) -> None:
        if "veto" in call.arguments:
            raise ValueError(f"{call} {MARK}")

    executor = world.executor(*registry, before=[refuse])
    asked: list[tuple[str, Any]] = [
        ("search_docs", {"query": QUERY}),
        ("search_docs", {"query": QUERY}),
        ("search_docs", {"query": f"{MARK} {'x' * 8_000}"}),
        ("search_docs", {MARK: QUERY}),
        ("search_docs", {"query": [QUERY]}),
        ("search_docs", {"query": QUERY, "veto": MARK}),
        ("search_docs", MARK),
        ("search_down", {"query": QUERY}),
        ("search_bug", {"query": QUERY}),
        ("search_nobody", {"query": QUERY}),
        ("broken", {"words": MARK}),
        (MARK, {"query": QUERY}),
    ]
    run = executor.context()
    outcomes = [executor.run(ToolCall(name=name, arguments=given), run).outcome for name, given in asked]
    assert outcomes == [
        *("hits", "hits", "bad_query", "bad_arguments", "bad_arguments", "refused", "bad_arguments"),
        *("timeout", "failed", "no_scope", "failed", "unknown_tool"),
    ]
    small = world.executor(found, budget=Budget(characters=10))
    spent = small.run(ToolCall(name="search_docs", arguments={"query": QUERY}), small.context())
    assert spent.outcome == "budget_spent"
    assert isinstance(spent.error, UsageError)
    world.errors.append(spent.error)


def loops(world: World) -> None:
    world.acme.add([Document(id="a", text=TEXT)])
    tool = search_tool(world.acme)
    executor = world.executor(tool)

    def model(messages: list[Message], tools: object) -> object:
        if messages[-1].role == "tool":
            return f"{MARK} {messages[-1].content}"
        return {"tool_calls": [{"name": tool.name, "arguments": {"query": QUERY}}, {"name": MARK, "arguments": {}}]}

    def down(messages: list[Message], tools: object) -> object:
        raise ConnectionError(f"{messages} {MARK}")

    def strange(messages: list[Message], tools: object) -> object:
        return {"tool_calls": MARK, "text": [MARK]}

    asked = [Message("user", QUERY)]
    result = run_tool_loop_sync(CallableModel(model), executor.registry, asked, executor=executor)
    assert MARK in result.final.text
    for failing in (down, strange):
        world.fails(
            lambda failing=failing: run_tool_loop_sync(  # type: ignore[misc]
                CallableModel(failing), executor.registry, asked, executor=executor
            )
        )


WAYS: Mapping[str, Callable[[World], None]] = {
    "ingest": ingest,
    "search": search,
    "guards": guards,
    "tools": tools,
    "loops": loops,
}


@pytest.fixture
def everything(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """All loggers of the process at DEBUG."""
    with caplog.at_level(logging.DEBUG):
        yield caplog


@pytest.mark.promise("G6", "G32")
@pytest.mark.parametrize("way", WAYS)
def test_no_query_and_no_text_is_told(way: str, everything: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    world = World(tmp_path, capture=False)
    WAYS[way](world)
    world.index.close()
    assert len(world.log.events) > 1
    for event in world.log.events:
        assert MARK not in repr(event)
    formatter = logging.Formatter("%(message)s")
    for record in everything.records:
        assert MARK not in formatter.format(record), record  # with the traceback, where there is one
    for error in world.errors:
        assert MARK not in str(error)
        assert MARK not in repr(error)
        assert MARK not in repr(getattr(error, "to_dict", dict)())


@pytest.mark.promise("G6")
@pytest.mark.parametrize("way", ["search", "guards", "tools"])
def test_with_capture_content_it_is_told_to_listeners_alone(
    way: str, everything: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Without it this module would prove nothing: the mark is where it could be told."""
    world = World(tmp_path, capture=True)
    WAYS[way](world)
    world.index.close()
    assert any(MARK in repr(event) for event in world.log.events)
    assert all(MARK not in record.getMessage() for record in everything.records)
