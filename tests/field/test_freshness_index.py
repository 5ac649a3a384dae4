"""What was written last is what is searched: after deletes, upserts, reopening, and losses behind the index's back."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest

from wellhead import Document, Index
from wellhead.testing.fakes import HashEmbedder


def open_index(path: str | Path, *, create: bool = True) -> Index:
    return Index.open(path, embedder=HashEmbedder(), languages=["en"], create=create)


def lost(index: Index, live: dict[str, str], ids: Iterable[str]) -> list[str]:
    """Which of `ids` do not come first for the vector of their own text."""
    missing = []
    for name in ids:
        hits = index.search(live[name], k=1, mode="dense", cut="off")
        if [hit.passage.document_id for hit in hits] != [name]:
            missing.append(name)
    return missing


@pytest.mark.promise("B5")
def test_every_live_record_is_first_for_its_own_vector(kb: Path) -> None:
    """chroma-core/chroma#7758: after many deletes and upserts some live records could not be found by their vector."""
    chance = random.Random(7758)
    live = {f"d{n}": f"note {n} of the first edition" for n in range(4_000)}
    with open_index(kb) as index:
        index.add(Document(id=name, text=text) for name, text in live.items())
        gone = chance.sample(sorted(live), 2_000)
        assert index.remove(gone) == 2_000
        for name in gone:
            del live[name]
        # Half of the upserts replace a live record, half bring a deleted one back.
        upserts = {name: f"{name} upserted" for name in [*chance.sample(sorted(live), 600), *gone[:600]]}
        index.add(Document(id=name, text=text) for name, text in upserts.items())
        live |= upserts
        assert lost(index, live, live) == []
    with open_index(kb) as index:
        assert index.stats().documents == index.stats().vectors == len(live) == 2_600
        assert lost(index, live, live) == []
        for name in gone[600:650]:
            hits = index.search(f"note {name[1:]} of the first edition", k=1, mode="dense", cut="off")
            assert hits[0].passage.document_id in live


@pytest.mark.parametrize("kind", ["embedded", "memory"])
def test_a_document_added_after_the_first_search_is_found_at_once(kind: str, kb: Path) -> None:
    """lance-format/lance#3014: rows added after the text index was built were not searched, and nothing said so."""
    with open_index(":memory:" if kind == "memory" else kb) as index:
        index.add(Document(id=f"d{n}", text=f"an ordinary note {n}") for n in range(50))
        assert index.search("zyzzyva", mode="lexical").outcome == "no_match"
        index.add([Document(id="new", text="a zyzzyva is a weevil")])
        hits = index.search("zyzzyva", mode="lexical")
        assert [hit.passage.document_id for hit in hits] == ["new"]
        stats = index.stats()
        assert (stats.documents, stats.passages, stats.with_vectors) == (51, 51, 51)
        assert (hits.coverage.passages, hits.coverage.with_vectors) == (51, 51)
        assert index.remove("new") == 1
        assert index.search("zyzzyva", mode="lexical").outcome == "no_match"


def test_another_process_sees_a_new_document_at_once(kb: Path) -> None:
    """lance-format/lance#3014, from a second handle on the same folder."""
    with open_index(kb) as writer, open_index(kb, create=False) as reader:
        writer.add([Document(id="old", text="an ordinary note")])
        assert len(reader.search("note", mode="lexical")) == 1
        writer.add([Document(id="new", text="a zyzzyva is a weevil")])
        assert [hit.passage.document_id for hit in reader.search("zyzzyva", mode="lexical")] == ["new"]
        writer.remove("new")
        assert reader.get("new") is None
        assert not reader.search("zyzzyva", mode="lexical")


@pytest.mark.parametrize("kind", ["embedded", "memory"])
def test_ids_that_look_alike_stay_apart_and_come_back_as_given(kind: str, kb: Path) -> None:
    """qdrant/qdrant-client#293, ROCm/aorta#447: ids had to be UUIDs, or collided when names were mangled or cut."""
    ids = [
        "a/b",
        "a-b",
        "a_b",
        "A/B",
        " a/b",
        "x" * 299 + "1",
        "x" * 299 + "2",
        "é",
        "e\u0301",
        "日本語",
        "\U0001f40b",
        "1",
        "01",
    ]
    with open_index(":memory:" if kind == "memory" else kb) as index:
        report = index.add(Document(id=name, text=f"the text numbered {n}") for n, name in enumerate(ids))
        assert (report.added, report.refused) == (len(ids), ())
        assert {one.id for one in index.documents()} == set(ids)
        seen = set()
        for n, name in enumerate(ids):
            held = index.get(name)
            assert held is not None
            assert (held.id, held.text) == (name, f"the text numbered {n}")
            (passage,) = index.passages(name)
            assert passage.document_id == name
            assert index.passage(passage.id) == passage
            seen.add(passage.id)
        assert len(seen) == len(ids)
        assert index.remove("a/b") == 1
        assert {one.id for one in index.documents()} == set(ids) - {"a/b"}


def test_vectors_lost_behind_the_index_are_named_shown_and_made_again(kb: Path, tmp_path: Path) -> None:
    """langchain-ai/langchain#39937: a ledger said indexed, the store had lost it, and every run reported success."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for n in range(20):
        (docs / f"{n}.txt").write_text(f"the note numbered {n}")
    with open_index(kb) as index:
        assert index.sync(docs).embedded == 20
        before = [index.search(f"the note numbered {n}", mode="dense", k=1, cut="off")[0].id for n in range(20)]
    with sqlite3.connect(kb / "wellhead.sqlite") as connection:
        connection.execute("DELETE FROM vectors WHERE rowid IN (SELECT rowid FROM vectors ORDER BY key LIMIT 10)")
    connection.close()
    with open_index(kb) as index:
        findings = index.verify().findings
        assert {finding.kind for finding in findings} == {"missing_vector"}
        assert len(findings) == 10
        hits = index.search("note")
        assert (hits.coverage.passages, hits.coverage.with_vectors) == (20, 10)
        assert (index.stats().with_vectors, index.stats().incomplete) == (10, 10)
        report = index.sync(docs)
        assert (report.embedded, report.unchanged, report.complete) == (10, 10, True)
        assert index.verify().ok
        assert index.search("note").coverage.with_vectors == 20
        after = [index.search(f"the note numbered {n}", mode="dense", k=1, cut="off")[0].id for n in range(20)]
        assert after == before
