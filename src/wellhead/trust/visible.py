"""Text as a person would see it: what is invisible, and could carry instructions past a reader, is left out."""

from __future__ import annotations

import regex

__all__ = ["one_line", "visible"]

# Line ends of every kind become one kind, so that nothing can hide behind a carriage return.
_LINE_END = regex.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
# Signs of numbers in Arabic, Syriac and Kaithi are format characters by their category, and seen all the same.
_SEEN = r"\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
# What may be kept, where it stands as a script needs it: joiners, fillers of Hangul, the emoji selector, tags of flags.
_DOUBTFUL = r"\u200c\u200d\u115f\u1160\ufe0f\U000e0020-\U000e007f"
# Controls, format characters, all that Unicode lets a font ignore, and two without a shape that it forgot: the filler
# of Khitan and the notehead of no note.
_UNSEEN = rf"[\p{{Cc}}\p{{Cf}}\p{{Cs}}\p{{Default_Ignorable_Code_Point}}\U00016fe4\U0001d159--[\t\n{_SEEN}]]"
_ALWAYS = regex.compile(rf"[{_UNSEEN}--[{_DOUBTFUL}]]+", regex.V1)
# Each stands directly between two characters that are seen, so never two of them in a row; those around it count only
# as far as they are seen themselves. What is kept therefore stays kept, whatever else is dropped.
_JOINED = (
    r"[[\p{Arabic}\p{Syriac}\p{Mongolian}\p{InSC=Virama}\p{InSC=Vowel_Dependent}\p{InSC=Consonant}\p{InSC=Bindu}]"
    r"--[\p{Cf}\p{Default_Ignorable_Code_Point}]]"
)
_PICTURE = r"\p{Extended_Pictographic}"
_JAMO = {kind: rf"[\p{{Hangul_Syllable_Type={kind}}}--\p{{Default_Ignorable_Code_Point}}]" for kind in "LVT"}
_FLAGS = "|".join("".join(chr(0xE0000 + ord(letter)) for letter in f"gb{land}\x7f") for land in ("eng", "sct", "wls"))
_KEPT = (
    rf"[\u200c\u200d](?<={_JOINED}.)(?={_JOINED})"
    rf"|\u200d(?<={_PICTURE}[\ufe0f\p{{Emoji_Modifier}}]?.)(?={_PICTURE})"
    rf"|\ufe0f(?<=[{_PICTURE}&&\p{{Emoji}}].)"
    r"|\ufe0f(?<=[0-9#*].)(?=\u20e3)"  # keycaps
    rf"|\u115f(?<![{_DOUBTFUL}].)(?={_JAMO['V']})"
    rf"|\u1160(?<={_JAMO['L']}.)(?={_JAMO['T']})"
    rf"|(?<=\U0001f3f4)(?:{_FLAGS})"  # England, Scotland, Wales: the only flags that are spelled in tags
)
_SOMETIMES = regex.compile(rf"({_KEPT})|[{_DOUBTFUL}]", regex.V1)
_CONTROL = regex.compile(r"[\x00-\x08\x0e-\x1f\x7f]")  # of ASCII, line ends apart
_BLANKS = regex.compile(r"\s+")


def visible(text: str) -> tuple[str, int]:
    """The text without hidden and control characters, and how many there were. Lines end with a line feed alone.

    Joiners, fillers and selectors are kept where writing needs them, one at most between two characters that are seen
    (an emoji may have its selector beside its joiner). Done twice it is as done once.
    """
    ended = _LINE_END.sub("\n", text)
    if ended.isascii() and not _CONTROL.search(ended):
        return ended, 0
    shown = _SOMETIMES.sub(lambda found: found[1] or "", _ALWAYS.sub("", ended))
    return shown, len(ended) - len(shown)


def one_line(text: str, most: int) -> str:
    """The visible text on one line, cut to so many characters."""
    line = _BLANKS.sub(" ", visible(text)[0]).strip()
    # A cut can part a joiner from what it joined.
    return line if len(line) <= most else f"{visible(line[: most - 1])[0].rstrip()}…"
