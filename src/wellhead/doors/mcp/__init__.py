"""MCP: an index as a server of the Model Context Protocol, for assistants that start one beside themselves.

Everything that it hands out of a document stands inside a boundary, in the text and in the structured result alike:
which of the two a host puts in front of its model is the host's choice. It needs the extra: `wellhead[mcp]`.
"""

from __future__ import annotations

from wellhead.doors.mcp.server import serve, server_of

__all__ = ["serve", "server_of"]
