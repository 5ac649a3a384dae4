"""An attribute that is made once, without a lock that a fork could leave taken."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from wellhead.lazy import lazy


class Slow:
    def __init__(self, wait: threading.Event | None = None) -> None:
        self.made = 0
        self.begun = threading.Event()
        self._wait = wait

    @lazy
    def value(self) -> object:
        """What is made."""
        self.made += 1
        self.begun.set()
        if self._wait is not None:
            self._wait.wait(10)
        return object()


def test_it_is_made_once_and_kept() -> None:
    one, other = Slow(), Slow()
    assert one.value is one.value
    assert one.value is not other.value
    assert (one.made, other.made) == (1, 1)


def test_the_class_shows_its_description() -> None:
    described: Any = Slow.value
    assert described.__doc__ == "What is made."


def test_one_that_takes_long_holds_up_no_other() -> None:
    release = threading.Event()
    slow = Slow(release)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert slow.begun.wait(10)
    assert Slow().value is not None
    release.set()
    thread.join()


def test_two_threads_get_the_same() -> None:
    release = threading.Event()
    slow = Slow(release)
    seen: list[object] = []
    threads = [threading.Thread(target=lambda: seen.append(slow.value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert slow.begun.wait(10)
    release.set()
    for thread in threads:
        thread.join()
    assert seen == [slow.value] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_it_is_made_holds_up_nobody_in_the_child() -> None:
    release = threading.Event()
    slow = Slow(release)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert slow.begun.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(0 if Slow().value is not None else 1)
    release.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
