"""Markdown: front matter becomes metadata, the rest is the text, character for character."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from wellhead.backends.readers.decode import clean, decode
from wellhead.backends.readers.reading import FRONT_MATTER, Reading
from wellhead.records import MetadataValue, Scalar

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["first_heading", "read_markdown"]

_FRONT = {
    "---": re.compile(r"---(?:\r\n|\r|\n)(.*?)(?<=[\r\n])(?:---|\.\.\.)(?:\r\n|\r|\n|\Z)", re.DOTALL),
    "+++": re.compile(r"\+\+\+(?:\r\n|\r|\n)(.*?)(?<=[\r\n])\+\+\+(?:\r\n|\r|\n|\Z)", re.DOTALL),
}
_MOST = 1 << 16  # characters of front matter; a banner far above the next rule is text
_MOST_BRACKETS = 1000
_MAYBE_H1 = re.compile(r"^ {0,3}(?:#[ \t]|=+[ \t]*\r?$)", re.MULTILINE)
_LANGUAGE = re.compile(r"([A-Za-z]{2,3})(?:[-_]\w+)*$")


def read_markdown(data: bytes, name: str) -> Reading:
    """A Markdown file.

    Front matter is YAML between a first line that is exactly `---` and the next line that is exactly `---` or
    `...`, or TOML between lines that are exactly `+++`. It must be a mapping; otherwise everything stays text. Where
    it does not parse, the metadata `front_matter` says why. Nested keys are joined by dots and nulls dropped;
    `title` becomes the title and `lang` the language.

    Raises:
        FileSkipped: the bytes are binary.
        DocumentError: no encoding fits.
    """
    decoded = decode(data, where=name)
    metadata, start = _front_matter(decoded.text)
    text = decoded.text[start:]
    title = metadata.pop("title", None) if start else None
    language = _LANGUAGE.match(str(metadata.get("lang", "")))
    return Reading(
        text=text,
        title=str(title).strip() if title is not None else first_heading(text),
        metadata={**decoded.metadata, **metadata},
        media_type="text/markdown",
        language=language[1].lower() if language else None,
    )


def first_heading(text: str) -> str:
    """The plain words of the first level-1 heading outside quotes and lists; "" for none."""
    if not _MAYBE_H1.search(text.replace("\r", "\n")):
        return ""
    head = text[:_MOST]
    return _first_heading_in(head) or ("" if len(text) == len(head) else _first_heading_in(text))


def _first_heading_in(text: str) -> str:
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(text)
    for opened, inline in pairwise(tokens):
        if opened.type == "heading_open" and opened.tag == "h1" and opened.level == 0:
            return " ".join("".join(map(_words, inline.children or ())).split())
    return ""


def _words(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return "" if token.type == "html_inline" else token.content


def _front_matter(text: str) -> tuple[dict[str, MetadataValue], int]:
    """The metadata, and where the text begins: 0 when there is no front matter."""
    pattern = _FRONT.get(text[:3])
    found = pattern.match(text[:_MOST]) if pattern else None
    if found is None:
        return {}, 0
    try:
        values = _load_yaml(found[1]) if text[0] == "-" else _load_toml(found[1])
    except ValueError as error:
        return {FRONT_MATTER: f"not read: {error}"}, 0
    return (dict(_flat(values)), found.end()) if isinstance(values, Mapping) and values else ({}, 0)


def _load_yaml(block: str) -> object:
    import yaml

    if block.count("[") + block.count("{") > _MOST_BRACKETS:
        raise ValueError("too many brackets")  # the parser's time grows with the square of their depth
    try:
        # An alias lets a few lines grow without bound once they are flattened.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(block)):
            raise ValueError("aliases (*name) are not taken")
        return yaml.safe_load(block)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise ValueError(f"{error.problem or 'no valid YAML'}{line}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("no valid YAML") from error


def _load_toml(block: str) -> object:
    import tomllib

    try:
        return tomllib.loads(block.replace("\r\n", "\n"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _flat(values: Mapping[object, object], above: str = "") -> Iterator[tuple[str, MetadataValue]]:
    """Leaves under dotted keys. Recursion is bounded by the parser, which has been as deep already."""
    for key, value in values.items():
        name = clean(f"{above}{key}".strip())
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, (list, tuple)):
            yield name, tuple(_scalar(item) for item in value if item is not None)
        elif value is not None and name:
            yield name, _scalar(value)


def _scalar(value: object) -> Scalar:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return clean(json.dumps(value, ensure_ascii=False, default=str))
