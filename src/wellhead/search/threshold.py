"""When is nothing close enough? Two decisions, on named signals, each cut inclusive (`>=`).

1. Once per query: the best evidence of the whole scope decides between `hits` and `no_match`. Any signal at or above
   its cut vouches for the query, and so does a rare word spelled like a name (`FRY-4012`) that a passage holds exactly.
2. Every hit carries a verdict on its own signals; hits below are dropped only where the caller asks (`cut="hit"` or an
   explicit `threshold=`).

The fitted probability is 1 / (1 + exp(-(bias + a * cosine + b * held * sqrt(words) + c * ln(passages)))): a logistic
regression of "this query can be answered" on the best cosine, the largest share of the query's words that one passage
holds, each by its weight (of a long question never as much as of a short one), and the passages in scope. Both may be
of two passages, so that a query with hits may have none that passes by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import msgspec

from wellhead.records import Signals, Threshold, Verdict

__all__ = ["Cuts", "Decision", "Origin", "decide", "is_rare", "probability", "verdict"]

Origin = Literal["calibrated", "profile", "user"]

# A word is rare when at most this share of the passages, or at least this many, hold it.
_RARE_SHARE = 0.05
_RARE_LEAST = 3


# A handful: below it the line would say that nothing at all is enough.
_FEWEST = 5


def _size(passages: int) -> float:
    return math.log(max(passages, _FEWEST))


class Cuts(msgspec.Struct, frozen=True, kw_only=True):
    """The cuts of one embedder with one analyzer, by the legs that are there.

    The best of many passages is higher than the best of few, also where none answers: so a cut is a line over the
    logarithm of the passages in scope, `base + slope * ln(passages)`; below 5 passages that of 5 holds.

    Args:
        hybrid, dense, lexical: signal name -> (base, slope), for searches with both legs, or one alone. Without any (an
            embedder that nobody measured) no query is refused.
        fit: bias and the weights of cosine, held * sqrt(words) and ln(passages); None without a fit.
        origin: where they come from.
    """

    hybrid: Mapping[str, tuple[float, float]] = {}
    dense: Mapping[str, tuple[float, float]] = {}
    lexical: Mapping[str, tuple[float, float]] = {}
    fit: tuple[float, float, float, float] | None = None
    origin: Origin = "profile"

    def of(self, legs: Literal["hybrid", "dense", "lexical"], passages: int) -> Mapping[str, float]:
        """The cut on each signal, for a scope of so many passages."""
        lines = {"hybrid": self.hybrid, "dense": self.dense, "lexical": self.lexical}[legs]
        return {name: base + slope * _size(passages) for name, (base, slope) in lines.items()}


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the query is answered at all, the cut that decided, and why in words."""

    answered: bool
    threshold: Threshold | None
    reason: str


def probability(cuts: Cuts, cosine: float | None, held: float | None, words: int, passages: int) -> float | None:
    """The fitted probability, 0 to 1; None without a fit or without both signals.

    Args:
        held: the share of the query's words that a passage holds, 0 to 1 (`Lexical.held`).
        words: distinct stems of the query. passages: in scope.
    """
    if cuts.fit is None or cosine is None or held is None:
        return None
    bias, by_cosine, by_held, by_passages = cuts.fit
    odds = bias + by_cosine * cosine + by_held * held * math.sqrt(words) + by_passages * _size(passages)
    # The same as 1 / (1 + exp(-odds)), and never an overflow.
    return 0.5 * (1.0 + math.tanh(odds / 2.0))


def is_rare(frequency: int, rows: int) -> bool:
    """Whether a word that `frequency` of `rows` passages hold is rare: at most 5 % of them, or at most 3."""
    return 0 < frequency <= max(_RARE_LEAST, int(rows * _RARE_SHARE))


def decide(evidence: Mapping[str, float], cuts: Mapping[str, float], origin: Origin, rare: str | None) -> Decision:
    """The first decision: `evidence` holds the best of each signal, `rare` a rare name that some passage holds."""
    if not cuts:
        return Decision(answered=True, threshold=None, reason="no signal has a cut")
    margins = {name: evidence[name] - cut for name, cut in cuts.items() if name in evidence}
    if not margins:
        missing = " and ".join(sorted(cuts))
        return Decision(answered=origin != "user", threshold=None, reason=f"{missing} could not be measured")
    decisive = max(sorted(margins), key=lambda name: margins[name])
    threshold = Threshold(signal=decisive, value=cuts[decisive], origin=origin)
    if margins[decisive] >= 0.0:
        return Decision(answered=True, threshold=threshold, reason=f"{decisive} at or above its cut")
    if rare is not None:
        return Decision(answered=True, threshold=threshold, reason=f"the rare word {rare!r} matches exactly")
    below = ", ".join(f"best {name} {evidence[name]:.2f} < {cuts[name]:.2f}" for name in sorted(margins))
    said = {"profile": "profile cut, not calibrated", "calibrated": "calibrated cut", "user": "your threshold"}[origin]
    return Decision(answered=False, threshold=threshold, reason=f"{below}, no rare word matched ({said})")


def verdict(signals: Signals, cuts: Mapping[str, float]) -> Verdict:
    """The second decision: any signal at or above its cut vouches for the hit; no judged signal, no judgement."""
    measured = {name: value for name in cuts if (value := getattr(signals, name)) is not None}
    if not measured:
        return "unjudged"
    return "pass" if any(value >= cuts[name] for name, value in measured.items()) else "below"
