"""A word of the query that no passage holds is looked for with other accents: `theiere` finds `théière`.

Only then: an extra folded term beside an exact one lowers the ranking. One spelling is taken, that of most passages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from wellhead.analyze import fold_accents, stems_of
from wellhead.ports import View
from wellhead.records import Terms

if TYPE_CHECKING:
    from wellhead.ports import BoolArray

__all__ = ["respell"]


def respell(
    view: View, terms: Terms, stem_of: Mapping[str, str], language: str, admits: BoolArray | None
) -> tuple[Terms, dict[str, str]]:
    """The terms as they are spelled here, and the stem of each word.

    Args:
        stem_of: the stem of each word of `terms`. language: that the query is analysed in.
        admits: the rows that may be found; None for all.
    """
    stems, words, joined = dict(terms.stems), dict(terms.words), dict(stem_of)
    for word, stem in stem_of.items():
        spelling = _spelling(view, word, stem, admits)
        if spelling is None:
            continue
        count = words.pop(word)
        del joined[word]
        stems[stem] -= count
        joined[spelling] = stems_of(spelling, language).get(spelling, spelling)
        words[spelling] = words.get(spelling, 0) + count
        stems[joined[spelling]] = stems.get(joined[spelling], 0) + count
    return Terms(stems={stem: count for stem, count in stems.items() if count > 0}, words=words), joined


def _spelling(view: View, word: str, stem: str, admits: BoolArray | None) -> str | None:
    """The spelling of most passages; None where the word, or another form of it, stands as it is."""
    if _passages(view, "words", word, admits) or _passages(view, "stems", stem, admits):
        return None
    found = [(-_passages(view, "words", one, admits), one) for one in view.words.folded(fold_accents(word))]
    return min((one for one in found if one[0] < 0), default=(0, None))[1]


def _passages(view: View, field: str, term: str, admits: BoolArray | None) -> int:
    posting = (view.words if field == "words" else view.stems).posting(term)
    if posting is None:
        return 0
    return len(posting.rows) if admits is None else int(np.count_nonzero(admits[posting.rows]))
