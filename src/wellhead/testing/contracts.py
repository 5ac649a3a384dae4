"""What every backend of a port must do, as tests to inherit. Needs no test library; run it with pytest.

Example::

    class TestMyStore(StoreContract):
        def open_store(self, folder):
            return MyStore(folder)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wellhead.errors import ConfigError, StaleView, UsageError, WellheadError
from wellhead.ports import DocumentState, DocumentSummary, Field, Store, View
from wellhead.records import Document, DocumentRow, MetadataValue
from wellhead.testing.fakes import HashEmbedder, document_row, vectors_of

__all__ = ["StoreContract", "assert_same_view", "live_rows", "put", "refusal", "vector_of"]

_E = TypeVar("_E", bound=WellheadError)


def put(store: Store, documents: Iterable[Document | DocumentRow], *, scope: str = "", origin: str = "") -> None:
    """Put documents with the vectors of `HashEmbedder()`."""
    rows = [
        item if isinstance(item, DocumentRow) else document_row(item, scope=scope, origin=origin) for item in documents
    ]
    store.put(rows, vectors_of(rows, HashEmbedder()))


def refusal(kind: type[_E], action: Callable[[], object]) -> _E:
    """The error of this kind that `action` must raise, with what, where, why and fix all said."""
    raised = _raised(kind, action)
    assert raised is not None, f"no {kind.__name__} was raised"
    assert raised.what, raised
    assert raised.where, raised
    assert raised.fix, raised
    return raised


def _raised(kind: type[_E], action: Callable[[], object]) -> _E | None:
    try:
        action()
    except kind as error:
        return error
    return None


def live_rows(view: View) -> list[int]:
    """The live rows of a view, by passage id."""
    live = np.arange(view.space) if view.live is None else np.flatnonzero(view.live)
    rows: list[int] = live[np.argsort(view.by_id(live))].tolist()
    return rows


def assert_same_view(left: View, right: View, terms: Iterable[str] = ()) -> None:
    """Two views show the same rows: passages, postings of `terms`, lengths, vectors, metadata, languages."""
    mine, other = live_rows(left), live_rows(right)
    assert len(left) == len(right) == len(mine) == len(other)
    assert left.passages(mine) == right.passages(other)
    assert (left.languages, left.with_vectors) == (right.languages, right.with_vectors)
    assert left.document_count == right.document_count
    assert [left.language(row) for row in mine] == [right.language(row) for row in other]
    assert left.keys() == right.keys()
    place = dict(zip(mine, other, strict=True))
    for one, another in ((left.stems, right.stems), (left.words, right.words)):
        _assert_same_field(one, another, place, terms)
    for key in left.keys():  # noqa: SIM118 (no mapping)
        assert _values(left, key, mine) == _values(right, key, other), key
    assert [vector_of(left, row) for row in mine] == [vector_of(right, row) for row in other]
    assert _groups(left.documents(np.array(mine, dtype=np.intp))) == _groups(
        right.documents(np.array(other, dtype=np.intp))
    )
    same = [[place[row] for row in rows] for rows in left.same_texts(np.array(mine, dtype=np.intp))]
    assert same == [list(rows) for rows in right.same_texts(np.array(other, dtype=np.intp))]


def _assert_same_field(left: Field, right: Field, place: Mapping[int, int], terms: Iterable[str]) -> None:
    assert {place[row]: int(left.lengths[row]) for row in place} == {
        row: int(right.lengths[row]) for row in place.values()
    }
    assert left.total == right.total
    for term in terms:
        mine, other = left.posting(term), right.posting(term)
        assert (mine is None) == (other is None), term
        if mine is not None and other is not None:
            assert mine.rows.tolist() == sorted(mine.rows.tolist()), term
            counts = {place[row]: count for row, count in zip(mine.rows.tolist(), mine.counts.tolist(), strict=True)}
            assert counts == dict(zip(other.rows.tolist(), other.counts.tolist(), strict=True)), term
        assert left.frequency(term) == right.frequency(term), term
        assert left.folded(term) == right.folded(term), term


def _values(view: View, key: str, rows: Sequence[int]) -> list[tuple[type, object] | None]:
    column = view.column(key)
    assert column is not None
    values = [column.values[code] if code >= 0 else None for code in column.codes[rows].tolist()]
    return [value if value is None else (type(value), repr(value)) for value in values]


def vector_of(view: View, row: int) -> list[float] | None:
    """The vector of a row, or None."""
    for part in view.vectors:
        if part.first <= row < part.first + len(part.scales) and part.scales[row - part.first] > 0.0:
            return [float(x) for x in part.floats[row - part.first]]
    return None


def _groups(numbers: Iterable[int]) -> list[int]:
    first: dict[int, int] = {}
    return [first.setdefault(int(number), row) for row, number in enumerate(numbers)]


class StoreContract:
    """Every store: what goes in comes out, scopes are apart, a write is whole and seen at once."""

    def open_store(self, folder: Path) -> Store:
        """A new, empty store."""
        raise NotImplementedError

    def test_a_new_store_is_empty(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        view = store.view("")
        assert (store.version(), len(view), store.settings(), store.states("")) == (0, 0, {}, {})
        assert (view.keys(), view.languages, view.stems.total) == ([], {}, 0)
        assert view.stems.posting("a") is None
        assert view.column("area") is None
        assert view.rows_of("nobody") == []
        assert view.row("f" * 64) is None
        assert (view.space, view.with_vectors, view.dims) == (0, 0, 0)
        assert list(store.documents("")) == []
        assert store.get("", "nobody") is None

    def test_a_document_comes_back_as_it_was_put(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        document = Document(
            id="Führer/日本.md",
            text="naïve café\r\nline two\n\n食べ物 🍣 e\u0301",
            uri="https://example.org/a?b=c#d",
            title="Ünï",
            metadata={"area": "docs", "n": 3, "x": 1.5, "ok": True, "tags": ("a", "b"), "mixed": (1, True, 1.0, "1")},
            media_type="text/markdown",
            language="de",
        )
        row = document_row(document)
        put(store, [row])
        assert store.get("", document.id) == document
        assert list(store.documents("")) == [document]
        view = store.view("")
        assert view.passages(view.rows_of(document.id)) == [item.passage for item in row.passages]
        assert view.languages == {"de": 3}

    def test_metadata_keeps_its_types(self, tmp_path: Path) -> None:
        """chroma-core/chroma PR#672: in Python True == 1 == 1.0."""
        store = self.open_store(tmp_path)
        flags: list[MetadataValue] = [1, True, 1.0, "1", (1,), (True,), False, 0]
        put(store, [Document(id=f"d{n}", text=f"text {n}", metadata={"flag": flag}) for n, flag in enumerate(flags)])
        for n, flag in enumerate(flags):
            document = store.get("", f"d{n}")
            assert document is not None
            assert repr(document.metadata["flag"]) == repr(flag)
        column = store.view("").column("flag")
        assert column is not None
        assert sorted(map(repr, column.values)) == sorted(map(repr, flags))
        assert len(set(column.codes.tolist())) == len(flags)

    def test_rows_can_be_put_in_the_order_of_their_ids(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id=f"d{n}", text=f"one {n}\ntwo {n}\nthree {n}") for n in range(20)])
        view = store.view("")
        rows = live_rows(view)
        ids = [passage.id for passage in view.passages(rows)]
        assert len(ids) == 60
        assert ids == sorted(ids)
        assert [view.row(passage_id) for passage_id in ids] == rows
        assert list(view.starting(ids[7][:10])) == [rows[7]]
        assert list(view.starting("")) == rows
        assert [passage.ordinal for passage in view.passages(view.rows_of("d7"))] == [0, 1, 2]
        some = [rows[5], rows[2], rows[5]]
        assert [passage.id for passage in view.passages(some)] == [ids[5], ids[2], ids[5]]

    def test_postings_count_every_term(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(
            store, [Document(id="a", text="cats cat dog"), Document(id="b", text="dog dog"), Document(id="c", text="x")]
        )
        view = store.view("")
        a, b = view.rows_of("a")[0], view.rows_of("b")[0]
        found = view.words.posting("dog")
        assert found is not None
        assert dict(zip(found.rows.tolist(), found.counts.tolist(), strict=True)) == {a: 1, b: 2}
        assert found.rows.tolist() == sorted(found.rows.tolist())
        assert view.words.posting("cats") is not None
        assert view.stems.posting("cats") is None
        assert view.words.lengths[a] == 3
        assert view.words.total == 6

    def test_documents_are_counted_whatever_their_passages(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(
            store, [Document(id="a", text="dog x\ncat\ndog y"), Document(id="b", text="dog"), Document(id="c", text="")]
        )
        put(store, [Document(id="a", text="cat")], scope="other")
        view = store.view("")
        assert view.document_count == 2
        assert {word: view.words.frequency(word) for word in ("dog", "cat", "y", "bird")} == {
            "dog": 2,
            "cat": 1,
            "y": 1,
            "bird": 0,
        }
        assert view.count_documents(np.sort(view.rows_of("a")).astype(np.int32)) == 1
        assert view.count_documents(np.array([], dtype=np.int32)) == 0
        store.delete("", ["b"])
        put(store, [Document(id="d", text="bird\nbird dog")])
        view = store.view("")
        assert (view.document_count, view.words.frequency("dog"), view.stems.frequency("bird")) == (2, 2, 1)

    def test_accents_are_folded_on_request(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="résumé resume crème"), Document(id="b", text="resumé")])
        words = store.view("").words
        assert words.folded("resume") == ["resume", "resumé", "résumé"]
        assert words.folded("créme") == ["crème"]
        assert words.folded("nothing") == []

    def test_columns_hold_minus_one_where_the_key_is_missing(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="x\ny", metadata={"area": "q"}), Document(id="b", text="z")])
        view = store.view("")
        column = view.column("area")
        assert column is not None
        assert [column.codes[row] for row in (*view.rows_of("a"), *view.rows_of("b"))] == [0, 0, -1]
        assert column.values == ["q"]

    def test_equal_texts_share_one_vector_and_keep_every_place(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="same\nother"), Document(id="b", text="same")])
        view = store.view("")
        first, second = view.rows_of("a")[0], view.rows_of("b")[0]
        assert store.counts()[0] == 2
        assert vector_of(view, first) == vector_of(view, second)
        both = np.array([first, second])
        assert len(set(view.contents(both))) == 1
        assert len(set(view.documents(both))) == 2
        assert [sorted(rows) for rows in view.same_texts(both)] == [sorted([first, second])] * 2

    def test_vectors_come_back_bit_for_bit(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="one\ntwo\nthree")])
        view = store.view("")
        for passage, row in zip(view.passages([0, 1, 2]), (0, 1, 2), strict=True):
            assert vector_of(view, row) == HashEmbedder().embed_query(passage.text).tolist()
        assert (view.with_vectors, view.dims) == (3, HashEmbedder().dims)

    def test_a_passage_without_a_vector_is_kept_for_the_other_leg(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.put([document_row(Document(id="a", text="one"), with_vectors=False)], {})
        view = store.view("")
        assert vector_of(view, 0) is None
        assert (len(view), view.with_vectors) == (1, 0)
        assert view.words.posting("one") is not None

    def test_ids_that_look_alike_stay_apart(self, tmp_path: Path) -> None:
        """qdrant/qdrant-client#293: any text is an id, and none is cut or mapped onto another."""
        store = self.open_store(tmp_path)
        ids = ["a/b", "a-b", "a b", "A/B", "é", "e\u0301", "x" * 300 + "1", "x" * 300 + "2", "日本", "a\x00b", "a\x00c"]
        put(store, [Document(id=document_id, text=f"text of {n}") for n, document_id in enumerate(ids)])
        assert [document.id for document in store.documents("")] == sorted(ids)
        assert list(store.states("")) == sorted(ids)
        for n, document_id in enumerate(ids):
            document = store.get("", document_id)
            assert document is not None
            assert (document.id, document.text) == (document_id, f"text of {n}")

    def test_putting_again_replaces_the_whole_document(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="old\nkept", metadata={"v": 1}), Document(id="b", text="other")])
        put(store, [Document(id="a", text="kept\nnew", metadata={"w": 2})])
        view = store.view("")
        assert [passage.text for passage in view.passages(view.rows_of("a"))] == ["kept", "new"]
        assert view.words.posting("old") is None
        assert view.keys() == ["w"]
        assert store.counts()[0] == 3

    def test_deleting_takes_vectors_that_nothing_uses(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="shared\nalone"), Document(id="b", text="shared")])
        keys = [row.vector_key for row in document_row(Document(id="a", text="shared\nalone")).passages]
        assert store.known_vectors([*keys, b"\1" * 32]) == set(keys)
        assert store.delete("", ["a", "a", "nobody"]) == 1
        assert store.known_vectors(keys) == {keys[0]}
        assert store.get("", "a") is None
        assert len(store.view("")) == 1
        assert store.delete("", ["b"]) == 1
        assert store.counts()[0] == 0

    def test_vectors_that_no_passage_uses_are_not_kept(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        row = document_row(Document(id="a", text="one"))
        store.put([row], vectors_of([row], HashEmbedder()) | {b"stray": HashEmbedder().embed_query("stray")})
        assert store.known_vectors([b"stray"]) == set()

    def test_scopes_never_see_one_another(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="faq", text="acme secret")], scope="acme")
        put(store, [Document(id="faq", text="globex secret"), Document(id="only", text="x")], scope="globex")
        acme = store.view("acme")
        assert [passage.text for passage in acme.passages([0])] == ["acme secret"]
        assert acme.words.posting("globex") is None
        assert acme.rows_of("only") == []
        assert acme.row(store.view("globex").passages([0])[0].id) is None
        assert store.get("acme", "only") is None
        assert store.delete("acme", ["only"]) == 0
        assert store.scopes_of("faq") == ["acme", "globex"]
        assert store.scopes_of("nobody") == []
        assert len(store.view("")) == 0
        store.delete("acme", ["faq"])
        assert len(store.view("globex")) == 2

    def test_the_version_grows_with_every_write_only(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        seen = [store.version()]
        for write in (
            lambda: put(store, [Document(id="a", text="x")]),
            lambda: put(store, [Document(id="a", text="x")]),
            lambda: store.set_settings({"embedder": "hash"}),
            lambda: store.delete("", ["a"]),
        ):
            write()
            seen.append(store.version())
        assert seen == sorted(set(seen))
        store.view("").passages([])
        assert (store.states(""), store.delete("", ["a"]), list(store.documents(""))) == ({}, 0, [])
        store.put([], {})
        store.set_settings(store.settings())
        assert store.version() == seen[-1]
        assert store.view("").version == seen[-1]

    def test_settings_come_back_and_are_replaced_whole(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.set_settings({"embedder": "hash", "scope_key": "tenant", "ü": "日本"})
        assert store.settings() == {"embedder": "hash", "scope_key": "tenant", "ü": "日本"}
        store.set_settings({"embedder": "other"})
        assert store.settings() == {"embedder": "other"}

    def test_states_tell_what_must_be_written_again(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        whole = document_row(Document(id="a", text="x"), origin="docs/")
        torn = document_row(Document(id="b", text="y"), incomplete=True)
        put(store, [whole, torn])
        states = store.states("")
        assert states["a"] == DocumentState(whole.digest, "docs/", False)
        assert states["b"] == DocumentState(torn.digest, "", True)
        assert len(states) == 2

    def test_states_of_some_are_those_of_all(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id=name, text=f"text of {name}") for name in ("b", "a", "c")])
        put(store, [Document(id="d", text="elsewhere")], scope="acme")
        some = store.states("", ["c", "nobody", "a", "c", "d"])
        assert list(some) == ["a", "c"]
        assert some.items() <= store.states("").items()
        assert store.states("", []) == {}

    def test_summaries_tell_everything_but_the_text(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        document = Document(id="b", text="one\ntwo", title="B", uri="https://b", metadata={"n": 1, "tags": ("x", "y")})
        put(store, [document], origin="docs/")
        put(store, [document_row(Document(id="a", text=" "), incomplete=True)])
        put(store, [Document(id="other", text="x")], scope="acme")
        assert list(store.summaries("")) == [
            DocumentSummary(id="a", metadata={}, incomplete=True),
            DocumentSummary(id="b", metadata=document.metadata, title="B", uri="https://b", origin="docs/", passages=2),
        ]

    def test_settings_are_set_only_while_they_are_the_expected_ones(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        store.set_settings({"scope_key": "tenant"}, expected={})
        store.set_settings({"scope_key": "tenant"}, expected={})
        error = refusal(ConfigError, lambda: store.set_settings({"scope_key": "team"}, expected={}))
        assert "scope_key is 'tenant', not None" in error.why
        assert store.settings() == {"scope_key": "tenant"}
        assert store.version() == 1
        store.set_settings({"scope_key": ""}, expected={"scope_key": "tenant"})
        assert store.settings() == {"scope_key": ""}

    def test_the_folder_is_a_path_or_none(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        assert store.folder is None or (store.folder.is_dir() and str(store.folder) == store.where)

    def test_a_view_is_cached_until_the_next_write(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="one")])
        view = store.view("")
        assert store.view("") is view
        put(store, [Document(id="b", text="two")])
        assert store.view("") is not view
        assert (len(view), len(store.view(""))) == (1, 2)

    def test_nothing_has_a_name_that_is_no_text(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="one")])
        half = "\ud800" * 8
        view = store.view("")
        assert (store.get("", half), store.delete("", [half]), store.scopes_of(half)) == (None, 0, [])
        assert store.states("", [half, "a"]).keys() == {"a"}
        assert (view.row(half), list(view.starting(half)), list(view.rows_of(half))) == (None, [], [])

    def test_a_view_outlives_writes_and_gives_a_passage_as_it_was_or_says_that_it_is_gone(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="one"), Document(id="b", text="two"), Document(id="c", text="kept")])
        view = store.view("")
        kept, gone = view.rows_of("c"), view.rows_of("b")
        put(store, [Document(id="a", text="new")])
        store.delete("", ["b"])
        assert view.passages(kept)[0].text == "kept"
        assert view.words.posting("two") is not None
        try:
            texts = [passage.text for passage in view.passages(gone)]
        except StaleView:
            texts = ["two"]
        assert texts == ["two"]
        assert store.view("").words.posting("two") is None

    def test_rows_that_contradict_one_another_are_refused_whole(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="one")])
        good, bad = document_row(Document(id="b", text="two")), document_row(Document(id="c", text="three"))
        vectors = vectors_of([good, bad], HashEmbedder())
        missing = bad.passages[0].vector_key
        without = {key: vector for key, vector in vectors.items() if key != missing}
        assert missing.hex()[:12] in refusal(UsageError, lambda: store.put([good, bad], without)).why
        assert "'b'" in refusal(UsageError, lambda: store.put([good, good], vectors)).where
        assert store.get("", "b") is None
        assert store.version() == 1

    def test_vectors_that_cannot_be_compared_are_refused(self, tmp_path: Path) -> None:
        """chroma-core/chroma PR#7420: NaN, infinity or all zero would top every search or never be found."""
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="one")])
        row = document_row(Document(id="b", text="two"))
        good = HashEmbedder().embed_query("two")
        spoiled = good.copy()
        spoiled[3] = np.nan
        cases: tuple[tuple[NDArray[Any], str], ...] = (
            (spoiled, "NaN"),
            (good * np.float32("inf"), "infinity"),
            (good * 0, "direction"),
            (good * 2, "length is 2"),
            (good.astype(np.float64), "float64"),
            (good[None], "1, 16"),
            (HashEmbedder(8).embed_query("two"), "has 16, this one 8"),
        )
        for vector, word in cases:
            error = refusal(UsageError, partial(store.put, [row], {row.passages[0].vector_key: vector}))
            assert word in str(error)
        assert store.get("", "b") is None

    def test_a_document_without_passages_is_kept(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="empty", text="  \n", metadata={"a": 1}), Document(id="full", text="x")])
        assert len(store.view("")) == 1
        assert store.view("").keys() == []
        assert list(store.states("")) == ["empty", "full"]

    def test_verify_finds_nothing_wrong_in_a_sound_store(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id=f"d{n}", text=f"one {n}\nshared") for n in range(10)])
        put(store, [Document(id="d0", text="new")])
        store.delete("", ["d1", "d2"])
        assert store.verify() == (8, 15, 9, [])

    def test_closing_twice_is_fine_and_use_after_it_is_not(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        put(store, [Document(id="a", text="x")])
        view = store.view("")
        store.close()
        store.close()
        for use in (store.version, lambda: store.view(""), lambda: store.get("", "a"), lambda: view.passages([0])):
            refusal(UsageError, use)
