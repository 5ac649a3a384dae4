"""A disk that fails: it is told, nothing is half there, readers go on, and when there is space again all goes on."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.sample import Answers, answers, build, document, open_sample, settle, small_segments
from wellhead import Document, Index
from wellhead.backends.stores.embedded import failpoint, segment
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import StorageFull, StoreError
from wellhead.testing.contracts import refusal

pytestmark = pytest.mark.faults


def many(edition: int = 0) -> list[Document]:
    """More than fits into a few hundred kilobytes."""
    filler = " ".join(f"word{n}" for n in range(400))
    return [
        Document(id=f"many/{n}", text=f"{edition} {n} {filler}", metadata={"tenant": "acme", "n": -1})
        for n in range(60)
    ]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of eight megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if (
        os.name != "posix"
        or shutil.which("mount") is None
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("needs the right to mount a small disk (tmpfs)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, leave: int = 0) -> Path:
    """Take all space but so many bytes, in a file that can be deleted."""
    free = shutil.disk_usage(folder).free
    path = folder / "filler"
    path.write_bytes(b"\1" * max(0, free - leave))
    return path


class Watched:
    """An index that is written to in vain: what it answered before it still answers, in this handle and in others."""

    def __init__(self, index: Index, folder: Path) -> None:
        self._index = index
        self._folder = folder
        self._before: Answers = answers(index)

    def check(self) -> None:
        assert answers(self._index) == self._before
        with open_sample(self._folder, read_only=True) as another:
            assert answers(another) == self._before
        assert self._index.verify().ok


# --- a disk that is full -------------------------------------------------------------------------------------------


def test_a_write_on_a_full_disk(small_disk: Path) -> None:
    build(small_disk / "kb")
    with open_sample(small_disk / "kb") as index:
        watched = Watched(index, small_disk / "kb")
        filler = fill(small_disk, leave=200_000)
        for _ in range(2):
            error = refusal(StorageFull, lambda: index.add(many()))
            assert "free some space" in error.fix
            watched.check()
        filler.unlink()
        assert index.add(many()).added == 60
        hits = index.scoped(tenant="acme").search("word7", filters={"n": -1}, k=100, cut="off")
        assert len({hit.passage.document_id for hit in hits}) == 60
        assert index.verify().ok


def test_a_delete_on_a_full_disk(small_disk: Path) -> None:
    build(small_disk / "kb")
    with open_sample(small_disk / "kb") as index:
        watched = Watched(index, small_disk / "kb")
        filler = fill(small_disk)
        handle = index.scoped(tenant="acme")
        refusal(StorageFull, lambda: handle.remove([one.id for one in handle.documents()]))
        watched.check()
        filler.unlink()
        assert handle.remove([one.id for one in handle.documents()]) > 20
        assert (index.verify().ok, list(handle.documents())) == (True, [])


def test_segments_on_a_full_disk(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is derived waits until there is space; nothing else does."""
    build(small_disk / "kb")
    with open_sample(small_disk / "kb") as index:
        index.add(many())
        watched = Watched(index, small_disk / "kb")
        files = set((small_disk / "kb").rglob("*"))
        filler = fill(small_disk, leave=40_000)
        with small_segments(10), caplog.at_level(logging.WARNING, logger="wellhead"):
            refusal(StorageFull, lambda: settle(index))
            assert "could not be kept in shape" in caplog.text
            assert set((small_disk / "kb").rglob("*")) == files
            watched.check()
            filler.unlink()
            settle(index)
        watched.check()
        assert set((small_disk / "kb").rglob("*")) != files


def test_compacting_on_a_full_disk(small_disk: Path) -> None:
    build(small_disk / "kb")
    with open_sample(small_disk / "kb") as index:
        index.add(many())
        index.scoped(tenant="acme").remove([f"many/{n}" for n in range(30)])
        watched = Watched(index, small_disk / "kb")
        filler = fill(small_disk, leave=100_000)
        refusal(StorageFull, index.compact)
        watched.check()
        filler.unlink()
        index.compact()
        watched.check()


def test_migrating_on_a_full_disk(small_disk: Path) -> None:
    folder = small_disk / "kb"
    shutil.copytree(Path(__file__).parents[1] / "fixtures" / "format-1", folder)
    filler = fill(small_disk, leave=40_000)
    refusal(StorageFull, lambda: EmbeddedStore(folder))
    filler.unlink()
    store = EmbeddedStore(folder)
    assert (len(store.view("acme")), store.verify()[3]) == (5, [])
    store.close()


def test_a_new_index_on_a_full_disk(small_disk: Path) -> None:
    filler = fill(small_disk)
    with pytest.raises(StoreError) as raised:
        EmbeddedStore(small_disk / "kb")
    assert raised.value.fix
    filler.unlink()
    assert [path.name for path in small_disk.rglob("*.sqlite*")] == []
    EmbeddedStore(small_disk / "kb").close()


def test_a_file_that_may_not_grow_further(tmp_path: Path) -> None:
    """SQLite's own limit stands for the full disk where none can be mounted."""
    build(tmp_path)
    with open_sample(tmp_path) as index:
        watched = Watched(index, tmp_path)
        limit(index, 10)
        refusal(StorageFull, lambda: index.add(many()))
        watched.check()
        limit(index, 10_000)
        assert index.add(many()).added == 60
        assert index.verify().ok


