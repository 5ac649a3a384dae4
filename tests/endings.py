"""Searches that end in each of the ways a search can end; every foreign text in them holds `SECRET`."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from wellhead import Document, Hits, Index, StaleIndex
from wellhead.agent.context import Context
from wellhead.agent.search import search_tool
from wellhead.agent.tool import Tool
from wellhead.testing.fakes import HashEmbedder

SECRET = "marker-7f3a9c"
FOUND = "rotate a key once a year"
ABSENT = "which vaccinations are needed for peru"


class Scripted:
    """A retriever that does what it is told to, and remembers what it was asked."""

    def __init__(self, answer: Callable[[], Hits]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, int, Any]] = []

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        self.asked.append((query, k, filters))
        return self.answer()


class Failing(HashEmbedder):
    """Embeds documents, and no query while `down`."""

    down = False

    def embed_query(self, text: str) -> Any:
        if self.down:
            raise OSError(f"{SECRET} while embedding {text}")
        return super().embed_query(text)


def documents() -> list[Document]:
    return [
        Document(id="keys", title="Keys", text="Rotate a key once a year.", metadata={"area": "guides", "team": "a"}),
        Document(
            id="disk", title="Disk", text="When the disk is full, stop the writer.", metadata={"area": "runbooks"}
        ),
        Document(id="fees", title="Fees", text="A refund of fees takes thirty days.", metadata={"area": "policies"}),
    ]


def filled_anew(**options: Any) -> Index:
    """An index that a test may write to."""
    index = Index.open(":memory:", **{"languages": ["en"], **options})
    index.add(documents())
    return index


@functools.cache
def filled() -> Index:
    """The same for all tests that only read."""
    return filled_anew()


def half_down() -> Index:
    """An index that can be searched by words alone: its embedder fails at every query."""
    model = Failing()
    index = filled_anew(embedder=model)
    model.down = True
    return index


def raising(error: Exception) -> Scripted:
    def answer() -> Hits:
        raise error

    return Scripted(answer)


def slow() -> Scripted:
    def answer() -> Hits:
        time.sleep(0.2)
        return Hits()

    return Scripted(answer)


def outage() -> Scripted:
    return raising(OSError(f"{SECRET}: connection refused to 10.0.0.7"))


def stale() -> Scripted:
    return raising(StaleIndex("the index was made with other settings", why=SECRET))


class Ending(NamedTuple):
    """A tool, what it is asked, and the outcome that must come of it."""

    make: Callable[[], Tool]
    arguments: Mapping[str, object]
    outcome: str


def _by_user(ctx: Context) -> Mapping[str, object]:
    return {"tenant": ctx.user_id}


ASK = {"query": FOUND}
ENDINGS: dict[str, Ending] = {
    "hits": Ending(lambda: search_tool(filled()), ASK, "hits"),
    "hits, a leg down": Ending(lambda: search_tool(half_down()), ASK, "hits"),
    "no match": Ending(lambda: search_tool(filled()), {"query": ABSENT}, "no_match"),
    "no match, a leg down": Ending(lambda: search_tool(half_down()), {"query": "zzgrblfx"}, "no_match"),
    "empty index": Ending(lambda: search_tool(Index.open(":memory:")), ASK, "empty_index"),
    "filtered out": Ending(lambda: search_tool(filled(), filters={"area": "dock"}), ASK, "filtered_out"),
    "narrowed to nothing": Ending(
        lambda: search_tool(filled(), filters={"team": "a"}, narrowing={"area": ["runbooks"]}),
        {**ASK, "area": "runbooks"},
        "filtered_out",
    ),
    "both legs down": Ending(lambda: search_tool(outage()), ASK, "unavailable"),
    "time-out": Ending(lambda: search_tool(slow(), timeout=0.05), ASK, "timeout"),
    "bad query": Ending(lambda: search_tool(filled()), {"query": " \n"}, "bad_query"),
    "query too long": Ending(lambda: search_tool(filled()), {"query": "x" * 8_001}, "bad_query"),
    "no scope": Ending(lambda: search_tool(filled(), filters=_by_user), ASK, "no_scope"),
    "stale": Ending(lambda: search_tool(stale()), ASK, "misconfigured"),
    "bad arguments": Ending(lambda: search_tool(filled()), {"question": FOUND}, "bad_arguments"),
    "a bug": Ending(lambda: search_tool(filled(), filters=_broken), ASK, "failed"),
}


def _broken(ctx: Context) -> Mapping[str, object]:
    raise KeyError(f"{SECRET} {ctx.run_id}")
