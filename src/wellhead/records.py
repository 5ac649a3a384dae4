"""The records that travel through Wellhead: documents in, passages stored, hits out, reports beside.

All are frozen and keyword-only. Spans are offsets in characters (Python `str` indices), half open:
`document.text[passage.start:passage.end] == passage.text`, always.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, cast, overload

import msgspec

from wellhead.errors import DocumentError

__all__ = [
    "Coverage",
    "Degraded",
    "Document",
    "DocumentRow",
    "Explanation",
    "Finding",
    "Hit",
    "Hits",
    "IndexStats",
    "Metadata",
    "MetadataValue",
    "Outcome",
    "Passage",
    "PassageRow",
    "Refusal",
    "Scalar",
    "Signals",
    "Source",
    "SyncReport",
    "TermMatch",
    "Terms",
    "Threshold",
    "Verdict",
    "VerifyReport",
    "clean_metadata",
]

Scalar: TypeAlias = str | int | float | bool
MetadataValue: TypeAlias = Scalar | tuple[Scalar, ...]
Metadata: TypeAlias = Mapping[str, MetadataValue]
Outcome: TypeAlias = Literal["hits", "no_match", "filtered_out", "empty_index"]
Verdict: TypeAlias = Literal["pass", "below", "unjudged"]

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
    value = _of_numpy(value)
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


def _of_numpy(value: object) -> object:
    """A number, truth value or text of numpy as Python's own (known by its shape: numpy is not imported for this)."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind in {"b", "i", "u", "f", "U"} and getattr(value, "ndim", None) == 0:
        return cast("_HasItem", value).item()
    return value


class _HasItem(Protocol):
    def item(self) -> object: ...


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """What is embedded, ranked and cited: an exact slice of one document.

    Args:
        id: 64 hex characters, a hash of the scope, the document's id, the text and its occurrence: stable under
            edits elsewhere in the document. The first 12 are shown to people.
        document_id: the document it was cut from.
        ordinal: its place among the passages of its document, from 0.
        text: exactly `document.text[start:end]`; never blank.
        start, end: characters, half open.
        heading: the path of headings in force where the passage begins, outermost first.
        page: from 1, or None where the source has no pages.
        uri, title, metadata, language: of the document.
        content_hash: the first 12 hex characters of sha256(text).
        context: what stands before `text` in what is embedded and indexed: title, heading path (one line and at most
            200 characters each), a table's header.
        flags: marks set on the way in (for example "generated"); empty for ordinary text.
    """

    id: str
    document_id: str
    ordinal: int
    text: str
    start: int
    end: int
    heading: tuple[str, ...] = ()
    page: int | None = None
    uri: str = ""
    title: str = ""
    metadata: Metadata = {}
    content_hash: str = ""
    language: str | None = None
    context: str = ""
    flags: tuple[str, ...] = ()

    @property
    def citation(self) -> str:
        """Where a person finds it: `guides/keys.md § Rotation`, with `, p. 4` where there are pages."""
        return cite(self.uri or self.document_id, self.heading, self.page)

    @property
    def embedded_text(self) -> str:
        """What the embedder and the analyzer see: the context, then the text."""
        return f"{self.context}\n{self.text}" if self.context else self.text


