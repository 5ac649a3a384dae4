"""How hits, and explanations of them, read on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wellhead.doors.cli.output import INDENT, Part, command, excerpt, one_line, put, say, warn

if TYPE_CHECKING:
    from wellhead.records import Explanation, Hit, Hits, Signals, Threshold

__all__ = ["put_explanation", "put_hit", "say_empty", "say_near_misses", "say_warnings"]

SHORT_ID = 12
TOP_TERMS = 8
NEAR_MISSES = 3
ADVICE = {
    "no_match": "other words, or --cut off to see what is nearest all the same",
    "filtered_out": "drop or widen --filter",
    "empty_index": "index something first",
}


def put_hit(hit: Hit, index: str) -> None:
    """One hit: rank, score, citation, id, verdict unless it passed; then the text and where else it stands."""
    put(*_headline(hit))
    text, shortened = excerpt(hit.text)
    put(text)
    if shortened:
        put((f"{INDENT}… {command('show', hit.id[:SHORT_ID], '--index', index)}", "dim"))
    for source in hit.also_in:
        put((f"{INDENT}also in {one_line(source.citation)}", "dim"))


def put_explanation(explanation: Explanation) -> None:
    """The signals, the words that gave most, and those that matched by their stem only."""
    put(f"{INDENT}signals: {_signals(explanation.signals)}")
    for line in _terms(explanation):
        put(f"{INDENT}{line}")


def say_empty(query: str, hits: Hits, index: str) -> None:
    """Why there are no hits, the nearest misses, and what to try."""
    say((f"{hits.outcome}: ", "warning"), hits.why_empty)
    say_near_misses(hits)
    if hits.outcome == "empty_index":
        say(("next: ", "dim"), command("index", "PATH", "--into", index))
        return
    say(("try: ", "dim"), ADVICE[hits.outcome])
    if hits.near_misses:
        say(("next: ", "dim"), command("explain", query, hits.near_misses[0].id[:SHORT_ID], "--index", index))


def say_near_misses(hits: Hits) -> None:
    """The best of what was cut, with what was measured."""
    for miss in hits.near_misses[:NEAR_MISSES]:
        say(*_headline(miss, label="near miss "), (f"  {_signals(miss.signals)}", "dim"))


def say_warnings(hits: Hits) -> None:
    """What made this search worse than the one asked for."""
    for lack in hits.degraded:
        warn(f"this search is degraded: the {lack.leg} leg is missing", why=lack.why, fix=lack.fix)
    seen, total = hits.coverage.with_vectors, hits.coverage.passages
    if seen < total:
        warn(f"the dense leg sees only {seen} of {total} passages", fix="run wellhead index again")
    if hits.threshold and any(hit.verdict == "below" for hit in hits):
        say((cut_line(hits.threshold), "dim"))


def cut_line(threshold: Threshold) -> str:
    """The cut in words, and whether anybody fitted it."""
    origin = {
        "profile": "a starting point, not calibrated",
        "calibrated": "calibrated on this index",
        "user": "given by you",
    }[threshold.origin]
    return f"[below] means: under the cut {threshold.signal} >= {threshold.value:.3g} ({origin})"


def _headline(hit: Hit, label: str = "") -> list[Part]:
    score = "-" if hit.score is None else f"{hit.score:.3f}"
    line: list[Part] = [label, f"{hit.rank}. {score}  ", (one_line(hit.citation), "cite")]
    line.append((f"  {hit.id[:SHORT_ID]}", "dim"))
    if hit.verdict != "pass":
        line.append((f"  [{hit.verdict}]", "warning" if hit.verdict == "below" else "dim"))
    return line


def _signals(signals: Signals) -> str:
    ranks = {"bm25": signals.lexical_rank, "cosine": signals.dense_rank}
    told = []
    for name in ("bm25", "coverage", "cosine", "probability", "rerank"):
        value = getattr(signals, name)
        if value is not None:
            rank = f" (rank {ranks[name]})" if ranks.get(name) is not None else ""
            told.append(f"{name} {value:.3f}{rank}")
    return ", ".join(told) or "none"


def _terms(explanation: Explanation) -> Sequence[str]:
    giving = [term for term in explanation.terms if term.score > 0]
    absent = {term.term for term in explanation.terms if term.field == "word" and term.score <= 0}
    silent = sorted(absent.difference(explanation.stem_only))
    lines = [
        f"{term.score:7.3f}  {one_line(term.term)} ({term.field}; {term.passage_count}× here, "
        f"in {term.passages} passages)"
        for term in giving[:TOP_TERMS]
    ]
    if len(giving) > TOP_TERMS:
        lines.append(f"{'…':>7}  and {len(giving) - TOP_TERMS} smaller ones")
    if silent:
        lines.append(f"not here: {', '.join(silent)}")
    if explanation.stem_only:
        lines.append(f"only by their stem: {', '.join(explanation.stem_only)}")
    return lines
