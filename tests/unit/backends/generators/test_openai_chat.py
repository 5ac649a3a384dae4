"""A chat model over HTTP: what is sent, what is read, and what each failure becomes. The key is in no message."""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx2
import pytest

from wellhead import BackendError, BackendTimeout, ConfigError, RateLimited, UsageError, WellheadError
from wellhead.agent.loop import run_tool_loop_sync
from wellhead.agent.messages import Message
from wellhead.agent.registry import Registry
from wellhead.backends.generators.answers import retry_after
from wellhead.backends.generators.openai_chat import OpenAIChat

KEY = "sk-marker-5ec12e7"
ASKED = [{"role": "user", "content": "How do I rotate a key?"}]
SAID = {"choices": [{"message": {"role": "assistant", "content": "Once a year."}}]}
USED = {**SAID, "usage": {"prompt_tokens": 12, "completion_tokens": 4, "total_tokens": 16}}

Answer = Callable[[httpx2.Request], httpx2.Response]


def chat(answer: Answer, **options: Any) -> OpenAIChat:
    return OpenAIChat(
        "small-1",
        **{
            "base_url": "http://model.test:8080/v1/",
            "api_key": KEY,
            "transport": httpx2.MockTransport(answer),
            **options,
        },
    )


def answering(status: int, body: Any = None, **headers: str) -> Answer:
    content = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    return lambda request: httpx2.Response(status, content=content, headers=headers)


def failure(answer: Answer, **options: Any) -> WellheadError:
    with pytest.raises(WellheadError) as caught:
        chat(answer, **options).generate(ASKED)
    return caught.value


def test_a_reply_is_read_with_its_usage() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=USED)

    reply = chat(answer, options={"temperature": 0}).generate(ASKED)
    assert reply == {
        "text": "Once a year.",
        "tool_calls": (),
        "usage": {"input_tokens": 12, "output_tokens": 4, "calls": 0},
    }
    (request,) = seen
    assert str(request.url) == "http://model.test:8080/v1/chat/completions"
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert json.loads(request.content) == {"temperature": 0, "model": "small-1", "messages": ASKED}


def test_without_a_key_none_is_sent() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        assert "Authorization" not in request.headers
        return httpx2.Response(200, json=SAID)

    assert chat(answer, api_key=None).generate(ASKED)["text"] == "Once a year."


def test_tools_and_their_answers_go_out_in_the_endpoints_form() -> None:
    sent: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        if len(sent) == 1:
            function = {"name": "double", "arguments": '{"number": 4}'}
            call = {"id": "call_1", "type": "function", "function": function}
            return httpx2.Response(200, json={"choices": [{"message": {"content": None, "tool_calls": [call]}}]})
        return httpx2.Response(200, json=USED)

    def double(number: int) -> int:
        """Double a number."""
        return number * 2

    result = run_tool_loop_sync(chat(answer), Registry(double), [Message("user", "Twice four?")])
    assert result.final.text == "Once a year."
    assert result.usage.input_tokens == 12
    first, second = sent
    assert first["tools"][0]["function"]["name"] == "double"
    assert first["tools"][0]["function"]["parameters"]["required"] == ["number"]
    assert second["messages"][1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "double", "arguments": '{"number": 4}'}}
            ],
        },
        {"role": "tool", "content": "8", "tool_call_id": "call_1"},
    ]


def test_arguments_that_are_no_json_go_to_the_executor_as_they_are() -> None:
    call = {"id": "c", "function": {"name": "double", "arguments": '{"number": '}}
    reply = chat(answering(200, {"choices": [{"message": {"tool_calls": [call]}}]})).generate(ASKED)
    assert reply["tool_calls"] == ({"id": "c", "name": "double", "arguments": '{"number": '},)


@pytest.mark.promise("A33")
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BackendError),
        (401, ConfigError),
        (403, ConfigError),
        (404, ConfigError),
        (422, BackendError),
        (429, RateLimited),
        (500, BackendError),
        (503, BackendError),
        (302, BackendError),
        (204, BackendError),
    ],
)
def test_each_status_is_an_error_of_ours_with_its_cause(status: int, kind: type[WellheadError]) -> None:
    error = failure(answering(status, {"error": {"message": f"bad key {KEY}", "prompt": "rotate"}}))
    assert type(error) is kind
    assert error.__cause__ is not None
    assert error.where == "model.test:8080"
    assert error.fix
    assert "rotate" not in str(error)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("soon", None), ("", None), ("nan", None), ("inf", None)],
)
def test_how_long_to_wait_is_the_endpoints_own_word(header: str, seconds: float | None) -> None:
    error = failure(answering(429, None, **{"Retry-After": header}))
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == seconds


