"""Every live record is found, and no dead one, wherever its row lies: in memory, in a file, in a merged one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from histories import EMBEDDER, LAYOUTS, at, by_hand, lay_out, state_of
from wellhead import Document, Index
from wellhead.backends.stores.embedded.keeper import Job, carry_out
from wellhead.backends.stores.embedded.store import EmbeddedStore


def open_index(path: Path) -> tuple[Index, EmbeddedStore]:
    """An index, and its store driven by hand."""
    index = Index.open(path, embedder=EMBEDDER, languages=["en"])
    store = index._house.store
    assert isinstance(store, EmbeddedStore)
    return index, by_hand(store)


def rare(name: str, edition: str) -> str:
    """A word that one edition of one record has; of letters alone, for others are cut into parts."""
    return f"zy{name.translate({ord('0') + n: letter for n, letter in enumerate('abcdefghij')})}{edition}"


def not_found(index: Index, live: dict[str, str]) -> list[tuple[str, str]]:
    """Which records do not come first for the vector of their own text, or for their rarest word."""
    missing = []
    for name, text in live.items():
        for mode, query in (("dense", text), ("lexical", text.split()[-1])):
            hits = index.search(query, k=1, mode=mode, cut="off")
            if [hit.passage.document_id for hit in hits] != [name]:
                missing.append((mode, name))
    return missing


@pytest.mark.promise("B5")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_deletes_and_upserts_hide_no_live_record(layout: str, kb: Path) -> None:
    """chroma-core/chroma#7758: after many deletes and upserts some live records could not be found by their vector."""
    chance = random.Random(f"7758 {layout}")
    index, store = open_index(kb)
    live: dict[str, str] = {}

    def put(names: list[str], edition: str) -> None:
        texts = {name: f"note of the {edition} edition {rare(name, edition)}" for name in names}
        index.add(Document(id=name, text=text) for name, text in texts.items())
        live.update(texts)

    put([f"d{n}" for n in range(400)], "first")
    lay_out(store, layout)
    for edition in ("second", "third"):
        gone = chance.sample(sorted(live), len(live) // 2)
        assert index.remove(gone) == len(gone)
        for name in gone:
            del live[name]
        lay_out(store, layout)
        put([*chance.sample(sorted(live), 60), *gone[:60]], edition)
        lay_out(store, layout)
        assert not_found(index, live) == []
    for name in set(gone) - live.keys():
        for edition in ("first", "second", "third"):
            assert index.search(rare(name, edition), mode="lexical").outcome == "no_match"
    index.close()
    again, store = open_index(kb)
    assert again.stats().documents == again.stats().vectors == len(live)
    assert not_found(again, live) == []
    lay_out(store, "compacted")
    assert not_found(again, live) == []
    assert again.verify().ok
    again.close()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_document_added_behind_the_files_is_found_at_once(layout: str, kb: Path) -> None:
    """lance-format/lance#3014, lancedb/lancedb#1365: rows added after the text index was built were not searched."""
    index, store = open_index(kb)
    index.add(Document(id=f"d{n}", text=f"an ordinary note {n}") for n in range(50))
    lay_out(store, layout)
    reader = Index.open(kb, embedder=EMBEDDER, read_only=True)
    for handle in (index, reader):
        assert handle.search("zyzzyva", mode="lexical").outcome == "no_match"
    index.add([Document(id="new", text="a zyzzyva is a weevil")])
    for handle in (index, reader):
        hits = handle.search("zyzzyva", mode="lexical")
        assert [hit.passage.document_id for hit in hits] == ["new"]
        assert (hits.coverage.passages, hits.coverage.with_vectors) == (51, 51)
        assert (handle.stats().passages, handle.stats().with_vectors) == (51, 51)
    lay_out(store, layout)
    assert index.remove("new") == 1
    for handle in (index, reader):
        assert handle.search("zyzzyva", mode="lexical").outcome == "no_match"
        assert handle.search("a zyzzyva is a weevil", mode="dense", cut="off")[0].passage.document_id != "new"
        assert handle.stats().passages == 50
    reader.close()
    index.close()


@pytest.mark.parametrize("moment", ["segment.written", "swap.before", "swap.middle", "swap.after"])
def test_a_document_added_while_a_file_is_being_made_is_found_at_once(moment: str, kb: Path) -> None:
    """lance-format/lance#3014: the same, amid the making of the very file that does not hold it."""
    index, store = open_index(kb)
    index.add(Document(id=f"d{n}", text=f"an ordinary note {n}") for n in range(20))
    found: list[list[str]] = []

    def look() -> None:
        if moment != "swap.middle":  # there the writer's lock is held
            index.add([Document(id="new", text="a zyzzyva is a weevil")])
        found.append([hit.passage.document_id for hit in index.search("zyzzyva", mode="lexical")])
        found.append([hit.passage.document_id for hit in index.search("ordinary 7", mode="lexical", k=1)])

    with at(moment, look):
        assert carry_out(store._database, Job((), 1, state_of(store)[1]))
    assert found == [["new"] if moment != "swap.middle" else [], ["d7"]]
    assert [hit.passage.document_id for hit in index.search("zyzzyva", mode="lexical")] == found[0]
    assert len(index.search("ordinary", mode="lexical", k=100)) == 20
    index.close()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ids_that_look_alike_stay_apart(layout: str, kb: Path) -> None:
    """qdrant/qdrant-client#293, ROCm/aorta#447: ids had to be UUIDs, or collided when names were mangled or cut."""
    ids = ["a/b", "a-b", "a_b", "A/B", "x" * 299 + "1", "x" * 299 + "2", "é", "e\u0301", "日本語", "日本", "1", "01"]
    index, store = open_index(kb)
    index.add(Document(id=name, text=f"the text numbered word{n}\n\nshared") for n, name in enumerate(ids))
    lay_out(store, layout)
    seen = {}
    for n, name in enumerate(ids):
        hit = index.search(f"word{n}", mode="lexical", k=1)[0]
        assert (hit.passage.document_id, hit.text) == (name, index.passages(name)[0].text)
        assert index.passage(hit.id) == hit.passage
        assert index.passage(hit.id[:12]).document_id == name
        seen[hit.id] = name
    assert len(seen) == len(ids)
    assert index.remove("a/b") == 1
    lay_out(store, layout)
    assert {one.id for one in index.documents()} == set(ids) - {"a/b"}
    assert index.passages("a/b") == []
    assert len(index.passages("a-b")) == len(index.passages("A/B")) > 0
    index.close()
