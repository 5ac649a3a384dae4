"""A process killed where it hurts most: what it acknowledged is there, nothing is half there, nothing is paid twice."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from faults.history import (
    GROUPS,
    ROWS,
    SIZE,
    TEXTS,
    Ledger,
    embedded,
    is_removal,
    open_history,
    settle,
    state_after,
    take,
    texts_of,
)
from faults.nursery import Nursery, nursery, warm
from wellhead import Index
from wellhead.backends.stores.embedded import keeper
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import StaleIndex
from wellhead.testing.contracts import refusal

pytestmark = [pytest.mark.faults, pytest.mark.skipif("not hasattr(__import__('os'), 'fork')", reason="needs fork")]

SOURCE = Path(__file__).parents[2] / "src" / "wellhead" / "backends" / "stores" / "embedded"
POINTS = sorted(
    {name for path in SOURCE.rglob("*.py") for name in re.findall(r'reached\("([\w.]+)"\)', path.read_text())}
)
STEPS = 16


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    warm()
    with nursery() as running:
        yield running


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "FLUSH_ROWS", ROWS)


def reopened(folder: Path, ledger: Path) -> Index:
    """The index, opened and asked once, within two seconds."""
    began = time.monotonic()
    index = open_history(folder, ledger)
    index.search("anything", mode="lexical")
    assert time.monotonic() - began < 2.0
    return index


def held(index: Index) -> dict[str, str]:
    return {document.id: document.text for document in index.documents()}


def check(index: Index, acknowledged: int) -> int:
    """The index is as after the acknowledged steps, or after one more; how many steps it shows."""
    found = held(index)
    shown = next((steps for steps in (acknowledged, acknowledged + 1) if found == state_after(steps)), None)
    assert shown is not None, f"neither the state after {acknowledged} steps nor that after one more"
    assert index.verify().ok, index.verify().findings
    assert index.stats().incomplete == 0
    check_found(index, found)
    return shown


def check_found(index: Index, texts: dict[str, str]) -> None:
    """Every document is found by both legs, by a word that only its passages hold; and nothing else is found."""
    for name in sorted(texts)[:: max(1, len(texts) // 6)]:
        word = texts[name].split()[2]
        lexical = index.search(word, mode="lexical", cut="off")
        assert [hit.passage.document_id for hit in lexical] == [name] * 2
        first = index.passages(name)[0]
        assert index.search(first.embedded_text, mode="dense", k=1, cut="off")[0].id == first.id
    assert len(index.search("stands", mode="lexical", k=100, cut="off")) == len(texts)


def finish(folder: Path, ledger: Path, shown: int) -> None:
    """The same steps again, from where it stopped, come to the same end."""
    with open_history(folder, ledger) as index:
        for step in range(shown, STEPS):
            take(index, step)
        settle(index)
        assert held(index) == state_after(STEPS)
        check(index, STEPS)


def unlisted(folder: Path) -> set[str]:
    """Files that belong to nothing."""
    with open_history(folder, folder.with_name("nobody")) as index, index._house.store._database.read() as connection:
        listed = {f"{name.decode()}.seg" for (name,) in connection.execute("SELECT name FROM segments")}
    names = {path.name for path in folder.iterdir()} | {path.name for path in (folder / "segments").glob("*")}
    return names - listed - {"wellhead.sqlite", "wellhead.sqlite-wal", "wellhead.sqlite-shm", "segments"}


def test_every_failpoint_of_the_source_is_tried() -> None:
    kinds = {"append", "segment", "swap", "compact", "migrate", "repair"}
    assert {name.partition(".")[0] for name in POINTS} == kinds, "a new kind of failpoint needs a test of its own"
    assert len(POINTS) >= 19


@pytest.mark.promise("B45")
@pytest.mark.parametrize("nth", [1, 4])
@pytest.mark.parametrize("point", [name for name in POINTS if not name.startswith(("migrate.", "repair."))])
def test_a_kill_at_a_failpoint_loses_nothing(tmp_path: Path, children: Nursery, point: str, nth: int) -> None:
    """bobmatnyc/mcp-vector-search#91: a kill while indexing left an index that opened but failed every write."""
    folder, ledger = tmp_path / "kb", tmp_path / "ledger"
    acknowledged, killed = children.run(
        do="write",
        folder=folder,
        ledger=ledger,
        steps=STEPS,
        point=point,
        nth=nth,
        settled=True,
        compact=[3, 6, 9, 12],
    )
    assert killed, f"{point} was reached less than {nth} times"
    with reopened(folder, ledger) as index:
        shown = check(index, acknowledged)
    finish(folder, ledger, shown)
    assert embedded(ledger) <= texts_of(STEPS) + TEXTS
    with open_history(folder, ledger) as index:
        index.compact()
        check(index, STEPS)
    assert unlisted(folder) == set()


