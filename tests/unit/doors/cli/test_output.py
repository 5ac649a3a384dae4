from __future__ import annotations

import json
import types

import pytest

from wellhead.doors.cli import output

HOSTILE = "safe\x1b[2Jgone\x07\x9b31m\rover\u202eevil\ttab\nline"


class Terminal:
    """A stream that says it is a terminal and keeps what it is given."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr(output, "sys", types.SimpleNamespace(stdout=stream, stderr=stream))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return stream


def test_control_characters_become_visible_and_tab_and_newline_stay() -> None:
    assert output.visible(HOSTILE) == "safe\\x1b[2Jgone\\x07\\x9b31m\\rover\\u202eevil\ttab\nline"
    assert output.visible("naïve – 日本語 🙂\u200d\u200c") == "naïve – 日本語 🙂\u200d\u200c"


def test_a_terminal_never_gets_a_control_character_of_the_text(terminal: Terminal) -> None:
    output.put(HOSTILE, (HOSTILE, "cite"))
    ours = terminal.text.replace("\x1b[36m", "").replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert terminal.text != ours, "the styled part should carry our own colour"
    assert not set(ours) & set("\x1b\x07\x9b\r\u202e")


def test_a_pipe_gets_the_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    output.put(HOSTILE, (" cited", "cite"))
    assert capsys.readouterr().out == HOSTILE + " cited\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour_where_it_is_not_wanted(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    output.put(("cited", "cite"))
    assert terminal.text == "cited\n"


def test_json_is_ascii_on_a_terminal(terminal: Terminal) -> None:
    value = {"schema": 1, "text": "é\x9b\x1b"}
    output.put_json(value)
    assert terminal.text.isascii()
    assert "\x1b" not in terminal.text
    assert json.loads(terminal.text) == value


def test_json_in_a_pipe_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.put_json({"schema": 1, "text": "a\nb"})
    assert capsys.readouterr().out == '{"schema": 1, "text": "a\\nb"}\n'


def test_an_excerpt_is_whole_in_a_pipe() -> None:
    text = "\n".join(f"line {number}" for number in range(20))
    shown, shortened = output.excerpt(text)
    assert not shortened
    assert [line.strip() for line in shown.splitlines()] == text.splitlines()


def test_an_excerpt_is_a_few_rows_on_a_terminal(terminal: Terminal) -> None:
    shown, shortened = output.excerpt("\n\nfirst\n\n" + "word " * 200)
    assert shortened
    rows = shown.splitlines()
    assert rows[0] == "   first"
    assert len(rows) == output.EXCERPT_ROWS
    assert all(len(row) <= 60 for row in rows)
    assert output.excerpt("short")[1] is False


def test_a_table_is_tabs_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output.put_table(("id", "title"), [("a\tb\n", "A  title"), ("c", "")])
    assert capsys.readouterr().out == "a b\tA title\nc\t\n"


def test_a_table_is_aligned_on_a_terminal(terminal: Terminal) -> None:
    output.put_table(("id", "title"), [("long-name", "[red]x"), ("c", "\x1b[2J")])
    rows = terminal.text.splitlines()
    assert "[red]x" in rows[1]
    assert "\x1b[2J" not in terminal.text
    assert rows[1].index("[red]x") == rows[2].index("\\x1b")


def test_a_suggested_command_is_quoted_for_the_shell() -> None:
    assert output.command("show", "a b", "--index", "kb") == "wellhead show 'a b' --index kb"


def test_one_of_a_thing_is_not_several() -> None:
    assert [output.counted(number, "passage") for number in (0, 1, 2)] == ["0 passages", "1 passage", "2 passages"]
