"""What is hidden is dropped, what a script needs is kept: held against Unicode's own tables."""

from __future__ import annotations

import itertools
import sys
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from wellhead.trust.visible import one_line, visible

# Number signs of Arabic, Syriac and Kaithi: format characters by their category, and seen all the same.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}

# What Unicode lets a font ignore, by its table of derived properties; and two without a shape that it does not name.
IGNORABLE = {
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)),
    *(*range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0),
    *(*range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
    *(0x16FE4, 0x1D159),
}
TAGS = {chr(code) for code in range(0xE0020, 0xE0080)}
MAY_BE_KEPT = {"\u200c", "\u200d", "\u115f", "\u1160", "\ufe0f"} | TAGS
ENGLAND = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbeng\x7f")
HIDDEN_BITS = ("01101001" * 4).replace("0", "{0}").replace("1", "{1}")


def hides(character: str) -> bool:
    unseen = unicodedata.category(character) in {"Cc", "Cf", "Cs"} and ord(character) not in SEEN
    return (unseen and character not in "\n\t") or ord(character) in IGNORABLE


# All of Unicode, and more often than by chance what hides and what may stand around it.
ANYTHING = st.lists(
    st.one_of(
        st.characters(),
        st.sampled_from([chr(code) for code in sorted(IGNORABLE)]),
        st.sampled_from(sorted(MAY_BE_KEPT - TAGS)),
        st.sampled_from(
            [
                *"a1#\n\u20e3\u0627\u0631\u06dd\u0915\u0937\u094d\u1820\u1100\u1161\u11a8\uac00\u2764\u2605",
                *"\U0001f3f4\U0001f469\U0001f525\U0001f3fd",
            ]
        ),
        st.just(ENGLAND),
    )
).map("".join)


def test_nothing_that_hides_gets_through_between_any_two_neighbours() -> None:
    through = [
        (hex(code), hex(ord(before)), hex(ord(after)))
        for code in range(sys.maxunicode + 1)
        if hides(chr(code)) and chr(code) not in MAY_BE_KEPT
        for before, after in ("ab", "\u0627\u0628", "\u0915\u0937", "\uac00\uac00", "\U0001f469\U0001f525")
        if visible(f"{before}{chr(code)}{after}")[0] not in {f"{before}{after}", f"{before}\n{after}"}
    ]
    assert through == []


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
        "\u06f2\u06f0\u200c\u062a\u0627\u06cc\u06cc",  # the same after a number
        "\u0915\u094d\u200d\u0937",  # Devanagari: a joiner after a virama
        "\u0915\u094d\u200c\u0937",  # and a non-joiner
        "\u09b0\u200d\u09cd\u09af",  # Bengali: a joiner before a virama
        "\u0d9a\u0dca\u200d\u0dbb\u0dd3",  # Sinhala
        "\u1112\u1161\u11ab\u1100\u116e\u11a8",  # Hangul in jamo
        "\u1100\u1160\u11a8, \u115f\u1161",  # without a vowel, and without a first consonant
        "\U0001f469\u200d\u2764\ufe0f\u200d\U0001f48b\u200d\U0001f468",  # a kiss
        "\U0001f3f3\ufe0f\u200d\U0001f308 \U0001f9d1\U0001f3fd\u200d\U0001f9b0 \u26f9\U0001f3fd\u200d\u2640\ufe0f",
        "\u26f9\ufe0f\u200d\u2642\ufe0f \U0001f1e9\U0001f1ea \u261d\U0001f3fd \u00a9\ufe0f",
        "1\ufe0f\u20e3 #\ufe0f\u20e3 *\ufe0f\u20e3",  # keycaps
        "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbsct\x7f"),  # the flag of Scotland
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
        ("hello" + "\u061c\u200c\u061c\u200d" * 8 + "\u061c world", "hello world", 33),
        ("x" + "\u180e\u200c\u180e\u200d" * 8 + "\u180e", "x", 33),
        ("\u0915\u200c\u200d\u0937", "\u0915\u0937", 2),
        ("\u0627\u200d\u061c\u200c\u0628", "\u0627\u0628", 3),
        ("\uac00\u115f\u1160\u115f\u115f\u1160\uac00", "\uac00\uac00", 5),
        ("\uac00\u1160\uac00\u115f\uac00", "\uac00\uac00\uac00", 2),
        ("\u1100\u1160\u1160\u11a8\u115f\u115f\u1161", "\u1100\u11a8\u1161", 4),
        ("\u1100\u1160\u115f\u1161", "\u1100\u1161", 2),
        ("\ufe0f\u200d\U0001f600", "\U0001f600", 2),
        ("\U0001f600\u200d\ufe0f\u200d\U0001f600", "\U0001f600\U0001f600", 3),
        ("\u2764\ufe0f\ufe0f", "\u2764\ufe0f", 1),
        ("1\ufe0f2\ufe0f3\ufe0f, a\ufe0f", "123, a", 4),
        ("a\u2065b\ufff0c\ufff8d\U000e0fffe", "abcde", 4),
        ("\U00018b00\U00016fe4\U0001d159\U00018b00", "\U00018b00\U00018b00", 2),
        ("\U0001f44d\U000e0067\U000e007f \U0001f3f4\U000e0068\U000e0069\U000e007f", "\U0001f44d \U0001f3f4", 5),
        ("bell\x07, escape\x1b[2J, nul\x00", "bell, escape[2J, nul", 3),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour", 0),
    ],
)
def test_what_hides_is_dropped_and_counted(text: str, shown: str, hidden: int) -> None:
    assert visible(text) == (shown, hidden)


@pytest.mark.parametrize(("zero", "one"), [("\u200c", "\u200d"), ("\u115f", "\u1160"), ("\ufe0f", "\ufe0e")])
@pytest.mark.parametrize("between", ["", "\u061c", "\u180e", "\u2065", "\ufff0", "\ufe0f", "\u3164"])
@pytest.mark.parametrize("around", ["a", "1", "\u0627", "\u0915", "\uac00", "\u1100", "\U0001f469", "\u2764"])
def test_no_message_fits_between_two_characters(zero: str, one: str, between: str, around: str) -> None:
    message = HIDDEN_BITS.format(zero + between, one + between)
    assert visible(f"{around}{between}{message}{around}")[0] in {around * 2, f"{around}\ufe0f{around}"}


@given(ANYTHING)
def test_what_is_kept_stands_between_what_is_seen(text: str) -> None:
    shown, count = visible(text)
    assert visible(shown) == (shown, 0)
    assert count == len(text.replace("\r\n", "\n")) - len(shown)
    assert {each for each in shown if hides(each)} <= MAY_BE_KEPT
    assert [each for each in shown if not hides(each)] == [
        each for each in regex.sub(r"\r\n?|[\v\f\x85\u2028\u2029]", "\n", text) if not hides(each)
    ]
    # Beside whole flags, and an emoji with its selector that is joined to the next, no two stand together.
    single = shown.replace(ENGLAND, "\U0001f3f4").replace("\ufe0f\u200d", "\u200d")
    assert not any(hides(one) and hides(two) for one, two in itertools.pairwise(single))


@given(ANYTHING)
def test_it_is_done_once_and_for_all(text: str) -> None:
    shown, _ = visible(text)
    assert visible(shown)[0] == shown
    assert "\r" not in shown
    shown.encode()


@given(ANYTHING, st.integers(1, 40))
def test_one_line_is_one_line_and_short(text: str, most: int) -> None:
    line = one_line(text, most)
    assert len(line) <= most
    assert line.splitlines() in ([], [line])
    assert visible(line) == (line, 0)
