# SPDX-License-Identifier: MIT
# make run | test | test-lab | lint | bench | docs | clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src engine ext -type f -not -name '*.pyc' -not -path '*/tests/*' -not -path '*/firmware/*') pyproject.toml meson.build meson.options

.PHONY: bench clean cross deb docs engines firmware gallery guests headers help install lint release run test test-agent test-alone test-browser test-cokernel test-commands test-engine test-farm test-firmware test-image test-lab test-lab-main test-measure test-packages test-parts test-unit test-wheel test-without wheel

help:
	@echo 'make run    measure this machine (about a minute; installs what is missing)'
	@echo 'make test   all tests; of those in the lab, only the main ones'
	@echo 'make test-lab  all tests on real kernels in virtual machines (an hour and a half)'
	@echo 'make test-without NAME=tire  the unit tests of the other extensions, without one'
	@echo 'make test-farm  three guests as boards of labgrid, a fleet, PostgreSQL (half an hour)'
	@echo 'make test-cokernel  the co-kernels, on guests of your own named xenomai, rtai and rtgroup'
	@echo 'make lint   formatting, types, static analysis, layers'
	@echo 'make bench  side by side with cyclictest and jitterdebugger'
	@echo 'make engines  the engines for other architectures, to be part of the package'
	@echo 'make wheel  the package for every Linux, with the engines of all architectures, in dist/'
	@echo 'make deb    Debian packages for one release, SUITE=bookworm or trixie, in dist/'
	@echo 'make release  all of these, SBOMs and checksums, in dist/; installs them in clean roots'
	@echo 'make test-packages  installs the packages in dist/ in clean roots'
	@echo 'make firmware  the UF2 file of the measuring instrument (Raspberry Pi Pico)'
	@echo 'make test-firmware  its tests, in an emulated board'
	@echo 'make docs   the documentation as pages in site/'
	@echo 'make gallery  runs the kept plans, makes their pages in build-gallery/, and the pictures in docs/ (six minutes)'

run: $(VENV)/.installed
	@$(BIN)/rtgauge run --wait 1h $(PLAN)

install: $(VENV)/.installed

$(VENV)/.ready: tools/locks/run.txt
	@sh tools/packages.sh run
	@sh tools/venv.sh $(PYTHON) $(VENV)
	@touch $@

# Built again only when a source has changed, so that a second `make run` measures at once.
$(VENV)/.installed: $(VENV)/.ready $(SOURCES)
	@echo '--- install rtgauge into $(VENV)'
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps .
	@touch $@

$(VENV)/.tools: $(VENV)/.ready tools/locks/test.txt
	@echo '--- install the tools for tests, lint and docs'
	@sh tools/packages.sh test
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement tools/locks/test.txt
	@touch $@

# The tests of one kind: the core's, then those of each extension.
tests_of = tests/$(1) $(wildcard ext/*/tests/$(1))

# Parts that measure run alone, one after the other; the others run beside each other, and beside what is fetched for the lab. Each prints how long it took.
PART := sh tools/part.sh
# For tests that measure on a machine that others may use too: at most two are run again, and printed with what failed. Each is a defect.
AGAIN := --reruns 1 --max-suite-reruns 2 --rerun-show-tracebacks

test: $(VENV)/.tools $(VENV)/.installed
	@$(PART) 'all tests' $(MAKE) --no-print-directory test-parts

# Packages come first: two of the parts would install theirs at once.
test-parts:
	@sh tools/packages.sh lab
	@sh tools/packages.sh firmware
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target headers lint test-engine $(if $(wildcard $(FIRMWARE)),test-firmware) test-agent test-unit test-browser test-wheel
	@$(MAKE) --no-print-directory test-measure
	@$(MAKE) --no-print-directory test-commands
	@$(MAKE) --no-print-directory test-alone
	@$(MAKE) --no-print-directory test-lab-main

# Builds it in two folders.
test-wheel: $(VENV)/.tools $(VENV)/.installed $(VENV)/.release
	@$(PART) 'the package, built twice and installed' $(BIN)/pytest tests/package

test-engine: $(VENV)/.tools cross
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PART) "engine's C tests, sanitizers, other architectures" sh engine/tests/run.sh

# A file's tests stay on one worker, so that what they share is made once.
UNIT := --numprocesses 2 --dist loadfile
# In a tree that tools/without.sh made.
WITHOUT = cd $(1) && PYTHONPATH="$$PWD/src" RTGAUGE_ENGINE="$$PWD/build/engine/rtgauge-engine" $(CURDIR)/$(BIN)/pytest

# The core's tests run in the core without any extension, the extensions' tests with all of them. tests/whole is about everything that is there, so it runs in both.
test-unit: $(VENV)/.tools $(VENV)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PART) 'build of the core without extensions' sh tools/without.sh build-core
	@$(PART) 'unit tests of the core' sh -c '$(call WITHOUT,build-core) tests/unit tests/whole $(UNIT)'
	@$(PART) 'unit tests of the extensions' $(BIN)/pytest $(wildcard ext/*/tests/unit) tests/whole $(UNIT)

