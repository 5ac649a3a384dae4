"""The guard: what goes to a backend is checked, and what comes back is checked again.

It stands before any retriever, ours or foreign. Before: query, k, filters, scope, deadline. After: every hit against
the filters and the scope; repeats, unusable scores and more than k are dropped and counted. A backend that ignores the
filters gives fewer hits, never another scope's; an outage is an error, never an empty list.
"""

from __future__ import annotations

from wellhead.search.guard.call import is_coroutine
from wellhead.search.guard.guarded import Guarded, GuardOptions

__all__ = ["GuardOptions", "Guarded", "is_coroutine"]
