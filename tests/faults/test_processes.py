"""Many processes and one index: nobody is locked out, nobody sees half a write, nobody is left waiting for the dead."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from faults.history import found_there
from faults.sample import answers, build, open_sample
from wellhead import Document, Index
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import StoreError, WellheadError, WriterBusy
from wellhead.testing.contracts import put, refusal
from wellhead.testing.fakes import HashEmbedder

pytestmark = pytest.mark.faults
HERE = Path(__file__).parents[1]
SECONDS = 20

# Each batch is one transaction, and all its documents carry one number: a mixture shows.
WRITER = """
import sys, time
from wellhead import Document, Index
from wellhead.backends.stores.embedded import keeper
from wellhead.testing.fakes import HashEmbedder
folder, name, until = sys.argv[1], sys.argv[2], float(sys.argv[3])
keeper.FLUSH_ROWS = 40
text = "# One\\n\\nshared generation {0}.\\n\\n# Two\\n\\nshared, and more of {0}.\\n"
number = 0
with Index.open(folder, embedder=HashEmbedder(), languages=["en"]) as index:
    while time.time() < until or number == 0:
        number += 1
        index.add(
            Document(id=f"{name}/{n}", text=text.format(number), media_type="text/markdown",
                     metadata={"writer": name, "number": number})
            for n in range(8)
        )
        if number % 5 == 0:
            index.remove([f"{name}/extra{number - 5}"])
            index.add([Document(id=f"{name}/extra{number}", text="something else")])
    index._house.store.settle()
print(number)
"""
READER = """
import json, sys, time
from wellhead import Index
from wellhead.testing.fakes import HashEmbedder
folder, read_only, until = sys.argv[1], sys.argv[2] == "read-only", float(sys.argv[3])
asked, seen, mixed = 0, {"one": 0, "two": 0}, []
with Index.open(folder, embedder=HashEmbedder(), languages=["en"], read_only=read_only) as index:
    while time.time() < until or asked == 0:
        for writer, last in seen.items():
            options = {"filters": {"writer": writer}, "k": 100, "cut": "off"}
            hits = index.search("shared", mode=("hybrid", "lexical", "dense")[asked % 3], **options)
            numbers = {hit.metadata["number"] for hit in hits}
            # Equal texts are one hit: two texts, each in eight documents.
            whole = len(hits) in (0, 2) and all(len(hit.also_in) == 7 for hit in hits) and len(numbers) <= 1
            told = all(hit.text and str(hit.metadata["number"]) in hit.text for hit in hits)
            if not whole or not told or max(numbers, default=0) < last:
                mixed.append([writer, last, sorted(numbers), len(hits), [len(hit.also_in) for hit in hits]])
            seen[writer] = max(numbers, default=last)
            asked += 1
print(json.dumps({"asked": asked, "seen": seen, "mixed": mixed[:3]}))
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """A process that ends by itself."""
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def end(process: subprocess.Popen[str]) -> None:
    """End it, and all that it has forked."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def ended(process: subprocess.Popen[str], timeout_s: float) -> str:
    """What it said; fails with what it complained of."""
    try:
        said, complaint = process.communicate(timeout=timeout_s)
    finally:
        end(process)
    assert process.returncode == 0, complaint
    assert complaint == ""
    return said


def test_two_writers_and_eight_readers_never_stand_in_one_anothers_way(tmp_path: Path) -> None:
    """ogx-ai/ogx#5344: with two workers "database is locked" reached the caller at once."""
    Index.open(tmp_path, embedder=HashEmbedder(), languages=["en"]).close()
    until = time.time() + SECONDS
    with ExitStack() as running:
        writers = [running.enter_context(start(WRITER, tmp_path, name, until)) for name in ("one", "two")]
        readers = [running.enter_context(start(READER, tmp_path, ("read-only", "")[n % 2], until)) for n in range(8)]
        for process in (*writers, *readers):
            running.callback(end, process)
        compactor = running.enter_context(start(COMPACTOR, tmp_path, until))
        running.callback(end, compactor)
        written = [int(ended(process, 2 * SECONDS + 20)) for process in writers]
        compacted = ended(compactor, 2 * SECONDS)
        told = [json.loads(ended(process, 2 * SECONDS)) for process in readers]
    print(f"{written} batches, {[one['asked'] for one in told]} searches, compacted (done, busy): {compacted}")
    assert [one["mixed"] for one in told] == [[]] * 8
    assert min(written) > 5
    assert min(one["asked"] for one in told) > 5
    with Index.open(tmp_path, embedder=HashEmbedder(), languages=["en"], read_only=True) as index:
        assert index.verify().ok
        for name, last in zip(("one", "two"), written, strict=True):
            hits = index.search("shared", filters={"writer": name}, k=100, cut="off")
            assert {hit.metadata["number"] for hit in hits} == {last}


