# Every target works in an empty environment: `env -i HOME=/tmp/x PATH=/usr/bin:/bin make crawl`, and in a folder of any
# name: so what names a path reaches the shell as a variable.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

SEEDS ?=
ROUNDS ?= 3
LAKE ?= $(if $(SEEDS),lake,demo-lake)
ARGS ?=
PYTHON ?=

VENV := .venv
PY := $(VENV)/bin/python
export PYSPARK_PYTHON := $(CURDIR)/$(PY)
export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(PY)
export SEEDS LAKE
FAST := not jvm and not slow and not soak and not bench
AT_ONCE := -n 4# many of the fast tests wait
NO_TESTS := 5# exit code of pytest when it was to run none
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  Variables of crawl: SEEDS=file ROUNDS=$(ROUNDS) LAKE=path ARGS='--set section.key=value'"

.PHONY: setup
setup: $(VENV)/.installed ## Virtual environment, locked dependencies, Java, the Delta jars, Java's class archive; offline when done once
	@$(PY) -m jobs.java
	@$(PY) -m jobs.jars
	@$(PY) -m jobs.class_archive

.PHONY: crawl
crawl: setup ## Crawl SEEDS in ROUNDS rounds into LAKE; without SEEDS the demo web
	@if [ -e "$$SEEDS" ]; then set -- "$$SEEDS"; else eval "set -- $$SEEDS"; fi; \
	$(PY) -m $(if $(SEEDS),jobs.cli crawl,jobs.demo) --rounds $(ROUNDS) --lake "$$LAKE" $(ARGS) $(if $(SEEDS),-- "$$@")

.PHONY: test
test: setup ## All tests that need nothing outside this machine
	@found=; run() { echo "pytest $$*"; $(PY) -m pytest "$$@" && found=1 || [ $$? = $(NO_TESTS) ]; }; \
	run $(AT_ONCE) -m "$(FAST)" $(ARGS); \
	run -m "(jvm or slow) and not soak and not bench" $(ARGS); \
	[ -n "$$found" ] || { echo "ARGS chose no test: $(ARGS)" >&2; exit $(NO_TESTS); }

.PHONY: test-fast
test-fast: $(VENV)/.installed ## The tests without a JVM, in seconds
	$(PY) -m pytest -q $(AT_ONCE) -m "$(FAST)" $(ARGS)

.PHONY: soak
soak: setup ## Long tests: kills, races, a cluster, an object store, replay
	$(PY) -m pytest -m soak $(ARGS)

.PHONY: mutants
mutants: $(VENV)/.installed ## Change tokens of the code that keeps promises, a sample of them; do the tests notice?
	$(PY) -m tests.mutants $(ARGS)

.PHONY: check
check: $(VENV)/.installed ## Lint, format and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

.PHONY: fmt
fmt: $(VENV)/.installed ## Format, and mend what the linter can mend
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

.PHONY: bench
bench: setup ## Measure; ARCHITECTURE.md has the figures
	$(PY) -m tests.benchmarks $(ARGS)

.PHONY: package
package: $(VENV)/.installed ## Fill dist/ with what a cluster needs: wheel, packed environment, SUBMIT.md
	@$(PY) -m jobs.package

.PHONY: lock
lock: $(VENV)/.installed ## Pin all dependencies of requirements.in with their hashes
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-header --no-emit-index-url --output-file requirements.lock requirements.in

.PHONY: clean
clean: ## Remove what setup and the tests made; lakes stay
	rm -rf $(VENV) .jars build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian keeps venv in a package of its own; its name is in the message that `python -m venv` prints.
$(PY):
	@for name in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
		if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$name; break; fi; \
	done; \
	if [ -z "$${python:-}" ]; then echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; fi; \
	if ! "$$python" -c 'import ensurepip' 2>/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy "$$(basename "$$python")-venv"; \
	fi; \
	"$$python" -m venv $(VENV)

# pip and setuptools come first and from the lock as well, so that pyspark, which has no wheel, is built by them.
$(VENV)/.locked: requirements.lock | $(PY)
	@echo "Installing the locked dependencies (pyspark is built here: a minute or two) ..."
	@awk '/^[a-z]/ {keep = /^(pip|setuptools)==/} keep' requirements.lock > $(VENV)/first.lock
	@$(PY) -m pip install --quiet --require-hashes --requirement $(VENV)/first.lock
	@$(PY) -m pip install --quiet --require-hashes --no-build-isolation --requirement requirements.lock
	@touch $@

# Where the first line of a script (`#!`) cannot name the interpreter, pip writes one that a quote in the path breaks.
$(VENV)/.installed: pyproject.toml $(VENV)/.locked
	@$(PY) -m pip install --no-index --no-deps --no-build-isolation --editable . > $(VENV)/editable.log 2>&1 \
		|| { cat $(VENV)/editable.log >&2; exit 1; }
	@{ grep -slZ "^'''exec' " $(VENV)/bin/* || true; } | xargs -0r \
		sed -i "2s|^'''exec' .*|'''exec' \"\$$(dirname \"\$$0\")/python\" \"\$$0\" \"\$$@\"|"
	@touch $@
