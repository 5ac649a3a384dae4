"""What the user gives: a document, and what may stand in its metadata."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias, cast

import msgspec

from wellhead.errors import DocumentError

__all__ = ["Document", "Metadata", "MetadataValue", "Scalar", "clean_metadata", "of_numpy"]

Scalar: TypeAlias = str | int | float | bool
MetadataValue: TypeAlias = Scalar | tuple[Scalar, ...]
Metadata: TypeAlias = Mapping[str, MetadataValue]

_LANGUAGE_TAG = re.compile(r"([A-Za-z]{2,3})(?:[-_][A-Za-z0-9]{1,8})*")
# Three-letter codes (ISO 639-2, both kinds, and 639-3) of languages that have one of two letters; both written kinds
# of Norwegian, which share a stemmer; and two old codes that are still met.
_TWO_LETTERS = """
ara:ar arb:ar baq:eu eus:eu ben:bn bul:bg cat:ca chi:zh zho:zh cmn:zh cze:cs ces:cs dan:da dut:nl nld:nl ell:el gre:el
eng:en est:et fas:fa per:fa pes:fa fin:fi fre:fr fra:fr ger:de deu:de gle:ga heb:he hin:hi hrv:hr hun:hu hye:hy arm:hy
ice:is isl:is ind:id ita:it jpn:ja kor:ko lav:lv lit:lt may:ms msa:ms nep:ne npi:ne nob:no nb:no nor:no nno:no nn:no
pol:pl por:pt ron:ro rum:ro rus:ru slk:sk slo:sk slv:sl spa:es srp:sr swe:sv tam:ta tha:th tur:tr ukr:uk urd:ur vie:vi
iw:he in:id
"""
_ISO_639_1: dict[str, str] = {code: short for code, _, short in (pair.partition(":") for pair in _TWO_LETTERS.split())}
_NO_LANGUAGE = frozenset({"und", "mul", "zxx"})


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One source as the user gives it.

    Args:
        id: non-blank, unique within its scope; any Unicode, any length.
        text: what is chunked, searched and cited; offsets of passages refer to it.
        uri: where a reader of the citation finds it (a URL or a path); "" means `id` is shown.
        title: "" for none. Its first 200 characters, on one line, are indexed and embedded with every passage.
        metadata: filterable values by key: str, int, float (finite), bool, or a list of those. A `date`
            or `datetime` is stored as its ISO-8601 text, a numpy scalar as Python's own.
        media_type: of `text` itself (an HTML page that was read becomes Markdown): chooses how it is cut.
        language: ISO 639-1 code; None lets the analyzer detect it. Of a tag such as "en-US" the language is kept
            ("en"), and a three-letter code becomes the one of two letters where there is one.

    Raises:
        DocumentError: a blank id, a text that is no valid Unicode, a metadata value of another type, no language code.
    """

    id: str
    text: str
    uri: str = ""
    title: str = ""
    metadata: Metadata = {}
    media_type: str = "text/plain"
    language: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():
            raise DocumentError("a document needs a non-blank id", fix="give each document a stable id of its own")
        for name in ("id", "text", "uri", "title", "media_type"):
            msgspec.structs.force_setattr(self, name, _clean_text(getattr(self, name), name, self.id))
        msgspec.structs.force_setattr(self, "metadata", clean_metadata(self.metadata, where=self.id))
        msgspec.structs.force_setattr(self, "language", _clean_language(self.language, self.id))


def _clean_text(value: object, name: str, where: str) -> str:
    """The text as a plain `str`: a subclass of it (an enum, numpy's) could not be stored."""
    if not isinstance(value, str):
        raise DocumentError(f"{name} must be text, not {type(value).__name__}", where=repr(where))
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DocumentError(
            f"{name} holds half of a surrogate pair",
            where=f"{where!r}, character {error.start}",
            why="it is no character and cannot be stored",
            fix="decode the source with the right encoding, or with errors='replace'",
        ) from error
    return str.__str__(value)


def _clean_language(value: object, where: str) -> str | None:
    """The primary language of a tag, of two letters where there is such a code; None for an unknown one."""
    if value is None or value == "":
        return None
    found = _LANGUAGE_TAG.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise DocumentError(
            f"{value!r:.80} is no language code",
            where=repr(where),
            fix='give an ISO 639-1 code ("en", "de"), or None to have the language detected',
        )
    code = found[1].lower()
    return None if code in _NO_LANGUAGE else _ISO_639_1.get(code, code)


def clean_metadata(values: Mapping[str, object], *, where: str = "") -> dict[str, MetadataValue]:
    """A copy of `values` in the stored types: dates as ISO-8601 text, lists as tuples.

    Raises:
        DocumentError: no mapping, a blank key, a value that is not str, int, finite float, bool, date or a list of
            those.
    """
    if not isinstance(values, Mapping):
        raise DocumentError(f"metadata must be a mapping, not {type(values).__name__}", where=where, fix="give a dict")
    cleaned: dict[str, MetadataValue] = {}
    for key, value in values.items():
        if not isinstance(key, str) or not key.strip():
            raise DocumentError("a metadata key must be non-blank text", where=where, why=f"got {key!r}")
        key = _clean_text(key, "a metadata key", where)
        if isinstance(value, (list, tuple)):
            items = cast("Sequence[object]", value)
            cleaned[key] = tuple(_clean_scalar(item, key, where) for item in items)
        else:
            cleaned[key] = _clean_scalar(value, key, where)
    return cleaned


def _clean_scalar(value: object, key: str, where: str) -> Scalar:
    value = of_numpy(value)
    if isinstance(value, str):
        return _clean_text(value, f"metadata {key!r}", where)
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    raise DocumentError(
        f"metadata {key!r} has a value that cannot be filtered on",
        where=where,
        why=f"got {type(value).__name__} {value!r:.80}",
        fix="use text, a number of 64 bits, true or false, a date, or a list of those",
    )


def of_numpy(value: object) -> object:
    """A number, truth value or text of numpy as Python's own (known by its shape: numpy is not imported for this)."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind in {"b", "i", "u", "f", "U"} and getattr(value, "ndim", None) == 0:
        return cast("_HasItem", value).item()
    return value


class _HasItem(Protocol):
    def item(self) -> object: ...
