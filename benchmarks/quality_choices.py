"""What the defaults are worth: each choice beside its alternatives, over whole collections, in one run.

    python benchmarks/quality_choices.py COLLECTION COLLECTION...

Printed for each: nDCG@10 of bm25, dense and blend, and the queries for which blend found nothing relevant in the first
ten. The figures in `docs/decisions/` come from here.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from wellhead import analyze, wiring
from wellhead.backends.embedders import static
from wellhead.backends.embedders.static import StaticEmbedder
from wellhead.backends.stores.arrays import ArrayView
from wellhead.backends.stores.postings import ArrayField
from wellhead.bench.collection import Collection, read_collection
from wellhead.bench.evaluate import evaluate
from wellhead.records import Passage
from wellhead.search import bm25, fuse

Choice = Callable[[], contextlib.AbstractContextManager[Any]]


def plain_mean() -> contextlib.AbstractContextManager[Any]:
    """Every token counts each time it occurs."""

    def embed(self: StaticEmbedder, texts: Sequence[str]) -> Any:
        found = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        sums = np.array([self._table[one.ids].sum(axis=0) for one in found], dtype=np.float32)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        return sums / np.where(lengths == 0.0, 1.0, lengths)

    return mock.patch.object(StaticEmbedder, "_embed", embed)


@contextlib.contextmanager
def parts_of(change: Callable[[list[str]], list[str]]) -> Iterator[None]:
    """The analyzer with other parts of a token."""
    parts = analyze._parts  # noqa: SLF001 (what is compared has no option of its own)
    analyze._expander.cache_clear()  # noqa: SLF001
    with mock.patch.object(analyze, "_parts", lambda token: change(parts(token))):
        yield
    analyze._expander.cache_clear()  # noqa: SLF001


def without_single_characters() -> contextlib.AbstractContextManager[Any]:
    return parts_of(lambda parts: [*parts[:1], *(part for part in parts[1:] if len(part) > 1)])


def context_in_one_text() -> contextlib.AbstractContextManager[Any]:
    """The context before the text, in one sum of tokens."""

    def embed(self: StaticEmbedder, contexts: Sequence[str], texts: Sequence[str]) -> Any:
        joined = (f"{context}\n{text}" if context else text for context, text in zip(contexts, texts, strict=True))
        return self.embed_documents(list(joined))

    return mock.patch.object(StaticEmbedder, "embed_passages", embed)


def context_counts_once() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(Passage, "analyzed_text", Passage.embedded_text)


@contextlib.contextmanager
def rare_by_passage() -> Iterator[None]:
    """A word is as rare as the passages that hold it are few."""

    def frequency(self: ArrayField, term: str) -> int:
        found = self.posting(term)
        return 0 if found is None else len(found.rows)

    with (
        mock.patch.object(ArrayField, "frequency", frequency),
        mock.patch.object(ArrayView, "document_count", property(len)),
    ):
        yield


def constant(module: Any, name: str, value: float) -> Choice:
    return lambda: mock.patch.object(module, name, value)


CHOICES: dict[str, Choice] = {
    "as it is": contextlib.nullcontext,
    "static: plain mean": plain_mean,
    "static: context in one text": context_in_one_text,
    "static: context weighs 0.15": constant(static, "CONTEXT_SHARE", 0.15),
    "static: context weighs 0.35": constant(static, "CONTEXT_SHARE", 0.35),
    "terms: context counts once": context_counts_once,
    "terms: rare by passage": rare_by_passage,
    "blend: no yardstick": constant(fuse, "TRUSTED", 0.0),
    "blend: yardstick 0.4": constant(fuse, "TRUSTED", 0.4),
    "exact words weigh 0": constant(bm25, "WORD_WEIGHT", 0.0),
    "exact words weigh 0.3": constant(bm25, "WORD_WEIGHT", 0.3),
    "no single characters": without_single_characters,
    "passages of 256 tokens": constant(wiring, "PASSAGE_TOKENS", 256),
    "passages of 352 tokens": constant(wiring, "PASSAGE_TOKENS", 352),
}
PIPELINES = ("bm25", "dense", "blend")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collections", nargs="*", type=Path)
    collections = [read_collection(path) for path in parser.parse_args().collections]
    if not collections:
        print("name one collection or more: make bench COLLECTIONS='one two ...'")
        return
    print(f"{'choice':<30}" + "".join(f"{collection.name:>30}" for collection in collections))
    print(" " * 30 + f"{'bm25  dense  blend  nothing':>30}" * len(collections))
    for name, choice in CHOICES.items():
        with choice():
            print(f"{name:<30}" + "".join(f"{figures(collection):>30}" for collection in collections), flush=True)


def figures(collection: Collection) -> str:
    rows = {row.name: row for row in evaluate(collection, pipelines=PIPELINES).pipelines}
    scores = " ".join(f"{rows[name].measures['nDCG@10']:.4f}" for name in PIPELINES)
    return f"{scores} {len(rows['blend'].nothing_relevant):>4}"


if __name__ == "__main__":
    main()
