"""The store in a folder: SQLite is the only truth."""

from wellhead.backends.stores.embedded.connection import FILE_NAME
from wellhead.backends.stores.embedded.store import EmbeddedStore

__all__ = ["FILE_NAME", "EmbeddedStore"]
