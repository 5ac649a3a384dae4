"""`structure`: the default chunker. By headings and blocks; whatever fits is kept whole."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise, takewhile

from wellhead.ingest.chunk.blocks import Block, Section, lines_of
from wellhead.ingest.chunk.code import code_sections
from wellhead.ingest.chunk.markdown import markdown_sections
from wellhead.ingest.chunk.measure import Measure, Slice, TokenStarts, check_size, word_starts
from wellhead.ingest.chunk.pack import Piece, fit
from wellhead.ingest.chunk.rst import rst_sections
from wellhead.records import Document

__all__ = ["DEFAULT_SIZE", "sections", "structure"]

DEFAULT_SIZE = 240
_MARKDOWN = {"text/markdown", "text/x-markdown", "text/x-web-markdown", "text/x-gfm", "text/mdx", "text/x-mdx"}
_RST = {"text/x-rst", "text/prs.fallenstein.rst", "text/restructuredtext", "text/rst"}
_PROSE = {"text/plain", "text/html", "application/xhtml+xml", "text/csv", "text/tab-separated-values"}


def structure(document: Document, *, size: int = DEFAULT_SIZE, token_starts: TokenStarts = word_starts) -> list[Slice]:
    """Cut a document by its headings and blocks into slices of at most `size` tokens.

    The slices are in order, do not overlap, and hold every character but white space. Within a section whole blocks
    are packed; a block that does not fit is cut at the best places it has (items, rows, blank lines, sentences, lines,
    words, and only then between characters), into parts as even as these allow. A heading stays with its text.

    Args:
        size: tokens of a slice and its context, from 1. Only a single character (with its marks) may be more.
        token_starts: the measure; where tokens of a text begin.

    Raises:
        ConfigError: `size` below 1.
    """
    check_size(size)
    measure = Measure(document.text, token_starts)
    slices: list[Slice] = []
    for section in _gathered(sections(document)):
        slices += [_slice(document.text, section, piece) for piece in fit(measure, section.blocks, size)]
    return slices


def sections(document: Document) -> list[Section]:
    """The sections of a document, by its media type."""
    media_type = document.media_type.partition(";")[0].strip().lower()
    if media_type in _MARKDOWN:
        return markdown_sections(document.text)
    if media_type in _RST:
        return rst_sections(document.text)
    if media_type in _PROSE or not media_type.startswith(("text/", "application/")):
        return _plain_sections(document.text)
    return code_sections(document.text)


def _plain_sections(text: str) -> list[Section]:
    """One section without a heading; its blocks are the paragraphs between blank lines."""
    lines = lines_of(text)
    starts = [
        0,
        *(line.start for before, line in pairwise(lines) if before.blank and not line.blank),
    ]
    return [Section((), tuple(Block(a, b) for a, b in zip(starts, [*starts[1:], len(text)], strict=True)))]


def _gathered(found: list[Section]) -> list[Section]:
    """A heading without text of its own goes with what follows it."""
    gathered: list[Section] = []
    bare: list[Block] = []
    for section in found:
        if section.bare and section is not found[-1]:
            bare += section.blocks
            continue
        gathered.append(Section(section.path, (*bare, *section.blocks), section.paths))
        bare = []
    return gathered


def _slice(text: str, section: Section, piece: Piece) -> Slice:
    heading = _enclosing(section, piece) if section.paths else section.path
    context = text[slice(*piece.lead)] if piece.lead else ""
    return Slice(start=piece.start, end=piece.end, heading=heading, context=context)


def _enclosing(section: Section, piece: Piece) -> tuple[str, ...]:
    """What encloses all of a piece of code: one that holds several definitions is named after none of them."""
    place = bisect_right(section.paths, piece.start, key=lambda pair: pair[0])
    common = section.paths[place - 1][1] if place else ()
    for start, path in section.paths[place:]:
        if start >= piece.end:
            break
        if path and not _encloses(common, path):
            common = tuple(
                one for one, other in takewhile(lambda pair: pair[0] == pair[1], zip(common, path, strict=False))
            )
    return common


def _encloses(outer: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return path[: len(outer)] == outer
