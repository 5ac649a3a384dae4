"""`paragraph`: one passage a paragraph, with the nearest heading."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from wellhead.ingest.chunk.blocks import Block, Section, lines_of, trim
from wellhead.ingest.chunk.markdown import markdown_sections
from wellhead.ingest.chunk.measure import Measure, Slice, TokenStarts, check_size, word_starts
from wellhead.ingest.chunk.pack import fit
from wellhead.records import Document

__all__ = ["paragraph"]


def paragraph(
    document: Document, *, min_chars: int = 21, size: int | None = None, token_starts: TokenStarts = word_starts
) -> list[Slice]:
    """Cut a document between blank lines; headings are recorded as the path of what follows, not as passages.

    Args:
        min_chars: shorter paragraphs are dropped: this chunker does not cover the document.
        size: tokens, or None for no bound; a longer paragraph is cut as `structure` would cut it.

    Raises:
        ConfigError: `size` below 1.
    """
    if size is not None:
        check_size(size)
    measure = Measure(document.text, token_starts)
    bound = size or len(measure.starts) + 1
    slices: list[Slice] = []
    for section in markdown_sections(document.text):
        for start, end in _paragraphs(document.text, section):
            if end - start >= min_chars:
                pieces = fit(measure, [Block(start, end)], bound)
                slices += [Slice(start=piece.start, end=piece.end, heading=section.path) for piece in pieces]
    return slices


def _paragraphs(text: str, section: Section) -> Iterator[tuple[int, int]]:
    body = [block for block in section.blocks if block.kind != "heading"]
    if not body:
        return
    start = body[0].start
    lines = lines_of(text, start, body[-1].end)
    breaks = [line.start for before, line in pairwise(lines) if before.blank and not line.blank]
    for first, last in zip([start, *breaks], [*breaks, body[-1].end], strict=True):
        span = trim(text, first, last)
        if span:
            yield span