def test_what_a_kill_left_behind_is_harmless_until_it_is_swept(tmp_path: Path) -> None:
    folder, ledger = tmp_path / "kb", tmp_path / "ledger"
    with open_history(folder, ledger) as index:
        for step in range(5):
            take(index, step)
        settle(index)
        (first, *_) = sorted((folder / "segments").glob("*.seg"))
        for name, data in (("0" * 32, first.read_bytes()), ("1" * 32, b""), ("2" * 32, first.read_bytes()[:500])):
            (folder / "segments" / f"{name}.seg").write_bytes(data)
        check(index, 5)
        take(index, 5)
        settle(index)
        check(index, 6)
        assert index.compact().files == 3
        check(index, 6)
    assert unlisted(folder) == set()


@pytest.mark.parametrize("point", [name for name in POINTS if name.startswith("repair.")])
def test_a_kill_in_a_repair_leaves_the_damaged_index_or_the_mended_one(
    tmp_path: Path, children: Nursery, point: str
) -> None:
    folder, ledger = tmp_path / "kb", tmp_path / "ledger"
    with open_history(folder, ledger) as index:
        for step in range(4):
            take(index, step)
        settle(index)
    with closing(sqlite3.connect(folder / FILE_NAME)) as raw:
        raw.execute("UPDATE texts SET text = 'x' WHERE doc = (SELECT doc FROM documents WHERE id = '2/3')")
        raw.commit()
    paid = embedded(ledger)
    _, killed = children.run(do="repair", folder=folder, ledger=ledger, point=point)
    assert killed
    whole = {name: text for name, text in state_after(4).items() if name != "2/3"}
    with reopened(folder, ledger) as index:
        assert {name: document.text for name in whole if (document := index.get(name))} == whole
        mended = "2/3" not in [one.id for one in index.summaries()]
        assert index.verify().ok == mended == (point == "repair.swapped")
    Index.repair_at(folder, embedder=Ledger(ledger), languages=["en"])
    with reopened(folder, ledger) as index:
        assert held(index) == whole
        assert index.verify().ok
        assert embedded(ledger) == paid
        take(index, 2)
        settle(index)
        check(index, 4)


@pytest.mark.parametrize("point", [name for name in POINTS if name.startswith("migrate.")])
def test_a_kill_in_a_migration_leaves_the_old_format_or_the_new_one(
    tmp_path: Path, children: Nursery, point: str
) -> None:
    folder = tmp_path / "kb"
    shutil.copytree(Path(__file__).parents[1] / "fixtures" / "format-1", folder)
    _, killed = children.run(do="open", folder=folder, ledger=tmp_path / "ledger", point=point)
    assert killed
    refusal(StaleIndex, lambda: EmbeddedStore(folder, read_only=True))
    store = EmbeddedStore(folder)
    assert (len(store.view("acme")), len(store.view("globex")), store.verify()[3]) == (5, 10, [])
    store.close()


def kill_often(tmp_path: Path, children: Nursery, kills: int) -> None:
    """Kill at random moments, and go on in the same index each time."""
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    dice = random.Random(seed)
    folder, ledger = tmp_path / "kb", tmp_path / "ledger"
    shown, unfinished = 0, 0
    for _ in range(kills):
        acknowledged, killed = children.run(
            do="write",
            folder=folder,
            ledger=ledger,
            first=shown,
            steps=40,
            delay_s=dice.uniform(0.0, 0.12),
            settled=dice.random() < 0.3,
            compact=[shown + dice.randrange(8)] if dice.random() < 0.3 else [],
        )
        unfinished += killed
        with reopened(folder, ledger) as index:
            shown = check(index, shown + acknowledged)
    assert embedded(ledger) <= texts_of(shown) + kills * TEXTS
    with reopened(folder, ledger) as index:
        settle(index)
        check(index, shown)
    print(f"{unfinished} of {kills} were killed at work; {shown} steps, {embedded(ledger)} texts embedded")


def test_kills_at_random_moments_lose_nothing(tmp_path: Path, children: Nursery) -> None:
    kill_often(tmp_path, children, 40)


@pytest.mark.slow
@pytest.mark.parametrize("hundreds", range(6))
def test_three_thousand_kills_lose_nothing(tmp_path: Path, children: Nursery, hundreds: int) -> None:
    kill_often(tmp_path, children, 500)


def test_the_series_writes_removes_and_comes_back() -> None:
    assert sum(is_removal(step) for step in range(STEPS)) == 2
    assert len(state_after(STEPS)) < GROUPS * SIZE
    assert state_after(STEPS + 1) != state_after(STEPS)
