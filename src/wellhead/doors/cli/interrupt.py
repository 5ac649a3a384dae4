"""Ctrl-C and SIGTERM: remembered, raised as `KeyboardInterrupt`, and told in one sentence.

The signal is remembered because an interrupt that strikes inside a C extension or an import can come out as
another exception; whatever comes out after it, the run was interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

__all__ = ["MESSAGE", "end_at_once", "exit_code", "goodbye", "happened", "install"]

MESSAGE = "interrupted: everything up to the last finished batch is kept; run the same command again to resume"
_received: list[int] = []


def install() -> None:
    """Handle SIGINT and SIGTERM, unless the parent asked to ignore them (`nohup`, a background job)."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _on_signal)


def end_at_once() -> None:
    """From now on end at the first signal, for a command that only reads and has nothing to finish."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda received, _frame: os._exit(128 + received))


def happened(error: BaseException) -> bool:
    """Whether `error` comes from an interrupt."""
    return bool(_received) or isinstance(error, KeyboardInterrupt)


def exit_code() -> int:
    """128 + the signal's number: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + (_received[0] if _received else signal.SIGINT)


def goodbye() -> None:
    """Say what is kept, on stderr."""
    print(f"\n{MESSAGE}" if sys.stderr and sys.stderr.isatty() else MESSAGE, file=sys.stderr, flush=True)  # noqa: T201


def _on_signal(number: int, _frame: FrameType | None) -> None:
    if _received:
        # The second one, while the first still unwinds. The store survives a kill at any point, so stop now.
        os.write(2, f"{MESSAGE}\n".encode())
        os._exit(exit_code())
    _received.append(number)
    raise KeyboardInterrupt
