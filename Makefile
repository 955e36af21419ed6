# On a fresh machine: `make demo` shows the tool, `make test` tests it. Everything stands on `make setup`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# pytest keeps its rewritten assertions as byte code: a third of a second run.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -q

.PHONY: setup demo check quick fast-tests test test-long test-corpus docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: setup
	$(BIN)/torchbisect run --torch 2.8.0 --jobs 2 --cache-limit 20GB --out demo-out examples/covariance_head.py
	$(BIN)/torchbisect cache --down-to 9GB

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Under a minute: lint, types and every test that needs neither torch nor seconds.
quick: setup
	$(MAKE) --no-print-directory --jobs 2 --output-sync check fast-tests

fast-tests: setup
	HYPOTHESIS_PROFILE=small $(PYTEST) --numprocesses auto --timeout 60 -m "not torch and not e2e and not slow and not long"

# Under twelve minutes on two cores: also the installed torch, one whole run over real releases, one real container.
test: check
	$(PYTEST) --numprocesses 2 --no-loadscope-reorder --durations 25 -m "not long"

# The rest: older releases, kills in every stage, attacks on the container, Ray, a real browser.
test-long: setup
	$(PYTEST) --numprocesses 2 --no-loadscope-reorder --durations 25 -m long

# Hours: every bug of a corpus over all releases. docs/corpus.md keeps the result.
CORPUS ?= ../shared/corpus
test-corpus: setup
	TORCHBISECT_CORPUS=$(abspath $(CORPUS)) $(PYTEST) -m long tests/corpus tests/e2e/test_watch.py

# The documentation, with every link checked.
docs: setup
	$(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) demo-out corpus-out build dist site
