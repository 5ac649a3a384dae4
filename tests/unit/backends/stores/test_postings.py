"""Postings against counting by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.backends.stores.postings import ArrayField, Postings, pack_terms

TERMS = ["a", "b", "resume", "résumé", "ё", "日本"]
rows_of_counts = st.lists(st.dictionaries(st.sampled_from(TERMS), st.integers(1, 2**20)), max_size=30)


@settings(max_examples=100, deadline=None)
@given(rows_of_counts, st.permutations(range(1, len(TERMS) + 1)), st.integers(1, 5))
def test_postings_equal_counting_by_hand(rows, numbers, many):
    ids = dict(zip(TERMS, numbers, strict=True))
    documents = np.arange(len(rows), dtype=np.int32) % many
    field = ArrayField(Postings([pack_terms(row, ids) for row in rows]), ids, documents)
    assert field.lengths.tolist() == [sum(row.values()) for row in rows]
    assert field.total == sum(sum(row.values()) for row in rows)
    for term in TERMS:
        wanted = [(place, row[term]) for place, row in enumerate(rows) if term in row]
        found = field.posting(term)
        assert wanted == ([] if found is None else list(zip(*map(np.ndarray.tolist, found), strict=True)))
        assert field.frequency(term) == len({place % many for place, _ in wanted})
        if found is not None:
            assert (found.rows.dtype, found.counts.dtype) == (np.int32, np.int32)
    there = {term for row in rows for term in row}
    assert field.folded("résumé") == sorted(there & {"resume", "résumé"})
    assert field.folded("е") == sorted(there & {"ё"})


def test_a_term_of_the_other_field_only_has_no_posting():
    field = ArrayField(Postings([pack_terms({"a": 1}, {"a": 5, "é": 9})]), {"a": 5, "é": 9}, np.zeros(1, np.int32))
    assert field.posting("é") is None
    assert field.frequency("é") == 0
    assert field.folded("e") == []


def test_arrays_shared_by_threads_cannot_be_changed():
    field = ArrayField(Postings([pack_terms({"a": 1}, {"a": 0})]), {"a": 0}, np.zeros(1, np.int32))
    assert not field.lengths.flags.writeable
    assert not field.posting("a").rows.flags.writeable
    assert not field.posting("a").counts.flags.writeable
