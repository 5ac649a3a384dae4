"""How far an ingest is: shown on stderr, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from wellhead.doors.cli.output import is_terminal, one_line, visible

if TYPE_CHECKING:
    import rich.progress

__all__ = ["Progress", "progress"]

LABEL = 40  # characters of the id that is being worked on

Progress: TypeAlias = Callable[[int, int, str], None]


@contextmanager
def progress() -> Iterator[Progress | None]:
    """A callback `(done, total, id)` that draws a bar with rate and remaining time; None away from a terminal."""
    if not is_terminal(sys.stderr):
        yield None
        return
    from rich import progress as columns
    from rich.console import Console

    bar = columns.Progress(
        columns.BarColumn(bar_width=24),
        columns.MofNCompleteColumn(),
        columns.TextColumn("{task.fields[rate]:>9}", markup=False),
        columns.TextColumn("ETA"),
        columns.TimeRemainingColumn(compact=True),
        columns.TextColumn("{task.description}", markup=False),
        console=Console(file=sys.stderr),
        transient=True,
    )
    with bar:
        yield _Meter(bar, bar.add_task("", total=None, rate=""))


class _Meter:
    """Moves the bar; a count that falls back begins a new round."""

    def __init__(self, bar: rich.progress.Progress, task: rich.progress.TaskID) -> None:
        self._bar = bar
        self._task = task
        self._done = 0
        self._began = time.monotonic()

    def __call__(self, done: int, total: int, current: str) -> None:
        if done < self._done:
            self._began = time.monotonic()
            self._bar.reset(self._task, total=total)
        self._done = done
        rate = done / max(time.monotonic() - self._began, 1e-3)
        label = visible(one_line(current))[-LABEL:]
        self._bar.update(self._task, completed=done, total=total, description=label, rate=f"{rate:.0f}/s")
