"""Rows and parts made by hand, for tests of what lies inside a segment."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.body import pack_passage, unpack_passage
from wellhead.backends.stores.embedded.build import LoadedRow, build_part
from wellhead.backends.stores.embedded.part import Part
from wellhead.backends.stores.postings import pack_terms
from wellhead.records import MetadataValue, Passage

# Every word gets its number when it is used first, and keeps it.
_numbers: dict[str, int] = {}


def number_of(word: str) -> int:
    """The number of a word's term."""
    return _numbers.setdefault(word, len(_numbers) + 1)


def loaded(
    number: int,
    text: str = "",
    *,
    scope: str = "",
    doc: int | None = None,
    name: str | None = None,
    text_hash: bytes | None = None,
    language: str = "",
    metadata: Mapping[str, MetadataValue] | None = None,
    vector: Sequence[float] | None = None,
) -> LoadedRow:
    """A passage as it comes out of the tables: words cut at blanks, `cats` stemmed to `cat`."""
    words = Counter(text.split())
    stems = Counter(word.rstrip("s") or word for word in text.split())
    known = {word: number_of(word) for word in (*words, *stems)}
    passage_id = hashlib.sha256(b"%d" % number).hexdigest() if name is None else name
    passage = Passage(id=passage_id, document_id=f"document {doc}", ordinal=number, text=text, start=0, end=len(text))
    return LoadedRow(
        scope=scope,
        number=number,
        doc=number if doc is None else doc,
        id=passage_id.encode(),
        text_hash=hashlib.sha256(text.encode()).digest() if text_hash is None else text_hash,
        language=language,
        metadata=dict(metadata or {}),
        stems=pack_terms(stems, known),
        words=pack_terms(words, known),
        vector=None if vector is None else np.array(vector, dtype=np.float32),
        body=pack_passage(passage),
    )


def part_of(*rows: LoadedRow) -> Part:
    """The part of these rows, with the words that they use."""
    packed = b"".join(blob for row in rows for blob in (row.stems, row.words))
    used = set(np.frombuffer(packed, dtype="<i4")[::2].tolist())
    return build_part(rows, {number: word.encode() for word, number in _numbers.items() if number in used})


def postings_of(part: Part, field: str, word: str) -> dict[int, int]:
    """Row -> count of a word in a field of a part."""
    term = part.term(word.encode())
    if term is None:
        return {}
    held = part.fields[field]
    low, high = held.span(term, 0, len(part))
    return dict(zip(held.rows[low:high].tolist(), held.counts[low:high].tolist(), strict=True))


def plain(part: Part) -> dict[str, Any]:
    """Everything that a part says, row by row, whatever numbers it uses for it."""
    starts = part.arrays["scope_starts"].tolist()
    scopes = [name for place, name in enumerate(part.names.scopes) for _ in range(starts[place], starts[place + 1])]
    terms = [*part.arrays["word.terms"].tolist()]
    words = [word.decode() for word in part.words]
    return {
        "scopes": scopes,
        "numbers": part.numbers.tolist(),
        "docs": part.docs.tolist(),
        "ids": list(part.ids),
        "passages": list(map(unpack_passage, part.bodies)),
        "contents": part.contents.tolist(),
        "languages": [part.names.languages[code] for code in part.languages.tolist()],
        "dims": part.names.dims,
        "vectors": (part.floats.tolist(), part.codes.tolist(), part.scales.tolist()),
        "columns": {key: column_of(part, key) for key in part.names.keys},
        "lengths": {name: field.lengths.tolist() for name, field in part.fields.items()},
        "postings": {name: {word: postings_of(part, name, word) for word in words} for name in part.fields},
        "words": sorted(zip(terms, words, strict=True)),
        "used": sorted({term for field in part.fields.values() for term in field.terms.tolist()}),
    }


def column_of(part: Part, key: str) -> list[str | None]:
    """The values of a metadata key, each as Python writes it."""
    found = part.column(key)
    assert found is not None
    return [repr(found[1][code]) if code >= 0 else None for code in found[0].tolist()]


def same_arrays(one: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> bool:
    """The same names, types, shapes and bytes."""
    return one.keys() == other.keys() and all(
        (array.dtype, array.shape) == (other[name].dtype, other[name].shape) and np.array_equal(array, other[name])
        for name, array in one.items()
    )
