"""The script itself, in a process of its own: how light it starts, and signals during imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wellhead.doors.cli.interrupt import MESSAGE

MAIN = "from wellhead.doors.cli.main import main; main()"


def python(code: str, *args: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,  # type: ignore[call-overload]
    )


def test_help_loads_nothing_heavy() -> None:
    code = "import atexit, sys; atexit.register(lambda: print('LOADED', *sys.modules)); " + MAIN
    ended = python(code, "search", "--help")
    assert "Usage: " in ended.stdout
    loaded = set(ended.stdout.partition("LOADED")[2].split())
    assert "click" in loaded
    assert not loaded & {"numpy", "rich", "msgspec", "wellhead.records", "wellhead.index", "sqlite3", "asyncio"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("module", ["click", "wellhead.doors.cli.group", "wellhead.doors.cli.inspect"])
def test_a_signal_during_the_imports_says_what_is_kept(number: int, code: int, module: str) -> None:
    strike = f"""
import os, sys
class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Strike())
"""
    ended = python(strike + MAIN, "--help")
    assert ended.returncode == code
    assert ended.stderr == MESSAGE + "\n"


def test_a_signal_that_the_parent_ignores_stays_ignored() -> None:
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from wellhead.doors.cli import interrupt; "
    ended = python(code + "interrupt.install(); import os; os.kill(os.getpid(), signal.SIGINT); print('alive')")
    assert ended.stdout == "alive\n"


def test_a_second_signal_ends_at_once() -> None:
    code = """
import os, signal, sys
from wellhead.doors.cli import interrupt
interrupt.install()
try:
    os.kill(os.getpid(), signal.SIGINT)
finally:
    os.kill(os.getpid(), signal.SIGINT)
    print("never")
"""
    ended = python(code)
    assert ended.returncode == 130
    assert "never" not in ended.stdout
    assert MESSAGE in ended.stderr


def test_an_ascii_terminal_does_not_end_the_program(tmp_path: Path) -> None:
    ended = python(
        MAIN, "show", "naïve", "--index", "größe", cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert ended.returncode == 2
    assert "gr\\xf6\\xdfe" in ended.stderr


def test_an_argument_of_foreign_bytes_is_told_not_crashed_on(tmp_path: Path) -> None:
    ended = python(MAIN, "index", os.fsdecode(b"caf\xe9"), cwd=tmp_path)
    assert ended.returncode == 2
    assert "not valid UTF-8" in ended.stderr


def test_closed_streams_are_survived(tmp_path: Path) -> None:
    line = f'{sys.executable} -c "{MAIN}" stats --index nowhere >&- 2>&-'
    assert subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, timeout=60, check=False).returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is needed")
@pytest.mark.parametrize("args", ["eval {tiny}", "eval {tiny} --json", "stats --index nowhere --json"])
def test_a_disk_that_is_full_is_told_in_one_line_and_is_no_internal_error(tmp_path: Path, args: str) -> None:
    tiny = tmp_path / "tiny"
    tiny.mkdir()
    (tiny / "corpus.jsonl").write_text('{"_id": "d1", "text": "rotate the key"}\n', encoding="utf-8")
    (tiny / "queries.jsonl").write_text('{"_id": "q1", "text": "key"}\n', encoding="utf-8")
    (tiny / "qrels.tsv").write_text("q1\td1\t1\n", encoding="utf-8")
    line = f'{sys.executable} -c "{MAIN}" {args.format(tiny=tiny)} > /dev/full'
    ended = subprocess.run(
        ["/bin/sh", "-c", line], cwd=tmp_path, timeout=60, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 4
    assert ended.stderr.splitlines()[-1] == "error: cannot write to stdout: No space left on device"
    assert "internal error" not in ended.stderr
    assert "Traceback" not in ended.stderr