def limit(index: Index, pages: int) -> None:
    """Let the file grow by so many pages at most."""
    with index._house.store._database.write() as connection:  # type: ignore[attr-defined]
        (now,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {now + pages}")


# --- a system call that fails --------------------------------------------------------------------------------------


class Failing:
    """Counts what is done to the file of a segment, and lets it fail from one step on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = 0
        self.at: int | None = None
        self.code = errno.ENOSPC
        monkeypatch.setattr(segment.Path, "mkdir", self._watching(Path.mkdir))
        monkeypatch.setattr(segment.Path, "open", self._opening(Path.open))
        monkeypatch.setattr(segment.os, "fsync", self._watching(os.fsync))

    def step(self) -> None:
        self.done += 1
        if self.at is not None and self.done >= self.at:
            raise OSError(self.code, os.strerror(self.code))

    def _watching(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            self.step()
            return call(*arguments, **named)

        return watched

    def _opening(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def opened(path: Path, mode: str = "r") -> Any:
            if "x" not in mode:
                return call(path, mode)
            self.step()
            return _Watched(call(path, mode), self.step)

        return opened


class _Watched:
    """A file that is written to."""

    def __init__(self, file: Any, step: Callable[[], None]) -> None:
        self._file = file
        self._step = step
        self.fileno = file.fileno

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        self._step()
        self._file.write(data)

    def flush(self) -> None:
        self._step()
        self._file.flush()


@pytest.mark.parametrize(
    ("code", "kind"), [(errno.ENOSPC, StorageFull), (errno.EDQUOT, StorageFull), (errno.EIO, StoreError)]
)
def test_every_step_of_writing_a_segment_may_fail(
    code: int, kind: type[StoreError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_sample(tmp_path) as index:
        index.add(document(n) for n in range(12))
        watched = Watched(index, tmp_path)
        failing = Failing(monkeypatch)
        failing.code = code
        with small_segments(10):
            for at in range(1, 200):
                failing.done, failing.at = 0, at
                try:
                    settle(index)
                    break
                except StoreError as error:
                    assert type(error) is kind  # noqa: PT017
                assert list(tmp_path.glob("segments/*")) == []
                if at % 10 == 1:
                    watched.check()
            assert 50 < at < 199
            assert len(list(tmp_path.glob("segments/*"))) == 1
        watched.check()


def test_a_merge_that_fails_leaves_the_segments_that_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_segments(10), open_sample(tmp_path) as index:
        index.add(document(n) for n in range(12))
        settle(index)
        before = set(tmp_path.glob("segments/*"))
        failing = Failing(monkeypatch)
        failing.at = 40
        index.add([document(0, edition=1), document(3, edition=1), document(6, edition=1)])
        watched = Watched(index, tmp_path)
        refusal(StorageFull, lambda: settle(index))
        assert set(tmp_path.glob("segments/*")) == before
        failing.at = None
        settle(index)
        assert not before & set(tmp_path.glob("segments/*"))
        watched.check()


@pytest.mark.parametrize("place", ["segment.written", "swap.middle"])
def test_a_keeper_that_fails_in_another_way_is_told_and_keeps_nobody_waiting(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hook(name: str) -> None:
        if name == place:
            raise MemoryError

    with small_segments(10), open_sample(tmp_path) as index:
        monkeypatch.setattr(failpoint, "hook", hook)
        index.add(document(n) for n in range(12))
        watched = Watched(index, tmp_path)
        assert isinstance(outcome(lambda: settle(index)), (StoreError, MemoryError))
        watched.check()
        monkeypatch.setattr(failpoint, "hook", None)
        assert outcome(lambda: settle(index)) is None
        assert len(list(tmp_path.glob("segments/*"))) == 1
        watched.check()


def outcome(call: Callable[[], object]) -> BaseException | None:
    """What a call raises; it fails when that takes too long."""
    raised: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
            raised.append(None)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout=20)
    assert raised, "it waits for ever"
    return raised[0]


# --- a limit on the size of files: neither SQLite nor the system calls that a full disk ----------------------------

LIMITED = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from faults.sample import answers, build, document, open_sample, settle, small_segments
from wellhead import Document
from wellhead.errors import StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = Path(sys.argv[1])
build(folder)

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

def refused(call):
    try:
        call()
    except StoreError as error:
        print(type(error).__name__, bool(error.fix), answers(index) == before, end=" ")
        with open_sample(folder, read_only=True) as another:
            print(answers(another) == before)

with open_sample(folder) as index:
    before = answers(index)
    more = [Document(id=f"d{n}", text=f"{n} " + "filler " * 2000, metadata={"tenant": "acme"}) for n in range(60)]
    limit(100_000)
    refused(lambda: index.add(more))
    limit(resource.RLIM_INFINITY)
    print(index.add(more).added)
    before = answers(index)
    with small_segments(10):
        limit(2_000)
        refused(lambda: settle(index))
        limit(resource.RLIM_INFINITY)
        settle(index)
    print(answers(index) == before, index.verify().ok)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs limits of processes")
def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path), str(Path(__file__).parents[1])]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    refused = "StoreError True True True"
    assert ran.stdout.splitlines() == [refused, "60", refused, "True True"]
