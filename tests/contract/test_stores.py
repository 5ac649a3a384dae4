"""Every store under the one contract, and two stores that must agree after any history."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.backends.stores.memory import MemoryStore
from wellhead.records import Document
from wellhead.testing.contracts import StoreContract, assert_same_view, put


class TestMemoryStore(StoreContract):
    def open_store(self, folder: Path) -> MemoryStore:
        return MemoryStore()


class TestEmbeddedStore(StoreContract):
    def open_store(self, folder: Path) -> EmbeddedStore:
        return EmbeddedStore(folder / "kb")


WORDS = ["cat", "cats", "dog", "café", "cafe", "Ärger", "日本", "e\u0301t\u00e9", "x_y"]
lines = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
values = st.one_of(
    st.sampled_from([True, 1, 1.0, "1", ("a", 1)]),
    st.text(max_size=3),
    st.floats(allow_nan=False, allow_infinity=False),
)
documents = st.builds(
    Document,
    id=st.sampled_from(["a/b", "a-b", "ü", "z" * 300]),
    text=st.lists(lines, max_size=4).map("\r\n".join),
    title=st.sampled_from(["", "Title"]),
    metadata=st.dictionaries(st.sampled_from(["k", "ключ"]), values),
    language=st.sampled_from([None, "en", "de"]),
)
scopes = st.sampled_from(["", "acme"])
steps = st.one_of(
    st.tuples(st.just("put"), scopes, st.lists(documents, max_size=3, unique_by=lambda document: document.id)),
    st.tuples(st.just("delete"), scopes, st.lists(st.sampled_from(["a/b", "a-b", "ü", "nobody"]), max_size=2)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=8))
def test_stores_agree_after_any_history_and_with_a_fresh_one(history):
    with tempfile.TemporaryDirectory() as folder:
        embedded, memory = EmbeddedStore(folder), MemoryStore()
        live: dict[tuple[str, str], Document] = {}
        for verb, scope, items in history:
            if verb == "put":
                put(embedded, items, scope=scope)
                put(memory, items, scope=scope)
                live |= {(scope, item.id): item for item in items}
            else:
                assert embedded.delete(scope, items) == memory.delete(scope, items)
                for item in items:
                    live.pop((scope, item), None)
            assert embedded.version() == memory.version()
        fresh = MemoryStore()
        for (scope, _), document in live.items():
            put(fresh, [document], scope=scope)
        for scope in ("", "acme"):
            assert_same_view(embedded.view(scope), memory.view(scope), WORDS)
            assert_same_view(embedded.view(scope), fresh.view(scope), WORDS)
            assert list(embedded.documents(scope)) == list(fresh.documents(scope))
            assert embedded.summaries(scope) == memory.summaries(scope) == fresh.summaries(scope)
            assert embedded.states(scope) == memory.states(scope) == fresh.states(scope)
        assert embedded.counts()[0] == memory.counts()[0] == fresh.counts()[0]
        assert embedded.verify() == memory.verify()
        embedded.close()


@settings(max_examples=60, deadline=None)
@given(
    st.builds(
        Document,
        id=st.text(min_size=1).filter(str.strip),
        text=st.text(max_size=200),
        uri=st.text(max_size=20),
        title=st.text(max_size=20),
        media_type=st.sampled_from(["text/plain", "text/markdown"]),
        metadata=st.dictionaries(st.text(min_size=1, max_size=5).filter(str.strip), values, max_size=3),
    )
)
def test_any_document_survives_the_disk(document):
    with tempfile.TemporaryDirectory() as folder:
        first, memory = EmbeddedStore(folder), MemoryStore()
        put(first, [document])
        put(memory, [document])
        first.close()
        again = EmbeddedStore(folder)
        assert repr(again.get("", document.id)) == repr(document)
        assert_same_view(again.view(""), memory.view(""))
        again.close()