COMPACTOR = """
import sys, time
from wellhead import Index
from wellhead.errors import WriterBusy
from wellhead.testing.fakes import HashEmbedder
done, busy = 0, 0
with Index.open(sys.argv[1], embedder=HashEmbedder(), languages=["en"]) as index:
    while time.time() < float(sys.argv[2]):
        try:
            index.compact()
            done += 1
        except WriterBusy:
            busy += 1
        time.sleep(0.5)
print(done, busy)
"""
HOLDER = """
import sys, time
from wellhead.backends.stores.embedded.store import EmbeddedStore
store = EmbeddedStore(sys.argv[1])
with store._database.write() as connection:
    connection.execute("DELETE FROM settings")
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_writer_waits_for_the_living_and_not_for_the_dead(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path, timeout_s=0.3)
    store.set_settings({"kept": "yes"})
    with start(HOLDER, tmp_path) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            began = time.monotonic()
            error = refusal(WriterBusy, lambda: put(store, [Document(id="a", text="x")]))
            assert 0.25 < time.monotonic() - began < 5.0
            assert error.retryable
            assert (store.settings(), len(store.view(""))) == ({"kept": "yes"}, 0)
        finally:
            holder.kill()
    assert holder.returncode == -signal.SIGKILL
    began = time.monotonic()
    put(store, [Document(id="a", text="x")])
    assert time.monotonic() - began < 1.0
    assert (store.settings(), len(store.view("")), store.verify()[3]) == ({"kept": "yes"}, 1, [])
    store.close()


# --- where nothing may be written ----------------------------------------------------------------------------------

AS_ANOTHER_USER = """
import os, sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from faults.sample import answers, build, open_sample, document
from wellhead.errors import StoreError, WellheadError
# Once as the owner, for what is imported late: the other user may not be allowed to read the environment.
with tempfile.TemporaryDirectory() as another:
    build(Path(another))
    with open_sample(another) as index:
        answers(index), index.verify()
os.setgid(65534)
os.setuid(65534)
with open_sample(sys.argv[1]) as index:
    found = answers(index)
    print([name for name, answer in found.items() if isinstance(answer, WellheadError)], len(found), index.verify().ok)
    try:
        index.add([document(0, edition=3)])
    except StoreError as error:
        print(type(error).__name__, error.what)
"""


@pytest.mark.promise("B52")
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs the right to become another user")
def test_a_folder_that_may_not_be_written_answers_as_ever(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    build(folder)
    for parent in folder.parents:
        if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
            parent.chmod(0o755)
    before = sorted(path.name for path in folder.rglob("*"))
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    said = ended(start(AS_ANOTHER_USER, folder, HERE), 60).splitlines()
    assert said[0].startswith("[] ")
    assert said[0].endswith(" True")
    assert said[1] == "StoreError the index is open read-only"
    assert sorted(path.name for path in folder.rglob("*")) == before


@pytest.mark.promise("B52")
def test_a_read_only_image_answers_as_ever(tmp_path: Path) -> None:
    folder, image = tmp_path / "kb", tmp_path / "image"
    build(folder)
    with open_sample(folder) as index:
        expected = answers(index)
    image.mkdir()
    bind = ["mount", "--bind", str(folder), str(image)]
    if os.name != "posix" or os.geteuid() != 0 or subprocess.run(bind, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a folder read-only")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(image)], check=True)
        with open_sample(image) as index:
            assert answers(index) == expected
            assert index.verify().ok
            assert "read-only" in refusal(StoreError, lambda: index.compact()).what
        with pytest.raises(OSError, match="Read-only"):
            (image / "file").touch()
    finally:
        subprocess.run(["umount", str(image)], check=True)


def test_an_image_with_a_damaged_segment_answers_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path)
    with open_sample(tmp_path) as index:
        expected = answers(index)
    shutil.rmtree(tmp_path / "segments")
    monkeypatch.setattr("wellhead.backends.stores.embedded.place.os.access", lambda path, mode: False)
    with open_sample(tmp_path) as index:
        assert answers(index) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["wellhead.sqlite"]


# --- handles in other processes ------------------------------------------------------------------------------------

FORKING = """
import os, sys, threading, time, traceback
from wellhead import Document, Index
from wellhead.backends.stores.embedded import keeper
from wellhead.testing.fakes import HashEmbedder
keeper.FLUSH_ROWS = 8

