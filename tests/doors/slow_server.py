"""A server whose embedder is slow at some queries, and prints: started by the tests as a process of its own."""

from __future__ import annotations

import sys
import time
from typing import Any

from endings import FOUND, documents
from wellhead import Index
from wellhead.doors.mcp import serve
from wellhead.testing.fakes import HashEmbedder


class Slow(HashEmbedder):
    serving = False

    def embed_query(self, text: str) -> Any:
        if self.serving:
            print("noise on stdout")
        if "slowly" in text:
            print("asleep", file=sys.stderr, flush=True)
            time.sleep(8)
        return super().embed_query(text)


if __name__ == "__main__":
    model = Slow()
    index = Index.open(":memory:", embedder=model, languages=["en"])
    index.add(documents())
    assert index.search(FOUND)
    model.serving = True
    serve(index, timeout=20)
