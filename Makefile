# Every target sets up what it needs; the only requirements are Python 3.11 or newer, make and git.
#   make PYTHON=/path/to/python ...   another Python       make VENV=/path/to/venv ...   another environment
#   make test ARGS="-k lease -x"      arguments for pytest make test WORKERS=8           parallel test processes

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 4
ARGS ?=
PG_BINS ?=
BIN := $(VENV)/bin
READY := $(VENV)/.set-up
export UV_PYTHON_DOWNLOADS = never

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-versions lint types imports format bench bench-peers constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with semel (editable), its extras and the development tools

$(READY): pyproject.toml constraints.txt scripts/setup.sh scripts/system-packages.sh scripts/dependency_group.py
	@scripts/setup.sh "$(VENV)" "$(PYTHON)"
	@touch $@

demo: $(READY) ## show semel at work on a server of its own
	@$(BIN)/semel demo $(ARGS)

test: lint types imports ## all checks and all tests
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

test-versions: $(READY) ## the contract on PostgreSQL 15, 16 and 17, and on PG_BINS="/a/bin /b/bin"
	@WORKERS=$(WORKERS) ARGS="$(ARGS)" scripts/test-versions.sh $(BIN)/python $(PG_BINS)

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY) ## mypy --strict
	$(BIN)/mypy

imports: $(READY) ## the layers of the code (import-linter)
	$(BIN)/lint-imports

format: $(READY) ## rewrite the code as ruff formats it
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

bench: $(READY) ## measure jobs per second, enqueuing and pick-up on this machine
	$(BIN)/semel bench $(ARGS)

bench-peers: $(READY) ## measure semel beside other queues, installed for it: benchmarks/README.md
	@$(BIN)/python -m benchmarks $(ARGS)

constraints: $(READY) ## resolve constraints.txt anew (name==version lines only)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --upgrade \
		--all-extras --group dev --group mysqlclient --no-emit-package semel pyproject.toml scripts/tools.in -o constraints.txt

clean: ## remove the environment and what tools left behind
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
	find src tests examples scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
