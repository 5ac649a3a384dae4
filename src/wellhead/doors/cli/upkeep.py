"""What keeps an index whole: `repair`, `compact`, `backup`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from wellhead.doors.cli.again import place_words
from wellhead.doors.cli.handle import open_index
from wellhead.doors.cli.options import PATH, TEXT, index_option, json_option
from wellhead.doors.cli.output import counted, next_command, put, put_json, say
from wellhead.doors.cli.progress import progress

if TYPE_CHECKING:
    from wellhead.records import Finding

__all__ = ["backup", "compact", "put_findings", "repair"]

LOST = 8


@click.command()
@click.option("--embedder", type=TEXT, default=None, metavar="NAME", help="What embeds (static).")
@click.option("--chunker", type=TEXT, default=None, metavar="NAME", help="What chunks (structure, fixed, paragraph).")
@click.option("--language", "languages", type=TEXT, multiple=True, metavar="CODE", help="Of its documents ('': all).")
@click.option("--scope-key", type=TEXT, default=None, metavar="KEY", help="What keeps tenants apart ('': nothing).")
@click.option("--date-key", "date_keys", type=TEXT, multiple=True, metavar="KEY", help="Holds dates ('': none does).")
@index_option
@json_option
def repair(index: str, as_json: bool, languages: tuple[str, ...], date_keys: tuple[str, ...], **options: Any) -> int:
    """Make anew what verify finds wrong.

    What cannot be saved is named, the damaged file is kept, and the exit code is 8. The options say what the index was
    made with; they are needed only where that is damaged too.
    """
    from wellhead.index import Index

    with progress() as show:
        report = Index.repair_at(
            index, languages=_given(languages), date_keys=_given(date_keys), progress=show, **options
        )
    if as_json:
        put_json(report.to_dict())
    else:
        put_findings(report.findings)
        put(str(report))
    if report.lost or report.unnamed or report.uncounted:
        say("what came from a folder comes back when that is indexed again:")
        next_command("index", "FOLDER", *place_words(index, {}, "--into"))
    return 0 if report.complete else LOST


def _given(values: tuple[str, ...]) -> list[str] | None:
    """None where the option was not given; what is blank stands for none at all."""
    return [value for value in values if value.strip()] if values else None


@click.command()
@index_option
@json_option
def compact(index: str, as_json: bool) -> int:
    """Take what was deleted from the disk for good.

    Writers wait meanwhile, and the file needs its own size again, twice, for a moment.
    """
    with open_index(index, {}, write=True) as opened:
        report = opened.compact()
    if as_json:
        put_json(report.to_dict())
    else:
        put(str(report))
    return 0


@click.command()
@click.argument("dest", type=PATH)
@index_option
@json_option
def backup(dest: str, index: str, as_json: bool) -> int:
    """Copy the index into the new folder DEST, while others use it.

    DEST is an index like any other; to restore it, copy all of it into an empty place.
    """
    with open_index(index, {}) as opened:
        report = opened.backup(dest)
    if as_json:
        put_json(report.to_dict())
        return 0
    held = ", ".join(
        counted(number, noun)
        for number, noun in (
            (report.documents, "document"),
            (report.passages, "passage"),
            (report.segments, "segment"),
        )
    )
    put(f"copied version {report.index_version} into {report.path}: {held}, {report.bytes:,} bytes")
    next_command("verify", *place_words(dest, {}))
    return 0


def put_findings(findings: Iterable[Finding]) -> None:
    """Each finding: its kind and place, why, and what mends it."""
    for finding in findings:
        put((f"{finding.kind}: ", "error"), f"{finding.where}\n  why: {finding.why}\n  mend: {finding.fix}")
