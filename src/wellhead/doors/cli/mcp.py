"""`wellhead mcp`: an index as a server for assistants."""

from __future__ import annotations

import click

from wellhead.doors.cli import interrupt
from wellhead.doors.cli.handle import open_index
from wellhead.doors.cli.options import debug_option, index_option, scope_option

__all__ = ["mcp"]


@click.command()
@index_option
@scope_option
@click.option("-k", "--k", "k", type=click.IntRange(1, 100), default=5, show_default=True, help="Passages of a search.")
@debug_option
def mcp(index: str, scope: dict[str, str], k: int) -> int:
    """Serve the index to an assistant (MCP).

    Over stdin and stdout, until stdin ends; an assistant starts it itself. The tools are search_docs, search and fetch;
    the documents are resources. It only reads. An index that keeps tenants apart is served for one of them: --scope.
    """
    from wellhead.doors.mcp import serve

    with open_index(index, scope) as opened:
        # Nothing has to be put away, and a read from stdin cannot be interrupted otherwise.
        interrupt.end_at_once()
        serve(opened, k=k)
    return 0
