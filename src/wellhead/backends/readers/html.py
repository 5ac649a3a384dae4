"""HTML becomes Markdown: the main content, as a person sees it, with its headings, lists, tables and code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wellhead.backends.readers.decode import decode
from wellhead.backends.readers.html_tables import caption_of, is_data_table, rows_of
from wellhead.backends.readers.html_visible import Sight, children, raw_text
from wellhead.backends.readers.html_writer import Writer
from wellhead.backends.readers.reading import Reading
from wellhead.errors import DocumentError

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

__all__ = ["read_html"]

_CHARSET = re.compile(
    rb"""<meta[^>]+charset\s*=\s*["']?\s*([-\w:.]+)|<\?xml[^>]+encoding\s*=\s*["']([-\w.]+)""", re.IGNORECASE
)
_TAG = re.compile(
    r"<(/?)(?:div|section|article|main|ul|ol|dl|blockquote|table|details|figure|center|fieldset)\b", re.IGNORECASE
)
_DEEPEST = 20_000  # the parser's time grows with the square of the depth
_BLOCK_TAGS = (
    "address article aside body caption center dd details dir div dl dt fieldset figcaption figure footer form header "
    "hgroup hr html legend li main menu ol p search section summary table tbody td tfoot th thead tr ul"
)
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INLINE_CODE = frozenset({"code", "kbd", "samp", "tt"})
_SECTIONS = frozenset({"article", "section", "main"})
_LANGUAGE_CLASS = re.compile(r"(?:language|lang|highlight|brush|highlight-source)[-:]\s*([\w+#.-]+)$")
_POWER = re.compile(r"[-+−]?\d+$|[-+−]?[a-z]$")
_META = {"description": "description", "keywords": "keywords", "author": "author", "date": "date"}
_META |= {"dcterms.date": "date", "article:published_time": "date"}
_TAG_LANGUAGE = re.compile(r"\s*([A-Za-z]{2,3})(?:[-_]|\s*$)")


def read_html(data: bytes, name: str) -> Reading:
    """An HTML page.

    The content is `<main>`, or a single `<article>` that holds at least half of the page's text, or the body without
    navigation, page header and footer, asides and forms. Link targets, emphasis and images (but for their alternative
    text) are left out. A line of text that looks like Markdown is escaped.

    Raises:
        FileSkipped: the bytes are binary.
        DocumentError: no encoding fits, nothing visible, or elements nested too deeply.
    """
    charset = _CHARSET.search(data[:1024])
    declared = (charset[1] or charset[2]).decode("ascii", "replace") if charset else None
    decoded = decode(data, declared=declared, where=name)
    page = _parse(decoded.text, name)
    text = _content(page)
    if not text:
        raise DocumentError(
            "no visible text", where=name, why="the page is empty, hidden, or filled by scripts", fix="exclude it"
        )
    return Reading(
        text=text,
        title=_title(page),
        metadata={**decoded.metadata, **_metadata(page)},
        media_type="text/markdown",
        language=_language(page),
    )


def _parse(text: str, name: str) -> LexborHTMLParser:
    from selectolax.lexbor import LexborHTMLParser

    depth = deepest = 0
    for found in _TAG.finditer(text) if text.count("<") > _DEEPEST else ():
        depth = max(0, depth + (-1 if found[1] else 1))
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        raise DocumentError("HTML nested too deeply", where=name, why=f"over {_DEEPEST:,} elements within one another")
    return LexborHTMLParser(text, scripting=True)


def _content(page: LexborHTMLParser) -> str:
    """The first of these that has text: main; article or body without the page's frame; the body with it."""
    bare = Sight(page, frame=False)
    mains = [node for node in page.css("main, [role=main]") if bare.sees(node)]
    text = _render(mains[0], bare, inside=True) if mains else ""
    if text or page.body is None:
        return text
    body = _render(page.body, bare)
    articles = page.css("article")
    if len(articles) == 1 and bare.sees(articles[0]):
        article = _render(articles[0], bare, inside=True)
        body = article if len(article) * 2 >= len(body) else body
    framed, whole = Sight(page, frame=True), Sight(page, frame=True, navigation=True)
    return body or _render(page.body, framed) or _render(page.body, whole)


