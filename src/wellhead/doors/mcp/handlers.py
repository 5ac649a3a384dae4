"""What the server answers to each kind of request."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from wellhead.doors.mcp.answers import Answer
from wellhead.doors.mcp.library import SCHEME, Library, address, id_in, shown
from wellhead.doors.mcp.offers import Offer
from wellhead.ports import DocumentSummary
from wellhead.trust.visible import one_line

if TYPE_CHECKING:
    from mcp import types

__all__ = ["Handler", "Handlers", "safe"]

log = logging.getLogger("wellhead")
Handler: TypeAlias = Callable[[Any, Any], Awaitable[Any]]

# Hosts show these to a person, who then need not be asked before each call.
_HINTS = {"read_only_hint": True, "destructive_hint": False, "idempotent_hint": True, "open_world_hint": False}
_LONGEST_LINE = 300


def safe(handler: Handler) -> Handler:
    """Keeps a fault's text off the wire: the protocol's library would send it."""

    async def handle(context: Any, params: Any) -> Any:
        library: Any = importlib.import_module("mcp")
        try:
            return await handler(context, params)
        except library.MCPError:
            raise
        except Exception as error:
            log.warning("a request to the MCP server failed with %s", type(error).__name__)
            raise library.MCPError(library.types.INTERNAL_ERROR, "this cannot be answered now") from error

    return handle


class Handlers:
    """What the server answers to each kind of request."""

    def __init__(self, library: Any, offers: Mapping[str, Offer], documents: Library | None) -> None:
        self._types: Any = importlib.import_module("mcp.types")
        self._error: Any = library.MCPError
        self._offers = offers
        self._documents = documents

    # -- tools ------------------------------------------------------------------------------------------------------

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        tools = [
            self._types.Tool(
                name=name,
                title=offer.title,
                description=offer.description,
                input_schema=dict(offer.parameters),
                output_schema=dict(offer.gives),
                annotations=self._types.ToolAnnotations(title=offer.title, **_HINTS),
            )
            for name, offer in self._offers.items()
        ]
        return self._types.ListToolsResult(tools=tools)  # type: ignore[no-any-return]

    async def call_tool(self, _context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        offer = self._offers.get(params.name)
        if offer is None:
            known = ", ".join(self._offers)
            raise self._error(self._types.INVALID_PARAMS, f"no tool has this name; there are {known}")
        answer: Answer = await offer.answer(params.arguments or {})
        return self._types.CallToolResult(  # type: ignore[no-any-return]
            content=[self._types.TextContent(type="text", text=answer.text)],
            structured_content=dict(answer.data),
            is_error=answer.failed,
        )

    # -- documents as resources -------------------------------------------------------------------------------------

    async def list_resources(self, _context: Any, params: Any) -> types.ListResourcesResult:
        assert self._documents is not None
        page = await self._documents.page(params.cursor if params is not None else None)
        if page is None:
            raise self._error(self._types.INVALID_PARAMS, "this cursor was not given out here")
        found, cursor = page
        return self._types.ListResourcesResult(  # type: ignore[no-any-return]
            resources=[self._resource(each) for each in found], next_cursor=cursor
        )

    def _resource(self, document: DocumentSummary) -> types.Resource:
        name = one_line(document.title or document.id, _LONGEST_LINE)
        said = "its row is damaged; a person can run `wellhead verify`" if document.damaged else None
        return self._types.Resource(  # type: ignore[no-any-return]
            uri=address(document.id), name=name, description=said, mime_type="text/plain"
        )

    async def list_templates(self, _context: Any, _params: Any) -> types.ListResourceTemplatesResult:
        template = self._types.ResourceTemplate(
            uri_template=SCHEME + "{id}",
            name="document",
            description="A document by its id, percent-encoded.",
            mime_type="text/plain",
        )
        return self._types.ListResourceTemplatesResult(resource_templates=[template])  # type: ignore[no-any-return]

    async def read_resource(self, _context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        assert self._documents is not None
        name = id_in(str(params.uri))
        document = None if name is None else await self._documents.get(name)
        if document is None:
            # Absent, and not yours: one answer.
            raise self._error(self._types.INVALID_PARAMS, "no document is at this address")
        content = self._types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=shown(document))
        return self._types.ReadResourceResult(contents=[content])  # type: ignore[no-any-return]
