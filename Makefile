# SPDX-License-Identifier: MIT
# make run | test | test-lab | lint | bench | docs | clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src engine -type f -not -name '*.pyc') pyproject.toml meson.build meson.options

.PHONY: engines help run install test test-engine test-python test-lab test-lab-main lint bench docs clean packages

help:
	@echo 'make run    measure this machine (about a minute; installs what is missing)'
	@echo 'make test   every test, as CI runs them; of the lab the main ones'
	@echo 'make test-lab  all tests on real kernels in virtual machines (half an hour at most)'
	@echo 'make lint   formatting, types, static analysis, layers'
	@echo 'make bench  side by side with cyclictest and jitterdebugger'
	@echo 'make engines  the engines for arm64 and armhf, to be part of the package'
	@echo 'make docs   the documentation as pages in site/'

run: $(VENV)/.installed
	@$(BIN)/rtgauge run $(PLAN)

install: $(VENV)/.installed

$(VENV)/.ready:
	@sh tools/packages.sh run
	@sh tools/venv.sh $(PYTHON) $(VENV)
	@touch $@

# Built again only when a source has changed, so that a second `make run` measures at once.
$(VENV)/.installed: $(VENV)/.ready $(SOURCES)
	@echo '--- install rtgauge into $(VENV)'
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation .
	@touch $@

$(VENV)/.tools: $(VENV)/.ready pyproject.toml
	@echo '--- install the tools for tests, lint and docs'
	@sh tools/packages.sh test
	@$(BIN)/python tools/groups.py test lint docs | xargs $(BIN)/pip install --quiet --disable-pip-version-check
	@touch $@

test: lint test-engine test-python test-lab-main
	@echo '--- all tests passed'

test-engine: $(VENV)/.tools
	@echo '--- engine: unit tests and sanitizers'
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh engine/tests/run.sh

test-python: $(VENV)/.tools $(VENV)/.installed
	@echo '--- host: unit tests, and the page in Chromium'
	@$(BIN)/pytest tests/unit tests/browser --numprocesses 2
	@echo '--- engine and commands, end to end on this machine: one after the other, since only one may measure'
	@$(BIN)/pytest tests/engine tests/e2e

# The engines of other architectures, to be part of the package from the next install on.
engines: $(VENV)/.ready
	@for architecture in aarch64 armhf; do \
		echo "--- engine for $$architecture"; \
		[ -f build-$$architecture/build.ninja ] || $(BIN)/meson setup build-$$architecture --buildtype=release -Db_lto=true \
			--cross-file engine/cross/$$architecture.ini >/dev/null || exit 1; \
		PATH="$(CURDIR)/$(BIN):$$PATH" ninja -C build-$$architecture --quiet engine/rtgauge-engine || exit 1; \
		install -D build-$$architecture/engine/rtgauge-engine src/rtgauge/bin/rtgauge-engine-$$architecture || exit 1; \
	done

# Fetches some hundred MB once, and boots emulated machines.
test-lab-main: $(VENV)/.tools $(VENV)/.installed
	@sh tools/packages.sh lab
	@echo '--- the main chain on real kernels in virtual machines'
	@$(BIN)/pytest tests/lab -m ci

test-lab: $(VENV)/.tools $(VENV)/.installed
	@sh tools/packages.sh lab
	@echo '--- real kernels in virtual machines'
	@$(BIN)/pytest tests/lab

lint: $(VENV)/.tools $(VENV)/.installed
	@echo '--- lint'
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tools/lint.sh

bench: $(VENV)/.installed
	@sh tools/packages.sh bench
	@$(BIN)/python bench/run.py

docs: $(VENV)/.tools $(VENV)/.installed
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'site/index.html'

clean:
	rm -rf build build-* site .pytest_cache .ruff_cache