# The unit tests of the other extensions without one, and with the engine that is built without it: make test-without NAME=tire
NAME ?=
test-without: $(VENV)/.tools $(VENV)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tools/without.sh build-without $(NAME)
	@$(call WITHOUT,build-without) ext/*/tests/unit tests/whole $(UNIT)

test-browser: $(VENV)/.tools $(VENV)/.installed
	@$(PART) 'page in Chromium' $(BIN)/pytest $(call tests_of,browser) $(AGAIN) --numprocesses 2 --dist loadfile

# They mostly wait. conftest.py puts files with slow tests first, and gives each worker a lock of its own.
test-commands: $(VENV)/.tools $(VENV)/.installed
	@$(PART) 'commands' $(BIN)/pytest $(call tests_of,e2e) $(AGAIN) -m 'not alone' --numprocesses 4 --dist loadfile --no-loadscope-reorder

# Of the engine's tests those that measure nothing: they wait for leases, and disturb nobody.
AGENT := $(wildcard $(foreach name,agent* attach *_refusals,$(addsuffix /test_$(name).py,$(call tests_of,engine))))

test-agent: $(VENV)/.tools $(VENV)/.installed
	@$(PART) 'engine, without measuring' $(BIN)/pytest $(AGENT) $(AGAIN) -m 'not alone' --numprocesses 2 --dist loadfile

test-measure: $(VENV)/.tools $(VENV)/.installed
	@$(PART) 'engine on this machine' $(BIN)/pytest $(call tests_of,engine) $(addprefix --ignore=,$(AGENT)) $(AGAIN) -m 'not alone'

# Those that leave the machine changed for a while.
test-alone: $(VENV)/.tools $(VENV)/.installed
	@$(PART) 'engine and commands that change the machine' $(BIN)/pytest $(call tests_of,engine) $(call tests_of,e2e) $(AGAIN) -m alone

ARCHITECTURES := $(filter-out $(subst armv7l,armhf,$(shell uname -m)),aarch64 armhf loongarch64 riscv64 x86_64)

# The engines of other architectures, in build-*/. Ninja would look for the job server of `make -j`, which only make's own get.
cross: $(VENV)/.release
	@for architecture in $(ARCHITECTURES); do \
		echo "--- engine for $$architecture"; \
		[ -f build-$$architecture/build.ninja ] || PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/meson setup build-$$architecture --buildtype=release -Db_lto=true \
			--cross-file engine/cross/$$architecture.ini >/dev/null || exit 1; \
		MAKEFLAGS= PATH="$(CURDIR)/$(BIN):$$PATH" ninja -C build-$$architecture --quiet engine/rtgauge-engine || exit 1; \
	done

# ... and as part of the package from the next install on.
engines: cross
	@for architecture in $(ARCHITECTURES); do \
		install -D build-$$architecture/engine/rtgauge-engine src/rtgauge/bin/rtgauge-engine-$$architecture || exit 1; \
	done

$(VENV)/.release: $(VENV)/.ready tools/locks/release.txt
	@sh tools/packages.sh release
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement tools/locks/release.txt
	@touch $@

# One wheel with the engines of all architectures, and the source distribution, in dist/.
wheel: cross
	@echo '--- wheel and source distribution'
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/wheel.py dist
	@ls -l dist

# The Debian packages for one release, built in a clean root of it: make deb SUITE=trixie
SUITE ?= trixie
deb: wheel
	@sh tools/packages.sh deb
	@$(PART) 'Debian packages for $(SUITE)' sh tools/deb.sh $(SUITE) dist

