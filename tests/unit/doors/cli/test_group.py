from __future__ import annotations

import json
from typing import Any

import pytest

from wellhead import errors
from wellhead.doors.cli import interrupt


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.UsageError, 2),
        (errors.ScopeError, 2),
        (errors.DocumentError, 8),
        (errors.ConfigError, 5),
        (errors.MissingExtra, 5),
        (errors.StaleIndex, 6),
        (errors.BackendError, 4),
        (errors.RateLimited, 4),
        (errors.CorruptStore, 4),
        (errors.WriterBusy, 4),
        (errors.GateFailed, 7),
    ],
)
def test_each_error_has_its_code_and_its_four_parts(
    run: Any, fake: Any, kind: type[errors.WellheadError], code: int
) -> None:
    fake.fails = kind("it broke", where="here", why="so", fix="do this")
    ended = run("stats")
    assert ended.exit_code == code
    assert ended.stdout == ""
    assert ended.stderr == "error: it broke\n  where: here\n  why: so\n  mend: do this\n"


def test_an_internal_error_is_one_line_without_a_traceback(run: Any, fake: Any) -> None:
    fake.fails = KeyError("a\nb")
    ended = run("stats")
    assert ended.exit_code == 1
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith("internal error: KeyError: ")
    assert "--debug" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("args", [("--debug", "stats"), ("stats", "--debug")])
def test_debug_shows_the_traceback_before_and_after_the_command(run: Any, fake: Any, args: tuple[str, ...]) -> None:
    fake.fails = KeyError("lost")
    ended = run(*args)
    assert ended.exit_code == 1
    assert "Traceback (most recent call last)" in ended.stderr


def test_the_environment_asks_for_the_traceback_too(run: Any, fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.fails = errors.StoreError("torn")
    monkeypatch.setenv("WELLHEAD_DEBUG", "0")
    assert "Traceback" not in run("stats").stderr
    monkeypatch.setenv("WELLHEAD_DEBUG", "1")
    assert "Traceback" in run("stats").stderr


def test_with_json_an_error_is_an_object_on_stdout_and_text_on_stderr(run: Any, fake: Any) -> None:
    fake.fails = errors.StaleIndex("stale", fix="wellhead index docs")
    ended = run("stats", "--json")
    told = json.loads(ended.stdout)
    assert (told["schema"], told["exit_code"], ended.exit_code) == (1, 6, 6)
    assert told["error"]["type"] == "StaleIndex"
    assert told["error"]["fix"] == "wellhead index docs"
    assert "stale" in ended.stderr


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("serach", "x"), "did you mean 'search'?"),
        (("search", "x", "--fliter", "a=b"), "'--filter'"),
        (("search", "x", "--mode", "lexcal"), "did you mean 'lexical'?"),
        (("search", "x", "--cut", "hits"), "did you mean 'hit'?"),
        (("index", "--excluded", "x", "."), "'--exclude'"),
    ],
)
def test_a_slip_of_the_fingers_gets_a_suggestion(run: Any, args: tuple[str, ...], hint: str) -> None:
    ended = run(*args)
    assert ended.exit_code == 2
    assert hint in ended.stderr


def test_clicks_own_errors_speak_like_ours(run: Any) -> None:
    ended = run("search")
    assert ended.exit_code == 2
    first, *parts = ended.stderr.splitlines()
    assert first == "error: Missing argument 'QUERY'"
    assert [part.split(":")[0] for part in parts] == ["  where", "  why", "  mend"]


@pytest.mark.parametrize(
    ("args", "mend"),
    [
        (("search", "--all-projects"), 'put -- before it: wellhead search -- "--all-projects"'),
        (("search", "--all of it"), "put -- before it: wellhead search -- '--all of it'"),
        (("show", "--page.md"), 'put -- before it: wellhead show -- "--page.md"'),
        (("search", "roll", "back"), "put the question in quotes: wellhead search 'roll ...'"),
        (("explain", "roll", "back", "ab12cd"), "put the question in quotes: wellhead explain 'roll ...' PASSAGE_ID"),
    ],
)
def test_what_the_shell_or_the_dash_took_apart_is_put_together(run: Any, args: tuple[str, ...], mend: str) -> None:
    ended = run(*args)
    assert ended.exit_code == 2
    assert ended.stderr.rstrip().endswith(mend)


def test_commands_without_arguments_get_no_advice_about_them(run: Any) -> None:
    for args in (("ls", "--fliter"), ("ls", "x"), ("show", "a", "b")):
        told = run(*args).stderr
        assert "-- before" not in told
        assert "quotes" not in told


def test_an_unbound_scope_is_mended_with_an_option(run: Any, fake: Any) -> None:
    fake.fails = errors.ScopeError("no scope", why="so", fix='bind one first: index.scoped(the tenant="...")')
    assert run("stats").stderr == "error: no scope\n  why: so\n  mend: add --scope the tenant=...\n"
    assert json.loads(run("stats", "--json").stdout)["error"]["fix"] == "add --scope the tenant=..."
    fake.fails = errors.ScopeError("another scope", fix="bind a fresh handle")
    assert "mend: bind a fresh handle\n" in run("stats").stderr


def test_help_as_a_word_is_help(run: Any) -> None:
    assert run("help").stdout == run("--help").stdout
    assert run("help", "search").stdout == run("search", "--help").stdout
    assert "did you mean 'search'?" in run("help", "serach").stderr


def test_without_a_command_the_help_is_shown(run: Any) -> None:
    ended = run()
    assert ended.exit_code == 0
    names = ["index", "search", "explain", "show", "ls", "rm", "stats", "verify", "eval"]
    listed = [line.split()[0] for line in ended.stdout.partition("Commands:")[2].splitlines() if line[:3].strip()]
    assert [name for name in listed if name in names] == names


def test_help_and_version_end_well(run: Any) -> None:
    assert run("--version").stdout.startswith("wellhead, version ")
    assert run("search", "-h").exit_code == 0


def test_an_interrupt_says_what_is_kept(run: Any, fake: Any) -> None:
    fake.fails = KeyboardInterrupt()
    ended = run("stats")
    assert ended.exit_code == 130
    assert ended.stderr == interrupt.MESSAGE + "\n"


def test_whatever_comes_out_after_a_signal_is_an_interrupt(
    run: Any, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An interrupt during an import can surface as the import's own error.
    monkeypatch.setattr(interrupt, "_received", [15])
    fake.fails = ImportError("half imported")
    ended = run("stats")
    assert ended.exit_code == 143
    assert interrupt.MESSAGE in ended.stderr


def test_a_reader_that_has_gone_ends_it_quietly(run: Any, fake: Any) -> None:
    fake.fails = BrokenPipeError(32, "Broken pipe")
    ended = run("stats")
    assert ended.exit_code == 141
    assert (ended.stdout, ended.stderr) == ("", "")


def test_an_argument_that_is_no_utf8_is_a_usage_error(run: Any, fake: Any) -> None:
    ended = run("search", "caf\udce9")
    assert ended.exit_code == 2
    assert "not valid UTF-8" in ended.stderr
    assert not fake.calls


def test_the_index_comes_from_the_environment(run: Any, fake: Any, tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("WELLHEAD_INDEX", "other")
    assert run("stats").exit_code == 0
    assert fake.called("open")[0] == ("other",)
