"""Async methods that call blocking ones: the event loop must go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from wellhead import Document, Index
from wellhead.backends.retrievers.function import FunctionRetriever
from wellhead.index.embedding import EmbeddingRetriever
from wellhead.search.guard import Guarded
from wellhead.testing.fakes import HashEmbedder

SECONDS = 0.5


class Slow(HashEmbedder):
    def embed_query(self, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        time.sleep(SECONDS if text == "slow" else 0)
        return super().embed_query(text)


class Secretly:
    """Its async method calls the blocking one."""

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> list[str]:
        time.sleep(SECONDS)
        return ["text"]

    async def asearch(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> list[str]:
        return self.search(query)


def over_index() -> Guarded:
    index = Index.open(":memory:", embedder=Slow(), languages=["en"])
    index.add([Document(id="a", text="slow text")])
    index.search("warm")
    return Guarded(index)


def in_memory() -> Guarded:
    retriever = EmbeddingRetriever(Slow(), [Document(id="a", text="text")])
    retriever.search("warm")
    return retriever


def in_a_function() -> Guarded:
    return FunctionRetriever(lambda query, k, filters: time.sleep(SECONDS) or ["text"])


@pytest.mark.parametrize(
    "make",
    [over_index, in_memory, in_a_function, lambda: Guarded(Secretly())],
    ids=["index", "memory", "fn", "secretly"],
)
def test_a_ticker_goes_on_while_something_blocks(make: Callable[[], Guarded]) -> None:
    """run-llama/llama_index#21159: an async method called a blocking one, and the loop stood still."""
    guarded = make()

    async def run() -> list[float]:
        late: list[float] = []
        search = asyncio.create_task(guarded.asearch("slow"))
        while not search.done():
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            late.append(time.perf_counter() - began - 0.01)
        assert len(await search) == 1
        return late

    late = asyncio.run(run())
    assert len(late) > 15
    # A busy machine may hold up a tick or two; a blocked loop holds up one for as long as the backend takes.
    assert sorted(late)[len(late) * 9 // 10] < 0.05
    assert max(late) < SECONDS / 2
