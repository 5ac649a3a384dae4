"""HTML: what a person sees of a page, as Markdown."""

from __future__ import annotations

import time

import pytest

from wellhead.backends.readers.html import read_html
from wellhead.errors import DocumentError


def text_of(body: str) -> str:
    return read_html(f"<!doctype html><title>t</title><body>{body}".encode(), "a.html").text


def test_blocks() -> None:
    text = text_of(
        "<h1>One <em>two</em></h1><p>A&amp;B\n  <a href='x'>link</a> <b>bold</b>&nbsp;x<br>next</p>"
        "<blockquote><p>said</p><p>twice</p></blockquote><img alt='a cat'>"
    )
    assert text == "# One two\n\nA&B link bold x\nnext\n\n> said\n>\n> twice\n\na cat\n"


def test_lists_nest_and_number() -> None:
    text = text_of("<ol start=3><li>a<ul><li>b<li>c</ul><li><p>d</p><p>e</p></ol><dl><dt>T<dd>D<dd>E</dl>")
    assert text == "3. a\n   - b\n   - c\n4. d\n\n   e\n\nT\n: D\n: E\n"


def test_code_keeps_its_shape_and_language() -> None:
    text = text_of(
        '<div class="highlight-python"><pre>def f():\n    return "<b>&lt;"\n</pre></div>'
        '<pre><code class="x language-c++">``` \n</code></pre><p>use <code>a  b</code> or <code>`</code></p>'
    )
    assert text.startswith('```python\ndef f():\n    return "<"\n```\n\n````c++\n```\n````\n\n')
    assert text.endswith("use `a b` or `` ` ``\n")


def test_tables_fill_spans_and_join_headers() -> None:
    text = text_of(
        "<table><caption>Cap</caption><thead><tr><th rowspan=2>K<th colspan=2>Group<tr><th>a<th>b</thead>"
        "<tr><td rowspan=2>x|y<td>1<td><ul><li>p<li>q</ul><tr><td>2<td></table>"
    )
    assert text == "Cap\n\n| K | Group a | Group b |\n| --- | --- | --- |\n| x\\|y | 1 | p; q |\n| x\\|y | 2 |  |\n"


def test_a_layout_table_is_no_table() -> None:
    assert text_of("<table><tr><td><h2>H</h2><p>one<td><p>two</table>") == "## H\n\none\n\ntwo\n"
    assert text_of("<table><tr><td>only</table>") == "only\n"


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>SECRET</p>",
        '<div aria-hidden="true">SECRET</div>',
        '<p style="color:red; display : none">SECRET</p>',
        '<p style="visibility:hidden">SECRET</p>',
        '<p style="font-size:0px">SECRET</p>',
        '<p style="OPACITY: 0.0">SECRET</p>',
        '<p class="a gone">SECRET</p>',
        '<p id="off">SECRET</p>',
        "<script>SECRET</script><style>SECRET{}</style><template>SECRET</template><noscript>SECRET</noscript>",
        "<!-- SECRET --><textarea>SECRET</textarea><svg><text>SECRET</text></svg><iframe>SECRET</iframe>",
        "<pre>code<span hidden>SECRET</span></pre><code>x<i style='display:none'>SECRET</i></code>",
        "<table><tr hidden><td>SECRET<td>b</tr><tr><th>a<td hidden>SECRET</td><th>b<tr><td>1<td>2</table>",
    ],
)
def test_hidden_text_is_not_read(hidden: str) -> None:
    styles = "<style>/* .shown{display:none} */ .gone, #off { display: none } @media print { .shown { display: none } }"
    text = text_of(f"{styles} .back{{display:none}} .back{{display:block}}</style>{hidden}<p class=shown>seen</p>")
    assert "SECRET" not in text
    assert text.endswith("seen\n")


def test_what_only_looks_hidden_is_read() -> None:
    text = text_of("<p style='opacity:0.5'>a</p><p style='font-size:0.8em'>b</p><p hidden=until-found>c</p>")
    assert text == "a\n\nb\n\nc\n"


