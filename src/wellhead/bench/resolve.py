"""Where labels stand in the documents of today: still in place, moved, or stale.

A label is anchored in a document's text and not in a passage, so cutting the documents anew changes nothing: the
passages that cover its place are looked up afterwards. What can make a label stale is an edit of the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from wellhead.bench.labels import Label, Labels, Span
from wellhead.errors import UsageError
from wellhead.hints import did_you_mean
from wellhead.records import Passage

if TYPE_CHECKING:
    from wellhead.index import Index

__all__ = ["Resolved", "Standing", "State", "check_fresh", "covering", "resolve", "resolve_in"]

State: TypeAlias = Literal["in place", "moved", "stale"]

_LONGEST_QUOTE = 60


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One label and where it stands now.

    Args:
        query_id: whose label it is.
        state: "moved" when the quote stands elsewhere than the span says, "stale" when it is gone.
        span: characters of the text as it is now; None for a stale label, and for one that names just a document.
        passages: the ids of the passages that cover it, in their order; empty where no index was asked.
        note: why it is stale, or what else a reader must know; "" for nothing.
    """

    query_id: str
    label: Label
    state: State
    span: Span | None = None
    passages: tuple[str, ...] = ()
    note: str = ""

    @property
    def name(self) -> str:
        """Query, document and the beginning of the quote, for people."""
        quote = " ".join(self.label.quote.split())
        short = quote if len(quote) <= _LONGEST_QUOTE else quote[: _LONGEST_QUOTE - 3] + "..."
        named = f"{self.query_id}, {self.label.document_id}"
        return f"{named}, {short!r}" if short else named

    @property
    def allowed_by(self) -> tuple[str, str]:
        """The names that allow it to be stale: all of its query, or its document for that query."""
        return self.query_id, f"{self.query_id}:{self.label.document_id}"


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """Every label of a collection with its standing, in the order of the labels."""

    standings: tuple[Standing, ...]

    @property
    def in_place(self) -> tuple[Standing, ...]:
        """Those that stand where they stood."""
        return self._of("in place")

    @property
    def moved(self) -> tuple[Standing, ...]:
        """Those that were found again elsewhere in their document."""
        return self._of("moved")

    @property
    def stale(self) -> tuple[Standing, ...]:
        """Those that are gone; `note` says why."""
        return self._of("stale")

    def _of(self, state: State) -> tuple[Standing, ...]:
        return tuple(standing for standing in self.standings if standing.state == state)


def resolve(labels: Labels, documents: Mapping[str, str | None]) -> Resolved:
    """Find every label in the texts of the documents.

    Args:
        documents: text by id; None, or no entry, for a document that is gone.
    """
    standings = (_standing(query_id, label, documents.get(label.document_id)) for query_id, label in labels)
    return Resolved(standings=tuple(standings))


def resolve_in(index: Index, labels: Labels) -> Resolved:
    """`resolve` over what an index holds, with the ids of the passages that cover each label.

    A label that no passage covers (a document that was indexed in part) is stale too.

    Raises:
        ScopeError: the index has scopes and the handle has none. StoreError: it cannot be read.
    """
    named = {label.document_id for _query_id, label in labels}
    passages = {document_id: index.passages(document_id) for document_id in sorted(named)}
    standings = resolve(labels, {document_id: _text(index, document_id) for document_id in named}).standings
    return Resolved(standings=tuple(_covered(one, passages[one.label.document_id]) for one in standings))


def covering(passages: Sequence[Passage], span: Span) -> list[Passage]:
    """The passages of a document that cover a span, in the order given.

    Those that hold it whole, where there are any: each of them is enough. Else all that hold a part of it; where the
    passages lie without a gap, these together hold all of its characters.
    """
    start, end = span
    whole = [passage for passage in passages if passage.start <= start and end <= passage.end]
    return whole or [passage for passage in passages if passage.start < end and start < passage.end]


