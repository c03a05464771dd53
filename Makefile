# One word does all: `make` lists the recipes. CI and pre-commit run the same ones.
# A step is done again only when what it reads has changed; its stamp lies inside the environment, so
# `make test VENV=.venv-3.13 PYTHON=python3.13` keeps a second, independent one.

.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:

VENV ?= .venv
PYTHON ?=
ARGS ?=
RUNTIME ?= runtime
TOOLS ?= test
export PYTHON

BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
WHEELS := $(VENV)/wheels
ifneq ($(shell command -v uv 2>/dev/null),)
  INSTALL = uv pip install --quiet --python $(BIN)/python
else
  INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif
PINNED = $(INSTALL) --require-hashes -r
# Bytecode is kept, whatever the caller's environment says: pytest rewrites the assertions of each module without it.
# One worker more than processors, as many tests wait for a server or a child.
WORKERS = $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) + 1 )))
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses $(WORKERS) --maxprocesses 4 --dist worksteal
CHECKED := $(wildcard src tests tools benchmarks examples training)

.PHONY: help
help:  ## list the recipes
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# ------------------------------------------------------------------------------------------- recipes

.PHONY: demo
demo: $(STAMPS)/merilo  ## install merilo into .venv and show an evaluation
	@$(BIN)/merilo demo $(ARGS)

.PHONY: test
test: $(STAMPS)/test $(STAMPS)/merilo $(STAMPS)/chromium  ## build the wheel, install it and run all tests against it
	@$(PYTEST) $(ARGS)

.PHONY: test-long
test-long: $(STAMPS)/test $(STAMPS)/merilo  ## run the tests that repeat a fact over more cases than make test
	@$(PYTEST) -m long $(ARGS)

.PHONY: fast
fast: $(STAMPS)/test  ## run the tests that start no process and simulate nothing, on the sources
	@PYTHONPATH=src $(PYTEST) --quiet -m "not slow and not extras and not long" $(ARGS)

.PHONY: house
house: $(STAMPS)/dev $(STAMPS)/runtime  ## measure the code and its surface against house.toml, and the wording
	@PYTHONPATH=src $(BIN)/python tools/house.py $(ARGS)
	@$(BIN)/python tools/phrases.py

.PHONY: budget
budget: $(STAMPS)/dev $(STAMPS)/runtime  ## check that no figure of house.toml is exceeded
	@PYTHONPATH=src $(BIN)/python tools/house.py check

.PHONY: reference
reference: $(STAMPS)/test $(STAMPS)/merilo  ## write the generated parts of the documentation again
	@$(BIN)/python tools/docs.py

.PHONY: test-lowest
test-lowest:  ## run all tests with the lowest versions that pyproject.toml admits
	@$(MAKE) --no-print-directory test VENV=$(VENV)-lowest RUNTIME=lowest TOOLS=lowest

