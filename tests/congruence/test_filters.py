"""Filters agree with the naive second implementation, row by row, and columns agree with rows."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from wellhead.backends.stores.memory import MemoryStore
from wellhead.records import Document
from wellhead.search.filters import matches, parse, select
from wellhead.testing.contracts import put

keys = st.sampled_from(["a", "b", "c"])
dates = st.sampled_from(["2024-01-31T23:30:00-02:00", "2024-02-01", "2024-02-01T01:30:00Z", "20240201", "2023-12-31"])
scalars = st.one_of(
    st.sampled_from([0, 1, 2, True, False, 1.0, 0.0, 1.5, "", "1", "x", "True", -0.0, 2**62]),
    dates,
)
values = scalars | st.lists(scalars, max_size=3).map(tuple)
metadata = st.dictionaries(keys, values, max_size=3)
bounds = dates | st.sampled_from([0, 1, 1.5, -0.0, 2**62])
operators = st.one_of(
    st.fixed_dictionaries({"$eq": scalars}),
    st.fixed_dictionaries({"$in": st.lists(scalars, max_size=3)}),
    st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), bounds, min_size=1, max_size=2),
)
clauses = st.dictionaries(keys, scalars | operators, max_size=2)


def combined(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    # An empty filter inside another is refused.
    inner = inner.filter(bool)
    lists = st.lists(inner, max_size=3)
    return st.one_of(
        lists.map(lambda parts: {"$and": parts}),
        lists.map(lambda parts: {"$or": parts}),
        inner.map(lambda part: {"$not": part}),
    )


filters = st.recursive(clauses, combined, max_leaves=6)


@given(filters, st.lists(metadata, min_size=1, max_size=8))
@settings(max_examples=300)
def test_filters_agree_with_the_naive_ones_by_row_and_by_column(
    wanted: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    expected = [oracle.matches(wanted, row) for row in rows]
    condition = parse(wanted)
    assert [matches(condition, row) for row in rows] == expected
    store = MemoryStore()
    put(store, [Document(id=f"d{number}", text="one", metadata=row) for number, row in enumerate(rows)])
    view = store.view("")
    selected = select(condition, view)
    by_document = [True if selected is None else bool(selected[view.rows_of(f"d{n}")[0]]) for n in range(len(rows))]
    assert by_document == expected
