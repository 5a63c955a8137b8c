# Two commands on a fresh machine: `make demo` and `make test`. Each installs what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RECIPES ?= demo
DATA ?= $(if $(wildcard ../shared/data/multi30k),multi30k,tatoeba)
BENCH ?=

.PHONY: help setup demo browser test lint claims bench bench-peers bench-recipes campaign clean

help:
	@echo "make demo      install, then train a German-English translator on the bundled pairs"
	@echo "make test      install, then check everything: ruff, mypy, pytest"
	@echo "make lint      ruff and mypy alone"
	@echo "make bench     seqloom and its peers side by side on this CPU; make bench-peers installs them, once"
	@echo "make bench-recipes  train the demo's recipe and write down what it reaches; RECIPES=\"…\" for others"
	@echo "make campaign  the reliability tests with ten times the counts"
	@echo "make clean     remove the environment and caches (runs are kept)"

setup: $(STAMP)

# torch comes first and pinned: asked for by another package it would bring gigabytes of CUDA. Our own
# bytecode is written here: where PYTHONDONTWRITEBYTECODE is set, every command would compile it anew.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e ".[plots,serve,dev]"
	$(BIN)/python -m compileall -q src
	touch $@

demo: setup
	$(BIN)/seqloom demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The page is driven in a real browser: Debian's chromium, or another that CHROMIUM names. axe-core,
# which looks for what keeps people out, comes with the dev extra (axe-playwright-python).
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

browser:
ifeq ($(strip $(CHROMIUM)),)
	@{ [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq -y chromium fonts-dejavu-core; } > /dev/null \
	|| echo "no chromium: install it (apt-get install chromium), or the page is not tested"
endif

# Side by side: mypy keeps one core busy for a minute, while the other would wait.
test: setup browser
	@$(MAKE) --no-print-directory -j 2 lint claims

claims: setup
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q

# Twenty minutes on two cores. DATA: a folder with Multi30k's raw files; else the bundled pairs.
bench: setup
	$(BIN)/python -m bench all --data $(DATA) $(BENCH)

bench-peers: setup
	$(BIN)/python -m bench.install

bench-recipes: setup
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m bench.recipes bench/results $(RECIPES)

campaign: setup
	SEQLOOM_CAMPAIGN=10 SEQLOOM_FIGURES=docs/results/campaign OMP_NUM_THREADS=1 \
		$(BIN)/pytest -n 2 -q tests/reliability tests/serving/test_openapi.py
	$(BIN)/python tools/campaign.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