def _render(root: LexborNode, sight: Sight, *, inside: bool = False) -> str:
    writer = Writer()
    numbers: dict[int, int] = {}  # by ordered list: the number of its last item
    # Elements still to enter (True) or to leave (False), and whether they stand within a section.
    stack: list[tuple[LexborNode, bool, bool]] = [(root, True, inside)]
    while stack:
        node, entering, within = stack.pop()
        if node.is_text_node:
            writer.text(node.text_content or "")
        elif not entering:
            _leave(node, writer)
        elif (node is root or sight.sees(node, inside=within)) and not _whole(node, writer, sight):
            _enter(node, writer, numbers)
            within = within or node.tag in _SECTIONS
            stack.append((node, False, within))
            stack.extend((child, True, within) for child in children(node))
    return writer.finish()


def _whole(node: LexborNode, writer: Writer, sight: Sight) -> bool:
    """Write elements that are taken in one piece; False for all others."""
    tag = node.tag
    if tag == "pre":
        writer.code_block(raw_text(node, sight).strip("\n").rstrip(), _code_language(node))
    elif tag in _INLINE_CODE:
        writer.code(raw_text(node, sight))
    elif tag == "table" and is_data_table(node):
        writer.space()
        writer.text(caption_of(node, sight))
        writer.table(rows_of(node, sight))
    elif tag == "br":
        writer.line_break()
    elif tag == "img":
        writer.text(f" {node.attributes.get('alt') or ''} ")
    elif tag == "sup" and _POWER.match(node.text().strip()) and node.css_first("a") is None:
        writer.text(f"^{node.text().strip()}")
    else:
        return False
    return True


def _enter(node: LexborNode, writer: Writer, numbers: dict[int, int]) -> None:
    tag = node.tag or ""
    if tag in _HEADINGS:
        writer.begin_heading(_HEADINGS[tag])
    elif tag == "blockquote":
        writer.open("quote", "> ", "> ")
    elif tag == "li":
        marker = _marker(node, numbers)
        writer.open("item", marker, " " * len(marker))
    elif tag == "dd":
        writer.open("definition", ": ", "")
    elif tag in _BLOCKS:
        writer.space()


def _leave(node: LexborNode, writer: Writer) -> None:
    tag = node.tag or ""
    if tag in _HEADINGS:
        writer.end_heading()
    elif tag in ("blockquote", "li", "dd"):
        writer.close()
    elif tag == "dt":
        writer.term()
    elif tag in _BLOCKS:
        writer.space()


def _marker(item: LexborNode, numbers: dict[int, int]) -> str:
    """`- `, or the number of an item of an ordered list."""
    parent = item.parent
    if parent is None or parent.tag != "ol":
        return "- "
    start = parent.attributes.get("start") or ""
    before = int(start) - 1 if start.isdecimal() and len(start) < 6 else 0
    numbers[parent.mem_id] = numbers.get(parent.mem_id, before) + 1
    return f"{numbers[parent.mem_id]}. "


def _code_language(pre: LexborNode) -> str:
    """From `language-x` and the like on the block, the code inside it, or the two elements around it."""
    outer = pre.parent
    for node in (pre.css_first("code"), pre, outer, outer.parent if outer else None):
        attributes = node.attributes if node else {}
        named = attributes.get("data-lang") or attributes.get("data-language")
        matches = filter(None, map(_LANGUAGE_CLASS.match, (attributes.get("class") or "").split()))
        language = named or next((match[1] for match in matches), "")
        if language:
            return language if re.fullmatch(r"[\w+#.-]+", language) else ""
    return ""


def _title(page: LexborHTMLParser) -> str:
    for node in (page.css_first("head > title"), page.css_first("h1")):
        title = " ".join(node.text().split()) if node else ""
        if title:
            return title
    return ""


def _metadata(page: LexborHTMLParser) -> dict[str, str | tuple[str, ...]]:
    metadata: dict[str, str | tuple[str, ...]] = {}
    for node in page.css("meta"):
        attributes = node.attributes
        key = _META.get((attributes.get("name") or attributes.get("property") or "").lower())
        content = " ".join((attributes.get("content") or "").split())
        if key and content and key not in metadata:
            words = tuple(filter(None, map(str.strip, content.split(","))))
            metadata[key] = words if key == "keywords" else content
    return metadata


def _language(page: LexborHTMLParser) -> str | None:
    root = page.css_first("html")
    found = _TAG_LANGUAGE.match((root.attributes.get("lang") or "") if root else "")
    return found[1].lower() if found else None
