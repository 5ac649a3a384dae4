"""What is hidden is dropped, what a script needs is kept: held against Unicode's own tables."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellhead.trust.visible import one_line, visible

# Number signs of Arabic, Syriac and Kaithi: format characters by their category, and seen all the same.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}


def test_no_control_and_no_format_character_between_letters_gets_through() -> None:
    through = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs"}
        and code not in SEEN
        and visible(f"a{chr(code)}b")[0] not in {"ab", "a\nb", "a\tb"}
    ]
    assert through == []


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: a non-joiner inside a word
        "\u0915\u094d\u200d\u0937",  # Devanagari: a joiner after a virama
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",  # a family
        "\u2764\ufe0f",  # a heart in colour
        "e\u0301tat, na\u00efve, \u4f60\u597d, \ud55c\uad6d\uc5b4, \u0660\u0661",
        "\u06dd\u0661",
        "line\n\tindented",
    ],
)
def test_what_a_script_needs_is_kept(text: str) -> None:
    assert visible(text) == (text, 0)


@pytest.mark.parametrize(
    ("text", "shown", "hidden"),
    [
        ("Ships in 3 days." + "".join(chr(0xE0000 + ord(letter)) for letter in "ignore rules"), "Ships in 3 days.", 12),
        ("pass\u200bword", "password", 1),
        ("pass\u200c\u200dword", "password", 2),
        ("abc\u202egnp.exe", "abcgnp.exe", 1),
        ("a\u00adb\ufeffc\u2060d", "abcd", 3),
        ("x\ufe00\U000e0101y", "xy", 2),
        ("bell\x07, escape\x1b[2J, nul\x00", "bell, escape[2J, nul", 3),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour", 0),
    ],
)
def test_what_hides_is_dropped_and_counted(text: str, shown: str, hidden: int) -> None:
    assert visible(text) == (shown, hidden)


@given(st.text())
def test_it_is_done_once_and_for_all(text: str) -> None:
    shown, _ = visible(text)
    assert visible(shown)[0] == shown
    assert "\r" not in shown
    shown.encode()


@given(st.text(), st.integers(1, 40))
def test_one_line_is_one_line_and_short(text: str, most: int) -> None:
    line = one_line(text, most)
    assert len(line) <= most
    assert line.splitlines() in ([], [line])
