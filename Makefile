# Two commands: `make train` evolves a policy, `make test` runs the fast tests. Both set up .venv first.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help setup train test docs check clean

PYTHON ?= python3
# Not `?=`: shells know an environment variable ENV of their own.
ENV := HalfCheetah-v5
# Further flags, as typed in a shell: ARGS="--popsize 64 --folder 'my runs'"
ARGS :=
# Recipes read these as "$$NAME", so that no character in them means anything to the shell.
export PYTHON ENV

BIN := .venv/bin
# Named one by one: `policies` and `wrappers` are links into the package.
SOURCES := hebbes tests benchmarks examples $(wildcard *.py)
# One pytest process more than cores, because tests wait for processes and signals too. Four at most, for the memory's sake.
PYTEST := $(BIN)/python -m pytest -n $(shell expr $$(nproc) + 1) --maxprocesses 4 --dist worksteal
# Written last, so that an interrupted set-up is taken up again.
RUNTIME := .venv/.requirements-installed
DEVELOPMENT := .venv/.requirements-dev-installed

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: $(RUNTIME) ## create .venv and install requirements.txt

train: $(RUNTIME) ## evolve a policy: make train ENV=CarRacing-v3 ARGS="--popsize 64"
	@$(BIN)/python train_static.py --environment "$$ENV" $(ARGS)

test: $(DEVELOPMENT) ## run the fast tests, some minutes: make test ARGS="-k wrappers"
	$(PYTEST) -m "not slow and not ray" $(ARGS)

# Not --quiet: it would hide the warnings that --strict counts. The variable silences one that every build would have.
docs: $(DEVELOPMENT) ## build the pages of docs in site/, and fail on a broken link
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

check: $(DEVELOPMENT) ## lint, format, types, layers, all tests (they build the site, and tests/test_layout.py holds the size limits)
	$(BIN)/python -m ruff check $(SOURCES)
	$(BIN)/python -m ruff format --check $(SOURCES)
	$(BIN)/python -m mypy
	$(BIN)/lint-imports
	$(PYTEST)

.PHONY: reliability
reliability: $(DEVELOPMENT) ## kill, stop, starve and damage real runs, and print what came of it (half an hour on two cores)
	$(BIN)/python -m tests.files.hostile_files
	$(BIN)/python -m pytest -q tests/reliability tests/reliability/thorough_*.py \
	  tests/training/test_resume.py tests/training/test_resume_odd.py tests/training/test_faults.py tests/files/test_hostile_files.py \
	  tests/execution/test_engine_faults.py tests/execution/test_losses.py tests/environments/test_simulator_faults.py tests/test_signals.py $(ARGS)

.PHONY: zoo
zoo: $(RUNTIME) ## play the released policies, and fail if one is worse than its test
	$(BIN)/python -m benchmarks.zoo check

results-peers: $(RUNTIME) ## train next to other programs, a day: make results-peers ARGS="--environment Hopper-v5"
	$(BIN)/python -m pip install -r benchmarks/peers/requirements.txt
	$(BIN)/python -m benchmarks.peers --results results/peers $(ARGS)

results-%: $(RUNTIME) ## repeat results of docs/protocol.md, hours: make results-hybrids ARGS="--jobs 2"
	$(BIN)/python -m benchmarks.results $* $(ARGS)

clean: ## remove .venv and caches, never weights
	rm -rf .venv build site hebbes.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A .venv without a working pip was interrupted, or its Python is gone: make it anew.
$(RUNTIME): requirements.txt
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	"$$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "Python 3.11 or newer is needed, and '$$PYTHON' is not that; name one: make setup PYTHON=python3.11" >&2; exit 1; }; \
	"$$PYTHON" -m venv --clear .venv; }
	$(BIN)/python -m pip install -r requirements.txt
	@touch $@

$(DEVELOPMENT): requirements-dev.txt $(RUNTIME)
	$(BIN)/python -m pip install -r requirements-dev.txt
	@touch $@
