"""What of an HTML page a person would see: without scripts, hidden elements, and (on asking) the page's frame."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

__all__ = ["Sight", "children", "raw_text"]

_NEVER_TAGS = (
    "annotation applet area audio base button canvas datalist dialog embed frame frameset head iframe input link map "
    "meta noembed noframes noscript object optgroup option param progress meter script select source style svg "
    "template textarea title track video"
)
_NEVER = frozenset(_NEVER_TAGS.split())
_FRAME = frozenset({"header", "footer", "aside", "form", "search", "banner", "contentinfo", "complementary"})
_NAVIGATION = frozenset({"nav", "navigation"})
# Edit links, permalinks and line numbers that well-known generators put into content.
_JUNK_CLASSES = (
    "mw-editsection headerlink hash-link anchor-link heading-anchor linenos lineno linenodiv linenumber "
    "line-numbers-rows noprint mw-indicators mw-jump-link catlinks after-portlet"
)
_JUNK = frozenset(_JUNK_CLASSES.split())
_ANCHORS = frozenset({"", "#", "¶", "§", "\u200b", "🔗"})
_HIDING = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)"
    r"|(?:opacity|font-size)\s*:\s*0(?:\.0+)?(?![.\d]))",
    re.IGNORECASE,
)
_AT_BLOCK = re.compile(r"@[^{};@]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_SIMPLE = re.compile(r"[.#]?[\w-]+$")


class Sight:
    """Decides which elements are seen.

    Hidden are: the attributes `hidden` and `aria-hidden="true"`, inline styles (display: none, visibility: hidden,
    opacity: 0, font-size: 0), and `<style>` rules of those for a single class, id or tag outside media queries.
    Colours, positions off the page and style sheets in other files are not looked at.
    """

    def __init__(self, page: LexborHTMLParser, *, frame: bool, navigation: bool = False) -> None:
        """`frame` and `navigation` say whether the page's header, footer, asides and forms, and its menus are seen."""
        self._frame = frame
        self._navigation = navigation
        self._hidden = _hidden_selectors(page)

    def sees(self, node: LexborNode, *, inside: bool = False) -> bool:
        """False for an element to be left out with all that it holds.

        `inside` says that it stands within an article or a section, where header and footer are content.
        """
        tag = node.tag or ""
        if tag in _NEVER or (tag.startswith("-") and not node.is_text_node):
            return False
        attributes = node.attributes
        classes = (attributes.get("class") or "").split()
        if (
            self._is_hidden(tag, attributes, classes)
            or not _JUNK.isdisjoint(classes)
            or _is_aside_link(node, attributes)
        ):
            return False
        kinds = {tag, attributes.get("role")}
        if not kinds.isdisjoint(_NAVIGATION):
            return self._navigation
        return self._frame or inside or kinds.isdisjoint(_FRAME)

    def _is_hidden(self, tag: str, attributes: dict[str, str | None], classes: list[str]) -> bool:
        if "hidden" in attributes and attributes["hidden"] != "until-found":
            return True
        if attributes.get("aria-hidden") == "true" or _HIDING.search(attributes.get("style") or ""):
            return True
        names = (tag, f"#{attributes.get('id')}", *(f".{name}" for name in classes))
        return not self._hidden.isdisjoint(names)


def children(node: LexborNode) -> Iterator[LexborNode]:
    """The children, last first: as a stack wants them."""
    child = node.last_child
    while child is not None:
        yield child
        child = child.prev


def raw_text(node: LexborNode, sight: Sight) -> str:
    """The visible text inside, white space kept, `<br>` as a line break."""
    parts: list[str] = []
    stack = list(children(node))
    while stack:
        inner = stack.pop()
        if inner.is_text_node:
            parts.append(inner.text_content or "")
        elif inner.tag == "br":
            parts.append("\n")
        elif sight.sees(inner, inside=True):
            stack.extend(children(inner))
    return "".join(parts)


def _is_aside_link(node: LexborNode, attributes: dict[str, str | None]) -> bool:
    """A link to its own place beside a heading, such as `¶`, or to the same page in another language."""
    if node.tag != "a":
        return False
    if "hreflang" in attributes and "lang" in attributes:
        return True
    if not (attributes.get("href") or "").startswith("#"):
        return False
    return node.text().strip() in _ANCHORS and node.css_first("img") is None


def _hidden_selectors(page: LexborHTMLParser) -> frozenset[str]:
    hidden: dict[str, bool] = {}
    for style in page.css("style"):
        for selectors, body in _rules(style.text()):
            for selector in map(str.strip, selectors.split(",")):
                if _SIMPLE.match(selector) and ("display" in body or _HIDING.search(body)):
                    hidden[selector] = bool(_HIDING.search(body))  # the last rule wins
    return frozenset(selector for selector, hides in hidden.items() if hides)


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Selectors and body of every rule, but for comments and what stands in blocks such as `@media print`."""
    first, *others = sheet.split("/*")
    uncommented = first + "".join(part.partition("*/")[2] for part in others)
    for rule in _AT_BLOCK.sub("", uncommented).split("}"):
        selectors, _, body = rule.partition("{")
        yield selectors, body
