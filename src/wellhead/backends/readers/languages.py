"""Which kind of text a file name stands for: a table, not a guess about the content.

Source code and configuration are "text/x-NAME"; everything else has a media type without "x-" (but for
reStructuredText, whose usual name is "text/x-rst").
"""

from __future__ import annotations

from pathlib import PurePosixPath

__all__ = ["is_code", "media_type_of"]

_CODE = """
ada: adb ads          arduino: ino          asm: asm s            awk: awk              bat: bat cmd
c: c h                clojure: clj cljs cljc edn                  cmake: cmake          cobol: cob cbl
coffeescript: coffee  c++: cc cpp cxx hh hpp hxx ipp              crystal: cr           csharp: cs csx
css: css              cuda: cu cuh          cython: pyx pxd       d: d                  dart: dart
diff: diff patch      dotenv: env           elixir: ex exs        elm: elm              emacs-lisp: el
erlang: erl hrl       fortran: f f90 f95 f03                      fsharp: fs fsi fsx    gherkin: feature
glsl: glsl vert frag  go: go                gradle: gradle        graphql: graphql gql  groovy: groovy
haskell: hs lhs       hcl: tf tfvars hcl    ini: ini cfg conf properties editorconfig   java: java
javascript: js mjs cjs jsx                  json5: json5 jsonc    julia: jl             kotlin: kt kts
latex-style: sty cls  less: less            lisp: lisp lsp        lua: lua              make: mk mak
nim: nim nims         nix: nix              objective-c: m mm     ocaml: ml mli         pascal: pas pp
perl: pl pm           php: php phtml        powershell: ps1 psm1 psd1                   prolog: pro
protobuf: proto       puppet: epp           python: py pyi pyw    qml: qml              r: r
racket: rkt           ruby: rb rake gemspec rust: rs              sass: sass scss       scala: scala sbt
scheme: scm ss        shell: sh bash zsh fish ksh                 smalltalk: st         solidity: sol
sql: sql ddl          starlark: bzl star    svelte: svelte        swift: swift          tcl: tcl
terraform-state: tfstate                    thrift: thrift        toml: toml            typescript: ts tsx mts cts
verilog: v sv svh     vhdl: vhd vhdl        vim: vim              visual-basic: vb bas  vue: vue
webassembly: wat      yaml: yaml yml        zig: zig
"""
_PROSE = """
text/plain: txt text log adoc asciidoc org tex srt vtt    text/x-rst: rst rest    text/bibtex: bib
text/gettext: po    text/xml: xml xsd xsl svg
"""
_NAMES = """
make: makefile gnumakefile justfile    dockerfile: dockerfile containerfile    groovy: jenkinsfile
ruby: rakefile gemfile vagrantfile podfile    cmake: cmakelists.txt    starlark: build.bazel workspace
go: go.mod    yaml: procfile    toml: pipfile cargo.lock
"""
_INTERPRETERS = """
shell: sh bash zsh dash ksh    python: python python2 python3    javascript: node    perl: perl    ruby: ruby
lua: lua    php: php    r: rscript
"""


def _table(text: str, prefix: str = "text/x-") -> dict[str, str]:
    """Media types by the words that stand behind `name:`."""
    table: dict[str, str] = {}
    media_type = ""
    for word in text.split():
        if word.endswith(":"):
            media_type = prefix + word[:-1]
        else:
            table[word] = media_type
    return table


_BY_SUFFIX = _table(_CODE) | _table(_PROSE, prefix="")
_BY_NAME = _table(_NAMES)
_BY_INTERPRETER = _table(_INTERPRETERS)


def media_type_of(name: str, first_line: str = "") -> str:
    """The media type of a text file by its name, or by a `#!` line where the name has no suffix; else text/plain."""
    path = PurePosixPath(name.lower())
    if path.name in _BY_NAME:
        return _BY_NAME[path.name]
    if path.suffix:
        return _BY_SUFFIX.get(path.suffix[1:], "text/plain")
    if first_line.startswith("#!"):
        words = (word.rsplit("/", 1)[-1].lower() for word in first_line[2:].split())
        return next((_BY_INTERPRETER[word] for word in words if word in _BY_INTERPRETER), "text/plain")
    return "text/plain"


def is_code(media_type: str) -> bool:
    """True for source code and configuration."""
    return media_type.startswith("text/x-") and media_type != "text/x-rst"