def add(index, name, word):
    index.add(Document(id=f"{name}/{n}", text=f"shared {word}, and {name} {n}") for n in range(6))

def raised(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

def look():
    assert index.search("shared", mode="lexical", cut="off")

def work():
    assert len(list(index.documents())) == 6 * (2 * turn + 1)
    word = "qua" + "bdfgklmnprstvzx"[turn] + "ino"
    add(index, f"child{turn}", word)
    assert len(index.search(word, mode="lexical", cut="off")) == 6
    index._house.store.settle()
    index.close()

index = Index.open(sys.argv[1], embedder=HashEmbedder(), languages=["en"])
codes, done = [], threading.Event()
def verify():
    while not done.is_set():
        assert index.verify().ok
verifying = threading.Thread(target=verify)
verifying.start()
for turn in range(15):
    add(index, f"parent{turn}", "dublo")  # leaves the keeper at work
    for pause in range(4):
        raised(look)
        time.sleep(0.001 * pause)
    raised(work)
done.set()
verifying.join()
index._house.store.settle()
print(codes == [0] * 75, index.verify().ok, len(list(index.documents())), len(index.search("shared", k=100)))
index.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_parent_and_child_go_on_after_a_fork_while_the_keeper_and_a_verification_work(tmp_path: Path) -> None:
    assert ended(start(FORKING, tmp_path), 60) == "True True 180 100\n"


# argv: ":memory:" or a folder. Forks while threads search and write; each child must be able to search.
SEARCHING = """
import os, sys, threading, time
from wellhead import Document, Index
from wellhead.testing.fakes import HashEmbedder
index = Index.open(sys.argv[1], embedder=HashEmbedder(), languages=["en"])
index.add([Document(id=f"d{n}", text=f"fork doc {n}") for n in range(200)])
index.search("fork doc")  # imports what it needs: a fork during an import is the interpreter's own trap
done = threading.Event()
def search():
    while not done.is_set():
        index.search("fork doc")
def write():
    turn = 0
    while not done.is_set():
        turn += 1
        index.add([Document(id=f"w{turn % 20}-{n}", text=f"write {turn} {n}") for n in range(20)])
threads = [threading.Thread(target=work) for work in (search, search, write)]
for thread in threads:
    thread.start()
codes = []
for turn in range(10):
    time.sleep(0.05)
    child = os.fork()
    if child == 0:
        import faulthandler
        faulthandler.dump_traceback_later(10, exit=True)
        os._exit(0 if index.search("fork doc") else 1)
    codes.append(os.waitpid(child, 0)[1])
done.set()
for thread in threads:
    thread.join()
print(codes == [0] * 10)
index.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("place", ["memory", "folder"])
def test_a_child_searches_whatever_threads_did_when_it_was_forked(tmp_path: Path, place: str) -> None:
    assert ended(start(SEARCHING, Path(":memory:") if place == "memory" else tmp_path / "kb"), 60) == "True\n"


def test_a_handle_cannot_be_pickled_and_says_what_to_do(tmp_path: Path) -> None:
    with Index.open(tmp_path, embedder=HashEmbedder()) as index:
        for handle in (index, index.scoped(tenant="a"), index._house.store):
            with pytest.raises(TypeError, match="open the index again"):
                pickle.dumps(handle)


def test_a_spawned_process_opens_the_index_again(tmp_path: Path) -> None:
    with Index.open(tmp_path, embedder=HashEmbedder(), languages=["en"]) as index:
        index.add([Document(id="a", text="a lonely word")])
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            assert pool.submit(found_there, tmp_path, "lonely").result(timeout=60) == ["a"]
            with pytest.raises(TypeError, match="open the index again"):
                pool.submit(index.search, "lonely").result(timeout=60)


def test_an_error_keeps_its_parts_on_the_way_out_of_a_process(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        failed: Callable[[], object] = lambda: pool.submit(found_there, tmp_path / "none", "x").result(timeout=60)  # noqa: E731
        error = refusal(WellheadError, failed)
    assert str(tmp_path / "none") in error.where
