"""What an index holds, and whether it is sound: `show`, `ls`, `rm`, `stats`, `verify`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from wellhead.doors.cli.again import place_words
from wellhead.doors.cli.handle import find_passage, open_index, unknown_document
from wellhead.doors.cli.options import TEXT, index_option, json_option, scope_option
from wellhead.doors.cli.output import command, counted, next_command, one_line, put, put_json, put_table, say
from wellhead.doors.cli.upkeep import put_findings
from wellhead.errors import UsageError

if TYPE_CHECKING:
    from wellhead.index import Index
    from wellhead.records import Document, IndexStats, Passage, Storage

__all__ = ["ls", "rm", "show", "stats", "verify"]

FOUND_DAMAGE = 4
HEX = frozenset("0123456789abcdef")
SHORTEST_PREFIX = 6


@click.command()
@click.argument("given", metavar="ID", type=TEXT)
@index_option
@scope_option
@json_option
def show(given: str, index: str, scope: dict[str, str], as_json: bool) -> int:
    """Show a document or a passage.

    ID is a document's, or the first six or more characters of a passage's.
    """
    with open_index(index, scope) as opened:
        document = opened.get(given)
        if document is not None:
            _show_document(document, opened.passages(given), as_json)
        elif len(given) >= SHORTEST_PREFIX and set(given.lower()) <= HEX:
            _show_passage(find_passage(opened, given), as_json)
        else:
            raise unknown_document(opened, given)
    return 0


@click.command()
@index_option
@scope_option
@json_option
def ls(index: str, scope: dict[str, str], as_json: bool) -> int:
    """List the documents: id, passages, title."""
    with open_index(index, scope) as opened:
        rows = [(item.id, item.passages, item.title) for item in opened.summaries()]
    if as_json:
        listed = [{"id": name, "passages": count, "title": title} for name, count, title in rows]
        put_json({"schema": 1, "documents": listed})
        return 0
    put_table(("id", "passages", "title"), rows)
    if not rows:
        say("the index holds no documents")
        next_command("index", "PATH", *place_words(index, scope, "--into"))
    return 0


@click.command()
@click.argument("ids", metavar="ID...", nargs=-1, type=TEXT)
@click.option("--all", "everything", is_flag=True, help="Remove every document; needs --yes.")
@click.option("--yes", is_flag=True, help="Yes, every document.")
@index_option
@scope_option
@json_option
def rm(ids: tuple[str, ...], everything: bool, yes: bool, index: str, scope: dict[str, str], as_json: bool) -> int:
    """Remove documents by id.

    Where one id is unknown, nothing is removed.
    """
    _check_removal(ids, everything, yes)
    with open_index(index, scope, write=True) as opened:
        doomed = [item.id for item in opened.summaries()] if everything else _known(opened, ids)
        removed = opened.remove(doomed)
    if as_json:
        put_json({"schema": 1, "removed": removed, "ids": doomed})
        return 0
    if ids:
        for name in doomed:
            put(f"removed {one_line(name)}")
    else:
        put(f"removed all {removed} documents")
    say("a document whose file still exists comes back with the next wellhead index of its folder")
    return 0


@click.command()
@click.option("--storage", "only_storage", is_flag=True, help="Only how the whole index lies on the disk.")
@index_option
@scope_option
@json_option
def stats(only_storage: bool, index: str, scope: dict[str, str], as_json: bool) -> int:
    """Count what the index holds, and how it lies on the disk."""
    with open_index(index, scope) as opened:
        if only_storage:
            return _show_storage(opened.storage(), as_json)
        held = opened.stats()
    if as_json:
        put_json(held.to_dict())
        return 0
    _tell_stats(held)
    if not held.documents:
        next_command("index", "PATH", *place_words(index, scope, "--into"))
    return 0


def _show_storage(storage: Storage, as_json: bool) -> int:
    if as_json:
        put_json(storage.to_dict())
    else:
        _put_fields(_storage_fields(storage))
    return 0


@click.command()
@index_option
@json_option
def verify(index: str, as_json: bool) -> int:
    """Check all that is stored, and searches by brute force.

    Exits with 4 where something is wrong, and says how to mend it.
    """
    with open_index(index, {}) as opened:
        report = opened.verify()
    if as_json:
        put_json(report.to_dict())
    else:
        checked = ", ".join(
            counted(number, noun)
            for number, noun in (
                (report.documents, "document"),
                (report.passages, "passage"),
                (report.vectors, "vector"),
            )
        )
        put(f"checked {checked}: {'ok' if report.ok else counted(len(report.findings), 'finding')}")
        put_findings(report.findings)
        for note in report.notes:
            say(("note: ", "dim"), f"{note.where}\n  why: {note.why}\n  mend: {note.fix}")
    return 0 if report.ok else FOUND_DAMAGE


def _check_removal(ids: tuple[str, ...], everything: bool, yes: bool) -> None:
    if everything and ids:
        raise UsageError("rm takes ids or --all, not both", fix="drop one of them")
    if everything and not yes:
        raise UsageError("--all removes every document", fix="add --yes when that is what you want")
    if not everything and not ids:
        raise UsageError("rm needs the id of a document", fix=f"{command('ls')} lists the ids")


def _known(opened: Index, ids: tuple[str, ...]) -> list[str]:
    # A damaged document cannot be read, and to remove it is one way to mend that: so its text is not asked for.
    held = {item.id for item in opened.summaries()}
    for name in ids:
        if name not in held:
            raise unknown_document(opened, name)
    return list(dict.fromkeys(ids))


def _show_document(document: Document, passages: list[Passage], as_json: bool) -> None:
    if as_json:
        listed = [_plain_passage(passage) for passage in passages]
        put_json({"schema": 1, "document": _plain(document), "passages": listed})
        return
    _put_fields(
        {
            "document": document.id,
            "title": document.title,
            "uri": document.uri,
            **_metadata(document.metadata),
            "language": document.language,
            "passages": ", ".join(passage.id[:12] for passage in passages) or "none",
        }
    )
    put("")
    put(document.text)


def _show_passage(passage: Passage, as_json: bool) -> None:
    if as_json:
        put_json({"schema": 1, "passage": _plain_passage(passage)})
        return
    _put_fields(
        {
            "passage": passage.id,
            "citation": passage.citation,
            "document": passage.document_id,
            "heading": " > ".join(passage.heading),
            "characters": f"{passage.start} to {passage.end}",
            **_metadata(passage.metadata),
            "language": passage.language,
            "flags": ", ".join(passage.flags),
            "context": passage.context,
        }
    )
    put("")
    put(passage.text)


def _plain(record: Document | Passage) -> dict[str, object]:
    import msgspec

    plain: dict[str, object] = msgspec.to_builtins(record)
    return plain


def _plain_passage(passage: Passage) -> dict[str, object]:
    return {**_plain(passage), "citation": passage.citation}


def _metadata(values: Mapping[str, object]) -> dict[str, str]:
    return {
        f"metadata {key}": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in values.items()
    }


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())


def _put_fields(fields: Mapping[str, object]) -> None:
    width = max(map(len, fields)) + 1
    for name, value in fields.items():
        if value not in (None, ""):
            put((f"{name + ':':<{width}} ", "dim"), one_line(str(value)))


def _tell_stats(counted: IndexStats) -> None:
    # Vectors and bytes belong to the whole: a handle of one scope counts none of them.
    whole = {} if counted.storage is None else {"vectors": counted.vectors, "bytes on disk": f"{counted.bytes:,}"}
    _put_fields(
        {
            "documents": counted.documents,
            "passages": counted.passages,
            "with vectors": counted.with_vectors,
            "incomplete": counted.incomplete,
            **whole,
            "languages": _pairs({name or "(none)": count for name, count in counted.languages.items()}),
            "areas": _pairs({name or "(none)": count for name, count in counted.areas.items()}),
            "index version": counted.index_version,
            **{f"made with {name}": value for name, value in counted.fingerprint.items()},
            **({} if counted.storage is None else _storage_fields(counted.storage)),
        }
    )


def _storage_fields(storage: Storage) -> dict[str, object]:
    return {
        "segments": f"{storage.segments} with {storage.segment_rows} passages",
        "newest passages": f"{storage.newest_rows}, in no segment yet",
        "dead rows": storage.dead_rows,
        "bytes of tables": f"{storage.tables_bytes:,}",
        "bytes of log": f"{storage.log_bytes:,}",
        "bytes of segments": f"{storage.segments_bytes:,}",
        "unusable segments": ", ".join(storage.unusable) + ("; mend: wellhead repair" if storage.unusable else ""),
        "unlisted files": ", ".join(storage.unlisted) + ("; harmless" if storage.unlisted else ""),
        "not kept in shape": storage.failure,
    }