EXTRAS ?= $(basename $(notdir $(wildcard requirements/extras/*.in)))
.PHONY: test-extras
test-extras: $(STAMPS)/test $(STAMPS)/wheel  ## test with real frameworks and packages, one environment each (EXTRAS="langchain dspy")
	@status=0; for name in $(EXTRAS); do sh tools/test_extras.sh $$name $(WHEELS) || status=1; done; \
	$(BIN)/python tools/extras.py $(ARGS) || status=1; exit $$status

.PHONY: coverage
coverage: $(STAMPS)/test $(STAMPS)/merilo $(STAMPS)/chromium  ## run the tests and show which lines they miss
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

.PHONY: check
check: format-check lint types layers typos docs changes phrases budget  ## format, lint, types, layers, spelling, docs, changelog, wording, size

.PHONY: format
format: $(STAMPS)/dev  ## rewrite the code in the house format and mend what ruff can mend
	@$(BIN)/ruff check --quiet --fix-only $(CHECKED)
	@$(BIN)/ruff format $(CHECKED)

.PHONY: format-check
format-check: $(STAMPS)/dev  ## say which files `make format` would rewrite
	@$(BIN)/ruff format --check $(CHECKED)

.PHONY: lint
lint: $(STAMPS)/dev  ## ruff, all rules but those excused in pyproject.toml
	@$(BIN)/ruff check $(CHECKED)

.PHONY: types
types: $(STAMPS)/dev  ## mypy strict and pyright strict on src
	@status=0; $(BIN)/mypy || status=1; $(BIN)/basedpyright --pythonpath $(BIN)/python || status=1; exit $$status

.PHONY: layers
layers: $(STAMPS)/dev  ## import-linter: who may import whom
	@PYTHONPATH=src $(BIN)/lint-imports --no-cache

.PHONY: typos
typos: $(STAMPS)/dev  ## spelling
	@$(BIN)/typos

.PHONY: docs
docs: $(STAMPS)/dev  ## build the documentation into site/; a broken link is an error
	@$(BIN)/zensical build --strict

.PHONY: changes
changes: $(VENV)/pyvenv.cfg  ## check the changelog fragments
	@$(BIN)/python tools/changes.py check

.PHONY: phrases
phrases: $(VENV)/pyvenv.cfg  ## count wording that readers must decode; the counts may only fall
	@$(BIN)/python tools/phrases.py

.PHONY: bench
bench: $(STAMPS)/test $(STAMPS)/merilo  ## run the benchmarks
	@$(BIN)/python benchmarks/run.py $(ARGS)

.PHONY: screenshots
screenshots: $(STAMPS)/merilo  ## make the pictures of README and docs (needs a Chromium; ARGS="NAME ..." for some)
	@$(BIN)/python tools/screenshots.py $(ARGS)

.PHONY: card
card: $(STAMPS)/merilo  ## measure the embedded judge and write its card (ARGS="--only STEP"); long
	@$(BIN)/python benchmarks/card.py $(ARGS)
	@$(BIN)/python tools/card.py

.PHONY: examples
examples: $(STAMPS)/merilo  ## build the example data anew (ARGS="--data DIR")
	@$(BIN)/python examples/build.py $(ARGS)

.PHONY: train
train: $(STAMPS)/merilo  ## fit the words of the embedded judge anew (ARGS="--data DIR")
	@$(INSTALL) -r training/requirements.in
	@$(BIN)/python training/words.py --out src/merilo/judges/words.v1.json $(ARGS)

.PHONY: lock
lock: $(STAMPS)/dev  ## pin the requirements anew (ARGS=--upgrade for the newest)
	@UV=$(BIN)/uv sh tools/lock.sh $(ARGS)

.PHONY: dist
dist: $(STAMPS)/build $(STAMPS)/runtime  ## build wheel, sdist and bill of materials into dist/, and check them
	@rm -rf dist
	@$(BIN)/hatchling build -d dist >/dev/null 2>&1
	@$(BIN)/python tools/dist.py check dist
	@$(BIN)/python tools/sbom.py dist/merilo.cdx.json

.PHONY: smoke
smoke: dist  ## install the wheel into an empty environment of each Python here and run it (ARGS="python3.13")
	@$(BIN)/python tools/dist.py smoke dist $(ARGS)

.PHONY: release
release: $(STAMPS)/build $(STAMPS)/runtime  ## rehearse the release of VERSION; SIGN=yes commits, builds and tags it
	@$(BIN)/python tools/release.py $(or $(VERSION),none) $(if $(filter yes,$(SIGN)),--sign)

.PHONY: clean
clean:  ## remove the environment and everything built
	rm -rf $(VENV) $(VENV)-lowest .venv-extras .venv-extras-* dist site .coverage .coverage.* htmlcov
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --------------------------------------------------------------------------------------------- steps

$(VENV)/pyvenv.cfg:
	@sh tools/venv.sh $(VENV)
	@mkdir -p $(STAMPS)

$(STAMPS)/runtime: requirements/$(RUNTIME).txt $(VENV)/pyvenv.cfg
	@echo "installing what merilo needs into $(VENV)" >&2
	@$(PINNED) requirements/$(RUNTIME).txt
	@touch $@

$(STAMPS)/build: requirements/build.txt $(VENV)/pyvenv.cfg
	@$(PINNED) requirements/build.txt
	@touch $@

$(STAMPS)/test: requirements/$(TOOLS).txt requirements/axe.txt $(VENV)/pyvenv.cfg
	@echo "installing what the tests need into $(VENV)" >&2
	@$(PINNED) requirements/$(TOOLS).txt
	@$(PINNED) requirements/axe.txt --no-deps
	@touch $@

# Without a Chromium, the tests that need one are skipped; nothing fails, and the next call tries again.
$(STAMPS)/chromium: tools/chromium.py $(VENV)/pyvenv.cfg
	@if $(BIN)/python tools/chromium.py; then touch $@; fi

$(STAMPS)/dev: requirements/dev.txt $(VENV)/pyvenv.cfg
	@echo "installing what the checks need into $(VENV)" >&2
	@$(PINNED) requirements/dev.txt
	@touch $@

# The list of sources is itself a source: a deleted file must lead to a new wheel too.
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*' 2>/dev/null | LC_ALL=C sort)
$(STAMPS)/sources: $(VENV)/pyvenv.cfg FORCE
	@echo '$(SOURCES)' | cmp -s - $@ || echo '$(SOURCES)' > $@

$(STAMPS)/wheel: pyproject.toml README.md LICENSE $(SOURCES) $(STAMPS)/sources $(STAMPS)/build
	@rm -rf $(WHEELS)
	@echo "building and installing merilo" >&2
	@$(BIN)/hatchling build -t wheel -d $(WHEELS) >/dev/null
	@touch $@

$(STAMPS)/merilo: $(STAMPS)/wheel $(STAMPS)/runtime
	@$(INSTALL) --force-reinstall --no-deps $(WHEELS)/*.whl
	@touch $@

.PHONY: FORCE
FORCE:
