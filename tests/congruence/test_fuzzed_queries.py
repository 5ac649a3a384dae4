"""Whatever is asked: hits, a reason why there are none, or an error of use; and no longer than its length allows."""

from __future__ import annotations

import gc
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest

from wellhead import Document, Executor, Guarded, Hits, Index, Registry, ToolCall, UsageError, search_tool
from wellhead.records import Outcome
from wellhead.search.request import LONGEST_QUERY
from wellhead.testing.fakes import HashEmbedder

many = pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["short", "long"])
OUTCOMES = set(get_args(Outcome))
LANGUAGES = ("en", "de", "zh", "ar", "th")
# What means something to some engine, shell, parser, template, regular expression or terminal.
SYNTAX = (
    *('"', "'", "(", ")", "[", "]", "{", "}", "AND", "OR", "NOT", "NEAR/3", "title:", "-", "+", "~2", "^4", "*", "?"),
    *(
        "' OR 1=1 --",
        "; DROP TABLE passages",
        "${x}",
        "{{x}}",
        "%s",
        "%00",
        "\\",
        "\\x00",
        "..",
        "//",
        "<script>",
        "&lt;",
    ),
    *(
        "\0",
        "\x1b[31m",
        "\r\n",
        "\t",
        "\u2028",
        "\u200b",
        "\u202e",
        "\ufeff",
        "\ufffe",
        "\U000e0041",
        "\ud800",
        "\udfff",
    ),
    *(
        "e\u0301",
        "\u0301",
        "ﷺ",
        "ǆ",
        "İ",
        "ß",
        "ſ",
        "Ⅷ",
        "½",
        "食べ物",
        "ไทย",
        "كتاب",
        "👩‍👩‍👧",
        "𝔨𝔢𝔶",
        "C++",
        ".NET",
        "v1.2.3",
    ),
    *(
        "rotate",
        "key",
        "vault",
        "FRY-4012",
        "getUserName",
        "user_name",
        "1e309",
        "nan",
        "null",
        "$in",
        '{"tenant": "globex"}',
    ),
)
KINDS = ("syntax", "any", "ascii", "bytes", "repeated", "long", "words", "blank", "no text")


def query(dice: random.Random) -> Any:
    """Anything that a caller or a model could send as a query."""
    kind = dice.choices(KINDS, (30, 20, 15, 10, 5, 1, 15, 2, 2))[0]
    length = dice.choice((1, 2, 3, 5, 8, 20, 60))
    match kind:
        case "syntax":
            return dice.choice(("", " ")).join(dice.choices(SYNTAX, k=length))
        case "any":
            return "".join(chr(dice.randrange(sys.maxunicode + 1)) for _ in range(length))
        case "ascii":
            return "".join(chr(dice.randrange(128)) for _ in range(length))
        case "bytes":
            return dice.randbytes(length).decode(dice.choice(("latin-1", "cp437")))
        case "repeated":
            return dice.choice(SYNTAX) * dice.choice((100, 500))
        case "long":
            text = dice.choice(SYNTAX) + dice.choice((" ", "", "\0")) + dice.choice(SYNTAX)
            return (text * LONGEST_QUERY)[: LONGEST_QUERY + dice.choice((-1, 0, 1, 100))]
        case "words":
            return " ".join(dice.choices(("rotate", "keys", "vault", "log", "every", "night", "Prüfung"), k=length))
        case "blank":
            return dice.choice(("", " ", "\n", "\u00a0", "\u3000\t"))
        case _:
            return dice.choice((None, 7, 1.5, True, b"key", ["key"], {"query": "key"}, object()))


def value(dice: random.Random, depth: int = 0) -> Any:
    """Anything that could be sent as filters."""
    simple = (None, True, 1, 1.0, "acme", "", float("nan"), 2**70, b"x", (), [], {}, "2024-01-01", "\ud800", object())
    if depth > 2 or dice.random() < 0.4:
        return dice.choice(simple)
    keys = ("tenant", "n", "$and", "$or", "$not", "$in", "$eq", "$gt", "$regex", "", "a.b", 7)
    if dice.random() < 0.3:
        return [value(dice, depth + 1) for _ in range(dice.randrange(3))]
    return {dice.choice(keys): value(dice, depth + 1) for _ in range(dice.randrange(3))}


def filled() -> Index:
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=LANGUAGES, scope_key="tenant")
    for tenant in ("acme", "globex"):
        index.scoped(tenant=tenant).add(
            Document(
                id=f"d{n}",
                text=f"rotate the key {n} of the vault every night. {SYNTAX[n % len(SYNTAX)]}".translate(
                    {0xD800: None, 0xDFFF: None}
                ),
                metadata={"n": n},
                language=LANGUAGES[n % len(LANGUAGES)],
            )
            for n in range(40)
        )
    return index


def drawn(count: int) -> Iterator[tuple[int, random.Random]]:
    """So many dice, each with the seed that throws it again."""
    first = 0 if os.environ.get("CI") else random.SystemRandom().randrange(2**32)
    for seed in range(first, first + count):
        yield seed, random.Random(seed)


