"""Lookups in a part: by scope, word, number, content and metadata key, as a plain search over all rows would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parts import loaded, number_of, part_of, postings_of
from wellhead.backends.stores.embedded import part as part_module
from wellhead.backends.stores.embedded.part import Blobs, Part, arrays_of_blobs

WORDS = ["cat", "cats", "dog", "café", "cafe", "cafés", "ärger", "日本"]


@pytest.fixture(params=["hash", "one hash for all", "two hashes"])
def hashes(request, monkeypatch):
    """Words are looked up by their hash, and must be told apart where hashes are equal."""
    if request.param == "one hash for all":
        monkeypatch.setattr(part_module, "word_hash", lambda word: 2**64 - 1)
    elif request.param == "two hashes":
        monkeypatch.setattr(part_module, "word_hash", lambda word: sum(word) % 2)


class TestWords:
    def test_each_word_is_found_by_its_own_number(self, hashes):
        part = part_of(*(loaded(n, word) for n, word in enumerate(WORDS)))
        assert [part.term(word.encode()) for word in WORDS] == [number_of(word) for word in WORDS]

    @pytest.mark.parametrize("word", ["do", "dogs", "doge", "", "Cat", "e\u0301"])
    def test_a_word_of_no_row_is_not_found(self, hashes, word):
        part = part_of(*(loaded(n, each) for n, each in enumerate(WORDS)))
        assert part.term(word.encode()) is None
        assert part_of().term(word.encode()) is None

    def test_accents_are_folded(self, hashes):
        part = part_of(*(loaded(n, word) for n, word in enumerate(WORDS)))
        assert sorted(part.accented(b"cafe")) == ["café".encode()]
        assert sorted(part.accented(b"cafes")) == ["cafés".encode()]
        assert part.accented(b"arger") == ["ärger".encode()]
        assert part.accented("café".encode()) == []
        assert part.accented(b"cat") == part_of().accented(b"cat") == []


class TestScopes:
    def test_the_rows_of_a_scope_stand_together(self):
        part = part_of(*(loaded(n, scope=scope) for n, scope in enumerate(["b", "", "b", "é", "b"], 1)))
        assert part.names.scopes == ("", "b", "é")
        assert [part.span(scope) for scope in ("", "b", "é")] == [(0, 1), (1, 4), (4, 5)]
        assert part.numbers.tolist() == [2, 1, 3, 5, 4]

    @pytest.mark.parametrize("scope", ["a", "bb", "z", "\U0010ffff"])
    def test_a_scope_without_rows_has_none(self, scope):
        first, last = part_of(loaded(1, scope="b"), loaded(2, scope="é")).span(scope)
        assert first == last
        assert part_of().span(scope) == (0, 0)


class TestNumbers:
    @given(st.sets(st.integers(1, 60)), st.lists(st.integers(0, 70), max_size=20), st.integers(2, 4))
    @settings(max_examples=80)
    def test_rows_are_found_by_their_numbers(self, numbers, asked, scopes):
        part = part_of(*(loaded(n, scope=str(n % scopes)) for n in numbers))
        rows = part.rows_of(np.array(asked, dtype=np.int64))
        assert part.numbers[rows].tolist() == [n for n in asked if n in numbers]


class TestContents:
    def test_rows_are_found_by_the_hash_of_their_text(self):
        same = bytes(range(8))
        hashes = [same + b"a" * 24, b"\xff" * 32, same + b"b" * 24, same + b"a" * 24, b"\0" * 32]
        part = part_of(*(loaded(n, text_hash=each) for n, each in enumerate(hashes)))
        absent = np.array([[1, 0]], dtype=np.uint64)
        asked = np.concatenate((part.contents, absent))
        assert part.with_contents(asked) == [(0, 0), (0, 3), (1, 1), (2, 2), (3, 0), (3, 3), (4, 4)]
        assert part.with_contents(absent) == part.with_contents(asked[:0]) == part_of().with_contents(asked) == []
        assert part.contents[0].tolist() == part.contents[3].tolist() != part.contents[2].tolist()


class TestColumns:
    def test_values_keep_their_types(self):
        values = [True, 1, 1.0, "1", ("a", 1, True), (), 2**53, -0.5, "", "日本"]
        part = part_of(*(loaded(n, metadata={"v": value}) for n, value in enumerate(values)), loaded(99))
        codes, found = part.column("v")
        assert [repr(found[code]) for code in codes.tolist()[:-1]] == [repr(value) for value in values]
        assert codes[-1] == -1
        assert part.column("w") is None

    def test_equal_values_share_a_number(self):
        part = part_of(*(loaded(n, metadata={"v": n % 3, "k": "x"}) for n in range(9)))
        assert part.column("v")[0].tolist() == [0, 1, 2] * 3
        assert part.column("k")[1] == ["x"]


class TestFields:
    @given(st.lists(st.tuples(st.lists(st.sampled_from(WORDS), max_size=4), st.sampled_from("ab")), max_size=12))
    @settings(max_examples=80)
    def test_a_span_is_what_stands_between_two_rows(self, drawn):
        part = part_of(*(loaded(n, " ".join(words), scope=scope) for n, (words, scope) in enumerate(drawn)))
        rows = [words for scope in "ab" for words, own in drawn if own == scope]
        assert part.fields["words"].lengths.tolist() == [len(words) for words in rows]
        for word in {word for words in rows for word in words}:
            assert postings_of(part, "words", word) == {n: own.count(word) for n, own in enumerate(rows) if word in own}
            for first in range(len(rows)):
                for last in range(first, len(rows) + 1):
                    assert span_of(part, word, first, last) == [n for n in range(first, last) if word in rows[n]]

    def test_a_term_of_no_row_has_no_span(self):
        part = part_of(loaded(1, "cat"))
        assert part.fields["words"].span(number_of("dog"), 0, 1) == (0, 0)
        assert part.fields["stems"].span(0, 0, 1) == (0, 0)
        assert part_of().fields["words"].span(1, 0, 0) == (0, 0)


def span_of(part: Part, word: str, first: int, last: int) -> list[int]:
    term = part.term(word.encode())
    assert term is not None
    low, high = part.fields["words"].span(term, first, last)
    return part.fields["words"].rows[low:high].tolist()


class TestBlobs:
    @given(st.lists(st.binary(max_size=5), max_size=10))
    @settings(max_examples=60)
    def test_they_are_a_list_of_bytes(self, blobs):
        arrays = arrays_of_blobs("x", blobs)
        held = Blobs(arrays["x.data"], arrays["x.starts"])
        assert len(held) == len(blobs)
        assert list(held) == blobs
        assert [held[place] for place in range(len(blobs))] == blobs
