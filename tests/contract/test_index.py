"""An index is a function of the documents it holds: not of its store, nor of the order in which they came and went."""

from __future__ import annotations

import datetime
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wellhead import Document, Hits, Index
from wellhead.records import Scalar
from wellhead.testing.fakes import HashEmbedder

QUERIES = ("key rotation", "état Ärger", "log", "snake_case_name", "nothing of the kind")

WORDS = ["key", "keys", "rotate", "rotation", "log", "logs", "état", "Ärger", "snake_case_name", "HTTPServer", "日本語"]
lines = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
texts = st.lists(st.one_of(lines, lines.map("# {}".format)), max_size=4).map("\n\n".join)
scalars: st.SearchStrategy[Scalar] = st.one_of(
    st.sampled_from(["vault", "1", "ü"]), st.integers(-3, 3), st.booleans(), st.sampled_from([0.5, -1e300, 1.0])
)
metadata = st.dictionaries(st.sampled_from(["product", "year", "tags"]), st.one_of(scalars, st.lists(scalars)))
documents = st.builds(
    Document,
    id=st.sampled_from(["a/b", "a-b", "ü", "z" * 300, "z" * 299 + "y"]),
    text=texts,
    title=st.sampled_from(["", "Keys", "Log book"]),
    metadata=metadata,
    media_type=st.sampled_from(["text/plain", "text/markdown"]),
)
# A step adds (or edits) some documents, or removes some ids.
steps = st.lists(
    st.one_of(
        st.lists(documents, min_size=1, max_size=3, unique_by=lambda one: one.id),
        st.lists(st.sampled_from(["a/b", "a-b", "ü", "absent"]), min_size=1, max_size=2, unique=True),
    ),
    max_size=6,
)


def open_index(path: str | Path) -> Index:
    return Index.open(path, embedder=HashEmbedder(), languages=["en"])


@contextmanager
def both() -> Iterator[tuple[Index, Index]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_index(Path(folder) / "kb") as embedded,
        open_index(":memory:") as memory,
    ):
        yield embedded, memory


def told(hits: Hits) -> object:
    """All that a caller sees of an answer, but its time and the number of writes before it."""
    return msgspec.structs.replace(hits, timings={}, index_version=0)


def seen(index: Index) -> tuple[object, ...]:
    """Everything that an index shows, but the number of writes before and the space on disk."""
    stats = msgspec.structs.replace(index.stats(), bytes=0, index_version=0, storage=None)
    held = list(index.documents())
    answers = [
        told(index.search(query, mode=mode, cut="off", filters=filters))
        for query in QUERIES
        for mode in ("hybrid", "lexical", "dense")
        for filters in (None, {"product": "vault"})
        if held and (mode != "dense" or stats.with_vectors)
    ]
    return (stats, held, [index.passages(one.id) for one in held], answers)


def apply(index: Index, step: Sequence[Document] | Sequence[str]) -> object:
    added = [one for one in step if isinstance(one, Document)]
    if added:
        return msgspec.structs.replace(index.add(added), seconds=0.0)
    return index.remove([one for one in step if isinstance(one, str)])


@settings(max_examples=80)
@given(steps)
@example([[Document(id="a-b", text="key"), Document(id="a/b", text="key")], ["a-b"], [Document(id="a-b", text="log")]])
def test_stores_agree_with_one_another_and_with_a_fresh_index(
    steps: list[Sequence[Document] | Sequence[str]],
) -> None:
    with both() as (embedded, memory):
        for step in steps:
            assert apply(embedded, step) == apply(memory, step)
        shown = seen(embedded)
        assert shown == seen(memory)
        assert embedded.verify().ok
        with open_index(":memory:") as fresh:
            fresh.add(memory.documents())
            assert shown == seen(fresh)


@settings(max_examples=40)
@given(st.lists(documents, min_size=1, max_size=5, unique_by=lambda one: one.id), st.randoms(use_true_random=False))
def test_the_order_of_writing_and_deleting_does_not_show(
    held: list[Document],
    chance: random.Random,
) -> None:
    with open_index(":memory:") as plain, open_index(":memory:") as mixed:
        plain.add(held)
        doomed = [Document(id=f"doomed {n}", text="key rotation log") for n in range(3)]
        order = [*held, *doomed]
        chance.shuffle(order)
        for one in order:
            mixed.add([one])
        chance.shuffle(doomed)
        for one in doomed:
            assert mixed.remove(one.id) == 1
        assert seen(mixed) == seen(plain)


@pytest.mark.parametrize("kind", ["embedded", "memory"])
def test_documents_come_back_as_they_were_given(kind: str, kb: Path) -> None:
    given_metadata = {
        "text": "1",
        "whole": 1,
        "truth": True,
        "decimal": 1.0,
        "large": 2**63 - 1,
        "list": ["a", 1, False, 2.5],
        "none": [],
        "day": datetime.date(2026, 1, 31),
        "ключ": "значение\x00\n\u2028",
    }
    document = Document(
        id="ü/" + "x" * 400,
        uri="https://example.org/ü?q=1#part",
        title="A title",
        text="# A\r\n\r\ntext with\ttabs\n\n\n\nand \U0001f40b, e\u0301, \ufeff\n",
        metadata=given_metadata,  # type: ignore[arg-type]
        media_type="text/markdown",
        language="fr",
    )
    where = ":memory:" if kind == "memory" else kb
    with open_index(where) as index:
        index.add([document, Document(id="blank", text=" \n ")])
        if kind == "embedded":
            index.close()
            index = open_index(kb)
        held = index.get(document.id)
        assert held == document
        assert held is not None
        types = {key: type(value) for key, value in held.metadata.items()}
        assert types == {
            "text": str,
            "whole": int,
            "truth": bool,
            "decimal": float,
            "large": int,
            "list": tuple,
            "none": tuple,
            "day": str,
            "ключ": str,
        }
        assert [type(item) for item in held.metadata["list"]] == [str, int, bool, float]  # type: ignore[union-attr]
        assert [one.id for one in index.documents()] == ["blank", document.id]
        for passage in index.passages(document.id):
            assert document.text[passage.start : passage.end] == passage.text
            assert passage.metadata == document.metadata
        index.close()
