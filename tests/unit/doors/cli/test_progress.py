from __future__ import annotations

import types
from typing import Any

import pytest

from wellhead.doors.cli import progress as module


class Stream:
    encoding = "utf-8"

    def __init__(self, terminal: bool) -> None:
        self.text = ""
        self._terminal = terminal

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture
def stderr(request: Any, monkeypatch: pytest.MonkeyPatch) -> Stream:
    stream = Stream(request.param)
    monkeypatch.setattr(module, "sys", types.SimpleNamespace(stderr=stream))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return stream


@pytest.mark.parametrize("stderr", [False], indirect=True)
def test_away_from_a_terminal_there_is_no_progress(stderr: Stream) -> None:
    with module.progress() as show:
        assert show is None
    assert stderr.text == ""


@pytest.mark.parametrize("stderr", [True], indirect=True)
def test_a_terminal_sees_counts_rate_eta_and_the_id_made_harmless(stderr: Stream) -> None:
    with module.progress() as show:
        assert show is not None
        for done in range(1, 51):
            show(done, 400, "guides/[red]\x1b]0;title\x07\nkeys.md")
        show._bar.refresh()  # type: ignore[attr-defined]
    assert "50/400" in stderr.text
    assert "/s" in stderr.text
    assert "ETA" in stderr.text
    assert "[red]\\x1b]0;title\\x07 keys.md" in stderr.text
    assert "\x07" not in stderr.text


@pytest.mark.parametrize("stderr", [True], indirect=True)
def test_a_count_that_falls_back_starts_its_rate_again(stderr: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = types.SimpleNamespace(now=0.0)
    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: clock.now))
    with module.progress() as show:
        assert show is not None
        for clock.now, done, name in ((40.0, 40, "bm25"), (40.0, 1, "dense"), (41.0, 30, "dense")):
            show(done, 40, name)
        show._bar.refresh()  # type: ignore[attr-defined]
    assert " 30/s" in stderr.text
