"""Opening an index runs no code, whatever its files hold."""

from __future__ import annotations

import json
import pickle
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import xxhash

from histories import EMBEDDER, by_hand, lay_out
from wellhead import Document, Index
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.segment import FOLDER
from wellhead.errors import WellheadError

QUERY = "the note numbered 3"


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, flag: Path) -> None:
        self.flag = flag

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.flag,)


@pytest.fixture
def flag(tmp_path: Path) -> Path:
    return tmp_path / "code-was-run"


@pytest.fixture
def index_folder(kb: Path) -> Path:
    """A closed index with rows in two files and in none, and files that somebody left beside them."""
    with Index.open(kb, embedder=EMBEDDER, languages=["en"]) as index:
        store = by_hand(index._house.store)
        for first in (0, 10, 20):
            if first:
                lay_out(store, "in a file")
            index.add(Document(id=f"d{n}", text=f"the note numbered {n}") for n in range(first, first + 10))
    return kb


def use(folder: Path) -> list[str]:
    """Open, search, verify and write; the answer."""
    with Index.open(folder, embedder=EMBEDDER, create=False) as index:
        found = [hit.text for hit in index.search(QUERY, mode="dense", k=1, cut="off")]
        index.verify()
        index.add([Document(id="new", text="another")])
        index._house.store.settle()
        return found


def test_the_trap_works(flag: Path) -> None:
    """langchain-ai/langchain-community#92: what this file looks for can be seen."""
    pickle.loads(pickle.dumps(Trap(flag)))
    assert flag.exists()


def test_a_pickle_in_the_place_of_any_file_is_not_loaded(index_folder: Path, flag: Path) -> None:
    """langchain-ai/langchain-community#92: the folder of an index held a pickle, and loading it ran code."""
    found_files = (path.relative_to(index_folder) for path in index_folder.rglob("*") if path.is_file())
    files = sorted(found_files, key=lambda path: path.suffix, reverse=True)
    assert [path.suffix for path in files] == [".sqlite", ".seg", ".seg"]
    for path in files:
        whole = (index_folder / path).read_bytes()
        for payload in (pickle.dumps(Trap(flag)), pickle.dumps(Trap(flag), protocol=0) * 200):
            (index_folder / path).write_bytes(payload)
            found = [QUERY]
            with suppress(WellheadError):
                found = use(index_folder)
            assert found == [QUERY]
            assert not flag.exists()
            if path.suffix == ".sqlite":
                with pytest.raises(WellheadError):
                    use(index_folder)
            for extra in index_folder.glob("wellhead.sqlite?*"):
                extra.unlink()
            (index_folder / path).write_bytes(whole)
        if path.suffix == ".seg":  # what was spoiled was made anew meanwhile, under another name
            break
    assert not flag.exists()


def test_pickles_beside_the_files_are_not_loaded(index_folder: Path, flag: Path) -> None:
    """langchain-ai/langchain-community#92: nor what lies there under a name that others load."""
    for name in ("index.pkl", "index.pickle", "docstore.pkl", "segments/x.seg", "segments/index.pkl", "settings.npy"):
        (index_folder / name).write_bytes(pickle.dumps(Trap(flag)))
    assert use(index_folder) == [QUERY]
    assert not flag.exists()


@pytest.mark.parametrize("kind", ["|O8", "object", "O", "V8", "nonsense"])
def test_a_file_that_claims_to_hold_objects_runs_nothing(index_folder: Path, flag: Path, kind: str) -> None:
    """langchain-ai/langchain-community#92: numpy unpickles arrays of objects where it is let; digests do not help."""
    path = min((index_folder / FOLDER).iterdir())
    data = path.read_bytes()
    size = int.from_bytes(data[8:16], "little")
    header = json.loads(data[16 : 16 + size])
    header["arrays"]["numbers"][0] = kind
    changed = json.dumps(header, separators=(",", ":")).encode()
    spoiled = data[:8] + len(changed).to_bytes(8, "little") + changed + data[16 + len(changed) :]
    spoiled = spoiled[: len(data) - 200] + pickle.dumps(Trap(flag)) + spoiled[len(data) - 200 :]
    path.write_bytes(spoiled)
    with closing(sqlite3.connect(index_folder / "wellhead.sqlite")) as raw:
        name, *rest = raw.execute("SELECT * FROM segments WHERE name = ?", (path.stem,)).fetchone()
        rest[-2] = xxhash.xxh3_128_digest(spoiled)
        values = (name, *rest[:-1])
        raw.execute("DELETE FROM segments WHERE name = ?", (name,))
        raw.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, checksum("segments", *values)))
        raw.commit()
    # Whoever can forge a digest can make it fail in words that are not ours; that is all he can.
    with suppress(WellheadError, ValueError, TypeError):
        assert use(index_folder) == [QUERY]
    assert not flag.exists()
