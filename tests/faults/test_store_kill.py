"""A writer killed at any moment: what it acknowledged is there, nothing is half there, and the next open is quick."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest

from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.records import Document
from wellhead.testing.contracts import put

pytestmark = pytest.mark.faults
BATCH = 5

WRITER = """
import sys
from wellhead.backends.stores.embedded import keeper
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.records import Document
from wellhead.testing.contracts import put
keeper.FLUSH_ROWS = 30  # segments come and go
store = EmbeddedStore(sys.argv[1])
batch = int(sys.argv[2])
while True:
    documents = [Document(id=f"{batch}/{n}", text=f"batch {batch}\\nline of {n}\\nshared") for n in range(5)]
    put(store, [*documents, Document(id="counter", text=f"count {batch}\\nshared\\n" + "filler " * 2000)])
    print(batch, flush=True)
    batch += 1
"""


def kill_after(folder, first: int, delay_s: float) -> int:
    """Run the writer from batch `first`, kill it `delay_s` after its first word; the last batch it acknowledged."""
    command = [sys.executable, "-c", WRITER, str(folder), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        last = int(child.stdout.readline())
        time.sleep(delay_s)
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split("\n")
    whole = [int(line) for line in rest[:-1] if line]
    return max([last, *whole])


def test_nothing_acknowledged_is_lost_and_nothing_is_torn(tmp_path):
    """bobmatnyc/mcp-vector-search#91: a kill left an index that opened but failed every later write."""
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    acknowledged = -1
    for _ in range(10):
        acknowledged = kill_after(tmp_path, acknowledged + 1, chance.uniform(0.0, 0.15))
        began = time.monotonic()
        store = EmbeddedStore(tmp_path)
        view = store.view("")
        assert time.monotonic() - began < 2.0
        acknowledged = check_whole(store, view, acknowledged)
        store.close()


def check_whole(store, view, acknowledged: int) -> int:
    """Every acknowledged batch is there, the next one whole or not at all; the last batch that is there."""
    states = store.states("")
    batches = {int(document_id.split("/")[0]) for document_id in states if "/" in document_id}
    last = max(batches)
    assert batches == set(range(last + 1))
    assert last in (acknowledged, acknowledged + 1)
    for batch in batches:
        for n in range(BATCH):
            texts = [passage.text for passage in view.passages(view.rows_of(f"{batch}/{n}"))]
            assert texts == [f"batch {batch}", f"line of {n}", "shared"]
    assert store.get("", "counter").text.startswith(f"count {last}\n")
    assert store.version() == last + 1
    assert store.verify()[3] == []
    return last


def test_a_full_disk_leaves_what_was_there(tmp_path):
    """A limit on the size of files stands for the full disk; SQLite calls that an I/O error."""
    store = EmbeddedStore(tmp_path)
    put(store, [Document(id="a", text="kept")])
    store.close()
    script = """
import resource, signal, sys
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import StoreError
from wellhead.records import Document
from wellhead.testing.contracts import put
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = EmbeddedStore(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    put(store, [Document(id=f"b{n}", text="\\n".join(f"line {n} {m}" for m in range(200))) for n in range(50)])
except StoreError as error:
    print(type(error).__name__, bool(error.fix), store.get("", "a").text, store.get("", "b0"))
"""
    ran = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() in (["StoreError", "True", "kept", "None"], ["StorageFull", "True", "kept", "None"])
    store = EmbeddedStore(tmp_path)
    assert (list(store.states("")), store.verify()[3]) == (["a"], [])
    put(store, [Document(id="b", text="and it can be written again")])
    assert store.get("", "b") is not None
    store.close()
