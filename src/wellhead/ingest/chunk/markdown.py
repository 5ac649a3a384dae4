"""Markdown (CommonMark and tables) into sections and blocks, from the line map of a CommonMark parser's tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from wellhead.ingest.chunk.blocks import Block, Kind, Section, cover, line_offsets

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["markdown_sections", "one_line", "sections_of"]

_KINDS: dict[str, Kind] = {
    "heading_open": "heading",
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
}
_CONTAINERS = {"bullet_list_open", "ordered_list_open", "list_item_open", "blockquote_open"}
_HEADING_LIMIT = 200


def markdown_sections(text: str) -> list[Section]:
    """The sections of a Markdown text, in order, with heading paths; together they hold everything but white space.

    Only headings of the document itself begin a section; one inside a list or a quotation is text.
    """
    parser = _parser()
    environment: dict[str, object] = {}
    tokens = parser.parse(text, environment)
    offsets = line_offsets(text)
    blocks = cover(text, 0, len(text), _tree(text, tokens, [*offsets, len(text)]))
    titles = {
        offsets[token.map[0]]: (int(token.tag[1]), _plain(parser, tokens[place + 1].content, environment))
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    }
    return sections_of(blocks, titles)


def sections_of(blocks: Iterable[Block], titles: dict[int, tuple[int, str]]) -> list[Section]:
    """`blocks` grouped under the headings that begin at the offsets of `titles` (level from 1, plain text)."""
    sections: list[Section] = []
    gathered: list[Block] = []
    path: list[tuple[int, str]] = []
    for block in blocks:
        if block.kind == "heading" and block.start in titles:
            if gathered:
                sections.append(Section(_names(path), tuple(gathered)))
            gathered = []
            level, title = titles[block.start]
            path = [*(above for above in path if above[0] < level), (level, title)]
        gathered.append(block)
    return [*sections, Section(_names(path), tuple(gathered))] if gathered else sections


def _names(path: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(title for _, title in path if title)


@cache
def _parser() -> MarkdownIt:
    # Imported here: a search never cuts a text, and the import costs more than the rest of the package.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.disable(["inline", "text_join"])  # the text of paragraphs is not looked at: linear and fast
    return parser


def _tree(text: str, tokens: Iterable[Token], offsets: Sequence[int]) -> list[Block]:
    """The blocks of a flat list of tokens; lists and quotations with the blocks inside of them."""
    levels: list[list[Block]] = [[]]
    opened: list[Token] = []
    for token in tokens:
        if token.nesting == 1:
            opened.append(token)
            levels.append([])
        elif token.nesting == -1:
            inner = levels.pop()
            levels[-1] += _block(text, opened.pop(), inner, offsets)
        elif token.type != "inline":
            levels[-1] += _block(text, token, [], offsets)
    return levels[0]


def _block(text: str, token: Token, inner: list[Block], offsets: Sequence[int]) -> list[Block]:
    if token.map is None:
        return inner
    start, end = offsets[token.map[0]], offsets[token.map[1]]
    kind = _KINDS.get(token.type, "prose")
    if kind == "heading" and token.level > 0:
        kind = "prose"
    return [Block(start, end, kind, cover(text, start, end, inner) if token.type in _CONTAINERS else ())]


def _plain(parser: MarkdownIt, source: str, environment: dict[str, object]) -> str:
    """A heading as a reader sees it: no markup, one line, at most `_HEADING_LIMIT` characters."""
    shown = source
    if len(source) <= 10 * _HEADING_LIMIT:
        tokens: list[Token] = []
        parser.inline.parse(source, parser, environment, tokens)
        shown = "".join(_visible(tokens)) if tokens else source
    return one_line(shown) or one_line(source)


def _visible(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in {"softbreak", "hardbreak"}:
            yield " "
        elif token.type != "html_inline":
            yield token.content


def one_line(title: str) -> str:
    """A title without line breaks, and clipped where it is longer than a title can be."""
    line = " ".join(title.split())
    return line if len(line) <= _HEADING_LIMIT else line[: _HEADING_LIMIT - 1] + "…"