def test_how_long_to_wait_may_be_a_date() -> None:
    assert retry_after("Fri, 01 Jan 2021 00:00:00 GMT") == 0.0
    assert (retry_after("Fri, 01 Jan 2999 00:00:00 GMT") or 0) > 1e9
    assert retry_after(None) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>proxy</html>",
        b'{"choices": [',
        b"[]",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"choices": [{"message": {"tool_calls": [{"id": "c"}]}}]}',
        b'{"choices": [{"message": {"tool_calls": [{"function": {"name": 5}}]}}]}',
        b"\xff\xfe",
        b'{"choices": ' + b"[" * 5_000,
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error_and_no_empty_reply(body: bytes) -> None:
    error = failure(answering(200, body))
    assert type(error) is BackendError
    assert "cannot be read" in error.what


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx2.ConnectError("refused"), BackendError),
        (httpx2.RemoteProtocolError("nonsense"), BackendError),
        (httpx2.ReadTimeout("slow"), BackendTimeout),
        (httpx2.ConnectTimeout("slow"), BackendTimeout),
    ],
)
def test_what_happens_on_the_way_is_told_apart(raised: Exception, kind: type[WellheadError]) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise raised

    error = failure(answer)
    assert type(error) is kind
    assert error.__cause__ is raised


def endless() -> Iterator[bytes]:
    while True:
        yield b" " * 1_000_000


def dripping() -> Iterator[bytes]:
    while True:
        time.sleep(0.02)
        yield b" "


def test_an_answer_without_end_is_cut_off() -> None:
    assert "no end" in failure(lambda request: httpx2.Response(200, content=endless())).why
    started = time.perf_counter()
    error = failure(lambda request: httpx2.Response(200, content=dripping()), timeout=0.1)
    assert isinstance(error, BackendTimeout)
    assert time.perf_counter() - started < 5


def test_the_key_is_in_no_message_no_log_and_no_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told = [repr(chat(answering(200, SAID)))]
    for status in (200, 401, 429, 500):
        error = failure(answering(status, {"error": KEY}))
        told += [str(error), repr(error.to_dict()), "".join(traceback.format_exception(error))]
    assert KEY not in "".join(told) + caplog.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "model.test/v1"}, "address"),
        ({"base_url": "ftp://model.test"}, "address"),
        ({"base_url": "http://"}, "address"),
        ({"base_url": "http://model.test:port/v1"}, "address"),
        ({"base_url": f"http://model.test/v1?key={KEY}"}, "address"),
        ({"base_url": f"http://user:{KEY}@model.test/v1"}, "password"),
        ({"api_key": f"{KEY}\n"}, "no key"),
        ({"api_key": ""}, "no key"),
        ({"api_key": f"{KEY} é"}, "no key"),
        ({"timeout": 0}, "timeout"),
    ],
)
def test_options_that_mean_nothing_are_refused_without_showing_a_key(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        chat(answering(200, SAID), **options)
    assert KEY not in str(caught.value)


def test_a_nameless_model_and_a_wrong_message_are_refused() -> None:
    with pytest.raises(ConfigError):
        OpenAIChat(" ", base_url="http://model.test/v1")
    with pytest.raises(UsageError):
        chat(answering(200, SAID)).generate([{"role": "robot", "content": ""}])
    with pytest.raises(ConfigError, match="options"):
        chat(answering(200, SAID), options={"seed": object()}).generate(ASKED)


# --- a real server on loopback -------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked["model"] == "slow":
            time.sleep(0.4)
        status = 200 if self.headers["Authorization"] == f"Bearer {KEY}" else 401
        body = json.dumps(USED).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's)
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_over_a_real_connection(address: str) -> None:
    with OpenAIChat("small-1", base_url=address, api_key=KEY) as model:
        assert [model.generate(ASKED)["text"] for _ in range(2)] == ["Once a year.", "Once a year."]
    with OpenAIChat("small-1", base_url=address, api_key="another") as model, pytest.raises(ConfigError):
        model.generate(ASKED)
    with OpenAIChat("slow", base_url=address, api_key=KEY, timeout=0.1) as model, pytest.raises(BackendTimeout):
        model.generate(ASKED)


def test_where_nobody_listens(address: str) -> None:
    port = int(address.rsplit(":", 1)[1].partition("/")[0])
    nobody = f"http://127.0.0.1:{port - 1 if port > 2_000 else port + 1}/v1"
    with OpenAIChat("small-1", base_url=nobody) as model, pytest.raises(BackendError) as caught:
        model.generate(ASKED)
    assert isinstance(caught.value.__cause__, httpx2.ConnectError)
