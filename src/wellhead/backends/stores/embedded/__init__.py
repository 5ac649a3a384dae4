"""The store in a folder: SQLite is the only truth."""

from wellhead.backends.stores.embedded.store import EmbeddedStore

__all__ = ["EmbeddedStore"]
