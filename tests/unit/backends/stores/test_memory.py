"""What the contract does not ask of every store: the memory store's own bookkeeping."""

from __future__ import annotations

import pickle

import pytest

from wellhead.backends.stores.memory import MemoryStore
from wellhead.records import Document
from wellhead.testing.contracts import put, vector_of
from wellhead.testing.fakes import HashEmbedder, document_row


def test_a_vector_given_is_copied():
    store = MemoryStore()
    row = document_row(Document(id="a", text="x"))
    vector = HashEmbedder().embed_query("x")
    store.put([row], {row.passages[0].vector_key: vector})
    before = vector.tolist()
    vector[:] = 0
    put(store, [Document(id="b", text="y")])
    view = store.view("")
    assert vector_of(view, view.rows_of("a")[0]) == before


def test_a_lost_vector_is_reported():
    store = MemoryStore()
    put(store, [Document(id="a", text="x\ny")])
    store._vectors.popitem()
    (finding,) = store.verify()[3]
    assert (finding.kind, finding.where) == ("missing_vector", "document 'a'")
    assert store.states("")["a"].incomplete


def test_a_handle_says_that_it_cannot_be_pickled():
    with pytest.raises(TypeError, match="open the index again"):
        pickle.dumps(MemoryStore())
