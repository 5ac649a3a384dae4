"""An index that is written to for ever: neither file nor memory grows, and every live record is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from histories import request_of
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.search import hybrid

pytestmark = pytest.mark.faults

ROUNDS, EARLY, LIVE, WRITTEN = 50, 5, 3_000, 1_000

# Each round 600 live records are written anew, 200 are deleted and 200 new ones come. A record has words that no other
# ever has. Prints the texts that are left, and what the index took after some rounds.
CHURN = """
import gc, json, os, random, sys
from pathlib import Path
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.records import Document
from wellhead.testing.fakes import HashEmbedder, document_row, vectors_of

folder, rounds, live, written, own = Path(sys.argv[1]), *map(int, sys.argv[2:])
dice, embedder = random.Random(61), HashEmbedder()
words = [f"word{n}" for n in range(2_000)]
texts, sizes = {}, {}

def sized(turn):
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    sizes[turn] = {"disk": disk, "memory": pages * os.sysconf("SC_PAGE_SIZE")}

def put(store, names, turn):
    for name in names:
        texts[name] = " ".join([*(f"own{n}of{name}in{turn}" for n in range(own)), *dice.choices(words, k=20)])
    rows = [document_row(Document(id=name, text=texts[name], metadata={"turn": turn})) for name in names]
    store.put(rows, vectors_of(rows, embedder))

store = EmbeddedStore(folder)
put(store, [f"a{n}" for n in range(live)], 0)
for turn in range(1, rounds + 1):
    chosen = dice.sample(sorted(texts), written * 8 // 10)
    gone, anew = chosen[: written // 5], chosen[written // 5 :]
    for first in range(0, len(anew), 100):
        put(store, anew[first : first + 100], turn)
    assert store.delete("", gone) == len(gone)
    for name in gone:
        del texts[name]
    put(store, [f"b{turn}n{n}" for n in range(len(gone))], turn)
    assert len(store.view("")) == live
    if turn % 5 == 0:
        store.settle()
        store.close()  # which folds SQLite's log into its file
        sized(turn)
        store = EmbeddedStore(folder)
store.close()
print(json.dumps({"texts": texts, "sizes": sizes}))
"""


class Churned(NamedTuple):
    """The folder, the live texts by id, and what the index took after some rounds."""

    folder: Path
    texts: dict[str, str]
    sizes: dict[str, dict[str, int]]


@pytest.fixture(scope="module")
def churned(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Churned]:
    """Two indexes after the same rounds, by how many words of its own each record has."""
    folders = {own: tmp_path_factory.mktemp("churn") / "kb" for own in (1, 4)}
    numbers = [str(number) for number in (ROUNDS, LIVE, WRITTEN)]
    programs = {
        own: subprocess.Popen([sys.executable, "-c", CHURN, str(folder), *numbers, str(own)], stdout=subprocess.PIPE)
        for own, folder in folders.items()
    }
    told = {own: json.loads(program.communicate(timeout=300)[0]) for own, program in programs.items()}
    return {own: Churned(folders[own], done["texts"], done["sizes"]) for own, done in told.items()}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell the memory in use")
@pytest.mark.parametrize("own", [1, 4])
@pytest.mark.parametrize("what", ["disk", "memory"])
def test_what_it_takes_does_not_grow_with_what_was_deleted(churned: dict[int, Churned], what: str, own: int) -> None:
    sizes = churned[own].sizes
    early, last = sizes[str(EARLY)][what], sizes[str(ROUNDS)][what]
    print(f"{what}: {early / 1e6:.1f} MB after round {EARLY}, {last / 1e6:.1f} MB after round {ROUNDS}")
    assert last <= 1.3 * early


@pytest.mark.parametrize("own", [1, 4])
def test_every_live_record_is_found_by_its_vector_and_by_its_rarest_word(churned: dict[int, Churned], own: int) -> None:
    """chroma-core/chroma#7758: after many deletes and upserts some live records could not be found any more."""
    store = EmbeddedStore(churned[own].folder, read_only=True)
    texts, view = churned[own].texts, store.view("")
    assert len(texts) == len(view) == LIVE
    lost = []
    for name, text in texts.items():
        for legs, query in (("dense", text), ("lexical", text.split()[0])):
            hits = hybrid.search(view, request_of(query, legs, "blend", 0.5, 1, None, "off", None, (None, None)))
            if [hit.passage.document_id for hit in hits] != [name]:
                lost.append((name, legs))
    assert lost == []
    assert len(list(store.documents(""))) == LIVE
    assert store.verify()[3] == []
    store.close()
