"""Rows become a part; merged parts are the part of the rows that are live, and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parts import loaded, part_of, plain, same_arrays
from wellhead.backends.stores.embedded.build import build_part, merge_parts, typed

UNIT = [0.6, -0.8]
rows = st.tuples(
    st.lists(st.sampled_from(["cat", "cats", "café", "日本", "x"]), max_size=4).map(" ".join),
    st.sampled_from(["", "acme", "zz"]),
    st.sampled_from(["", "en", "de"]),
    st.dictionaries(st.sampled_from(["k", "l"]), st.sampled_from([True, 1, 1.0, "1", ("a", 1), 0.5]), max_size=2),
    st.sampled_from([None, [1.0, 0.0], UNIT, [-0.28, 0.96]]),
)


class TestBuild:
    def test_no_rows_make_a_part_that_answers_nothing(self):
        part = build_part([], {})
        assert (len(part), part.names.scopes, part.names.keys, part.names.dims) == (0, (), (), 0)
        assert part.span("") == (0, 0)
        assert part.term(b"cat") is None
        assert part.column("k") is None
        assert part.rows_of(np.array([1, 2])).tolist() == []
        assert (list(part.ids), list(part.words)) == ([], [])

    def test_vectors_are_kept_whole_and_in_one_byte_a_dimension(self):
        part = part_of(loaded(1, vector=UNIT), loaded(2), loaded(3, vector=[1.0, 0.0]))
        assert part.floats.tolist() == np.array([UNIT, [0, 0], [1, 0]], dtype=np.float32).tolist()
        assert part.codes.tolist() == [[95, -127], [0, 0], [127, 0]]
        assert part.scales.tolist() == [np.float32(0.8) / np.float32(127), 0.0, np.float32(1) / np.float32(127)]

    def test_rows_without_any_vector_have_no_dimensions(self):
        part = part_of(loaded(1, "cat"), loaded(2, "dog"))
        assert (part.names.dims, part.floats.shape, part.codes.shape) == (0, (2, 0), (2, 0))
        assert part.scales.tolist() == [0.0, 0.0]

    def test_counts_above_a_byte_are_kept(self):
        part = part_of(loaded(1, "cat " * 70_000), loaded(2, "cat dog"))
        assert part.fields["words"].counts.tolist() == [70_000, 1, 1]
        assert part.fields["words"].lengths.tolist() == [70_000, 2]

    def test_ids_compare_as_their_keys_do_except_where_keys_are_equal(self):
        names = ["", "a", "a\0", "abcdefgh", "abcdefghi", "abcdefgz", "é", "\U0010ffff"]
        part = part_of(*(loaded(n, name=name) for n, name in enumerate(names)))
        keys = part.id_keys.tolist()
        assert keys == sorted(keys)
        assert sorted(names, key=str.encode) == names
        assert len(set(keys)) == len(names) - 2


class TestMerge:
    @given(st.lists(st.lists(st.tuples(rows, st.booleans()), max_size=6), min_size=1, max_size=4), st.randoms())
    @settings(max_examples=120)
    def test_it_is_the_part_of_the_live_rows(self, drawn, chance):
        numbers = list(range(1, sum(map(len, drawn)) + 1))
        parts, lives, kept = [], [], []
        for each in drawn:
            made = []
            for (text, scope, language, metadata, vector), live in each:
                number = numbers.pop(0)
                row = loaded(
                    number, text, scope=scope, doc=number // 3, language=language, metadata=metadata, vector=vector
                )
                made.append(row)
                kept += [row] if live else []
            part = part_of(*made)
            alive = {row.number for row in kept}
            live = np.array([number in alive for number in part.numbers.tolist()], dtype=np.bool_)
            parts.append(part)
            lives.append(None if live.all() and chance.random() < 0.5 else live)
        merged, expected = merge_parts(parts, lives), part_of(*kept)
        told, wanted = plain(merged), plain(expected)
        if not any(row.vector is not None for row in kept):  # how long they would be is remembered, and harmless
            told["dims"], told["vectors"] = wanted["dims"], wanted["vectors"]
        assert told == wanted
        assert merged.names.keys == expected.names.keys
        for name in ("scope_starts", "number_order", "content_order", "id_keys", "word.hashes", "folded.hashes"):
            assert merged.arrays[name].tolist() == expected.arrays[name].tolist(), name
        for field in ("stems", "words"):
            for name in ("terms", "starts", "rows", "counts", "lengths"):
                assert merged.arrays[f"{field}.{name}"].tolist() == expected.arrays[f"{field}.{name}"].tolist()

    def test_nothing_of_a_dead_row_is_left(self):
        dead = loaded(
            2,
            "secret secrets sécret",
            scope="secret scope",
            name="secret id",
            language="xx",
            metadata={"secret key": "secret value", "k": "secret too"},
            vector=[0.6, 0.8],
        )
        part = part_of(loaded(1, "cat", metadata={"k": "plain"}, language="en", vector=[1.0, 0.0]), dead)
        held = merge_parts([part], [np.array([True, False])])
        assert [row.number for row in (dead,)] == [2]
        everything = b"".join(array.tobytes() for array in held.arrays.values()) + repr(held.names).encode()
        assert b"secret" in b"".join(array.tobytes() for array in part.arrays.values())
        assert b"secret" not in everything
        assert "sécret".encode() not in everything
        assert np.float32(0.8).tobytes() not in everything
        assert dead.text_hash[:8][::-1] not in everything
        assert (held.names.scopes, held.names.languages, held.names.keys) == (("",), ("en",), ("k",))
        assert [word.decode() for word in held.words] == ["cat"]
        assert held.term(b"secret") is None
        assert len(held.fields["words"].terms) == 1

    @pytest.mark.parametrize("many", [1, 3])
    def test_all_dead_rows_make_an_empty_part(self, many):
        parts = [part_of(loaded(n, "cat", scope="s", metadata={"k": n}, vector=UNIT)) for n in range(many)]
        merged = merge_parts(parts, [np.zeros(1, dtype=np.bool_)] * many)
        assert len(merged) == 0
        assert (merged.names.scopes, merged.names.languages, merged.names.keys) == ((), (), ())
        assert (list(merged.words), list(merged.ids)) == ([], [])
        again = merge_parts([merged, part_of(loaded(7, "dog"))], [None, None])
        assert plain(again)["numbers"] == [7]

    def test_a_part_without_vectors_takes_the_dimensions_of_the_others(self):
        merged = merge_parts([part_of(loaded(1, "cat")), part_of(loaded(2, "dog", vector=UNIT))], [None, None])
        assert merged.names.dims == 2
        assert merged.floats.tolist() == np.array([[0, 0], UNIT], dtype=np.float32).tolist()
        assert merged.scales[0] == 0.0 < merged.scales[1]

    def test_codes_are_those_of_the_first_time_however_often_they_are_merged(self):
        chance = np.random.default_rng(5)
        vectors = chance.standard_normal((20, 16))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        one = part_of(*(loaded(n, vector=vector.tolist()) for n, vector in enumerate(vectors)))
        again = merge_parts([merge_parts([one], [None])], [None])
        assert same_arrays(again.arrays, one.arrays)


def test_values_of_other_types_are_other_values():
    values = [1, True, 1.0, "1", (1,), (True,), (1.0,), ("1",), 0, False, 0.0, "", ()]
    assert len({typed(value) for value in values}) == len(values)
    assert typed(math.inf) == typed(float("inf"))
