"""Records of a backend, made anew of exact types.

What only passes for a text, a number or a mapping could say one thing to a check and another to its reader, and what
the backend still holds could change after the check. A field of another type means that the retriever is wired wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TypeAlias, TypeVar, cast, get_args

from msgspec.structs import astuple, force_setattr

from wellhead.errors import UsageError
from wellhead.records import (
    Coverage,
    Degraded,
    Hit,
    Hits,
    Metadata,
    MetadataValue,
    Passage,
    Scalar,
    Signals,
    Source,
    Threshold,
    Verdict,
    clean_metadata,
    of_numpy,
)

__all__ = ["exact_answer", "exact_hit", "is_whole", "metadata_of", "text_of"]

_T = TypeVar("_T")
_Field: TypeAlias = Callable[[object], object]
_HALF_PAIRS = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_VALUES = frozenset({str, int, float, bool})
_LEGS = ("lexical", "dense", "rerank")
_VERDICTS = get_args(Verdict)


def is_whole(text: str) -> bool:
    """Whether it has no half of a surrogate pair, which no door could write."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def text_of(value: object) -> str:
    """A text, without halves of surrogate pairs; "" for anything else."""
    return _text(value) if isinstance(value, str) else ""


def metadata_of(values: object) -> dict[str, MetadataValue]:
    """Metadata that can be filtered on, as a copy. A value of another type (None, a mapping) is left out: no filter
    could match it, and none does."""
    if type(values) is dict:
        copied = cast("dict[str, MetadataValue]", values).copy()
        for key, value in copied.items():
            if type(key) is not str or not (key.isascii() or is_whole(key)):
                break
            if type(value) is str and value.isascii():
                continue
            if not _is_plain(value):
                break
        else:
            return copied
    kept: dict[str, MetadataValue] = {}
    for name, held in cast("Mapping[str, object]", values).items() if isinstance(values, Mapping) else ():
        try:
            kept |= clean_metadata({name: held})
        except ValueError:
            continue
    return kept


def _is_plain(value: object) -> bool:
    if type(value) is tuple:
        return all(type(part) in _VALUES and _is_plain(part) for part in cast("tuple[Scalar, ...]", value))
    return is_whole(value) if type(value) is str else type(value) in _VALUES


# -- fields --------------------------------------------------------------------------------------------------------


def _name(value: object) -> str:
    """An exact text as it is."""
    if type(value) is str:
        return value
    if not isinstance(value, str):
        raise TypeError
    return str.__str__(value)


def _text(value: object) -> str:
    text = _name(value)
    return text if is_whole(text) else text.translate(_HALF_PAIRS)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, _list(value)))


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, (list, tuple)):
        raise TypeError
    return cast("Sequence[object]", value)


