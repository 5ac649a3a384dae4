"""A search written out once more, so that a command that is suggested asks for the same index, scope and options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wellhead.doors.cli.options import json_or_text
from wellhead.doors.cli.output import command

__all__ = ["Again", "place_words"]

# The plain options of a search, in the order of its help: parameter -> (option, what it is when not given).
_PLAIN: Mapping[str, tuple[str, object]] = {
    "k": ("-k", 10),
    "mode": ("--mode", "hybrid"),
    "fusion": ("--fusion", "blend"),
    "per_document": ("--per-document", None),
    "max_tokens": ("--max-tokens", None),
    "cut": ("--cut", "query"),
}


@dataclass(frozen=True)
class Again:
    """A search as it was asked, for the commands that follow from it.

    Args:
        settings: the options of the search by the names that `Index.search` gives them.
    """

    query: str
    index: str
    scope: Mapping[str, str]
    settings: Mapping[str, Any]

    def search(self, **other: object) -> str:
        """The same search, with `other` settings in place of its own."""
        return self._asking("search", {**self.settings, **other})

    def explain(self, passage: str) -> str:
        """Why a passage stands where it does in this search."""
        return self._asking("explain", self.settings, passage)

    def show(self, passage: str) -> str:
        """The passage in full."""
        return command("show", passage, *place_words(self.index, self.scope))

    def index_here(self) -> str:
        """Fill the index that was searched."""
        return command("index", "PATH", *place_words(self.index, self.scope, "--into"))

    def _asking(self, name: str, settings: Mapping[str, Any], *passage: str) -> str:
        options = [*place_words(self.index, self.scope), *_search_words(settings)]
        if self.query.startswith("-"):
            return command(name, *options, "--", self.query, *passage)
        return command(name, self.query, *passage, *options)


def place_words(index: str, scope: Mapping[str, str], option: str = "--index") -> list[str]:
    """The options that say which index, and which part of it."""
    return [option, index, *(word for key, value in scope.items() for word in ("--scope", f"{key}={value}"))]


def _search_words(settings: Mapping[str, Any]) -> list[str]:
    words = []
    for key, value in (settings.get("filters") or {}).items():
        words += ["--filter", f"{key}={_filter_text(value)}"]
    for name, (option, usual) in _PLAIN.items():
        if settings.get(name, usual) != usual:
            words += [option, str(settings[name])]
    for text in _threshold_texts(settings.get("threshold")):
        words += ["--threshold", text]
    return words


def _filter_text(value: object) -> str:
    """What is read back as `value`: a text as it stands, unless it would be taken for JSON."""
    plain = isinstance(value, str) and json_or_text(value) == value
    return str(value) if plain else json.dumps(value, ensure_ascii=False)


def _threshold_texts(threshold: float | Mapping[str, float] | None) -> Sequence[str]:
    if threshold is None:
        return ()
    if isinstance(threshold, Mapping):
        return [f"{signal}={value!r}" for signal, value in threshold.items()]
    return [repr(threshold)]
