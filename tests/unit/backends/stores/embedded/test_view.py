"""The view of a scope over several parts: rows numbered through, the dead left out, ties settled by whole ids."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parts import loaded as loaded_row
from parts import part_of
from wellhead.backends.stores.embedded import view as view_module
from wellhead.backends.stores.embedded.build import LoadedRow
from wellhead.backends.stores.embedded.part import Part
from wellhead.backends.stores.embedded.view import PartsView, Slab
from wellhead.errors import CorruptStore, StaleView
from wellhead.testing.contracts import vector_of

UNIT = [0.6, -0.8]


def loaded(number: int, text: str = "", *, scope: str = "s", **rest: Any) -> LoadedRow:
    """A row of the scope that is looked at."""
    return loaded_row(number, text, scope=scope, **rest)


class Tables:
    """What a view would ask the tables; here it answers with the numbers that it was asked for."""

    def refuse_closed(self) -> None:
        pass

    def refuse_passage(self, number: int, passage_id: bytes) -> NoReturn:
        raise CorruptStore(f"passage {number} is damaged", where="here", why="", fix=passage_id.decode())

    def document(self, scope: str, document_id: str, version: int) -> int | None:
        if version != 7:
            raise StaleView("written meanwhile", where="here", why="", fix="search again")
        return int(document_id) if document_id.isdecimal() else None


def view_of(*parts: tuple[list[LoadedRow], set[int]], scope: str = "s", version: int = 7) -> PartsView:
    """The view of a scope over parts; beside the rows of each, the numbers of the dead."""
    slabs: list[Slab] = []
    base = 0
    for rows, dead in parts:
        part = part_of(*rows)
        first, last = part.span(scope)
        live = np.array([number not in dead for number in part.numbers.tolist()][first:last], dtype=np.bool_)
        slabs.append(Slab(part, first, last, base, None if live.all() else live))
        base += last - first
    return PartsView(version, scope, slabs, Tables())


def around(rows: list[LoadedRow]) -> list[LoadedRow]:
    """The rows of a part amid those of other scopes, which must not show."""
    others = [
        loaded(
            9_000 + n,
            "cat foreign café",
            scope=scope,
            name=f"{scope}{n}",
            metadata={"k": "x", "foreign": 1},
            language="xx",
            vector=UNIT,
        )
        for scope in ("a", "z")
        for n in range(2)
    ]
    return [*rows, *others]


class TestRows:
    def test_an_empty_view_answers_nothing(self):
        for view in (view_of(), view_of(([], set())), view_of((around([]), set()))):
            assert (len(view), view.space, view.live, view.dims, view.with_vectors) == (0, 0, None, 0, 0)
            assert (view.keys(), view.languages, view.column("k"), list(view.vectors)) == ([], {}, None, [])
            assert (view.stems.total, view.stems.posting("cat"), view.words.folded("cat")) == (0, None, [])
            assert (view.row("x"), view.starting(""), view.rows_of("1"), view.passages([])) == (None, [], [], [])
            assert view.by_id(np.zeros(0, dtype=np.intp)).tolist() == []

    def test_rows_are_numbered_through_and_the_dead_keep_their_numbers(self):
        view = view_of(
            (around([loaded(1, "cat"), loaded(2, "dog")]), {2}),
            (around([]), set()),
            (around([loaded(5, "cat cat"), loaded(6, "cats")]), set()),
            (around([loaded(8, "dog")]), {8}),
        )
        assert (len(view), view.space) == (3, 5)
        assert view.live is not None
        assert view.live.tolist() == [True, False, True, True, False]
        assert [passage.ordinal for passage in view.passages([3, 0, 2])] == [6, 1, 5]
        found = view.stems.posting("cat")
        assert found is not None
        assert (found.rows.tolist(), found.counts.tolist()) == ([0, 2, 3], [1, 2, 1])
        assert view.words.posting("dog") is None
        assert view.words.lengths.tolist() == [1, 1, 2, 1, 1]
        assert (view.words.total, view.stems.total) == (4, 4)

    def test_searches_of_several_threads_cannot_change_it(self):
        view = view_of(([loaded(1, "cat", metadata={"k": 1})], set()), ([loaded(2, "cat"), loaded(3)], {3}))
        column = view.column("k")
        assert column is not None
        for array in (view.live, column.codes, view.stems.lengths):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1

    def test_languages_are_counted_over_live_rows(self):
        first = [loaded(1, language="en"), loaded(2, language="de"), loaded(3)]
        view = view_of((around(first), {2}), (around([loaded(4, language="en"), loaded(5, language="")]), set()))
        assert dict(view.languages) == {"": 2, "en": 2}
        assert [view.language(row) for row in (0, 2, 3, 4)] == ["en", "", "en", ""]

    def test_vectors_lie_in_the_order_of_the_rows(self):
        view = view_of(
            (around([loaded(1, vector=UNIT), loaded(2)]), set()),
            ([loaded(3, "no vectors here")], set()),
            ([loaded(4, vector=[1.0, 0.0]), loaded(5, vector=[0.0, 1.0])], {5}),
        )
        assert [vector_of(view, row) for row in range(5)] == [
            np.array(UNIT, dtype=np.float32).tolist(),
            None,
            None,
            [1.0, 0.0],
            [0.0, 1.0],
        ]
        assert (view.with_vectors, view.dims) == (2, 2)
        assert [part.first for part in view.vectors] == [0, 2, 3]


class TestNames:
    names = st.sampled_from(
        ["", "a", "a\0", "b", "12345678", "12345678a", "12345678b", "12345678\0", "1234567", "é", "日本日本"]
    )

    @given(st.lists(names, unique=True, max_size=8), st.data())
    @settings(max_examples=150)
    def test_ids_are_compared_whole(self, ids, data):
        cut = data.draw(st.integers(0, len(ids)))
        dead = data.draw(st.sets(st.integers(1, 8)))
        rows = [loaded(n, name=name) for n, name in enumerate(ids, 1)]
        view = view_of((around(rows[:cut]), dead), (around(rows[cut:]), dead))
        alive = [row for row in range(len(ids)) if row + 1 not in dead]
        some = np.array(data.draw(st.permutations(range(len(ids)))), dtype=np.intp)
        expected = sorted(range(len(ids)), key=lambda place: ids[some[place]])
        assert np.argsort(view.by_id(some)).tolist() == expected
        for row, name in enumerate(ids):
            assert view.row(name) == (row if row in alive else None)
        assert view.row("12345678abc") is None
        for prefix in ("", "a", "1", "1234567", "12345678", "12345678a", "12345678x", "日", "z"):
            wanted = sorted((ids[row], row) for row in alive if ids[row].startswith(prefix))
            assert list(view.starting(prefix)) == [row for _, row in wanted]

    def test_equal_texts_are_told_apart_by_sixteen_bytes_and_ordered_by_id(self):
        same, other = b"x" * 32, b"x" * 8 + b"y" * 24
        first = [loaded(1, name="m", text_hash=same), loaded(2, name="c", text_hash=other)]
        second = [loaded(3, name="b", text_hash=same), loaded(4, name="a", text_hash=same)]
        view = view_of((around(first), set()), (around(second), {4}))
        assert [list(rows) for rows in view.same_texts(np.array([0, 1, 2]))] == [[2, 0], [1], [2, 0]]
        assert list(view.same_texts(np.zeros(0, dtype=np.intp))) == []
        assert len(set(view.contents(np.array([0, 2])))) == 1
        assert len(set(view.contents(np.array([0, 1])))) == 2


class TestDocuments:
    def test_the_rows_of_a_document_are_found_by_its_number(self):
        view = view_of(
            (around([loaded(1, doc=4), loaded(2, doc=5), loaded(3, doc=4)]), {3}), (around([loaded(7, doc=6)]), set())
        )
        assert [list(view.rows_of(name)) for name in ("4", "5", "6", "9", "nobody")] == [[0], [1], [3], [], []]
        assert len(set(view.documents(np.array([0, 2])))) == 1
        assert len(set(view.documents(np.array([0, 1, 3])))) == 3

    def test_a_view_that_is_no_longer_true_says_so(self):
        view = view_of(([loaded(1, doc=4)], set()), version=6)
        with pytest.raises(StaleView):
            view.rows_of("4")


class TestColumns:
    def test_values_of_all_parts_are_one_list_without_those_of_the_dead(self):
        first = [loaded(1, metadata={"k": "a", "d": 1}), loaded(2, metadata={"k": "b"}), loaded(3)]
        second = [loaded(4, metadata={"k": "c"}), loaded(5, metadata={"k": "a"})]
        view = view_of((around(first), {1}), (around(second), set()))
        column = view.column("k")
        assert column is not None
        assert [column.values[code] if code >= 0 else None for code in column.codes.tolist()] == [
            None,
            "b",
            None,
            "c",
            "a",
        ]
        assert sorted(map(str, column.values)) == ["a", "b", "c"]
        assert view.keys() == ["k"]
        assert view.column("d") is view.column("foreign") is None

    @given(st.lists(st.sampled_from([True, 1, 1.0, "1", ("1",), (1,), (True,), None]), max_size=8), st.integers(0, 8))
    @settings(max_examples=80)
    def test_types_stay_apart_over_parts(self, values, cut):
        rows = [loaded(n, metadata={} if value is None else {"k": value}) for n, value in enumerate(values, 1)]
        view = view_of((around(rows[:cut]), set()), (around(rows[cut:]), set()))
        column = view.column("k")
        if column is None:
            assert set(values) <= {None}
            return
        told = [repr(column.values[code]) if code >= 0 else None for code in column.codes.tolist()]
        assert told == [None if value is None else repr(value) for value in values]
        assert len({repr(value) for value in column.values}) == len(column.values)


class TestFields:
    def test_accents_are_folded_over_all_parts_and_over_live_rows_alone(self):
        view = view_of(
            (around([loaded(1, "cafe"), loaded(2, "cafè")]), {2}),
            (around([loaded(3, "café"), loaded(4, "cafés")]), set()),
        )
        assert view.words.folded("café") == ["cafe", "café"]
        assert view.stems.folded("cafe") == ["cafe", "café"]
        assert view.words.folded("cafes") == ["cafés"]

    def test_words_and_postings_are_remembered_and_forgotten_in_time(self, monkeypatch):
        monkeypatch.setattr(view_module, "_TERMS_KEPT", 3)
        asked = []
        real = Part.term
        monkeypatch.setattr(Part, "term", lambda part, word: asked.append(word) or real(part, word))
        view = view_of(([loaded(1, "cat dog")], set()))
        for word in ("cat", "cat", "none", "none"):
            assert (view.words.posting(word) is None) == (word == "none")
            assert (view.stems.posting(word) is None) == (word == "none")
        assert asked == [b"cat", b"none"]
        for word in ("dog", "x", "y", "cat"):
            assert (view.words.posting(word) is None) == (word in "xy")
        assert asked.count(b"cat") == 2
        assert len(view.words._terms._found) <= 3
        assert len(view.words._kept) <= 3

    def test_postings_are_kept_up_to_so_many_rows(self, monkeypatch):
        monkeypatch.setattr(view_module, "_ROWS_KEPT", 3)
        texts = ("cat dog owl", "cat dog", "cat owl", "cat")
        view = view_of(([loaded(n, text) for n, text in enumerate(texts)], set()))
        first, second = view.words.posting("cat"), view.words.posting("dog")
        assert first.rows.tolist() == view.words.posting("cat").rows.tolist() == [0, 1, 2, 3]
        assert view.words.posting("dog") is second
        assert view.words.posting("none") is None
        assert sorted(view.words._kept) == ["dog", "none"], "a posting that is too long never is"
        assert view.words.posting("owl").rows.tolist() == [0, 2]
        assert (sorted(view.words._kept), view.words._kept_rows) == (["owl"], 2)
