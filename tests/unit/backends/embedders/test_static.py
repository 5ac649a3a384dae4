"""`static`: unit vectors without a download, the same alone and in company, in threads and in either role."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.backends.embedders import static
from wellhead.backends.embedders.static import CONTEXT_SHARE, StaticEmbedder
from wellhead.errors import MissingExtra

EMBEDDER = StaticEmbedder()
TEXTS = ["A live cell has two neighbours.", "getUserById(42)", "naïve café 東京 🍣", "x", "word " * 900]
stored_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.promise("B21")
def test_vectors_are_of_unit_length_whatever_the_text_is() -> None:
    made = EMBEDDER.embed_documents(TEXTS)
    assert (made.shape, made.dtype) == ((len(TEXTS), 256), np.float32)
    assert np.linalg.norm(made, axis=1) == pytest.approx([1.0] * len(TEXTS), abs=1e-5)


def test_a_text_has_the_same_vector_alone_and_in_company() -> None:
    together = EMBEDDER.embed_documents(TEXTS * 60)
    for place, text in enumerate(TEXTS):
        assert np.array_equal(EMBEDDER.embed_documents([text])[0], together[place])
        assert np.array_equal(EMBEDDER.embed_query(text), together[place])


def test_no_text_gives_no_row_and_an_empty_text_a_row_of_zeros() -> None:
    assert EMBEDDER.embed_documents([]).shape == (0, 256)
    assert not EMBEDDER.embed_documents([""]).any()


def test_near_meanings_are_nearer_than_far_ones() -> None:
    query, near, far = EMBEDDER.embed_documents(
        ["How do I get my money back?", "Refunds are paid within a week.", "The glider moves diagonally."]
    )
    assert query @ near > query @ far + 0.1


@pytest.mark.parametrize("times", [1, 100])
def test_the_context_has_its_share_however_long_the_text_is(times: int) -> None:
    text = "Refunds are paid within a week. " * times
    context, own = EMBEDDER.embed_documents(["The glider moves diagonally.", text])
    (made,) = EMBEDDER.embed_passages(["The glider moves diagonally."], [text])
    wanted = (1 - CONTEXT_SHARE) * own + CONTEXT_SHARE * context
    assert made == pytest.approx(wanted / np.linalg.norm(wanted), abs=1e-6)


def test_passages_keep_their_order_and_one_without_a_context_is_its_text_alone() -> None:
    contexts = ["", "Keys", "", "Logs", "Keys"]
    made = EMBEDDER.embed_passages(contexts, TEXTS)
    assert (made.shape, made.dtype) == ((5, 256), np.float32)
    assert np.linalg.norm(made, axis=1) == pytest.approx([1.0] * 5, abs=1e-5)
    assert made[[0, 2]] == pytest.approx(EMBEDDER.embed_documents([TEXTS[0], TEXTS[2]]), abs=1e-6)
    for place, (context, text) in enumerate(zip(contexts, TEXTS, strict=True)):
        assert np.array_equal(EMBEDDER.embed_passages([context], [text])[0], made[place])
    assert EMBEDDER.embed_passages([], []).shape == (0, 256)
    assert not EMBEDDER.embed_passages([""], [""]).any()


@given(stored_text)
@settings(max_examples=60)
def test_any_text_has_tokens_that_begin_inside_it_in_order(text: str) -> None:
    starts = EMBEDDER.token_starts(text)
    assert starts == sorted(starts)
    assert all(0 <= start < len(text) for start in starts)
    assert np.isfinite(EMBEDDER.embed_query(text)).all()


def test_token_starts_count_characters_and_not_bytes() -> None:
    text = "東京 café word"
    assert text.index("word") in [start + (text[start] == " ") for start in EMBEDDER.token_starts(text)]


def test_threads_get_the_same_vectors() -> None:
    fresh = StaticEmbedder()
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(fresh.embed_query, TEXTS * 5))
    assert all(np.array_equal(vector, EMBEDDER.embed_query(text)) for vector, text in zip(made, TEXTS * 5, strict=True))


def test_the_package_that_carries_the_weights_is_never_imported() -> None:
    EMBEDDER.embed_query("a text")
    assert "wordllama" not in sys.modules


def test_missing_weights_name_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra) as caught:
        StaticEmbedder()
    assert caught.value.fix.startswith("pip install")