def cite(place: str, heading: Sequence[str], page: int | None) -> str:
    """The citation of a place: path or address, nearest heading, page."""
    cited = f"{place} § {heading[-1]}" if heading else place
    return f"{cited}, p. {page}" if page is not None else cited


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Another place, in the same scope, where a hit's text stands word for word."""

    passage_id: str
    document_id: str
    uri: str = ""
    title: str = ""
    heading: tuple[str, ...] = ()
    page: int | None = None
    metadata: Metadata = {}

    @property
    def citation(self) -> str:
        return cite(self.uri or self.document_id, self.heading, self.page)


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured for one passage; None where a signal does not exist.

    Args:
        bm25: >= 0, unbounded; of the query's words in the statistics of the scope.
        coverage: 0 to 1: `bm25` over the most that this query could score.
        cosine: -1 to 1.
        probability: 0 to 1: the fitted combination of coverage and cosine.
        rerank: as the reranker gives it.
        lexical_rank, dense_rank: from 1 within the leg's pool; None when the leg did not return the passage.
    """

    bm25: float | None = None
    coverage: float | None = None
    cosine: float | None = None
    probability: float | None = None
    rerank: float | None = None
    lexical_rank: int | None = None
    dense_rank: int | None = None


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One ranked passage.

    Args:
        rank: from 1.
        score: what orders the list, higher is better; None when the backend gives none (its order is kept).
        signals: what was measured.
        verdict: `pass`, `below` the cut, or `unjudged` (no signal that has a cut).
        passage: the passage itself.
        also_in: other places of the scope with the same text, ordered by passage id.
    """

    rank: int
    score: float | None
    passage: Passage
    signals: Signals = Signals()
    verdict: Verdict = "unjudged"
    also_in: tuple[Source, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain data, with the citation beside the fields."""
        return {**msgspec.to_builtins(self), "citation": self.citation}

    @property
    def id(self) -> str:
        return self.passage.id

    @property
    def text(self) -> str:
        return self.passage.text

    @property
    def uri(self) -> str:
        return self.passage.uri

    @property
    def title(self) -> str:
        return self.passage.title

    @property
    def citation(self) -> str:
        return self.passage.citation

    @property
    def metadata(self) -> Metadata:
        return self.passage.metadata


class Degraded(msgspec.Struct, frozen=True, kw_only=True):
    """A search that is worse than the one asked for: which leg is missing, why, and what mends it."""

    leg: Literal["lexical", "dense", "rerank"]
    why: str
    fix: str


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the scope each leg could see, in passages."""

    passages: int
    with_vectors: int


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """A cut on a named signal (inclusive), and where it comes from."""

    signal: str
    value: float
    origin: Literal["calibrated", "profile", "user"]


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """A search's answer: a sequence of `Hit` that explains itself, also when it is empty.

    Args:
        hits: best first; at most k.
        outcome: `hits`, or why there are none: `no_match` (nothing close enough), `filtered_out` (the narrowing
            filters admit no passage of the scope), `empty_index` (the scope holds no passage).
        why_empty: one sentence for a person; "" when there are hits.
        near_misses: the best of what was cut, best first (after `no_match`, or below a cut per hit).
        degraded: empty when the search ran as asked.
        coverage: how much of the scope the legs could see.
        threshold: the cut that decided the outcome; None when nothing was cut.
        evidence: the query's best signals, by name, on which the outcome was decided; `rare` is 1.0 when a passage
            holds a rare word of the query that is spelled like a name (`FRY-4012`).
        dropped: hits that a guard removed (foreign scope, failed filters, repeats, more than k).
        index_version: grows with every write; equal numbers mean equal content.
        timings: milliseconds by stage.
    """

    hits: tuple[Hit, ...] = ()
    outcome: Outcome = "hits"
    why_empty: str = ""
    near_misses: tuple[Hit, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    coverage: Coverage = Coverage(passages=0, with_vectors=0)
    threshold: Threshold | None = None
    evidence: Mapping[str, float] = {}
    dropped: int = 0
    index_version: int = 0
    timings: Mapping[str, float] = {}

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`), ready for JSON."""
        plain: dict[str, object] = {"schema": 1}
        for name in self.__struct_fields__:
            plain[name] = msgspec.to_builtins(getattr(self, name))
        for name in ("hits", "near_misses"):
            plain[name] = [hit.to_dict() for hit in getattr(self, name)]
        return plain


Sequence.register(Hits)  # type: ignore[attr-defined, unused-ignore]  # pyright: ignore


class TermMatch(msgspec.Struct, frozen=True, kw_only=True):
    """What one word of the query contributes to one passage.

    Args:
        term: as indexed. field: `stem` or `word` (the exact form).
        query_count, passage_count: occurrences.
        passages: passages of the scope that hold the term (its document frequency).
        score: the part of `bm25` that it gives.
    """

    term: str
    field: Literal["stem", "word"]
    query_count: int
    passage_count: int
    passages: int
    score: float


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a passage ranks where it does for a query, or why it is not returned.

    Args:
        rank: where it stands in the full order, from 1; None when it is in no pool.
        returned: whether a search with these settings returns it.
        reason: one sentence.
        score, signals, verdict: as in `Hit`.
        terms: every word of the query with what it gives here, the largest first; 0.0 where it does not occur.
        stem_only: words that matched only by their stem, never in the exact form.
        filter: None, or the first filter clause that excludes the passage.
    """

    query: str
    passage: Passage
    rank: int | None
    returned: bool
    reason: str
    score: float | None
    signals: Signals
    verdict: Verdict
    terms: tuple[TermMatch, ...] = ()
    stem_only: tuple[str, ...] = ()
    filter: str | None = None
    threshold: Threshold | None = None

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        plain = msgspec.to_builtins(self)
        return {"schema": 1, **plain}


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was not taken: which document (or file), and why."""

    id: str
    reason: str


class SyncReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of `add` or `sync` did. Documents: `read == added + updated + unchanged`.

    Args:
        read: documents that were read. added, updated, unchanged: how they compare with what was stored.
        removed: documents deleted because their file is gone (`sync` only).
        moved: of `updated`, those that changed their scope.
        refused: files or documents that could not be read or taken, with reasons. Not in `read`.
        skipped: files left out by the walking rules, by reason; they are no failure.
        notes: documents that were read, but not as they are written (front matter that does not parse), with reasons.
        without_passages: of `added` and `updated`, those that gave no passage (a blank text, only paragraphs that the
            chunker drops): nothing of them can be found. They are no failure.
        failed: passages that the embedder could not take, with reasons; tried again on the next run.
        passages: passages written. embedded: texts sent to the embedder. reused: passages whose vector was there.
        stopped: "" or why the run ended early; the next run resumes.
        dry_run: nothing was written; the numbers say what would be.
        seconds: wall time.
    """

    read: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    moved: int = 0
    refused: tuple[Refusal, ...] = ()
    skipped: Mapping[str, int] = {}
    notes: tuple[Refusal, ...] = ()
    without_passages: int = 0
    failed: tuple[Refusal, ...] = ()
    passages: int = 0
    embedded: int = 0
    reused: int = 0
    stopped: str = ""
    dry_run: bool = False
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """True when everything that was found is searchable now."""
        return not (self.refused or self.failed or self.stopped)

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, "complete": self.complete, **msgspec.to_builtins(self)}

    def __str__(self) -> str:
        lines = [
            (
                f"{'would read' if self.dry_run else 'read'} {self.read} documents: {self.added} added, "
                f"{self.updated} updated, {self.unchanged} unchanged; {self.removed} removed"
            ),
            (
                f"{self.passages} passages {'would be ' if self.dry_run else ''}written: "
                f"{self.embedded} texts embedded, {self.reused} vectors reused"
            ),
        ]
        if self.moved:
            lines.append(f"{self.moved} documents moved to another scope")
        if self.without_passages:
            lines.append(f"{self.without_passages} documents hold no passage: nothing of them can be found")
        if self.skipped:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.skipped.items()))
            lines.append(f"skipped by the walking rules: {reasons}")
        lines += [f"note {item.id}: {item.reason}" for item in self.notes]
        lines += [f"refused {item.id}: {item.reason}" for item in self.refused]
        lines += [f"not indexed {item.id}: {item.reason}" for item in self.failed]
        if self.stopped:
            lines.append(f"stopped early: {self.stopped}; run it again to resume")
        return "\n".join(lines)


class IndexStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one scope (or of an index without scopes), and the files' size.

    Args:
        documents, passages: live ones. with_vectors: passages that the dense leg sees.
        incomplete: documents of which some passage could not be embedded.
        languages, areas: passages by language, documents by area.
        vectors: distinct vectors held (whole index). bytes: size on disk (whole index; 0 in memory).
        fingerprint: what the stored numbers depend on, by name.
        index_version: grows with every write.
    """

    documents: int
    passages: int
    with_vectors: int
    incomplete: int
    languages: Mapping[str, int]
    areas: Mapping[str, int]
    vectors: int
    bytes: int
    fingerprint: Mapping[str, str]
    index_version: int

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, **msgspec.to_builtins(self)}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that `verify` found wrong: the kind, the place, what it means, how to mend it."""

    kind: str
    where: str
    why: str
    fix: str


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `verify` checked and what it found; `ok` when nothing is wrong."""

    documents: int
    passages: int
    vectors: int
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, "ok": self.ok, **msgspec.to_builtins(self)}


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """A text as the analyzer sees it: counts of stems, and of the exact words."""

    stems: Mapping[str, int]
    words: Mapping[str, int]


class PassageRow(msgspec.Struct, frozen=True, kw_only=True):
    """A passage as a store writes it.

    Args:
        digest: 32 bytes over id, metadata, heading and span: what tells that a row must be written again.
        vector_key: 32 bytes that name the vector of its embedded text; b"" for a passage without a vector.
        terms: its analysed terms.
    """

    passage: Passage
    digest: bytes
    vector_key: bytes
    terms: Terms


class DocumentRow(msgspec.Struct, frozen=True, kw_only=True):
    """A document as a store writes it, whole, with its passages.

    Args:
        scope: the value under the index's scope key; "" in an index without scopes.
        origin: the folder it was synced from; "" when a program added it.
        digest: 32 bytes over the document and the fingerprint of chunker and analyzer.
        incomplete: some passage is missing; the next run tries again.
    """

    scope: str
    document: Document
    origin: str
    digest: bytes
    incomplete: bool
    passages: tuple[PassageRow, ...]
