"""`wellhead index`: folders become a searchable index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wellhead.doors.cli.again import place_words
from wellhead.doors.cli.options import PATH, TEXT, json_option, scope_option
from wellhead.doors.cli.output import counted, next_command, put, put_json, say, warn
from wellhead.doors.cli.progress import progress
from wellhead.errors import IngestStopped, UsageError

if TYPE_CHECKING:
    from wellhead.index import Index
    from wellhead.records import SyncReport

__all__ = ["index"]

PARTIAL = 8


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.option(
    "--into",
    "--index",
    "into",
    type=PATH,
    default="kb",
    envvar="WELLHEAD_INDEX",
    show_default=True,
    show_envvar=True,
    help="The index folder; made where it does not exist.",
)
@click.option(
    "--include",
    type=TEXT,
    multiple=True,
    metavar="PATTERN",
    help="Only files that match (as .gitignore); others are dropped.",
)
@click.option("--exclude", type=TEXT, multiple=True, metavar="PATTERN", help="No files that match (as .gitignore).")
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@click.option("--no-prune", is_flag=True, help="Keep documents whose file is gone.")
@click.option("--prune-all", is_flag=True, help="Remove all documents of a folder in which none is left.")
@click.option("--prefix", type=TEXT, default="", help="Put before every document id (guides/).")
@click.option("--origin", type=TEXT, default=None, metavar="NAME", help="The name that the folder was indexed under.")
@click.option("--embedder", type=TEXT, default=None, metavar="NAME", help="What embeds (static).")
@click.option("--chunker", type=TEXT, default=None, metavar="NAME", help="What chunks (structure, fixed, paragraph).")
@click.option(
    "--date-key",
    "date_keys",
    type=TEXT,
    multiple=True,
    metavar="KEY",
    help="Metadata under KEY holds ISO-8601 dates: a document with anything else there is refused. "
    "Kept with the index until others are named; '' for none.",
)
@scope_option
@json_option
def index(paths: tuple[str, ...], into: str, dry_run: bool, as_json: bool, **options: Any) -> int:
    """Index folders: new, changed and gone files."""
    check_paths(paths, into)
    _check_options(paths, options)
    reports: dict[str, SyncReport] = {}
    with _open(into, dry_run, options) as opened:
        for path in paths:
            reports[path], stopped = _sync(opened, path, dry_run, options)
            if stopped:
                say(("error: ", "error"), str(stopped))
                break
    if as_json:
        put_json(_plain(into, reports))
    else:
        _tell(into, options["scope"], reports)
    return 0 if all(report.complete for report in reports.values()) else PARTIAL


def check_paths(paths: Sequence[str], into: str) -> None:
    """Refuse paths that are missing, given twice, within one another, or within the index.

    Raises:
        UsageError: says which.
    """
    target = _resolved(into, "--into")
    seen: dict[Path, str] = {}
    for given in paths:
        path = _resolved(given, "PATH")
        if not path.exists():
            raise UsageError(f"{given!r} does not exist", where=str(path), fix="check the path; a folder or a file")
        if path == target or target in path.parents:
            raise UsageError(
                f"{given!r} lies inside the index",
                where=str(target),
                why="an index does not index itself",
                fix="name the folder with your documents, or another index with --into",
            )
        for other, name in seen.items():
            if path == other or other in path.parents or path in other.parents:
                what = "is given twice" if path == other else f"and {name!r} lie in one another"
                raise UsageError(
                    f"{given!r} {what}", why="its files would be indexed twice", fix="name the outer one, once"
                )
        seen[path] = given


def _resolved(given: str, name: str) -> Path:
    """The path in full; a blank one is refused, as it would mean the current folder."""
    if not given.strip():
        raise UsageError(f"{name} is blank", fix="name a folder; the current one is '.'")
    try:
        path = Path(given).resolve()
        path.exists()  # refuses a path that is too long, which resolving does not on every system
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{name} cannot be looked at", where=f"{given!r:.200}", why=why, fix="check it") from error
    return path


def _check_options(paths: Sequence[str], options: Mapping[str, Any]) -> None:
    if options["origin"] is not None and len(paths) > 1:
        raise UsageError(
            f"--origin names one folder, and {len(paths)} are given",
            why="each run removes what the other folder brought under that name",
            fix="index them one at a time",
        )
    if options["no_prune"] and options["prune_all"]:
        raise UsageError("--no-prune and --prune-all contradict one another", fix="give one of them")


def _open(into: str, dry_run: bool, options: Mapping[str, Any]) -> Index:
    from wellhead.index import Index

    scope = options["scope"]
    # A dry run writes nothing, neither an empty index nor a setting.
    exists = Path(into).exists()
    place = ":memory:" if dry_run and not exists else into
    opened = Index.open(
        place,
        scope_key=next(iter(scope), None),
        embedder=options["embedder"],
        chunker=options["chunker"],
        date_keys=list(filter(None, options["date_keys"])) if options["date_keys"] else None,
        read_only=dry_run and exists,
    )
    return opened.scoped(**scope) if scope else opened


def _sync(
    opened: Index, path: str, dry_run: bool, options: Mapping[str, Any]
) -> tuple[SyncReport, IngestStopped | None]:
    """The report, and what stopped the run early (the report then tells what was done before)."""
    with progress() as show:
        try:
            report = opened.sync(
                path,
                include=options["include"],
                exclude=options["exclude"],
                prune=not options["no_prune"],
                prune_all=options["prune_all"],
                origin=options["origin"],
                prefix=options["prefix"],
                dry_run=dry_run,
                progress=show,
            )
        except IngestStopped as stopped:
            if stopped.report is None:
                raise
            return stopped.report, stopped
    return report, None


def _plain(into: str, reports: Mapping[str, SyncReport]) -> dict[str, object]:
    return {
        "schema": 1,
        "index": into,
        "complete": all(report.complete for report in reports.values()),
        "reports": [{"path": path, **report.to_dict()} for path, report in reports.items()],
    }


def _tell(into: str, scope: Mapping[str, str], reports: Mapping[str, SyncReport]) -> None:
    for path, report in reports.items():
        if len(reports) > 1:
            put((f"{path}:", "strong"))
        put(str(report))
        if not report.read and not report.refused:
            warn(f"no document was read under {path!r}", fix="check --include, --exclude and .gitignore")
    if any(not report.complete for report in reports.values()):
        left = sum(len(report.refused) + len(report.failed) for report in reports.values())
        warn(
            f"{counted(left, 'document')} could not be taken in, so the exit code is 8",
            why="see `refused` and `not indexed` above; an earlier version that was indexed stays searchable",
            fix="do what the line says, or repair the file, or leave it out with --exclude, and run it again",
        )
    if any(report.dry_run for report in reports.values()):
        say("nothing was written (--dry-run)")
    elif any(report.read for report in reports.values()):
        next_command("search", "your question", *place_words(into, scope))
