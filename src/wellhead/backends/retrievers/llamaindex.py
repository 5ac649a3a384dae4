"""A LlamaIndex index or retriever under the guard."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, Unpack, cast

from wellhead.errors import ConfigError, MissingExtra, UsageError
from wellhead.records import Hits, Scalar
from wellhead.search.filters import All, Compare, Condition, Not, parse
from wellhead.search.guard import Guarded, GuardOptions

__all__ = ["LlamaIndexRetriever"]

NativeFilters: TypeAlias = Callable[[Mapping[str, object]], object]
_OPERATORS = {"$eq": "==", "$in": "in", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


class LlamaIndexRetriever(Guarded):
    """An index, asked with our k and filters; or a retriever, with its own. What comes back is checked again."""

    def __init__(
        self,
        source: Any,
        *,
        native_filters: NativeFilters | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        """Wrap an index (what has `as_retriever`) or a retriever (what has `retrieve`).

        Args:
            native_filters: filters in the index's own spelling; by default LlamaIndex's `MetadataFilters`.
            options: name, scope_key, timeout, on_degrade, sinks and capture_content, as for `Guarded`.

        Raises:
            ConfigError: neither; or `native_filters` for a retriever, which has filters of its own.
            MissingExtra: an index without `native_filters`, and llama-index-core is not installed.
        """
        super().__init__(
            _wrapped(source, native_filters),
            **options,
        )


def _wrapped(source: Any, native: NativeFilters | None) -> _Asked:
    if callable(getattr(source, "as_retriever", None)):
        spelled = native or _MetadataFilters()
        return _Asked(
            type(source).__name__,
            lambda k, filters: source.as_retriever(similarity_top_k=k, filters=spelled(filters) if filters else None),
        )
    if not callable(getattr(source, "retrieve", None)):
        raise ConfigError(
            f"{type(source).__name__} is neither an index nor a retriever of LlamaIndex",
            why="it has neither `as_retriever` nor `retrieve`",
            fix="pass an index, or index.as_retriever()",
        )
    if native is not None:
        raise ConfigError("a retriever of LlamaIndex has filters of its own", fix="pass the index instead")
    return _Asked(type(source).__name__, lambda _k, _filters: source, _is_async(source))


def _is_async(retriever: Any) -> bool:
    """Whether its `aretrieve` is a coroutine of its own: by default it calls the blocking one, and the loop stops."""
    own = getattr(type(retriever), "_aretrieve", None)
    base = next((kind for kind in type(retriever).__mro__ if kind.__name__ == "BaseRetriever"), None)
    return own is not None and own is not getattr(base, "_aretrieve", None)


class _Asked:
    def __init__(self, kind: str, make: Callable[[int, Mapping[str, object]], Any], native_async: bool = False) -> None:
        self.kind = kind
        self.native_async = native_async
        self._make = make

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        return _read(self._make(k, filters or {}).retrieve(query))

    async def asearch(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        return _read(await self._make(k, filters or {}).aretrieve(query))


def _read(found: object) -> Hits:
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Iterable):
        raise UsageError("LlamaIndex returned what is no list", why=f"got {type(found).__name__}")
    return cast("Hits", map(_mapping_of, found))


def _mapping_of(scored: Any) -> Mapping[str, object]:
    # Its word for a passage; what is returned is one with a score around it.
    inner = getattr(scored, "node", scored)
    metadata, content = getattr(inner, "metadata", None), getattr(inner, "get_content", None)
    text = content() if callable(content) else getattr(inner, "text", None)
    if not isinstance(text, str) or not isinstance(metadata, Mapping):
        raise UsageError(
            "the LlamaIndex object returned what is no document",
            why=f"got {type(scored).__name__}",
            fix="pass an index, or a retriever",
        )
    return {
        "text": text,
        "id": getattr(inner, "node_id", None) or None,
        "score": getattr(scored, "score", None),
        "uri": metadata.get("file_path") or metadata.get("source") or metadata.get("uri"),
        "title": metadata.get("title"),
        "document_id": getattr(inner, "ref_doc_id", None),
        "metadata": metadata,
    }


class _MetadataFilters:
    """Our filters in the words of LlamaIndex."""

    def __init__(self) -> None:
        try:
            self._words: Any = importlib.import_module("llama_index.core.vector_stores.types")
        except ImportError as error:
            raise MissingExtra(
                "filters for LlamaIndex need llama-index-core",
                why="it is not installed",
                fix="pip install 'wellhead[llamaindex]', or pass native_filters=",
            ) from error

    def __call__(self, filters: Mapping[str, object]) -> object:
        made = self._made(parse(filters))
        return self._words.MetadataFilters(filters=[made]) if isinstance(made, self._words.MetadataFilter) else made

    def _made(self, condition: Condition | None) -> object:
        """The condition, or one that admits more; None where nothing of it can be said there (see `_can_be_said`)."""
        if isinstance(condition, Compare):
            if not _can_be_said(condition.operand):
                return None
            operand = list(condition.operand) if isinstance(condition.operand, tuple) else condition.operand
            operator = self._words.FilterOperator(_OPERATORS[condition.operator])
            return self._words.MetadataFilter(key=condition.key, value=operand, operator=operator)
        if condition is None or isinstance(condition, Not):
            return None
        parts = [self._made(part) for part in condition.parts]
        said = [part for part in parts if part is not None]
        is_all = isinstance(condition, All)
        if not said or not (is_all or len(said) == len(parts)):
            return None
        return self._words.MetadataFilters(
            filters=said, condition=self._words.FilterCondition("and" if is_all else "or")
        )


def _can_be_said(operand: Scalar | tuple[Scalar, ...]) -> bool:
    """Whether its filters have words for it: they know no truth values, and no lists of several types.

    `$not` means different things in its stores. Such a clause is left out there, and what it would have kept away is
    dropped from the answer.
    """
    values = operand if isinstance(operand, tuple) else (operand,)
    return len({type(value) for value in values}) == 1 and not isinstance(values[0], bool)
