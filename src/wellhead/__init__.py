"""Wellhead: the retrieval layer behind an agent's `search_docs` tool."""

from __future__ import annotations

import importlib

# Type checkers take this name for true; importing it from `typing` would cost more than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from wellhead.agent.cache import MemoryCache
    from wellhead.agent.context import Budget, Context
    from wellhead.agent.executor import Executor
    from wellhead.agent.function import function_tool
    from wellhead.agent.loop import LoopResult, run_tool_loop, run_tool_loop_sync
    from wellhead.agent.messages import Message, Reply, ToolCall
    from wellhead.agent.registry import Registry
    from wellhead.agent.search import search_tool
    from wellhead.agent.tool import Tool, ToolResult
    from wellhead.backends.generators.function import CallableModel
    from wellhead.backends.generators.openai_chat import OpenAIChat
    from wellhead.backends.retrievers.embedding import FunctionEmbedder
    from wellhead.backends.retrievers.function import FunctionRetriever
    from wellhead.backends.retrievers.langchain import LangChainRetriever
    from wellhead.backends.retrievers.langchain_store import LangChainStoreRetriever
    from wellhead.backends.retrievers.llamaindex import LlamaIndexRetriever
    from wellhead.backends.retrievers.shared import shared_retriever
    from wellhead.errors import (
        BackendError,
        BackendTimeout,
        ConfigError,
        CorruptStore,
        DocumentError,
        GateFailed,
        IngestStopped,
        MissingExtra,
        RateLimited,
        ScopeError,
        StaleIndex,
        StaleView,
        StorageFull,
        StoreError,
        UsageError,
        WellheadError,
        WriterBusy,
    )
    from wellhead.events import Event, EventLog
    from wellhead.index import Index
    from wellhead.index.embedding import EmbeddingRetriever
    from wellhead.records import (
        BackupReport,
        CompactReport,
        Document,
        Explanation,
        Hit,
        Hits,
        IndexStats,
        Passage,
        RepairReport,
        Signals,
        Storage,
        SyncReport,
        Threshold,
        VerifyReport,
    )
    from wellhead.search.guard import Guarded

__version__ = "0.1.0"

# Public names are imported on first use, so that `import wellhead` costs next to nothing.
_HOMES = {
    "wellhead.agent.cache": "MemoryCache",
    "wellhead.agent.context": "Budget Context",
    "wellhead.agent.executor": "Executor",
    "wellhead.agent.function": "function_tool",
    "wellhead.agent.loop": "LoopResult run_tool_loop run_tool_loop_sync",
    "wellhead.agent.messages": "Message Reply ToolCall",
    "wellhead.agent.registry": "Registry",
    "wellhead.agent.search": "search_tool",
    "wellhead.agent.tool": "Tool ToolResult",
    "wellhead.backends.generators.function": "CallableModel",
    "wellhead.backends.generators.openai_chat": "OpenAIChat",
    "wellhead.backends.retrievers.embedding": "FunctionEmbedder",
    "wellhead.backends.retrievers.function": "FunctionRetriever",
    "wellhead.backends.retrievers.langchain": "LangChainRetriever",
    "wellhead.backends.retrievers.langchain_store": "LangChainStoreRetriever",
    "wellhead.backends.retrievers.llamaindex": "LlamaIndexRetriever",
    "wellhead.backends.retrievers.shared": "shared_retriever",
    "wellhead.errors": (
        "BackendError BackendTimeout ConfigError CorruptStore DocumentError GateFailed IngestStopped MissingExtra "
        "RateLimited ScopeError StaleIndex StaleView StorageFull StoreError UsageError WellheadError WriterBusy"
    ),
    "wellhead.events": "Event EventLog",
    "wellhead.index": "Index",
    "wellhead.index.embedding": "EmbeddingRetriever",
    "wellhead.records": (
        "BackupReport CompactReport Document Explanation Hit Hits IndexStats Passage RepairReport Signals Storage "
        "SyncReport Threshold VerifyReport"
    ),
    "wellhead.search.guard": "Guarded",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [  # noqa: RUF022 (by home, as above)
    "MemoryCache",
    "Budget",
    "Context",
    "Executor",
    "function_tool",
    "LoopResult",
    "run_tool_loop",
    "run_tool_loop_sync",
    "Message",
    "Reply",
    "ToolCall",
    "Registry",
    "search_tool",
    "Tool",
    "ToolResult",
    "CallableModel",
    "OpenAIChat",
    "FunctionEmbedder",
    "FunctionRetriever",
    "LangChainRetriever",
    "LangChainStoreRetriever",
    "LlamaIndexRetriever",
    "shared_retriever",
    "BackendError",
    "BackendTimeout",
    "ConfigError",
    "CorruptStore",
    "DocumentError",
    "GateFailed",
    "IngestStopped",
    "MissingExtra",
    "RateLimited",
    "ScopeError",
    "StaleIndex",
    "StaleView",
    "StorageFull",
    "StoreError",
    "UsageError",
    "WellheadError",
    "WriterBusy",
    "Event",
    "EventLog",
    "Index",
    "EmbeddingRetriever",
    "BackupReport",
    "CompactReport",
    "Document",
    "Explanation",
    "Hit",
    "Hits",
    "IndexStats",
    "Passage",
    "RepairReport",
    "Signals",
    "Storage",
    "SyncReport",
    "Threshold",
    "VerifyReport",
    "Guarded",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'wellhead' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
