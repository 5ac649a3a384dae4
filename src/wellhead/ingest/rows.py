"""A document becomes rows: its passages, their ids and digests, their terms, and the keys of their vectors."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from wellhead.analyze import analyze, detect
from wellhead.errors import DocumentError, WellheadError
from wellhead.ingest.chunk import Chunker, Slice
from wellhead.ingest.chunk.markdown import one_line
from wellhead.ports import Embedder
from wellhead.records import Document, Passage, PassageRow

__all__ = ["Recipe", "document_digest", "passages_of", "rows_of", "vector_key"]


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How rows are made. The names are part of the fingerprint of what is stored.

    Args:
        chunk: cuts a document; chunker: its name with its settings.
        embedder: makes the vectors; model: its name, revision and dimensions.
        analyzer: name of the analyzer; languages: among which a document's language is detected.
    """

    chunk: Chunker
    chunker: str
    embedder: Embedder
    model: str
    analyzer: str
    languages: tuple[str, ...]


def rows_of(document: Document, scope: str, recipe: Recipe) -> tuple[PassageRow, ...]:
    """The rows of a document, as a store writes them."""
    return tuple(
        PassageRow(
            passage=passage,
            digest=_row_digest(passage),
            vector_key=vector_key(recipe.model, "document", passage.context, passage.text),
            terms=analyze(passage.analyzed_text, passage.language),
        )
        for passage in passages_of(document, scope, recipe.chunk, recipe.languages)
    )


def passages_of(document: Document, scope: str, chunk: Chunker, languages: Sequence[str]) -> list[Passage]:
    """The passages of a document, in order, with their ids.

    Raises:
        DocumentError: the chunker failed, or gave what is no slice (outside the text, blank, out of order).
    """
    language = document.language or detect(document.text, languages)
    occurrences: Counter[str] = Counter()
    passages: list[Passage] = []
    for piece in _slices(document, chunk):
        text = document.text[piece.start : piece.end]
        passages.append(
            Passage(
                id=_hash(scope, document.id, text, str(occurrences[text])).hex(),
                document_id=document.id,
                ordinal=len(passages),
                text=text,
                start=piece.start,
                end=piece.end,
                heading=piece.heading,
                page=piece.page,
                uri=document.uri,
                title=document.title,
                metadata=document.metadata,
                content_hash=hashlib.sha256(text.encode()).hexdigest()[:12],
                language=language,
                context=_context(document, piece, text),
            )
        )
        occurrences[text] += 1
    return passages


def _slices(document: Document, chunk: Chunker) -> list[Slice]:
    """What the chunker gives, checked: a chunker is anyone's code."""
    try:
        # Both ways through msgspec, since a record does not check the types of its own fields.
        pieces = [msgspec.convert(msgspec.to_builtins(piece), Slice) for piece in chunk(document)]
        "".join(part for piece in pieces for part in (*piece.heading, piece.context)).encode()
    except WellheadError:
        raise
    except Exception as error:
        raise _no_slices(document, "the chunker failed", f"{type(error).__name__}: {error}") from error
    for piece in pieces:
        place = f"{piece.start}..{piece.end}"
        if not 0 <= piece.start < piece.end <= len(document.text):
            raise _no_slices(document, "the chunker gave a slice outside the text", f"{place} of {len(document.text)}")
        if not document.text[piece.start : piece.end].strip():
            raise _no_slices(document, "the chunker gave a blank slice", place)
    for before, after in pairwise(pieces):
        # They may overlap (windows do), but each must go on from the one before.
        if after.start <= before.start or after.end <= before.end:
            why = f"{before.start}..{before.end}, then {after.start}..{after.end}"
            raise _no_slices(document, "the chunker gave slices out of order", why)
    return pieces


def _no_slices(document: Document, what: str, why: str) -> DocumentError:
    fix = "a chunker returns a list of Slice: in order, within the text, each with more than white space"
    return DocumentError(what, where=document.id, why=why, fix=fix)


def _context(document: Document, piece: Slice, text: str) -> str:
    """Title, heading path and what the slice itself needs; a heading that opens the slice is not said twice."""
    opening = one_line(text.lstrip().partition("\n")[0].strip("#=*- \t\r"))
    said = dict.fromkeys(map(one_line, (document.title, *piece.heading)))
    lines = [name for name in said if name and name != opening]
    return "\n".join([*lines, piece.context] if piece.context else lines)


def vector_key(model: str, role: str, context: str, text: str) -> bytes:
    """32 bytes that name the vector of a text in its context: one model, one role, whoever owns it."""
    return _hash(model, role, context, text)


def document_digest(document: Document, recipe: Recipe) -> bytes:
    """32 bytes over the document and how its rows are made: what is equal need not be written again."""
    return _hash(
        document.id,
        document.uri,
        document.title,
        document.text,
        document.media_type,
        document.language or "",
        _json(document.metadata),
        recipe.chunker,
        recipe.model,
        recipe.analyzer,
        " ".join(recipe.languages),
    )


def _row_digest(passage: Passage) -> bytes:
    return _hash(passage.id, _json(passage.metadata), _json(passage.heading), f"{passage.start}:{passage.end}")


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _hash(*parts: str) -> bytes:
    """SHA-256 over length-prefixed parts, so that no two lists of parts run together."""
    data: list[bytes] = []
    for part in parts:
        encoded = part.encode()
        data += (len(encoded).to_bytes(8, "little"), encoded)
    return hashlib.sha256(b"".join(data)).digest()
