"""What every store refuses to take, before it writes anything."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from wellhead.errors import ConfigError, UsageError
from wellhead.records import DocumentRow, PassageRow

__all__ = [
    "check_documents",
    "check_keys",
    "check_owners",
    "check_vectors",
    "is_text",
    "refuse_other_settings",
    "refuse_pickle",
    "text_hash",
    "used_keys",
]

_UNIT_WITHIN = 1e-3
_MOST = 2**31


def text_hash(text: str) -> bytes:
    """sha256 of a text: 32 bytes; the first 12 of its hex characters are a passage's `content_hash`."""
    return hashlib.sha256(text.encode("utf-8")).digest()


def used_keys(documents: Iterable[DocumentRow]) -> dict[bytes, str]:
    """The vector keys in use, each with a document that uses it."""
    return {
        row.vector_key: document.document.id for document in documents for row in document.passages if row.vector_key
    }


def check_documents(documents: Sequence[DocumentRow]) -> None:
    """Refuse passages that are no slices of their document, and ids that stand twice.

    Raises:
        UsageError: naming the document and the passage.
    """
    seen: set[tuple[str, str]] = set()
    passages: set[str] = set()
    for document in documents:
        place = (document.scope, document.document.id)
        if place in seen:
            _refuse("a document stands twice in one batch", _name(document), "which of the two counts is not defined")
        seen.add(place)
        _check_order(document)
        for row in document.passages:
            _check_passage(document, row)
            if row.passage.id in passages:
                _refuse("a passage id stands twice in one batch", _name(document, row), "ids are unique")
            passages.add(row.passage.id)


def _check_order(document: DocumentRow) -> None:
    ordinals = [row.passage.ordinal for row in document.passages]
    if any(later <= earlier for earlier, later in zip([-1, *ordinals], ordinals, strict=False)):
        _refuse("passages out of order", _name(document), f"their ordinals must rise from 0 on, got {ordinals[:10]}")


def _check_passage(document: DocumentRow, row: PassageRow) -> None:
    source, passage = document.document, row.passage
    if passage.document_id != source.id:
        _refuse("a passage of another document", _name(document, row), f"it belongs to {passage.document_id!r}")
    if not 0 <= passage.start < passage.end <= len(source.text):
        span, length = f"[{passage.start}:{passage.end}]", len(source.text)
        _refuse("a passage's span lies outside its document", _name(document, row), f"{span} of {length} characters")
    if source.text[passage.start : passage.end] != passage.text:
        _refuse("a passage is not the slice of its document", _name(document, row), "text[start:end] differs")
    if passage.content_hash != text_hash(passage.text).hex()[:12]:
        _refuse("a passage's content_hash is not that of its text", _name(document, row), "want sha256(text)[:12]")
    if (passage.uri, passage.title, passage.metadata) != (source.uri, source.title, source.metadata):
        _refuse("a passage differs from its document", _name(document, row), "uri, title, metadata are the document's")
    for counts in (row.terms.stems, row.terms.words):
        if counts and not 0 < min(counts.values()) <= max(counts.values()) < _MOST:
            _refuse("a term's count is not a positive 32-bit number", _name(document, row), "counts start at 1")


def check_vectors(vectors: Mapping[bytes, NDArray[np.float32]], dims: int | None) -> None:
    """Refuse vectors that could not be compared: another type, shape or length, not finite, all zero.

    Args:
        vectors: float32[d] by key.
        dims: of the vectors stored already; None when there are none.

    Raises:
        UsageError: naming the vector and what is wrong with it.
    """
    for key, vector in vectors.items():
        where = f"vector {key.hex()[:12]}"
        if not key:
            _refuse("a vector without a key", where, "b'' stands for: no vector")
        if not isinstance(vector, np.ndarray) or vector.dtype != np.float32 or vector.ndim != 1 or not vector.size:
            _refuse("a vector must be a float32 array of one dimension", where, f"got {_shape(vector)}")
        dims = dims or vector.size
        if vector.size != dims:
            _refuse("a vector has another number of dimensions", where, f"the index has {dims}, this one {vector.size}")
        _check_length(vector, where)


def _check_length(vector: NDArray[np.float32], where: str) -> None:
    if not np.isfinite(vector).all():
        _refuse("a vector is not finite", where, "it holds NaN or infinity")
    length = float(np.linalg.norm(vector.astype(np.float64)))
    if length == 0.0:
        _refuse("a vector is all zero", where, "it has no direction, so nothing could find it")
    if abs(length - 1.0) > _UNIT_WITHIN:
        _refuse("a vector is not of unit length", where, f"its length is {length:.4g}; divide it by that")


def _shape(vector: object) -> str:
    if isinstance(vector, np.ndarray):
        return f"{vector.dtype}{list(vector.shape)}"
    return type(vector).__name__


def check_keys(
    documents: Sequence[DocumentRow], vectors: Mapping[bytes, object], known: Callable[[list[bytes]], Collection[bytes]]
) -> None:
    """Refuse passages whose vector is neither given nor stored.

    Raises:
        UsageError: naming a document and how many vectors are missing.
    """
    used = used_keys(documents)
    asked = [key for key in used if key not in vectors]
    stored = known(asked)
    missing = [key for key in asked if key not in stored]
    if missing:
        why = f"{len(missing)} vector keys are neither given nor stored, first {missing[0].hex()[:12]}"
        _refuse("passages refer to vectors that do not exist", f"document {used[missing[0]]!r}", why)


def check_owners(documents: Sequence[DocumentRow], owner: Callable[[str], tuple[str, str] | None]) -> None:
    """Refuse passage ids that another document holds.

    Args:
        owner: the scope and id of the document that holds a passage id, or None.

    Raises:
        UsageError: naming both documents.
    """
    replaced = {(document.scope, document.document.id) for document in documents}
    for document in documents:
        for row in document.passages:
            held = owner(row.passage.id)
            if held is not None and held not in replaced:
                why = f"document {held[1]!r} of scope {held[0]!r} holds that id"
                _refuse("a passage id is taken", _name(document, row), why)


def refuse_other_settings(stored: Mapping[str, str], expected: Mapping[str, str] | None, where: str) -> None:
    """Refuse to replace settings that are not the expected ones (None: any are fine).

    Raises:
        ConfigError: naming what differs.
    """
    if expected is None or stored == expected:
        return
    names = sorted(name for name in stored.keys() | expected.keys() if stored.get(name) != expected.get(name))
    raise ConfigError(
        "the index was set up otherwise meanwhile",
        where=where,
        why="; ".join(f"{name} is {stored.get(name)!r}, not {expected.get(name)!r}" for name in names),
        fix="open it again, as it was made",
    )


def refuse_pickle(store: object) -> NoReturn:
    """What a store's `__reduce__` answers.

    Raises:
        TypeError: always.
    """
    raise TypeError(f"a {type(store).__name__} cannot be pickled: open the index again in the other process")


def _name(document: DocumentRow, row: PassageRow | None = None) -> str:
    scope = f" of scope {document.scope!r}" if document.scope else ""
    passage = f", passage {row.passage.ordinal} ({row.passage.id[:12]})" if row else ""
    return f"document {document.document.id!r}{scope}{passage}"


def _refuse(what: str, where: str, why: str) -> NoReturn:
    raise UsageError(
        what, where=where, why=why, fix="give the store consistent rows; nothing of this batch was written"
    )


def is_text(name: str) -> bool:
    """Whether a name can be stored at all: half a surrogate pair cannot, so nothing has such a name."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)
