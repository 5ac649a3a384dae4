"""LangChain's side of the house: an index as its retriever or vector store, an embedder as its own, a tool as its tool.

Its classes cannot be made without LangChain, so importing this needs the extra: `pip install 'wellhead[langchain]'`.
"""

from __future__ import annotations

import importlib.util

from wellhead.errors import MissingExtra

if importlib.util.find_spec("langchain_core") is None:
    raise MissingExtra(
        "the door to LangChain needs langchain-core",
        where="wellhead.doors.langchain",
        why="it is not installed",
        fix="pip install 'wellhead[langchain]'",
    )

from wellhead.doors.langchain.documents import Documents
from wellhead.doors.langchain.embeddings import WellheadEmbeddings
from wellhead.doors.langchain.retriever import WellheadRetriever
from wellhead.doors.langchain.store import WellheadVectorStore
from wellhead.doors.langchain.tool import langchain_tool

__all__ = ["Documents", "WellheadEmbeddings", "WellheadRetriever", "WellheadVectorStore", "langchain_tool"]
