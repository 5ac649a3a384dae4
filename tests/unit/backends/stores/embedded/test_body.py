"""The packed form of a passage: it comes back as it was, and nothing else comes back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.backends.stores.embedded.body import pack_passage, unpack_passage
from wellhead.records import Passage

SCALARS = st.text(max_size=8) | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False) | st.booleans()
PASSAGES = st.builds(
    Passage,
    id=st.text(max_size=8),
    document_id=st.text(max_size=8),
    ordinal=st.integers(0, 2**40),
    text=st.text(),
    start=st.integers(0, 2**40),
    end=st.integers(0, 2**40),
    heading=st.lists(st.text(max_size=5), max_size=3).map(tuple),
    page=st.none() | st.integers(1, 9999),
    metadata=st.dictionaries(st.text(max_size=5), SCALARS | st.lists(SCALARS, max_size=3).map(tuple), max_size=4),
    language=st.none() | st.text(max_size=3),
    flags=st.lists(st.text(max_size=5), max_size=2).map(tuple),
)
PLAIN = Passage(id="a", document_id="b", ordinal=0, text="Rotate the key.", start=0, end=15, metadata={"n": 1})


def _typed(passage: Passage) -> str:
    """In Python True == 1 == 1.0."""
    return repr(passage)


@given(PASSAGES)
@settings(max_examples=200)
def test_a_passage_comes_back_with_the_types_of_its_metadata(passage: Passage) -> None:
    again = unpack_passage(pack_passage(passage))
    assert again == passage
    assert again is not None
    assert _typed(again) == _typed(passage)


def test_no_flipped_bit_comes_back() -> None:
    body = pack_passage(PLAIN)
    for place in range(len(body) * 8):
        changed = bytearray(body)
        changed[place // 8] ^= 1 << place % 8
        assert unpack_passage(bytes(changed)) is None


@pytest.mark.parametrize("size", [0, 1, 8, 9, 20])
def test_nothing_comes_back_of_what_was_cut_off(size: int) -> None:
    assert unpack_passage(pack_passage(PLAIN)[:size]) is None
