"""Forks processes that write and are killed: what costs time, the imports, is done once.

Run as a program. Each line of stdin is an order (JSON), each line of stdout what became of it:
    folder, ledger   where to write, and where to count what was embedded
    do               "write": the steps of `history` from `first` on, as many as `steps`; "open" the index; "repair" it
    point, nth       kill at this failpoint, when it is reached the n-th time; or
    delay_s          kill so long after the index was opened
    settled          wait for the segments after each step
    compact          compact after these steps
    -> acknowledged (how many steps were), killed
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faults.history import ROWS, Ledger, open_history, settle, take
from wellhead import Index
from wellhead.backends.stores.embedded import failpoint, keeper


class Nursery:
    """The program, as its user sees it."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program

    def run(self, **order: object) -> tuple[int, bool]:
        """How many of the steps were acknowledged, and whether the process was killed before its end."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(order, default=str) + "\n")
        self._program.stdin.flush()
        told = json.loads(self._program.stdout.readline())
        return told["acknowledged"], told["killed"]


@contextmanager
def nursery() -> Iterator[Nursery]:
    """The program, running."""
    command = [sys.executable, "-m", "faults.nursery"]
    places = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as program:
        try:
            yield Nursery(program)
        finally:
            assert program.stdin is not None
            program.stdin.close()


def work(order: dict[str, Any], told: int) -> None:
    """What a child does, until it is killed."""
    failpoint.hook = killing_at(order.get("point"), order.get("nth", 1))
    folder, ledger = Path(order["folder"]), Path(order["ledger"])
    if order["do"] == "repair":
        Index.repair_at(folder, embedder=Ledger(ledger), languages=["en"])
        return
    with open_history(folder, ledger) as index:
        os.write(told, b"o")
        for step in range(order.get("first", 0), order.get("first", 0) + order.get("steps", 0)):
            take(index, step)
            os.write(told, b"s")
            if order.get("settled"):
                settle(index)
            if step in order.get("compact", ()):
                index.compact()


def killing_at(point: str | None, nth: int) -> Callable[[str], None]:
    """A hook that ends the process when a failpoint is reached the n-th time."""
    left = nth

    def hook(name: str) -> None:
        nonlocal left
        left -= name == point
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def child(order: dict[str, Any], told: int) -> None:
    """Never returns."""
    code = 1
    try:
        work(order, told)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def raised(order: dict[str, Any]) -> dict[str, object]:
    """Raise a child and see it end."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        child(order, writing)
    os.close(writing)
    if "delay_s" in order:
        select.select([reading], [], [])
        time.sleep(order["delay_s"])
        os.kill(process, signal.SIGKILL)
    with os.fdopen(reading, "rb") as said:
        acknowledged = said.read().count(b"s")
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"a child ended with {code}")
    return {"acknowledged": acknowledged, "killed": code != 0}


def warm() -> None:
    """Import what is imported late, so that no child has to."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder, open_history(Path(folder) / "kb", Path(folder) / "ledger") as index:
        for step in range(3):
            take(index, step)
        index.search("something")


if __name__ == "__main__":
    keeper.FLUSH_ROWS = ROWS
    warm()
    for line in sys.stdin:
        print(json.dumps(raised(json.loads(line))), flush=True)
