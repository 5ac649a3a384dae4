"""Bits that flip on the disk: what was written is served, or the damage is named. Never something else."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import CorruptStore, StoreError, WellheadError
from wellhead.records import Document
from wellhead.testing.contracts import put

pytestmark = pytest.mark.faults
WORDS = ("alpha", "beta", "gamma", "shared", "resume")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a small sound store, folded into one file."""
    folder = tmp_path_factory.mktemp("sound")
    store = EmbeddedStore(folder)
    store.set_settings({"embedder": "hash", "format": "plain"})
    documents = [
        Document(
            id=f"guides/{n:02d}.md",
            text=f"alpha number {n} UNIQUETEXT{n}\nshared line résumé\nbeta gamma {n * 7}\n" + "x " * 20 * n,
            title=f"Guide {n}",
            metadata={"area": f"area{n % 3}", "n": n, "draft": bool(n % 2)},
            language="en",
        )
        for n in range(24)
    ]
    put(store, documents, scope="acme")
    put(store, documents[:4], scope="globex")
    store.close()
    return (folder / "wellhead.sqlite").read_bytes()


def everything(folder: Path) -> object:
    """All that a reader can see of a store, as plain values."""
    store = EmbeddedStore(folder, read_only=True)
    try:
        return [store.settings(), *(_scope(store, scope) for scope in ("acme", "globex", ""))]
    finally:
        store.close()


def _scope(store: EmbeddedStore, scope: str) -> object:
    view = store.view(scope)
    keys = view.keys()
    ids = [document.id for document in store.documents(scope)]
    postings = [field.posting(word) for field in (view.stems, view.words) for word in WORDS]
    columns = [(key, [repr(view.column(key).values[code]) for code in view.column(key).codes]) for key in keys]
    return (
        view.passages(range(len(view))),
        [(hit.rows.tolist(), hit.counts.tolist()) if hit else None for hit in postings],
        [view.stems.lengths.tolist(), view.words.lengths.tolist()],
        [view.vectors.matrix.tobytes(), view.vectors.of.tolist(), view.contents.tolist()],
        columns,
        list(store.documents(scope)),
        store.states(scope),
        [view.rows_of(document_id) for document_id in ids],
    )


def damage(sound: bytes, folder: Path, offset: int, bit: int) -> None:
    """The sound store with one bit flipped, as a file in `folder`."""
    spoiled = bytearray(sound)
    spoiled[offset] ^= 1 << bit
    (folder / "wellhead.sqlite").write_bytes(spoiled)


def verdict(folder: Path) -> list[str]:
    """What `verify` finds, or the refusal to open, as text."""
    try:
        store = EmbeddedStore(folder, read_only=True)
    except WellheadError as error:
        return [str(error)]
    try:
        return [f"{finding.kind} {finding.where} {finding.why}" for finding in store.verify()[3]]
    finally:
        store.close()


def outcome(folder: Path) -> object:
    """What a reader sees, or the error that stops it."""
    try:
        return everything(folder)
    except WellheadError as error:
        return error


def check_flip(sound: bytes, folder: Path, offset: int, bit: int, truth: object) -> bool:
    """Whether the flip was noticed; fails when a reader saw something else than was written."""
    damage(sound, folder, offset, bit)
    seen, found, place = outcome(folder), verdict(folder), f"bit {bit} of byte {offset}"
    if isinstance(seen, WellheadError):
        assert seen.fix, f"{place}: {seen}"
        assert found, f"{place}: verify is silent where a read says {seen}"
    else:
        assert seen == truth, f"{place}: a reader saw something else than was written"
    return bool(found)


def test_any_flip_is_harmless_or_named(sound, tmp_path):
    (tmp_path / "wellhead.sqlite").write_bytes(sound)
    truth = everything(tmp_path)
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    noticed = sum(
        check_flip(sound, tmp_path, chance.randrange(len(sound)), chance.randrange(8), truth) for _ in range(60)
    )
    assert noticed, "none of 60 flips was noticed"


@pytest.mark.parametrize("words", [b"UNIQUETEXT3", b"guides/05.md", b"area2"])
def test_a_flip_in_stored_text_is_named(sound, tmp_path, words):
    offset = sound.index(words)
    for bit in (0, 5):
        damage(sound, tmp_path, offset + len(words) - 1, bit)
        assert verdict(tmp_path), f"{words!r} bit {bit}"
        with pytest.raises(StoreError):
            everything(tmp_path)


def test_a_flip_in_a_vector_is_named(sound, tmp_path):
    (tmp_path / "wellhead.sqlite").write_bytes(sound)
    store = EmbeddedStore(tmp_path, read_only=True)
    vector = store.view("acme").vectors.matrix[3].astype("<f4").tobytes()
    store.close()
    damage(sound, tmp_path, sound.index(vector) + 2, 3)
    assert any(line.startswith("vector ") for line in verdict(tmp_path))
    store = EmbeddedStore(tmp_path, read_only=True)
    with pytest.raises(CorruptStore, match="vector"):
        store.view("acme")
    store.close()


def test_a_flip_in_the_terms_of_a_passage_is_named(sound, tmp_path):
    (tmp_path / "wellhead.sqlite").write_bytes(sound)
    store = EmbeddedStore(tmp_path, read_only=True)
    with store._database.read() as connection:
        passage_id, words = connection.execute("SELECT id, words FROM passages WHERE length(words) > 30").fetchone()
    store.close()
    assert np.frombuffer(words, "<i4").reshape(-1, 2)[:, 1].all()
    damage(sound, tmp_path, sound.index(words) + 4, 1)
    store = EmbeddedStore(tmp_path, read_only=True)
    with pytest.raises(CorruptStore, match=passage_id.decode()[:12]):
        store.view("acme")
    assert store.verify()[3]
    store.close()


def test_a_damaged_document_can_be_removed_and_indexed_again(sound, tmp_path):
    damage(sound, tmp_path, sound.index(b"UNIQUETEXT3") + 3, 1)
    store = EmbeddedStore(tmp_path)
    with pytest.raises(CorruptStore, match=r"guides/03\.md"):
        store.get("acme", "guides/03.md")
    again = store.get("acme", "guides/04.md")
    store.delete("acme", ["guides/03.md"])
    put(store, [Document(id="guides/03.md", text=again.text)], scope="acme")
    assert store.get("acme", "guides/03.md").text == again.text
    assert store.verify()[3] == []
    store.close()
