# Two commands on a fresh machine: `make demo` and `make test`. Each installs what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RECIPES ?= demo
DATA ?= $(if $(wildcard ../shared/data/multi30k),multi30k,tatoeba)
BENCH ?=

.PHONY: help setup demo browser test quick lint pytest oldest-torch bench bench-peers bench-recipes campaign docs clean

help:
	@echo "make demo           install, then train a German-English translator on the bundled pairs"
	@echo "make test           install, then run ruff, mypy and all tests"
	@echo "make quick          install, then run the tests that need no training, process or browser"
	@echo "make lint           run ruff and mypy"
	@echo "make bench          compare seqloom with other toolkits on this CPU (make bench-peers installs them)"
	@echo "make bench-recipes  train the demo recipe and measure its scores; RECIPES=\"…\" for others"
	@echo "make campaign       run the reliability tests with many more trials, the long tests, and tests of planted bugs"
	@echo "make oldest-torch   run the tests of the compute packages with the oldest supported torch"
	@echo "make docs           install, then build the documentation site in build/docs/html"
	@echo "make clean          remove the environment and caches (runs are kept)"

setup: $(STAMP)

# Install torch first and pinned: as a dependency of another package it would pull gigabytes of CUDA.
# Compile bytecode here, because with PYTHONDONTWRITEBYTECODE every command would compile it again.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e ".[plots,serve,dev]"
	$(BIN)/python -m compileall -q src
	touch $@

DOCS_STAMP := $(VENV)/.installed-docs

$(DOCS_STAMP): $(STAMP)
	$(BIN)/pip install -q -c constraints.txt -e ".[docs]"
	touch $@

# Execute the notebooks of the course (cached), fail on any warning, then check the links of the result.
docs: $(DOCS_STAMP)
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs/html
	$(BIN)/python -m tools.site.check_links build/docs/html
	@echo "open build/docs/html/index.html"

demo: setup
	$(BIN)/seqloom demo

lint: setup
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy

# The page tests drive a real browser: Debian's chromium, or the one that CHROMIUM names. axe-core, which
# checks accessibility, is part of the dev extra (axe-playwright-python).
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

browser:
ifeq ($(strip $(CHROMIUM)),)
	@{ [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq -y chromium fonts-dejavu-core; } > /dev/null \
	|| echo "no chromium found: install it (apt-get install chromium); the page tests are skipped without it"
endif

# In parallel: mypy uses a single core for a minute.
test: setup browser
	@$(MAKE) --no-print-directory -j 2 lint pytest

pytest: setup
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q -m "not long"

quick: setup
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q -m "not slow and not long" --ignore tests/bench --ignore tests/docs --ignore tests/lab

oldest-torch:
	$(PYTHON) tools/oldest_torch.py

# About twenty minutes on two cores. DATA: a folder with the raw files of Multi30k, or the bundled pairs.
bench: setup
	$(BIN)/python -m bench training-cpu --data $(DATA) $(BENCH)
	$(BIN)/python -m bench decoding-cpu --data $(DATA) $(BENCH)

bench-peers: setup
	$(BIN)/python -m bench.install

bench-recipes: setup
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m bench recipes --only $(RECIPES)

CAMPAIGN := SEQLOOM_CAMPAIGN=1 SEQLOOM_FIGURES=bench/results/campaign OMP_NUM_THREADS=1

# The tests of the server under load run alone, because they measure times.
campaign: $(DOCS_STAMP) browser
	$(BIN)/pip install -q -c constraints.txt -e ".[cluster]"
	$(CAMPAIGN) $(BIN)/pytest -n 2 --dist worksteal -q tests/reliability tests/interop/test_killed_export.py \
		tests/serving/test_openapi.py tests/serving/test_page_security.py \
		--ignore tests/reliability/test_service_load.py --ignore tests/reliability/test_service_connections.py
	$(CAMPAIGN) $(BIN)/pytest -n 0 -q tests/reliability/test_service_load.py tests/reliability/test_service_connections.py
	$(CAMPAIGN) $(BIN)/python -m pytest -p tests.support.property_campaign -n 2 --dist worksteal -q -m hypothesis tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q -m long --ignore tests/reliability --ignore tests/interop/test_killed_export.py
	$(BIN)/python -m tools.campaign
	$(BIN)/python -m tools.mutants --write

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
