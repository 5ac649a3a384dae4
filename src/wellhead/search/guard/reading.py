"""What a backend returned becomes hits, or a reason why a piece of it cannot be one.

A backend may return `Hits`, or any iterable of hits, passages, documents, texts, and mappings with a `text` (and `id`,
`score`, `source`, `uri`, `title`, `metadata`, `document_id` where it has them). Anything else means that the retriever
is wired wrongly, which is an error and not an answer.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sized
from itertools import islice
from typing import Literal, TypeAlias, cast

import msgspec

from wellhead.errors import UsageError
from wellhead.records import (
    Document,
    Hit,
    Hits,
    Metadata,
    Passage,
    of_numpy,
)
from wellhead.search.guard.exact import exact_answer, exact_hit, is_whole, metadata_of, text_of

__all__ = ["MOST_READ", "Flaw", "Returned", "hit_of", "metadata_of", "passage_of", "read", "stable_id"]

# A backend that never ends its answer is cut here; k is 100 at most.
MOST_READ = 2_000
# An id is handed to programs as it is: none may move a cursor, end a line or turn the direction of what follows.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
Flaw: TypeAlias = Literal["score", "id", "text"]


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """What came back, as far as it was read.

    Args:
        items: hits, or what is wrong with one, in the backend's order.
        near_misses: the same of what the backend itself had cut.
        unread: how many are known to follow.
        told: what the backend's own `Hits` says beside its hits, where it returned one.
    """

    items: tuple[Hit | Flaw, ...]
    near_misses: tuple[Hit | Flaw, ...] = ()
    unread: int = 0
    told: Hits | None = None


def read(raw: object) -> Returned:
    """Everything that a backend returned, at most `MOST_READ` of it.

    Raises:
        UsageError: it is no list of documents, or something in it is none.
    """
    found = raw.hits if isinstance(raw, Hits) else raw
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Iterable):
        raise _wired_wrongly("returned", found, "a list of hits, passages, texts or mappings with a text")
    items = tuple(map(hit_of, islice(found, MOST_READ + 1)))
    # Of what has no length, one more is asked for, to know that it was cut.
    unread = max(len(found) - MOST_READ, 0) if isinstance(found, Sized) else int(len(items) > MOST_READ)
    items = items[:MOST_READ]
    if not isinstance(raw, Hits):
        return Returned(items=items, unread=unread)
    if not isinstance(raw.near_misses, (list, tuple)):
        raise _wired_wrongly("returned near misses in", raw.near_misses, "them in a tuple of hits")
    near = tuple(map(hit_of, islice(raw.near_misses, MOST_READ)))
    return Returned(items=items, near_misses=near, unread=unread, told=exact_answer(raw))


def _wired_wrongly(verb: str, found: object, wanted: str) -> UsageError:
    return UsageError(
        f"the retriever {verb} what is no document",
        why=f"got {type(found).__name__}",
        fix=f"return {wanted}",
    )


def hit_of(item: object) -> Hit | Flaw:
    """One piece of what a backend returned, as a hit without a rank; or what is wrong with it.

    Raises:
        UsageError: it is no document at all.
    """
    if isinstance(item, Hit):
        return _checked(item)
    if isinstance(item, Passage):
        return _checked(Hit(rank=1, score=None, passage=item))
    if isinstance(item, Document):
        made = passage_of(item.text, item.id, uri=item.uri, title=item.title, metadata=item.metadata)
        return _checked(Hit(rank=1, score=None, passage=made))
    if isinstance(item, str):
        return _checked(Hit(rank=1, score=None, passage=passage_of(item)))
    if isinstance(item, Mapping) and isinstance(item.get("text"), str):
        return _of_mapping(item)
    raise _wired_wrongly("returned a list with something in it", item, "hits, passages, texts or mappings with a text")


def _of_mapping(item: Mapping[str, object]) -> Hit | Flaw:
    source = item.get("source")
    inner = source if isinstance(source, Mapping) else {"uri": source}
    uri, title, name = (
        text_of(item.get("uri") or inner.get("uri")),
        text_of(item.get("title") or inner.get("title")),
        item.get("id"),
    )
    if name is not None and not isinstance(name, (str, int)):
        return "id"
    made = passage_of(
        cast("str", item["text"]),
        "" if name is None else str(name),
        uri=uri,
        title=title,
        document_id=text_of(item.get("document_id")),
        metadata=metadata_of(item.get("metadata")),
    )
    score = cast("float | None", item.get("score"))  # whatever it is: looked at below
    return "id" if name == "" else _checked(Hit(rank=1, score=score, passage=made))


def passage_of(
    text: str,
    name: str = "",
    *,
    uri: str = "",
    title: str = "",
    document_id: str = "",
    metadata: Metadata | None = None,
) -> Passage:
    """A passage out of what a foreign backend tells; without an id it gets a stable one."""
    text = text_of(text)
    passage_id = name or stable_id(uri, text)
    return Passage(
        id=passage_id,
        document_id=document_id or name or uri or passage_id,
        ordinal=0,
        text=text,
        start=0,
        end=len(text),
        uri=uri,
        title=title,
        metadata=metadata or {},
        content_hash=hashlib.sha256(text.encode()).hexdigest()[:12],
    )


def stable_id(source: str, text: str) -> str:
    """The id of what has none: 64 hex characters, a digest of source and text."""
    parts = (part.encode("utf-8", "replace") for part in (source, text))
    # Each with its length before it, so that no two pairs run into the same bytes.
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()


def _checked(hit: Hit) -> Hit | Flaw:
    """The hit with a usable score, text and metadata; or what cannot be used."""
    passage = hit.passage
    if not isinstance(passage, Passage) or not isinstance(passage.text, str) or not isinstance(passage.id, str):
        raise _wired_wrongly("returned a hit around", passage, "hits around a `Passage`")
    if not passage.id.strip() or not is_whole(passage.id) or _CONTROLS.search(passage.id):
        return "id"
    if not passage.text.strip():
        return "text"
    score = of_numpy(hit.score)
    if score is not None and not _is_number(score):
        return "score"
    return exact_hit(hit, None if score is None else float(cast("float", score)))


def _is_number(score: object) -> bool:
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        return False
    try:
        return math.isfinite(score)
    except OverflowError:
        return False
