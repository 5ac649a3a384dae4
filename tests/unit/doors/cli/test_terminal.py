"""What only a terminal sees, and what only a pipe sees, through a real pseudo-terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from wellhead.doors.cli.interrupt import MESSAGE

COMMAND = (sys.executable, "-m", "wellhead.doors.cli.main")
HOSTILE = "The payload \x1b[2J\x1b]0;owned\x07 clears the screen \u202e and turns it.\n" + "A further line.\n\n" * 20


def start(cwd: Path, *args: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *args],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options),
    )


def on_terminal(cwd: Path, *args: str, **environment: str) -> tuple[int, str]:
    """Run with stdout and stderr on a terminal; the code, and what the terminal got."""
    ours, theirs = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    env = {**plain, "TERM": "xterm", "COLUMNS": "80", **environment}
    process = start(cwd, *args, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    got = b""
    while chunk := _read(ours):
        got += chunk
    os.close(ours)
    return process.wait(timeout=60), got.decode("utf-8").replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux reports the other end's closing so
        return b""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "hostile.txt").write_text(HOSTILE, encoding="utf-8")
    for number in range(30):
        text = f"Payload number {number} has its own words, and clears nothing.\n"
        (tmp_path / "docs" / f"page{number}.txt").write_text(text, encoding="utf-8")
    ended = subprocess.run([*COMMAND, "index", "docs"], cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert b"\x1b" not in ended.stdout + ended.stderr
    return tmp_path


def test_a_terminal_gets_colour_short_texts_and_no_escape_of_a_document(folder: Path) -> None:
    code, got = on_terminal(folder, "search", "payload clears the screen", "--cut", "off", "-k", "3")
    assert code == 0
    assert "\\x1b[2J\\x1b]0;owned\\x07" in got
    assert "\\u202e" in got
    ours = re.sub(r"\x1b\[[0-9;]*m", "", got)
    assert ours != got, "a terminal should see colour"
    assert not set(ours) & set("\x1b\x07\u202e")
    assert re.search(r"… wellhead show [0-9a-f]{12} --index kb", ours)


def test_no_colour_on_request(folder: Path) -> None:
    _code, got = on_terminal(folder, "search", "payload clears the screen", "--cut", "off", NO_COLOR="1")
    assert "\x1b" not in got


def test_a_pipe_gets_the_text_untouched_and_whole(folder: Path) -> None:
    out, _err = start(folder, "search", "payload clears the screen", "--cut", "off", "-k", "1").communicate(timeout=60)
    assert "\x1b[2J\x1b]0;owned\x07" in out.decode()
    assert out.decode().count("A further line.") == 20


def test_progress_is_drawn_on_a_terminal_and_the_report_stays(folder: Path) -> None:
    code, got = on_terminal(folder, "index", "docs", "--into", "other")
    assert code == 0
    assert "31/31" in got
    assert "/s" in got
    assert "31 added" in got


def test_an_error_with_a_hostile_id_is_harmless_on_a_terminal(folder: Path) -> None:
    code, got = on_terminal(folder, "rm", "\x1b[2Jx")
    assert code == 2
    assert "\x1b[2J" not in got
    assert "x1b[2J" in got


def test_a_pipe_that_closes_early_ends_it_quietly(folder: Path) -> None:
    process = start(folder, "search", "payload clears", "--cut", "off", "-k", "30")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    assert process.wait(timeout=60) == 141
    assert said == b""
    process.stderr.close()


def test_an_interrupted_ingest_says_so_and_the_next_run_completes_it(tmp_path: Path) -> None:
    pages = 300
    (tmp_path / "docs").mkdir()
    for page in range(pages):
        words = "\n\n".join(f"Paragraph {part} of page {page} tells of item {page}-{part}. " * 6 for part in range(20))
        (tmp_path / "docs" / f"page{page}.txt").write_text(words, encoding="utf-8")
    process = start(tmp_path, "index", "docs")
    _wait_for_rows(tmp_path / "kb", process)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.decode().endswith(MESSAGE + "\n")
    assert b"Traceback" not in said
    assert out == b""

    code, again = _run(tmp_path, "index", "docs", "--json")
    assert code == 0
    report = json.loads(again)["reports"][0]
    assert report["read"] == pages
    assert 0 < report["unchanged"] < pages, "what was finished before the interrupt should be kept"
    assert len(_run(tmp_path, "ls")[1].splitlines()) == pages
    assert _run(tmp_path, "verify")[0] == 0


def _run(cwd: Path, *args: str) -> tuple[int, str]:
    process = start(cwd, *args)
    out, _said = process.communicate(timeout=300)
    return process.returncode, out.decode()


def _wait_for_rows(index: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the ingest has begun to write."""
    for _ in range(3000):
        size = sum(file.stat().st_size for file in index.glob("*")) if index.is_dir() else 0
        if size > 300_000:
            return
        assert process.poll() is None, "the ingest ended before it could be interrupted"
        time.sleep(0.01)
    pytest.fail("the ingest never began to write")
