"""Which passages are shown to a model, where it must not be given more than so much text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from wellhead.records import Hit

__all__ = ["Limits", "Shown", "fitting", "tokens_at_most"]


def tokens_at_most(text: str) -> int:
    """An upper estimate of a text's tokens, whoever counts: one for every three bytes, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The most text of passages, in all: in characters, in tokens as `count_tokens` counts them; None for no limit."""

    max_chars: int | None = None
    max_tokens: int | None = None
    count_tokens: Callable[[str], int] = tokens_at_most

    def fits(self, text: str, chars: int, tokens: int) -> bool:
        """Whether the text fits beside so many characters and tokens."""
        return (self.max_chars is None or chars + len(text) <= self.max_chars) and (
            self.max_tokens is None or tokens + self.count_tokens(text) <= self.max_tokens
        )

    def beginning(self, text: str) -> str:
        """The longest beginning of the text that fits, cut at a blank where there is one in its second half."""
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.fits(text[:middle], 0, 0) else (low, middle - 1)
        cut = text[:low]
        blank = max(cut.rfind(" "), cut.rfind("\n"))
        return cut[:blank] if blank > low // 2 else cut


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A hit and the text of it that is shown; `whole` unless it was cut."""

    hit: Hit
    text: str
    whole: bool = True


def fitting(hits: Sequence[Hit], limits: Limits) -> list[Shown]:
    """The hits that fit, in their order: one that does not is passed over, and smaller ones are still tried.

    Where not even one fits, the beginning of the best one is shown.
    """
    shown: list[Shown] = []
    chars = tokens = 0
    for hit in hits:
        if limits.fits(hit.text, chars, tokens):
            shown.append(Shown(hit=hit, text=hit.text))
            chars += len(hit.text)
            tokens += limits.count_tokens(hit.text) if limits.max_tokens is not None else 0
    if not shown and hits:
        beginning = limits.beginning(hits[0].text)
        shown = [Shown(hit=hits[0], text=beginning, whole=False)] if beginning else []
    return shown