def check_fresh(resolved: Resolved, *, allow: Collection[str] = (), where: str = "") -> tuple[str, ...]:
    """Refuse stale labels, for each would count as a miss that no search can mend.

    Args:
        allow: names of labels that may be stale: a query id, or `query_id:document_id`.
        where: the file of the labels.

    Returns:
        The allowed names of which nothing is stale any more, so that they can be taken back.

    Raises:
        UsageError: stale labels that are not allowed, each by name with the reason; or a name that no label has.
    """
    known = {name for standing in resolved.standings for name in standing.allowed_by}
    for name in allow:
        if name not in known:
            fix = did_you_mean(name, sorted(known)) or "write a query id, or query_id:document_id"
            raise UsageError(f"no label has the name {name!r}, which is allowed to be stale", where=where, fix=fix)
    refused = [standing for standing in resolved.stale if not set(allow).intersection(standing.allowed_by)]
    if refused:
        raise _stale(refused, where)
    used = {name for standing in resolved.stale for name in standing.allowed_by}
    return tuple(name for name in allow if name not in used)


def _stale(refused: Sequence[Standing], where: str) -> UsageError:
    count = "1 label is" if len(refused) == 1 else f"{len(refused)} labels are"
    return UsageError(
        f"{count} stale",
        where=where,
        why="; ".join(f"{standing.name}: {standing.note}" for standing in refused),
        fix="label anew what changed, take the label out, or allow it by name "
        f"(allow=[{refused[0].query_id!r}], --allow-stale {refused[0].query_id})",
    )


def _text(index: Index, document_id: str) -> str | None:
    document = index.get(document_id)
    return None if document is None else document.text


def _covered(standing: Standing, passages: Sequence[Passage]) -> Standing:
    """The standing with the passages that cover it."""
    if standing.state == "stale":
        return standing
    covers = list(passages) if standing.span is None else covering(passages, standing.span)
    if not covers:
        return msgspec.structs.replace(standing, state="stale", span=None, note="no passage of the index covers it")
    return msgspec.structs.replace(standing, passages=tuple(passage.id for passage in covers))


# -- one label in one text --------------------------------------------------------------------------------------------


def _standing(query_id: str, label: Label, text: str | None) -> Standing:
    state, span, note = _found(label, text)
    return Standing(query_id=query_id, label=label, state=state, span=span, note=note)


def _found(label: Label, text: str | None) -> tuple[State, Span | None, str]:
    if text is None:
        return "stale", None, "the document is gone"
    if label.quote:
        return _found_quote(label, text)
    if label.span is None:
        return "in place", None, ""
    if label.span[1] > len(text):
        return "stale", None, f"the text ends at {len(text)}, before the span does, and there is no quote to find"
    return "in place", label.span, "there is no quote, so whether it moved cannot be told"


def _found_quote(label: Label, text: str) -> tuple[State, Span | None, str]:
    if label.span is not None and text[label.span[0] : label.span[1]] == label.quote:
        return "in place", label.span, ""
    found, how = list(_exact(label.quote, text)), ""
    if not found:
        found, how = list(_collapsed(label.quote, text)), "found with white space collapsed"
    if not found:
        return "stale", None, "the text does not hold the quote"
    if label.span is None:
        many = f"it stands there {len(found)} times, the first was taken" if len(found) > 1 else ""
        return "in place", found[0], "; ".join(filter(None, (how, many)))
    old = label.span[0]
    return "moved", min(found, key=lambda span: (abs(span[0] - old), span[0])), how


def _exact(quote: str, text: str) -> Iterator[Span]:
    """Every place of the quote, also where two of them overlap."""
    start = text.find(quote)
    while start >= 0:
        yield start, start + len(quote)
        start = text.find(quote, start + 1)


def _collapsed(quote: str, text: str) -> Iterator[Span]:
    """Every place of the quote where each run of white space may be any other run of it."""
    words = r"\s+".join(map(re.escape, quote.split()))
    for match in re.finditer(f"(?=({words}))", text):
        yield match.span(1)
