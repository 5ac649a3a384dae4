"""Readers: files and folders become documents. Each format's library is imported when its first file is read."""

from __future__ import annotations

from wellhead.backends.readers.folder import Folder, read_file, read_folder
from wellhead.backends.readers.formats import read_bytes
from wellhead.backends.readers.reading import FileSkipped, Reading
from wellhead.backends.readers.walk import Entry, Found, Refused, Skipped

__all__ = [
    "Entry",
    "FileSkipped",
    "Folder",
    "Found",
    "Reading",
    "Refused",
    "Skipped",
    "read_bytes",
    "read_file",
    "read_folder",
]
