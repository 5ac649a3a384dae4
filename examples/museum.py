"""Two museums share one index, and each visitor's assistant sees its own museum's pages alone.

    python examples/museum.py

The model here is a script, so that nothing but Python is needed: it asks the tool what it was asked, and answers with
the first source that came back. Put any model in its place (`OpenAIChat`, or a function around your own client).
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Mapping, Sequence

from wellhead import (
    CallableModel,
    Context,
    Document,
    EventLog,
    Executor,
    Index,
    LoopResult,
    Message,
    Registry,
    Reply,
    ToolCall,
    run_tool_loop,
    search_tool,
)

QUESTION = "Can I get a ticket refund?"

# Whoever writes the documents into the index says whose they are; no page can say that of itself.
PAGES = {
    "harbour": [
        Document(
            id="harbour/refunds",
            uri="help/harbour/refunds.md",
            title="Ticket refunds",
            text="The Harbour Museum refunds a ticket until the evening before the visit. Write to the box office.",
        ),
        Document(
            id="harbour/hours",
            uri="help/harbour/hours.md",
            title="Opening hours",
            text="The ships can be boarded from ten to six. On Mondays the quay is closed.",
        ),
    ],
    "clocks": [
        Document(
            id="clocks/refunds",
            uri="help/clocks/refunds.md",
            title="Ticket refunds",
            text="The Museum of Clocks gives no refund on a ticket, but moves it to any other day of the same year.",
        ),
        Document(
            id="clocks/audio",
            uri="help/clocks/audio-guide.md",
            title="Audio guide",
            text="The audio guide tells forty clocks in six languages. Headphones are lent at the desk.",
        ),
    ],
}
# From the session, in a real program.
MUSEUM_OF = {"ada": "harbour", "ben": "clocks"}


def open_index() -> Index:
    """One index for both museums, which it keeps apart."""
    index = Index.open(":memory:", scope_key="museum", languages=["en"])
    for museum, pages in PAGES.items():
        index.scoped(museum=museum).add(pages)
    return index


def museum_of(ctx: Context) -> Mapping[str, object]:
    """The filter of a call: whose pages its user may see. Nobody known sees none."""
    return {"museum": MUSEUM_OF.get(ctx.user_id, "")}


def scripted(messages: Sequence[Message], tools: Sequence[Mapping[str, object]]) -> Reply | str:
    """What a model does: ask the tool in words of its own, then answer from what came back."""
    last = messages[-1]
    if last.role == "user":
        call = ToolCall(name=str(tools[0]["name"]), arguments={"query": "ticket refund"})
        return Reply(tool_calls=(call,))
    found = re.search(r"^source: (?P<source>.+)\n\n(?P<text>.+)$", last.content, re.MULTILINE)
    return f"{found['text']} [{found['source']}]" if found else last.content


async def main(log: EventLog | None = None) -> dict[str, LoopResult]:
    """Both visitors ask the same; what each was answered, by name."""
    log = log or EventLog()
    index = open_index()
    registry = Registry()
    registry.add(search_tool(index, k=2, filters=museum_of, cache_ttl=300))
    executor = Executor(registry, sink=log)
    model = CallableModel(scripted, provider="example", model="scripted")
    answers = {}
    for user in MUSEUM_OF:
        ctx = dataclasses.replace(executor.context(), user_id=user)
        answers[user] = await run_tool_loop(model, registry, [Message("user", QUESTION)], executor=executor, ctx=ctx)
        print(f"{user}: {answers[user].final.text}")
    for event in log.of_type("retrieval.searched"):
        print(
            event.name, {name: event.data[name] for name in ("retriever", "k", "count", "dropped")}, event.data["ids"]
        )
    return answers


if __name__ == "__main__":
    asyncio.run(main())
