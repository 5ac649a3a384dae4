"""Jupyter notebooks as Markdown."""

from __future__ import annotations

import json

import pytest

from wellhead.backends.readers.notebook import fence, read_notebook
from wellhead.errors import DocumentError


def notebook(*cells: dict[str, object], **metadata: object) -> bytes:
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4}).encode()


def code(source: str, *outputs: dict[str, object]) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs)}


def test_cells_code_and_outputs() -> None:
    reading = read_notebook(
        notebook(
            {"cell_type": "markdown", "source": ["# Title\n", "\n", "text"]},
            code("x <- 1", {"output_type": "stream", "text": ["\x1b[31mone\x1b[0m\n", "two\n"]}),
            code("plot()", {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}}),
            code("df", {"output_type": "execute_result", "data": {"text/html": "<b>", "text/plain": ["a  b"]}}),
            code("", {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["..."]}),
            language_info={"name": "R"},
        ),
        "a.ipynb",
    )
    assert reading.title == "Title"
    assert reading.media_type == "text/markdown"
    assert reading.text == (
        "# Title\n\ntext\n\n```R\nx <- 1\n```\n\n```\none\ntwo\n```\n\n```R\nplot()\n```\n\n"
        "```R\ndf\n```\n\n```\na  b\n```\n\n```\nValueError: no\n```\n"
    )


def test_long_output_is_kept_whole() -> None:
    output = "\n".join(map(str, range(5000)))
    assert output in read_notebook(notebook(code("f()", {"output_type": "stream", "text": output})), "a.ipynb").text


def test_a_fence_is_longer_than_any_inside() -> None:
    assert fence("a\n````\nb", "md") == "`````md\na\n````\nb\n`````"


def test_format_3_and_title_from_the_metadata() -> None:
    old = {
        "worksheets": [{"cells": [{"cell_type": "code", "input": ["1+1"], "outputs": []}]}],
        "metadata": {"title": "T"},
    }
    reading = read_notebook(json.dumps(old).encode(), "a.ipynb")
    assert (reading.title, reading.text) == ("T", "```python\n1+1\n```\n")


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"cells": 1}',
        b'{"cells": [1]}',
        b'{"cells": [{"source": {}}]}',
        b'{"cells": [{}]}',
        b"[" * 99999,
    ],
)
def test_malformed_notebooks_are_refused(data: bytes) -> None:
    with pytest.raises(DocumentError):
        read_notebook(data, "a.ipynb")
