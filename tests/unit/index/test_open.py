"""Opening an index: what is asked is checked, and what it was made with is remembered."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wellhead import (
    BackendError,
    ConfigError,
    CorruptStore,
    Document,
    Index,
    ScopeError,
    StaleIndex,
    UsageError,
    WellheadError,
)
from wellhead.ingest.chunk import Slice, fixed, word_starts
from wellhead.testing.fakes import HashEmbedder

TEXT = "The refund policy says thirty days."


class Own:
    """Embeds documents; what it does with a query is up to the test."""

    def __init__(self, name: str = "of-my-own", query: Any = None) -> None:
        self.name = name
        self.dims = HashEmbedder().dims
        self._query = query or HashEmbedder().embed_query

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return HashEmbedder().embed_documents(texts)

    def embed_query(self, text: str) -> Any:
        return self._query(text)


def test_an_index_made_with_an_object_of_its_own_opens_without_it(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb", embedder=Own()) as index:
        index.add([Document(id="a", text=TEXT)])
    with Index.open(tmp_path / "kb") as index:
        assert index.stats().passages == 1
        assert index.verify().ok
        hits = index.search("refund policy")
        assert [hit.passage.document_id for hit in hits] == ["a"]
        assert "of-my-own" in hits.degraded[0].why
        assert "embedder=" in hits.degraded[0].fix
        with pytest.raises(ConfigError, match="of-my-own"):
            index.search("refund", mode="dense")
        with pytest.raises(ConfigError, match="of-my-own"):
            index.add([Document(id="b", text="More text.")])
        assert [document.id for document in index.documents()] == ["a"]


def whole(document: Document) -> list[Slice]:
    return [Slice(start=0, end=len(document.text))]


def test_chunkers_are_told_apart_by_their_settings(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb", chunker=functools.partial(fixed, size=1000)) as index:
        index.add([Document(id="a", text=TEXT)])
    with Index.open(tmp_path / "kb", chunker=functools.partial(fixed, size=100)) as index:
        with pytest.raises(StaleIndex, match="size=1000"):
            index.add([Document(id="a", text=TEXT)])
        assert index.search("refund").outcome == "hits"
        assert not index.search("refund").degraded
    with Index.open(tmp_path / "kb", chunker=functools.partial(fixed, size=1000)) as index:
        assert index.add([Document(id="a", text=TEXT)]).unchanged == 1


def test_an_index_made_with_a_function_says_so_when_it_has_to_chunk(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb", chunker=whole) as index:
        index.add([Document(id="a", text=TEXT)])
    with Index.open(tmp_path / "kb") as index:
        assert index.search("refund").outcome == "hits"
        with pytest.raises(ConfigError, match="chunker"):
            index.add([Document(id="b", text=TEXT)])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"date_keys": "date"}, "date_keys takes a list"),
        ({"date_keys": [5]}, "date_keys"),
        ({"sinks": print}, "sinks takes a list"),
        ({"embedder": 5}, "no embedder"),
        ({"embedder": "statik"}, "did you mean 'static'"),
        ({"chunker": 5}, "no chunker"),
        ({"chunker": "structur"}, "did you mean 'structure'"),
        ({"chunker": lambda document: []}, "name"),
        ({"scope_key": " "}, "scope_key"),
        ({"scope_key": "\ud800"}, "scope_key"),
        ({"languages": ["xx"]}, "languages"),
        ({"on_degrade": "ignore"}, "on_degrade"),
    ],
)
def test_a_wrong_option_is_refused_and_leaves_nothing_behind(tmp_path: Path, options: Any, said: str) -> None:
    with pytest.raises(WellheadError, match=said):
        Index.open(tmp_path / "kb", **options)
    assert not (tmp_path / "kb").exists()


@pytest.mark.parametrize("path", ["k\0b", None, b"kb", "", "  "])
def test_a_path_that_is_none_is_refused(path: Any) -> None:
    with pytest.raises(UsageError, match="path"):
        Index.open(path)


def down(text: str) -> Any:
    raise OSError("no route")


def spoiled(text: str) -> Any:
    return np.full(HashEmbedder().dims, np.nan, dtype=np.float32)


@pytest.mark.promise("A21")
@pytest.mark.parametrize("query", [down, spoiled])
def test_a_threshold_on_a_signal_that_is_gone_delivers_nothing(query: Any) -> None:
    index = Index.open(":memory:", embedder=Own(query=query))
    index.add([Document(id="a", text=TEXT)])
    hits = index.search("refund policy", threshold={"cosine": 0.5})
    assert hits.outcome == "no_match"
    assert "cosine could not be measured" in hits.why_empty
    assert hits.degraded
    assert [miss.verdict for miss in hits.near_misses] == ["unjudged"]
    with pytest.raises(BackendError):
        index.search("refund policy", mode="dense", threshold=0.5)


def test_a_probability_that_nobody_fitted_cannot_be_cut_on() -> None:
    index = Index.open(":memory:", embedder=HashEmbedder())
    index.add([Document(id="a", text=TEXT)])
    with pytest.raises(UsageError, match="no fitted probability"):
        index.search("refund", threshold={"probability": 0.5})
    assert Index.open(":memory:").search("refund", threshold={"probability": 0.5}).outcome == "empty_index"


@pytest.mark.parametrize("passage_id", [123, None, b"abcdef"])
def test_a_passage_id_is_text(passage_id: Any) -> None:
    index = Index.open(":memory:")
    index.add([Document(id="a", text=TEXT)])
    with pytest.raises(UsageError, match="must be text"):
        index.passage(passage_id)


def test_settings_that_are_gone_are_noticed(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb", scope_key="tenant") as index:
        index.scoped(tenant="acme").add([Document(id="a", text=TEXT)])
    for gone in ("DELETE FROM settings WHERE name = 'model'", "DELETE FROM settings"):
        with sqlite3.connect(tmp_path / "kb" / "wellhead.sqlite") as connection:
            connection.execute(gone)
        connection.close()
        with pytest.raises(CorruptStore, match="settings of the index are gone"):
            Index.open(tmp_path / "kb")


def test_the_languages_are_a_set(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb", languages=["en", "de", "en"]) as index:
        index.add([Document(id="a", text=TEXT)])
    with Index.open(tmp_path / "kb", languages=("de", "en")) as index:
        assert index.add([Document(id="a", text=TEXT)]).unchanged == 1
    for wrong in ("en", 5):
        with pytest.raises(ConfigError, match="languages takes a list"):
            Index.open(":memory:", languages=wrong)  # type: ignore[arg-type]


def test_a_partial_of_functions_has_the_same_name_in_every_process() -> None:
    cut = functools.partial(fixed, size=100, token_starts=word_starts)
    index = Index.open(":memory:", chunker=cut)
    assert " at 0x" not in index.stats().fingerprint["chunker"]
    with pytest.raises(ConfigError, match="no name of its own"):
        Index.open(":memory:", chunker=functools.partial(fixed, token_starts=object()))  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    index = Index.open(":memory:")
    index.add([Document(id="a", text=TEXT, metadata={"year": np.int64(2024)})])
    hits = index.search("refund policy", k=np.int64(3), filters={"year": np.int64(2024)})  # type: ignore[arg-type]
    assert [hit.passage.document_id for hit in hits] == ["a"]
    assert index.search("refund policy", language="EN").outcome == "hits"


def test_half_a_surrogate_pair_is_no_scope() -> None:
    index = Index.open(":memory:", scope_key="tenant")
    with pytest.raises(ScopeError):
        index.scoped(tenant="\ud800")
