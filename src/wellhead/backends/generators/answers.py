"""What the answers of a model's endpoint mean when they are no reply: each status as one of our errors."""

from __future__ import annotations

import datetime
import email.utils
import math

from wellhead.errors import BackendError, ConfigError, RateLimited, WellheadError

__all__ = ["refused", "retry_after", "unreadable"]


def refused(status: int, model: str, host: str, after: float | None) -> WellheadError:
    """The error that a status stands for.

    Args:
        after: seconds that the endpoint asks to wait, or None.
    """
    why = f"it answered {status}"
    if status in (401, 403):
        return ConfigError(
            "the model's endpoint refused the key", where=host, why=why, fix="pass an api_key that may use this model"
        )
    if status == 404:
        return ConfigError(
            f"the model's endpoint knows no {model!r}", where=host, why=why, fix="check base_url and the model's name"
        )
    if status == 429:
        return RateLimited(
            "the model's endpoint asks to slow down", where=host, why=why, fix="wait, or ask less", retry_after_s=after
        )
    if 400 <= status < 500:
        return BackendError(
            "the model's endpoint refused the request",
            where=host,
            why=why,
            fix="see whether the model takes tools, and a conversation of this length",
        )
    return BackendError("the model's endpoint failed", where=host, why=why, fix="try again later")


def unreadable(host: str, why: str) -> BackendError:
    """The answer is not what was agreed on."""
    return BackendError(
        "the model's answer cannot be read", where=host, why=why, fix="check that the endpoint speaks OpenAI's API"
    )


def retry_after(header: str | None) -> float | None:
    """Seconds to wait, as the header says in seconds or as a date; None where it says nothing that can be read."""
    if not header:
        return None
    try:
        seconds = float(header)
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    except ValueError:
        pass  # a date, then
    try:
        at = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=datetime.UTC)
    return max((at - datetime.datetime.now(datetime.UTC)).total_seconds(), 0.0)