def _whole(value: object) -> int:
    if type(value) is int:
        return value
    value = of_numpy(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return int(value)


def _number(value: object) -> float:
    if type(value) is float:
        return value
    value = of_numpy(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _finite(value: object) -> float:
    number = _number(value)
    if not math.isfinite(number):
        raise TypeError
    return number


def _measured(value: object) -> float | None:
    """A signal; what is no number of use was not measured."""
    number = None if value is None else _number(value)
    return number if number is not None and math.isfinite(number) else None


def _count(value: object) -> int:
    number = _whole(value)
    if number < 0:
        raise TypeError
    return number


def _numbers(value: object) -> dict[str, float]:
    """Those that are finite: the others say nothing, and cannot be written as JSON."""
    if not isinstance(value, Mapping):
        raise TypeError
    read = {_text(name): _number(each) for name, each in cast("Mapping[object, object]", value).items()}
    return {name: number for name, number in read.items() if math.isfinite(number)}


def _mapping(value: object) -> Metadata:
    # For filters None is no metadata.
    return metadata_of(value)


def _leg(value: object) -> str:
    if _name(value) not in _LEGS:
        raise TypeError
    return _name(value)


def _or_none(read: _Field) -> _Field:
    return lambda value: None if value is None else read(value)


def _record(kind: type[object], fields: Mapping[str, _Field]) -> _Field:
    def read(value: object) -> object:
        if not isinstance(value, kind):
            raise TypeError
        return _exact(value, kind, fields)

    return read


def _exact(record: object, kind: type[_T], fields: Mapping[str, _Field]) -> _T:
    """The same record of exactly this kind.

    Raises:
        UsageError: a field holds another type.
    """
    made: dict[str, object] = {}
    for name, read in fields.items():
        held = getattr(record, name)
        try:
            made[name] = read(held)
        except (TypeError, OverflowError) as error:
            raise UsageError(
                f"the retriever returned a {kind.__name__} that cannot be read",
                why=f"its {name} is of another type or kind: {type(held).__name__}",
                fix=f"fill in {name} as `wellhead.{kind.__name__}` documents it",
            ) from error
    return kind(**made)


# -- records -------------------------------------------------------------------------------------------------------

_PASSAGE: Mapping[str, _Field] = {
    "id": _name,
    "document_id": _text,
    "ordinal": _whole,
    "text": _text,
    "start": _whole,
    "end": _whole,
    "heading": _texts,
    "page": _or_none(_whole),
    "uri": _text,
    "title": _text,
    "metadata": _mapping,
    "content_hash": _text,
    "language": _or_none(_text),
    "context": _text,
    "flags": _texts,
}
_SOURCE: Mapping[str, _Field] = {
    "passage_id": _text,
    **{name: _PASSAGE[name] for name in ("document_id", "uri", "title", "heading", "page", "metadata")},
}
_SIGNALS: Mapping[str, _Field] = {
    **dict.fromkeys(("bm25", "coverage", "cosine", "probability", "rerank"), _measured),
    **dict.fromkeys(("lexical_rank", "dense_rank"), _or_none(_whole)),
}
_DEGRADED: Mapping[str, _Field] = {"leg": _leg, "why": _text, "fix": _text}
_degraded = _record(Degraded, _DEGRADED)
# Its hits and near misses are looked at one by one.
_HITS: Mapping[str, _Field] = {
    "outcome": _text,
    "why_empty": _text,
    "degraded": lambda value: tuple(map(_degraded, _list(value))),
    "coverage": _record(Coverage, {"passages": _count, "with_vectors": _count}),
    "threshold": _or_none(_record(Threshold, {"signal": _text, "value": _finite, "origin": _text})),
    "evidence": _numbers,
    "dropped": _count,
    "index_version": _whole,
    "timings": _numbers,
}
_TEXT = frozenset({str})
_NUMBER_TYPES = frozenset({float, int, type(None)})
_PASSAGE_TYPES = frozenset(
    (str, str, int, str, int, int, tuple, page, str, str, dict, str, language, str, tuple)
    for page in (int, type(None))
    for language in (str, type(None))
)


def exact_answer(told: Hits) -> Hits:
    """What an answer says beside its hits.

    Raises:
        UsageError: a field holds another type.
    """
    return _exact(told, Hits, _HITS)


def exact_hit(hit: Hit, score: float | None) -> Hit:
    """The hit with this score, without a rank.

    Raises:
        UsageError: a field holds another type.
    """
    judged = score is not None and type(hit.verdict) is str and hit.verdict in _VERDICTS
    return Hit(
        rank=1,
        score=score,
        passage=_passage(hit.passage),
        signals=_signals(hit.signals),
        verdict=hit.verdict if judged else "unjudged",
        also_in=_places(hit.also_in) if hit.also_in != () else (),
    )


def _passage(passage: Passage) -> Passage:
    """Of an index every field is as it should be: seen at a glance, for it is looked at in every search."""
    if type(passage) is not Passage or tuple(map(type, astuple(passage))) not in _PASSAGE_TYPES:
        return _exact(passage, Passage, _PASSAGE)
    lists = (*passage.heading, *passage.flags)
    # In one piece, as most texts are plain; `language` is None or a text.
    short = (passage.document_id, passage.uri, passage.title, passage.content_hash, passage.language or "")
    if not set(map(type, lists)) <= _TEXT or not is_whole("".join((*short, passage.context, passage.text, *lists))):
        return _exact(passage, Passage, _PASSAGE)
    made = copy(passage)
    force_setattr(made, "metadata", metadata_of(passage.metadata))
    return made


def _signals(signals: object) -> Signals:
    if type(signals) is Signals:
        held = astuple(signals)
        # A sum that is finite has no part that is not.
        if set(map(type, held)) <= _NUMBER_TYPES and math.isfinite(sum(filter(None, held))):
            return signals
    if not isinstance(signals, Signals):
        raise _of_hit("signals", signals)
    return _exact(signals, Signals, _SIGNALS)


def _places(places: object) -> tuple[Source, ...]:
    """Other places of the text; what is none stays as it is, and is dropped and counted by the check of the scope."""
    if not isinstance(places, (list, tuple)):
        raise _of_hit("also_in", places)
    held = cast("Sequence[Source]", places)
    return tuple(
        _exact(place, Source, _SOURCE)
        if isinstance(place, Source) and isinstance(place.metadata, Mapping)
        else cast("Source", None)
        for place in held
    )


def _of_hit(name: str, held: object) -> UsageError:
    return UsageError(
        "the retriever returned a Hit that cannot be read",
        why=f"its {name} is of another type: {type(held).__name__}",
        fix=f"fill in {name} as `wellhead.Hit` documents it",
    )