# Removes dist/ first, so that it holds one release.
SUITES ?= bookworm trixie noble
release: export RTGAUGE_SUITES = $(SUITES)
release:
	@sh tools/packages.sh packages
	@rm -rf dist
	@$(MAKE) --no-print-directory wheel $(VENV)/.tools $(VENV)/.installed
	@$(PART) release sh tools/release.sh $(SUITES)

# What is in dist/, in clean roots: needs root, a network, and minutes, so it is not part of `make test`.
test-packages: export RTGAUGE_SUITES = $(SUITES)
test-packages: $(VENV)/.tools $(VENV)/.installed
	@sh tools/packages.sh packages
	@$(PART) 'packages in clean roots' $(BIN)/pytest tests/roots

# The image of the container, built from the wheel and run.
test-image: wheel $(VENV)/.tools $(VENV)/.installed
	@sh tools/packages.sh packages
	@$(PART) 'image of the container' $(BIN)/pytest tests/roots/test_image.py

FIRMWARE := ext/instrument/firmware
FIRMWARE_SOURCES := $(wildcard $(addprefix $(FIRMWARE)/,*.c *.h *.S *.ld *.py Makefile))

firmware: build-firmware/rtgauge-instrument.uf2

build-firmware/rtgauge-instrument.uf2: $(FIRMWARE_SOURCES)
	@sh tools/packages.sh firmware
	@echo '--- firmware of the instrument'
	@$(MAKE) --silent -C $(FIRMWARE) BUILD='$(CURDIR)/build-firmware'

$(FIRMWARE)/test/node_modules/.installed: $(FIRMWARE)/test/package.json $(FIRMWARE)/test/package-lock.json
	@sh tools/packages.sh firmware
	@echo '--- install the emulator of the board'
	@cd $(FIRMWARE)/test && npm ci --silent --ignore-scripts
	@touch $@

test-firmware: $(VENV)/.tools $(VENV)/.installed build-firmware/rtgauge-instrument.uf2 $(FIRMWARE)/test/node_modules/.installed
	@cd $(FIRMWARE)/test && sh $(CURDIR)/tools/part.sh 'firmware in an emulated board' node --test --test-reporter=spec firmware.test.mjs stimuli.test.mjs
	@$(PART) 'host against the emulated instrument' $(BIN)/pytest ext/instrument/tests/firmware $(AGAIN)

# Fetches some hundred MB once.
guests: $(VENV)/.installed
	@sh tools/packages.sh lab
	@$(PART) 'build the guests of the lab' sh -c 'for guest in debian debian-rt debian-arm64 debian-rt-arm64; do $(BIN)/rtgauge lab build $$guest || exit; done'

# Another 200 MB, once: what the kernel modules for the guests are built with.
headers: guests
	@$(PART) 'headers of the guests' sh -c 'for machine in x86_64 aarch64; do $(BIN)/python -m rtgauge_ext.lab.headers $$machine || exit; done'

# Boots emulated machines.
test-lab-main: headers $(VENV)/.tools
	@$(PART) 'main tests on real kernels in virtual machines' $(BIN)/pytest tests/lab $(AGAIN) -m 'ci and not newest' --numprocesses 2

test-lab: headers $(VENV)/.tools
	@$(PART) 'all tests on real kernels in virtual machines' $(BIN)/pytest tests/lab $(AGAIN) --numprocesses 2

test-farm: headers $(VENV)/.tools $(VENV)/.installed
	@$(PART) 'a farm of three guests' $(BIN)/pytest tests/farm

# On guests that are not part of the project; what has no guest is skipped by name.
test-cokernel: $(VENV)/.tools $(VENV)/.installed
	@$(PART) 'co-kernels' $(BIN)/pytest ext/cokernel/tests/guests

lint: $(VENV)/.tools $(VENV)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PART) lint sh tools/lint.sh

bench: $(VENV)/.installed
	@sh tools/packages.sh bench
	@$(BIN)/python bench/run.py

docs: $(VENV)/.tools $(VENV)/.installed
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'site/index.html'

# Measures this machine.
gallery: $(VENV)/.installed
	@$(BIN)/python tools/gallery.py build-gallery

clean:
	rm -rf build build-* site .pytest_cache .ruff_cache
