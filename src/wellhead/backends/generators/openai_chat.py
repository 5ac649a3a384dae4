"""`OpenAIChat`: a chat model behind any endpoint that speaks OpenAI's chat completions, over httpx2.

Nothing is sent anywhere but to the address that is given. A failure is told by its kind alone: neither the key nor what
the endpoint wrote in its answer, which may repeat the prompt, becomes part of a message.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from urllib.parse import urlsplit

import httpx2
import msgspec

from wellhead.backends.generators.answers import refused, retry_after, unreadable
from wellhead.backends.generators.openai_wire import completion, request
from wellhead.errors import BackendError, BackendTimeout, ConfigError, WellheadError

__all__ = ["OpenAIChat"]

# An answer larger than this is no answer.
_MOST_BYTES = 16 * 1024 * 1024


class OpenAIChat:
    """A generator over HTTP. Close it when done, or use it as a context manager; safe to use from several threads.

    Args:
        model: its name at the endpoint.
        base_url: up to and without `/chat/completions`: "http://127.0.0.1:8080/v1".
        api_key: sent as a bearer token; None where the endpoint wants none.
        timeout: seconds for one reply.
        options: added to each request (`temperature`, `max_tokens`, `seed`, ...).
        transport: of httpx2, for tests and proxies.

    Raises:
        ConfigError: an address that is none or holds a password, a key that no header can carry.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        timeout: float = 60.0,
        options: Mapping[str, object] | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.name = _named(model)
        self._host = _host(base_url)
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._timeout = _seconds(timeout)
        self._options = dict(options or {})
        headers = {} if api_key is None else {"Authorization": f"Bearer {_key(api_key)}"}
        self._client = httpx2.Client(headers=headers, timeout=self._timeout, transport=transport)

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r}, host={self._host!r})"

    def generate(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]] = ()
    ) -> Mapping[str, object]:
        """The model's reply: text, tool_calls, usage.

        Args:
            messages: as `Message.to_dict` gives them. tools: mappings of name, description and parameters.

        Raises:
            ConfigError: the key, the address or the model's name is refused.
            RateLimited: it asks to slow down. BackendTimeout: it took too long.
            BackendError: it failed, cannot be reached, or its answer cannot be read.
        """
        body = self._body(messages, tools)
        try:
            return completion(self._post(body), self.name, self._host)
        except WellheadError:
            raise
        except httpx2.TimeoutException as error:
            raise self._late() from error
        except httpx2.HTTPError as error:
            raise BackendError(
                "the model's endpoint cannot be reached",
                where=self._host,
                why=type(error).__name__,
                fix="check that it runs and that the address is right",
            ) from error

    def _body(self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]]) -> bytes:
        made = request(self.name, messages, tools, self._options)
        try:
            return msgspec.json.encode(made)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                "the request cannot be written as JSON",
                where=self._host,
                why=type(error).__name__,
                fix="check `options`",
            ) from error

    def _post(self, body: bytes) -> bytes:
        """The answer's bytes; bounded in size and, as a whole, to about the time that one reply has."""
        deadline = time.monotonic() + self._timeout
        headers = {"Content-Type": "application/json"}
        with self._client.stream("POST", self._url, content=body, headers=headers) as response:
            if not response.is_success:
                self._refuse(response)
            read = bytearray()
            for piece in response.iter_bytes():
                read += piece
                if len(read) > _MOST_BYTES:
                    raise unreadable(self._host, "it has no end")
                if time.monotonic() > deadline:
                    raise self._late()
        return bytes(read)

    def _refuse(self, response: httpx2.Response) -> None:
        """Raises what the status means, with the library's own error as its cause."""
        try:
            response.raise_for_status()
        except httpx2.HTTPStatusError as error:
            after = retry_after(response.headers.get("Retry-After"))
            raise refused(response.status_code, self.name, self._host, after) from error
        raise unreadable(self._host, f"it has the status {response.status_code}")

    def _late(self) -> BackendTimeout:
        return BackendTimeout(
            f"the model {self.name!r} did not answer in time",
            where=self._host,
            why=f"{self._timeout:g} s passed",
            fix="give it more time, or ask for less",
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> OpenAIChat:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _named(model: object) -> str:
    if not isinstance(model, str) or not model.strip():
        raise ConfigError("a model needs a name", why=f"got {model!r:.60}", fix="as the endpoint calls it")
    return model


def _host(base_url: object) -> str:
    """The host and port, for messages: a path or a query may hold a secret."""
    try:
        parts = urlsplit(base_url) if isinstance(base_url, str) else None
        port = parts.port if parts else None
    except ValueError:
        parts = port = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ConfigError("base_url must be the address of an endpoint", fix='for example "http://127.0.0.1:8080/v1"')
    if parts.username or parts.password:
        raise ConfigError("base_url must not hold a password", where=parts.hostname, fix="pass api_key=")
    return f"{parts.hostname}:{port}" if port else parts.hostname


def _seconds(timeout: object) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < 1e6:
        raise ConfigError("timeout must be a number of seconds above 0", why=f"got {timeout!r:.60}")
    return float(timeout)


def _key(api_key: object) -> str:
    """The key as a header can carry it; what is wrong with it is never shown."""
    if (
        not isinstance(api_key, str)
        or not api_key
        or not api_key.isascii()
        or not api_key.isprintable()
        or " " in api_key
    ):
        raise ConfigError(
            "api_key is no key",
            why="it is blank, or holds blanks or signs that no header can carry",
            fix="copy it anew",
        )
    return api_key
