"""The scorer that many `search_docs` tools begin with, kept as the baseline to beat.

It serves `evaluate` only: no configuration, no wiring and no door can choose it for a search.
"""

from __future__ import annotations

from collections.abc import Iterable

from wellhead.records import Passage

__all__ = ["SubstringSearch"]

SHORTEST_TERM = 3


class SubstringSearch:
    """Ranks passages by how many of the query's terms they hold as substrings.

    Args:
        passages: in file order: as the documents were given, then by ordinal.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = list(passages)
        self._texts = [passage.text.lower() for passage in self._passages]

    def search(self, query: str, *, limit: int | None = 10) -> list[Passage]:
        """The passages with at least one point, best first.

        A term is what stands between white space; one of fewer than three characters counts nothing, one that
        the query repeats counts each time. Case is ignored. Ties keep the order of the passages.

        Args:
            limit: the most passages returned; None for all.
        """
        points = [0] * len(self._texts)
        for term in query.lower().split():
            if len(term) >= SHORTEST_TERM:
                points = [before + (term in text) for before, text in zip(points, self._texts, strict=True)]
        found = [place for place, count in enumerate(points) if count]
        # sorted() is stable, which is the tie rule: by position.
        return [self._passages[place] for place in sorted(found, key=lambda place: -points[place])[:limit]]
