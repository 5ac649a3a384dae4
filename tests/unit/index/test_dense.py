"""Documents become embedded passages, and a query is answered by the nearest of them."""

from __future__ import annotations

import numpy as np
import pytest

from wellhead import Document, Index, Passage
from wellhead.testing.fakes import HashEmbedder


@pytest.mark.promise("A4")
@pytest.mark.parametrize("chunker", ["structure", "fixed", "paragraph"])
def test_a_query_is_answered_by_the_passages_nearest_by_cosine(chunker: str) -> None:
    embedder = HashEmbedder(dims=8)
    documents = [
        Document(
            id=f"article-{n}",
            title=f"Article {n}",
            text="\n\n".join(f"# Part {m}\n\n" + f"sentence {n}.{m} about water and wells. " * 60 for m in range(4)),
            media_type="text/markdown",
        )
        for n in range(6)
    ]
    with Index.open(":memory:", embedder=embedder, languages=["en"], chunker=chunker) as index:
        report = index.add(documents)
        passages = [passage for one in documents for passage in index.passages(one.id)]
        assert len(passages) > len(documents)
        assert report.passages == len(passages) == index.stats().with_vectors
        hits = index.search("where does the water come from?", k=10, mode="dense", cut="off")
        query = embedder.embed_query("where does the water come from?").astype(np.float64)
        cosines = {
            passage.id: float(query @ embedder.embed_query(passage.embedded_text).astype(np.float64))
            for passage in passages
        }
        # Equal texts are one hit, so the oracle ranks distinct ones.
        best: dict[str, Passage] = {}
        for passage in sorted(passages, key=lambda one: (-cosines[one.id], one.id)):
            best.setdefault(passage.text, passage)
        nearest = list(best.values())[:10]
        assert [hit.id for hit in hits] == [passage.id for passage in nearest]
        for hit in hits:
            assert hit.score == hit.signals.cosine == pytest.approx(cosines[hit.id], abs=1e-6)
            assert hit.text == best[hit.text].text
            assert hit.passage.document_id in {one.id for one in documents}


def test_the_default_embedder_finds_by_meaning_where_no_word_is_shared() -> None:
    with Index.open(":memory:") as index:
        index.add(
            [
                Document(id="biology", text="Apoptosis and necrosis are two ways in which a cell perishes."),
                Document(id="finance", text="The quarterly budget is due before the board meets."),
                Document(id="cooking", text="Knead the dough, let it rise, and bake the bread until golden."),
            ]
        )
        hits = index.search("how do living tissues die", mode="dense", k=3, cut="off")
        assert hits[0].passage.document_id == "biology"
        assert hits[0].signals.bm25 in (None, 0.0)
