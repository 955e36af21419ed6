# Two commands on a fresh machine: `make demo` and `make test`. Both stand on `make setup`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: setup demo check test test-pure test-torch test-e2e test-corpus clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: setup
	$(BIN)/torchbisect run examples/covariance_head.py --torch 2.8.0 --jobs 2 --out demo-out

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test-pure: setup
	$(BIN)/python -m pytest -q -m "not torch and not e2e"

test-torch: setup
	$(BIN)/python -m pytest -q -m torch

test-e2e: setup
	$(BIN)/python -m pytest -q -m e2e

# Hours: every bug of a corpus over all releases. What it came to is kept in docs/corpus.md.
CORPUS ?= ../shared/corpus
test-corpus: setup
	TORCHBISECT_CORPUS=$(abspath $(CORPUS)) $(BIN)/python -m pytest -q tests/corpus

# Two at a time: an install waits for the disk and the network while a compile has a core.
test: check
	$(BIN)/python -m pytest -q --numprocesses 2 --no-loadscope-reorder --durations 25

clean:
	rm -rf $(VENV) demo-out corpus-out build dist
