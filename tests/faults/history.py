"""A long series of writes whose outcome is known after each of them, for processes that are killed on the way.

Twelve groups of five documents are written over and over and deleted now and then, so that the index stays small while
segments come and go.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wellhead import Document, Index
from wellhead.testing.fakes import HashEmbedder

GROUPS, SIZE = 12, 5
# What one step embeds: two passages a document, none of which was there before.
TEXTS = 2 * SIZE
# What `keeper.FLUSH_ROWS` has to be for segments to come and go.
ROWS = 16


class Ledger(HashEmbedder):
    """Counts its texts in a file, so that the count outlives a process."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._path.open("a") as ledger:
            ledger.write(f"{len(texts)}\n")
        return super().embed_documents(texts)


def embedded(ledger: Path) -> int:
    """Texts that were embedded so far, by whichever process."""
    return sum(int(line) for line in ledger.read_text().split("\n")[:-1]) if ledger.exists() else 0


def open_history(folder: Path, ledger: Path) -> Index:
    """The index."""
    return Index.open(folder, embedder=Ledger(ledger), languages=["en"])


def is_removal(step: int) -> bool:
    return step % 7 == 6


def word(step: int, n: int) -> str:
    """A word that only the n-th document of a step holds: letters alone, which are not taken apart."""
    number = SIZE * step + n
    return "qu" + "".join("bdfgklmnpr"[int(digit)] + "o" for digit in f"{number:06}") + "b"


def written(step: int) -> list[Document]:
    """The documents that a step writes; none for one that removes."""
    if is_removal(step):
        return []
    group = step % GROUPS
    return [
        Document(
            id=f"{group}/{n}",
            text=f"# First\n\n{word(step, n)} stands here.\n\n# Second\n\nMore of {word(step, n)}, once more.\n",
            media_type="text/markdown",
            metadata={"step": step},
        )
        for n in range(SIZE)
    ]


def removed(step: int) -> list[str]:
    """The ids that a step removes."""
    return [f"{(5 * step + 3) % GROUPS}/{n}" for n in range(SIZE)] if is_removal(step) else []


def take(index: Index, step: int) -> None:
    """One step: one transaction."""
    if is_removal(step):
        index.remove(removed(step))
    else:
        index.add(written(step))


def settle(index: Index) -> None:
    """Wait until the segments are in shape; raises what went wrong."""
    index._house.store.settle()  # type: ignore[attr-defined]


def state_after(steps: int) -> dict[str, str]:
    """The text of every document by id, after so many steps from the first."""
    held: dict[str, str] = {}
    for step in range(max(0, steps - 5 * GROUPS), steps):  # before these every group was written or removed since
        held |= {one.id: one.text for one in written(step)}
        for name in removed(step):
            held.pop(name, None)
    return held


def texts_of(steps: int) -> int:
    """How many texts so many steps embed."""
    return TEXTS * sum(not is_removal(step) for step in range(steps))


def found_there(folder: Path, word: str) -> list[str]:
    """The documents that a search in another process finds."""
    with Index.open(folder, embedder=HashEmbedder(), languages=["en"], read_only=True) as index:
        return [hit.passage.document_id for hit in index.search(word, mode="lexical", cut="off")]
