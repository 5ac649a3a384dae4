"""Another process deletes the last document of a vector between the question whether it is there and the write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from wellhead import Document, Index
from wellhead.backends.stores.memory import MemoryStore
from wellhead.errors import UsageError
from wellhead.testing.fakes import HashEmbedder


class Counting(HashEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.texts = 0

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        return super().embed_documents(texts)


def test_a_vector_that_is_lost_at_the_last_moment_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Counting()
    index = Index.open(":memory:", embedder=embedder, languages=["en"])
    index.add([Document(id="first", text="the same text")])
    store, put = index._house.store, MemoryStore.put
    deleted: list[int] = []

    def late(self: MemoryStore, *rows: object) -> None:
        if not deleted:
            deleted.append(self.delete("", ["first"]))
        put(self, *rows)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryStore, "put", late)
    report = index.add([Document(id="second", text="the same text"), Document(id="third", text="another text")])
    assert deleted == [1]
    assert (report.added, report.failed) == (2, ())
    assert embedder.texts == 3  # what the first try made is not made twice
    assert index.search("the same text", mode="dense", cut="off")[0].passage.document_id == "second"
    assert store.verify()[3] == []


def test_rows_that_contradict_one_another_are_still_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])

    def refuse(self: MemoryStore, *rows: object) -> None:
        raise UsageError("a passage id is taken")

    monkeypatch.setattr(MemoryStore, "put", refuse)
    with pytest.raises(UsageError, match="a passage id is taken"):
        index.add([Document(id="a", text="text")])
