"""The arrays of a view: codes, distinct vectors, columns by type, and what is shared between threads."""

from __future__ import annotations

import numpy as np

from wellhead.backends.stores.arrays import codes, line_up
from wellhead.backends.stores.memory import MemoryStore
from wellhead.errors import StaleView, StoreError
from wellhead.records import Document
from wellhead.testing.contracts import put


def test_codes_number_values_by_first_appearance():
    numbers, values = codes(["b", "a", "b", "c"])
    assert (numbers.tolist(), values, numbers.dtype) == ([0, 1, 0, 2], ["b", "a", "c"], np.int32)


def test_vectors_stand_in_the_order_of_their_rows():
    one, two = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    lines = line_up([b"2", b"", b"1", b"2", b"lost"], {b"1": one, b"2": two, b"unused": one})
    assert lines.tolist() == [[0, 1], [0, 0], [1, 0], [0, 1], [0, 0]]
    assert not lines.flags.writeable
    assert line_up([b"lost"], {}).shape == (1, 0)


def test_values_in_lists_keep_their_types_apart():
    store = MemoryStore()
    lists = [(1, 2), (True, 2), (1.0, 2), (1, 2)]
    put(store, [Document(id=f"d{n}", text=f"t{n}", metadata={"tags": tags}) for n, tags in enumerate(lists)])
    view = store.view("")
    of = [int(view.column("tags").codes[view.rows_of(f"d{n}")[0]]) for n in range(4)]
    assert of[0] == of[3]
    assert len(set(of)) == 3


def test_a_stale_view_is_a_store_error_that_may_be_tried_again():
    assert issubclass(StaleView, StoreError)
    assert StaleView.retryable
