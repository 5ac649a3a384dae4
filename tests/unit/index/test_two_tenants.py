"""Two tenants' runbooks in one collection: unscoped the search tells one of the other, scoped it never does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wellhead import Document, Guarded, Index, ScopeError, search_tool
from wellhead.testing.fakes import HashEmbedder

QUERY = "what do I do when the disk of the database is full"
RUNBOOKS = {
    "acme": {
        "disk": "When the disk of the database is full, stop the writers and page the acme storage team.",
        "restart": "To restart the acme gateway, drain it first and wait for two minutes.",
    },
    "globex": {
        "disk": "When the database's disk is full, call the globex vault with the passphrase bluebird.",
        "failover": "A full disk on the globex primary means: fail over to the replica in the cellar.",
        "disk-2": "Full disk of the database, second time: order another disk from the globex supplier.",
    },
}


def runbooks(place: str | Path = ":memory:", *, scope_key: str | None = None) -> Index:
    """One collection; without a scope key nothing but the metadata tells whose a runbook is."""
    index = Index.open(place, languages=["en"], scope_key=scope_key)
    index.add(
        Document(id=f"{tenant}/{name}", text=text, metadata={"tenant": tenant})
        for tenant, books in RUNBOOKS.items()
        for name, text in books.items()
    )
    return index


def owners(hits: Any) -> list[object]:
    return [hit.metadata["tenant"] for hit in hits]


@pytest.mark.promise("D56")
@pytest.mark.parametrize("kind", ["embedded", "memory"])
def test_unscoped_it_leaks_and_scoped_it_does_not(kind: str, kb: Path) -> None:
    with runbooks(":memory:" if kind == "memory" else kb) as index:
        # The one of acme who forgets the scope is shown what globex wrote: that is what a scope is for.
        unscoped = index.search(QUERY, k=2)
        assert "globex" in owners(unscoped)
        assert "globex" in "".join(hit.text for hit in unscoped)
        ways: list[Callable[[], Any]] = [
            lambda: index.scoped(tenant="acme").search(QUERY, k=2),
            lambda: Guarded(index, scope_key="tenant").scoped(tenant="acme").search(QUERY, k=2),
            lambda: Guarded(index, scope_key="tenant").search(QUERY, k=2, filters={"tenant": "acme"}),
            lambda: search_tool(index.scoped(tenant="acme"), k=2).run({"query": QUERY}).hits,
        ]
        for way in ways:
            scoped = way()
            # Both of its own: what globex has takes none of the two places.
            assert owners(scoped) == ["acme", "acme"]
            assert scoped[0].passage.document_id == "acme/disk"
            assert "globex" not in str(scoped.to_dict())
            assert scoped.coverage.passages == 2


@pytest.mark.promise("D56")
def test_with_a_scope_key_nobody_can_forget_it() -> None:
    with runbooks(scope_key="tenant") as index:
        with pytest.raises(ScopeError):
            index.search(QUERY)
        assert owners(index.search(QUERY, k=2, filters={"tenant": "acme"})) == ["acme", "acme"]
        assert search_tool(index).run({"query": QUERY}).outcome == "no_scope"


# -- a folder keeps it ------------------------------------------------------------------------------------------------

_READ = """
import sys
from wellhead import Index
with Index.open(sys.argv[1], create=False) as index:
    for hit in index.search(sys.argv[2], mode="dense", cut="off"):
        print(hit.id, f"{hit.score:.6f}")
"""


@pytest.mark.promise("D20")
def test_a_collection_lies_in_its_folder_and_another_process_finds_the_same(kb: Path) -> None:
    with runbooks(kb) as index:
        before = [f"{hit.id} {hit.score:.6f}" for hit in index.search(QUERY, mode="dense", cut="off")]
    assert kb.is_dir()
    assert len(before) == 5
    told = subprocess.run(
        [sys.executable, "-c", _READ, str(kb), QUERY], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.split("\n")[:-1] == before
    with Index.open(kb, create=False, read_only=True) as again:
        assert [one.id for one in again.documents()] == sorted(
            f"{t}/{n}" for t, books in RUNBOOKS.items() for n in books
        )


@pytest.mark.promise("D20")
@pytest.mark.parametrize("length", [1.0, 0.01, 250.0])
def test_the_score_of_a_dense_search_is_the_cosine_whatever_the_length_of_the_vectors(kb: Path, length: float) -> None:
    class Scaled(HashEmbedder):
        def embed_query(self, text: str) -> Any:
            return super().embed_query(text) * np.float32(length)

    texts = ["rotate the key", "keep the log", "open the vault"]
    with Index.open(kb, embedder=Scaled(), languages=["en"]) as index:
        index.add(Document(id=f"d{n}", text=text) for n, text in enumerate(texts))
        plain = HashEmbedder()
        for hit in index.search("what about the key", mode="dense", cut="off"):
            expected = float(plain.embed_query("what about the key") @ plain.embed_query(hit.text))
            assert hit.score == pytest.approx(expected, abs=1e-5)
            assert hit.signals.cosine == hit.score


# -- vectors improve an answer and never gate one ---------------------------------------------------------------------


class Contrary(HashEmbedder):
    """Says of every passage that its meaning is the opposite of the query's; or nothing at all, while `down`."""

    down = False

    def embed_documents(self, texts: Any) -> Any:
        return np.tile(np.float32([-1.0, *([0.0] * (self.dims - 1))]), (len(texts), 1))

    def embed_query(self, text: str) -> Any:
        if self.down:
            raise ConnectionError("no model")
        return np.float32([1.0, *([0.0] * (self.dims - 1))])


@pytest.mark.promise("B28")
@pytest.mark.parametrize("down", [False, True], ids=["against it", "gone"])
def test_what_the_words_found_is_found_whatever_the_vectors_say(down: bool) -> None:
    embedder = Contrary()
    with Index.open(":memory:", embedder=embedder, languages=["en"]) as index:
        index.add(Document(id=f"d{n}", text=text) for n, text in enumerate(RUNBOOKS["globex"].values()))
        words = index.search(QUERY, mode="lexical")
        assert len(words) == 3
        embedder.down = down
        for hits in (
            index.search(QUERY),
            Guarded(index).search(QUERY),
            search_tool(index).run({"query": QUERY}).hits,
        ):
            assert hits is not None
            assert hits.outcome == "hits"
            assert {hit.id for hit in hits} == {hit.id for hit in words}
            assert hits[0].id == words[0].id
            assert bool(hits.degraded) == down


@pytest.mark.promise("B28")
def test_what_no_word_found_is_found_by_its_meaning() -> None:
    with runbooks() as index:
        question = "storage ran out of space on the server"
        by_words = index.search(question, mode="lexical")
        both = index.search(question)
        assert both.outcome == "hits"
        new = {hit.id for hit in both} - {hit.id for hit in by_words}
        assert new
        assert {hit.id for hit in by_words} <= {hit.id for hit in both}