def test_main_content_is_chosen() -> None:
    frame = "<header>LOGO</header><nav>MENU</nav><aside>ADS</aside><form>SEARCH</form><footer>LEGAL</footer>"
    article = "<article><header><h1>Title</h1></header><p>Words of the article.</p><footer>by Ann</footer></article>"
    wanted = "# Title\n\nWords of the article.\n\nby Ann\n"
    assert text_of(f"{frame}<main>{article}<nav>PAGES</nav></main>") == wanted
    assert text_of(f"{frame}<div>teaser</div>{article}") == wanted
    assert text_of(f"{frame}<div role=main>{article}</div>") == wanted
    assert text_of("<form><header>LOGO</header><nav>MENU</nav><p>all in a form</form>") == "LOGO\n\nall in a form\n"
    assert text_of("<nav>nothing but a menu</nav>") == "nothing but a menu\n"
    both = text_of(f"{frame}{article}{article}")
    assert both == wanted + "\n" + wanted


def test_text_that_looks_like_markdown_is_escaped() -> None:
    text = text_of("<p># no<p>| a | b<p>- no<p>1. no<p>&lt;div&gt; no<p>```<p>===<p>a # b | c<p>-1 and #x<h2>C # </h2>")
    lines = [line for line in text.split("\n") if line]
    assert lines == [
        *("\\# no", "\\| a | b", "\\- no", "1\\. no", "\\<div> no", "\\```", "\\===", "a # b | c", "-1 and #x"),
        "## C \\#",
    ]


def test_title_metadata_and_language() -> None:
    reading = read_html(
        b'<html lang="de-AT"><head><title> A\n B </title><meta name=Description content=" d  e ">'
        b'<meta name=keywords content="x, y,"><meta property="article:published_time" content="2026-01-02">'
        b'<meta name=viewport content=v></head><body><h1>H</h1><a href="#h">\xc2\xb6</a></body></html>',
        "a.html",
    )
    assert (reading.title, reading.language, reading.media_type) == ("A B", "de", "text/markdown")
    assert reading.metadata == {"description": "d e", "keywords": ("x", "y"), "date": "2026-01-02"}
    assert reading.text == "# H\n"
    assert read_html(b"<h1>Only <i>this</i></h1>", "a.html").title == "Only this"


def test_the_declared_charset_is_used() -> None:
    page = '<meta charset="windows-1251"><p>Привет, мир</p>'
    assert read_html(page.encode("cp1251"), "a.html").text == "Привет, мир\n"
    assert read_html(page.encode("utf-8"), "a.html").text == "Привет, мир\n"


def test_powers_are_not_run_into_their_base() -> None:
    assert text_of("<p>10<sup>6</sup> H<sub>2</sub>O fact<sup><a href=#n>[1]</a></sup>") == "10^6 H2O fact[1]\n"


def test_a_page_without_visible_text_is_refused() -> None:
    with pytest.raises(DocumentError, match="no visible text"):
        text_of("<div id=root></div><script>render()</script>")


@pytest.mark.parametrize("tag", ["div", "ul><li", "blockquote", "table><tr><td", "b", "dl><dd"])
def test_deep_nesting_neither_crashes_nor_hangs(tag: str) -> None:
    started = time.perf_counter()
    assert "deep" in text_of(f"<{tag}>" * 3_000 + "deep")
    assert time.perf_counter() - started < 10


def test_nesting_without_end_is_refused() -> None:
    assert text_of("<div>" * 10_000 + "deep") == "deep\n"
    with pytest.raises(DocumentError, match="nested too deeply"):
        text_of("<div>" * 100_000 + "deep")


@pytest.mark.parametrize(
    "body",
    [
        "<style>" + "a" * 200_000,
        "<style>" + "/*" * 100_000,
        "<style>" + "@" * 100_000,
        "<style>" + "@a{x{}" * 30_000,
        "<ol>" + "<li>x" * 20_000,
        "<table><tr>" + "<td>x" * 20_000,
        "<p style='opacity:" + "0" * 100_000 + "1'>x",
        "<table>" + "<tr><td colspan=999 rowspan=999>x" * 300,
    ],
)
def test_hostile_pages_take_linear_time(body: str) -> None:
    started = time.perf_counter()
    text_of(f"<p>seen</p>{body}")
    assert time.perf_counter() - started < 10