@many
@pytest.mark.promise("G3", "G31", "G41")
def test_a_guarded_search_gives_hits_or_an_error_of_use(count: int) -> None:
    index = filled()
    retrievers: list[Any] = [Guarded(index).scoped(tenant="acme"), Guarded(index.scoped(tenant="acme"))]
    ended: Counter[str] = Counter()
    for seed, dice in drawn(count):
        asked, filters = query(dice), value(dice) if dice.random() < 0.2 else None
        k: Any = dice.choice((1, 5, 100)) if dice.random() < 0.95 else dice.choice((0, 101, -1, "5", None, 2.5, True))
        try:
            told: Any = dice.choice(retrievers).search(asked, k=k, filters=filters)
        except UsageError as error:
            told = error
        except Exception as error:
            raise AssertionError(f"seed {seed}: {asked!r:.300} {filters!r:.300} {k!r}") from error
        ended[told.outcome if isinstance(told, Hits) else "refused"] += 1
        # Whatever was asked with, what is said of it can be printed.
        assert str(told).encode("utf-8"), seed
        if isinstance(told, Hits):
            assert told.outcome in OUTCOMES, seed
            assert {hit.metadata["tenant"] for hit in told} <= {"acme"}, seed
    # It is no proof where everything is refused.
    assert ended["hits"] > count / 10
    assert ended["refused"] > count / 100


@many
@pytest.mark.promise("G12", "G31")
def test_a_tool_call_gives_hits_or_says_what_is_wrong_with_the_query(count: int) -> None:
    tool = search_tool(filled(), filters=lambda ctx: {"tenant": ctx.user_id}, narrowing={"n": [1, 2]}, cache_ttl=300)
    executor = Executor(Registry(tool))
    run = executor.context("acme")
    ended: Counter[str] = Counter()
    for seed, dice in drawn(count):
        asked = query(dice)
        arguments: Any = {"query": asked}
        if dice.random() < 0.1:
            arguments = dice.choice(
                ({}, {"query": asked, "tenant": "globex"}, {"query": asked, "n": 3}, {"n": 1}, [asked])
            )
        elif dice.random() < 0.1:
            arguments = {"query": asked, "n": dice.choice((1, 2))}
        try:
            call = ToolCall(name="search_docs", arguments=arguments)
        except UsageError:
            ended["no call"] += 1
            continue
        result = executor.run(call, run)
        ended[result.outcome] += 1
        assert result.outcome in OUTCOMES | {"bad_query", "bad_arguments"}, (seed, result.error)
        assert result.text.encode("utf-8"), seed
        assert {hit.metadata["tenant"] for hit in result.hits or ()} <= {"acme"}, seed
    assert ended["hits"] > count / 10
    assert ended["bad_query"] + ended["bad_arguments"] > count / 100


# -- time -------------------------------------------------------------------------------------------------------------

LONG: dict[str, Callable[[int], str]] = {
    "one word": lambda n: "x" * n,
    "few words": lambda n: ("key vault rotate " * n)[:n],
    "new words": lambda n: " ".join(f"w{i}" for i in range(n))[:n],
    "signs": lambda n: ("!?-_." * n)[:n],
    "accents": lambda n: "e" + "\u0301" * (n - 1),
    "camels": lambda n: ("aB" * n)[:n],
    "versions": lambda n: ("1." * n)[:n],
    "paths": lambda n: ("a_b-c.d/" * n)[:n],
    "blanks": lambda n: f"a{' ' * (n - 2)}b",
    "no blanks": lambda n: ("食べ物" * n)[:n],
    "halves": lambda n: "\ud800" * n,
    "brackets": lambda n: "(" * n,
}
LENGTHS = (1_000, 2_000, 4_000, 8_000)
MOST = 2.3


def seconds(action: Callable[[], object]) -> float:
    """Processor time of the fastest of five: what disturbs only ever adds."""
    times: list[float] = []
    for _ in range(5):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.promise("G41")
@pytest.mark.parametrize("kind", LONG)
def test_time_grows_no_faster_than_the_query(kind: str) -> None:
    """At most 2.3 times a doubling, over three doublings: what is quadratic takes four times as long each time."""
    guarded = Guarded(filled()).scoped(tenant="acme")
    gc.collect()
    gc.disable()
    try:
        # A disturbed measurement is made again; what is quadratic stays so.
        growth = [_growth(guarded, LONG[kind])]
        while growth[-1] > MOST and len(growth) < 3:
            growth.append(_growth(guarded, LONG[kind]))
    finally:
        gc.enable()
    assert min(growth) <= MOST, growth


def _growth(guarded: Guarded, make: Callable[[int], str]) -> float:
    times = [seconds(lambda length=length: guarded.search(make(length))) for length in LENGTHS]  # type: ignore[misc]
    return float((times[-1] / times[0]) ** (1 / (len(LENGTHS) - 1)))
