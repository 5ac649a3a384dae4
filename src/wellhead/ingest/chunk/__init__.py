"""How documents become passages: where to cut, and what each slice must carry with it.

`structure` follows headings and blocks and is the default; `fixed` and `paragraph` are plain. A chunker is any
function from a document to slices.
"""

from __future__ import annotations

from wellhead.ingest.chunk.measure import Chunker, Slice, TokenStarts, word_starts
from wellhead.ingest.chunk.paragraphs import paragraph
from wellhead.ingest.chunk.structured import structure
from wellhead.ingest.chunk.windows import check_window, fixed

__all__ = ["Chunker", "Slice", "TokenStarts", "check_window", "fixed", "paragraph", "structure", "word_starts"]
