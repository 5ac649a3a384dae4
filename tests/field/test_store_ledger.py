"""What the index says it holds is what is searched: files lost, vectors lost, runs broken off, folders deleted."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from histories import LAYOUTS, assert_same_hits, by_hand, lay_out, state_of
from wellhead import Document, Index
from wellhead.backends.stores.embedded.segment import FOLDER
from wellhead.errors import BackendError, IngestStopped
from wellhead.testing.fakes import HashEmbedder


class Counting(HashEmbedder):
    """Counts the texts that it embeds, and fails once it was asked for so many."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.most = most

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.most is not None and len(self.texts) + len(texts) > self.most:
            raise BackendError("the embedder is gone", where="here", why="it gave up", fix="try again")
        self.texts += texts
        return super().embed_documents(texts)


def open_index(path: Path, embedder: HashEmbedder) -> Index:
    index = Index.open(path, embedder=embedder, languages=["en"])
    by_hand(index._house.store)
    return index


def folder_of(notes: int, place: Path) -> Path:
    place.mkdir()
    for n in range(notes):
        (place / f"{n:03}.txt").write_text(f"the note numbered {n}")
    return place


def answers(index: Index, notes: int) -> list[object]:
    return [
        [
            (hit.id, round(hit.score or 0.0, 9))
            for hit in index.search(f"the note numbered {n}", mode=mode, k=3, cut="off")
        ]
        for n in range(notes)
        for mode in ("hybrid", "dense", "lexical")
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_vectors_lost_behind_the_index_are_named_and_made_again(layout: str, kb: Path, tmp_path: Path) -> None:
    """langchain-ai/langchain#39937: a ledger said indexed, the store had lost it, and every run reported success."""
    docs, embedder = folder_of(20, tmp_path / "docs"), Counting()
    with open_index(kb, embedder) as index:
        index.sync(docs)
        lay_out(index._house.store, layout)
        before = answers(index, 20)
    with closing(sqlite3.connect(kb / "wellhead.sqlite")) as raw:
        raw.execute("DELETE FROM vectors WHERE rowid IN (SELECT rowid FROM vectors ORDER BY key LIMIT 10)")
        raw.commit()
    with open_index(kb, embedder) as index:
        named = {finding.where for finding in index.verify().findings if finding.kind == "missing_vector"}
        assert len(named) == 10
        assert index.stats().incomplete == 10
        embedder.texts.clear()
        report = index.sync(docs)
        assert (report.embedded, report.unchanged, report.complete) == (10, 10, True)
        assert len(embedder.texts) == 10
        assert index.verify().ok
        assert answers(index, 20) == before
        lay_out(index._house.store, layout)
        assert answers(index, 20) == before
        assert (index.stats().with_vectors, index.stats().incomplete) == (20, 0)


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "in memory"])
@pytest.mark.parametrize("loss", ["one file", "all files", "the folder", "half of a file", "the list"])
def test_files_lost_behind_the_index_change_no_answer(layout: str, loss: str, kb: Path, tmp_path: Path) -> None:
    """langchain-ai/langchain#39937: the kind: what is derived is lost; here it is made again out of the tables."""
    docs = folder_of(20, tmp_path / "docs")
    with open_index(kb, Counting()) as index:
        index.sync(docs)
        lay_out(index._house.store, layout)
        index.remove(["003.txt", "017.txt"])
        before = answers(index, 20)
    files = sorted((kb / FOLDER).iterdir())
    if loss == "the folder":
        shutil.rmtree(kb / FOLDER)
    elif loss == "the list":
        with closing(sqlite3.connect(kb / "wellhead.sqlite")) as raw:
            raw.execute("DELETE FROM segments")
            raw.commit()
    elif loss == "half of a file":
        files[0].write_bytes(files[0].read_bytes()[: files[0].stat().st_size // 2])
    else:
        for path in files if loss == "all files" else files[:1]:
            path.unlink()
    embedder = Counting()
    with Index.open(kb, embedder=embedder, languages=["en"]) as index:
        assert answers(index, 20) == before
        assert {one.kind for one in index.verify().findings} <= {
            "segment",
            "unlisted_segment",
            "gap",
        } or index.verify().ok
        index._house.store.settle()
        assert answers(index, 20) == before
        index.add([Document(id="new", text="a zyzzyva is a weevil")])
        assert [hit.passage.document_id for hit in index.search("zyzzyva", mode="lexical")] == ["new"]
        assert embedder.texts == ["a zyzzyva is a weevil"]


@pytest.mark.promise("D9")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_index_that_is_opened_embeds_nothing_but_the_query(layout: str, kb: Path, tmp_path: Path) -> None:
    """langchain-ai/langchain#39937: what was embedded once is what is searched, in every later process."""
    docs = folder_of(20, tmp_path / "docs")
    with open_index(kb, Counting()) as index:
        index.sync(docs)
        lay_out(index._house.store, layout)
        before = [index.search(f"the note numbered {n}", cut="off") for n in range(20)]
    embedder = Counting()
    with open_index(kb, embedder) as index:
        for n, hits in enumerate(before):
            assert_same_hits(index.search(f"the note numbered {n}", cut="off"), hits)
        assert index.sync(docs).unchanged == 20
        assert embedder.texts == []


@pytest.mark.promise("D33")
def test_an_index_whose_folder_was_deleted_is_made_again_and_then_opened(kb: Path, tmp_path: Path) -> None:
    """langchain-ai/langchain#39937: no ledger elsewhere may claim that what is gone is there."""
    docs, told = folder_of(20, tmp_path / "docs"), []
    for turn in range(4):
        if turn == 1:
            shutil.rmtree(kb)
        embedder = Counting()
        with open_index(kb, embedder) as index:
            report = index.sync(docs)
            lay_out(index._house.store, "in a file and in memory")
            told.append((report.added, report.unchanged, len(embedder.texts)))
            hits = index.search("the note numbered 7", mode="lexical", k=1)
            assert hits[0].text == "the note numbered 7"
    assert told == [(20, 0, 20), (20, 0, 20), (0, 20, 0), (0, 20, 0)]


@pytest.mark.promise("B45")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_run_that_gives_up_keeps_what_it_embedded_and_the_next_does_the_rest(layout: str, kb: Path) -> None:
    """bobmatnyc/mcp-vector-search#91: a run broken off left an index that no later run could go on with."""
    documents = [Document(id=f"d{n}", text=f"the note numbered {n}") for n in range(516)]
    first = Counting(most=300)
    with open_index(kb, first) as index:
        with pytest.raises(IngestStopped) as stopped:
            index.add(documents)
        lay_out(index._house.store, layout)
        kept = index.stats().documents
        assert stopped.value.report is not None
        assert kept == stopped.value.report.added == len(first.texts)
        assert 0 < kept <= 300
        assert index.search("the note numbered 3", mode="dense", k=1, cut="off")[0].text == "the note numbered 3"
    second = Counting()
    with open_index(kb, second) as index:
        report = index.add(documents)
        lay_out(index._house.store, layout)
        assert (report.added, report.unchanged, report.complete) == (516 - kept, kept, True)
        assert sorted([*first.texts, *second.texts]) == sorted(document.text for document in documents)
        assert index.stats().with_vectors == 516
        assert index.verify().ok
        segments, upto = state_of(index._house.store)
        assert upto == 516
        assert sum(one.rows for one in segments) <= 516
