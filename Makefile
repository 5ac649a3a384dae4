# `make help` lists the targets. Nothing but Python 3.11 or newer, make and git need be there before.
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$name; break; fi; done)
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RUN_TESTS := $(BIN)/python -m pytest -q -n 2 --dist worksteal
SMALL := not faults and not slow

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types docs docs-check test-faults test-doors test-stores test-slow bench \
	demo-neural demo-llm constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile

setup: $(INSTALLED) ## make .venv and install everything into it
	@:

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Wellhead needs Python 3.11 or newer and found none; name one: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/pip || { echo "making $(VENV) with $(PYTHON)" && $(PYTHON) -m venv $(VENV); } || { rm -rf $(VENV); \
		echo "could not make $(VENV): is the venv module installed (python3-venv on Debian)?" >&2; exit 1; }
	@echo "installing Wellhead and its tools into $(VENV) (a minute or two the first time)"
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --upgrade pip
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --group dev
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --no-build-isolation --editable .
	@touch $@

demo: setup ## search the sample corpus and measure it
	@PATH="$(abspath $(BIN)):$$PATH" sh examples/demo.sh

test: setup ## the tests of every day
	$(RUN_TESTS) -m "$(SMALL)" tests --ignore=tests/doors --ignore=tests/stores

check: setup lint types docs-check test ## what every commit must pass

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: setup
	$(BIN)/mypy
	$(BIN)/mypy tests/typing
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: setup ## write the generated pages of docs/reference
	$(BIN)/python docs/generate.py

docs-check: setup
	$(BIN)/python docs/generate.py --check

test-faults: setup ## crash, corruption and load
	$(RUN_TESTS) -m "faults and not slow" tests

test-doors: setup ## servers, browser, the suites of other libraries
	@if ls tests/doors/test_*.py >/dev/null 2>&1; then $(RUN_TESTS) -m "not slow" tests/doors; \
	else echo "test-doors: no server is built yet, nothing to test"; fi

test-stores: setup ## the stores of other libraries
	@if ls tests/stores/test_*.py >/dev/null 2>&1; then $(RUN_TESTS) -m "not slow" tests/stores; \
	else echo "test-stores: no store of another library is built yet, nothing to test"; fi

test-slow: setup ## the long property, fuzz and kill runs
	@$(RUN_TESTS) -m slow --hypothesis-profile=long tests; code=$$?; \
	if [ $$code -eq 5 ]; then echo "test-slow: no test is marked slow yet"; else exit $$code; fi

# Folders in BEIR's form; the cuts are fitted over two or more of them.
COLLECTIONS ?= examples/handbook

bench: setup ## quality and speed tables, over COLLECTIONS="folder folder ..."
	$(BIN)/python benchmarks/speed_start.py
	$(BIN)/python benchmarks/speed_search.py --rows 20000 100000 --check
	$(BIN)/python benchmarks/speed_guard.py --check
	@for folder in $(COLLECTIONS); do $(BIN)/wellhead eval $$folder || exit 1; done
	$(BIN)/python benchmarks/quality_cuts.py $(COLLECTIONS)

demo-neural: setup ## the demo with a larger embedder
	@echo "demo-neural: no neural embedder is built yet"

demo-llm: setup ## the demo with a language model
	@echo "demo-llm: no generator is built yet"

constraints: ## pin the newest versions of everything in constraints.txt
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && $(PYTHON) -m venv $$fresh && \
	$$fresh/bin/python -m pip install -qq --upgrade pip && \
	$$fresh/bin/python -m pip install -qq --group dev && \
	$$fresh/bin/python -m pip install -qq --no-build-isolation --editable . && \
	{ sed -n '/^#/p' constraints.txt; $$fresh/bin/python -m pip freeze --all --exclude-editable --exclude setuptools | grep '==' | sort -f; } > $$fresh/pins && \
	cp $$fresh/pins constraints.txt && echo "constraints.txt holds $$(grep -c == constraints.txt) pins"

clean: ## remove everything that a target made
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
