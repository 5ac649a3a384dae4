"""What was measured for each shipped embedder: the weight of the lexical leg in fusion, and starting cuts.

The cuts are a starting point, not calibrated: `benchmarks/quality_cuts.py` fits them over open collections. An embedder
that is not listed has no cut on its cosine, so it never refuses a query.
"""

from __future__ import annotations

import msgspec

from wellhead.search.threshold import Cuts

__all__ = ["PROFILES", "UNKNOWN", "Profile"]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """`weight` of the lexical leg, 0 to 1; `cuts` as in `wellhead.search.threshold`."""

    weight: float
    cuts: Cuts


UNKNOWN = Profile(weight=0.5, cuts=Cuts())
PROFILES: dict[str, Profile] = {
    "static@l2_supercat_256-log-context:256": Profile(
        weight=0.5,
        cuts=Cuts(
            hybrid={"cosine": (0.2, 0.0341), "coverage": (-0.055, 0.058), "probability": (0.1, 0.0)},
            dense={"cosine": (0.14, 0.0313)},
            lexical={"coverage": (-0.03, 0.0317)},
            fit=(-5.581, 26.805, 6.019, -1.576),
        ),
    ),
}
