"""Text as a person would see it: what is invisible, and could carry instructions past a reader, is left out."""

from __future__ import annotations

import regex

__all__ = ["one_line", "visible"]

# Line ends of every kind become one kind, so that nothing can hide behind a carriage return.
_LINE_END = regex.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
# Controls and format characters; the number signs of Arabic, Syriac and Kaithi are format characters that are seen.
# Beside them what has no shape of its own: fillers, the grapheme joiner, selectors of variants.
_UNSEEN = (
    r"[\p{Cc}\p{Cf}\p{Cs}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\U000e0000-\U000e0fff"
    r"--[\t\n\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd]]"
)
# Joiners are kept where a script needs them (Arabic, those of India and their neighbours, emoji), between two such
# characters; the emoji selector after a sign that has both shapes; the vowel and consonant fillers within Hangul.
_JOINED = r"[\p{Arabic}\p{Syriac}\p{Mongolian}\p{InSC=Virama}\p{InSC=Vowel_Dependent}\p{InSC=Consonant}\p{InSC=Bindu}]"
_EMOJI = r"[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]"
_KEPT = (
    rf"(?<={_JOINED})[\u200c\u200d](?={_JOINED})"
    rf"|(?<={_EMOJI})\u200d(?=\p{{Extended_Pictographic}})"
    r"|(?<=[\p{Emoji}])\ufe0f"
    r"|(?<=\p{Hangul})[\u115f\u1160](?=\p{Hangul})"
)
_HIDDEN = regex.compile(rf"({_KEPT})|{_UNSEEN}", regex.V1)
_CONTROL = regex.compile(r"[\x00-\x08\x0e-\x1f\x7f]")  # of ASCII, line ends apart
_BLANKS = regex.compile(r"\s+")


def visible(text: str) -> tuple[str, int]:
    """The text without hidden and control characters, and how many there were. Lines end with a line feed alone."""
    ended = _LINE_END.sub("\n", text)
    if ended.isascii() and not _CONTROL.search(ended):
        return ended, 0
    shown = _HIDDEN.sub(lambda found: found[1] or "", ended)
    return shown, len(ended) - len(shown)


def one_line(text: str, most: int) -> str:
    """The visible text on one line, cut to so many characters."""
    line = _BLANKS.sub(" ", visible(text)[0]).strip()
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
