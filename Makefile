# Every target sets up what it needs in .venv; nothing has to be installed by hand but python3,
# python3-venv, make and git.
.DEFAULT_GOAL := help
.PHONY: help everyday eval tune gate self-test dataset bench live scaling leaderboard hybrid engines verdict-pages simulations methods pictures schemas constraints docs test test-browser check lint layers types tests torture coverage format clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what is imported, when it is; compiling every package first takes longer.
# The versions that were tested; build requirements are held to them as well.
CONSTRAINTS := .ci/constraints.txt
INSTALL := PIP_CONSTRAINT=$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CONSTRAINTS) \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable
EXPERIMENT ?= experiments/default.yaml
# Workers of the test run: one for each core.
WORKERS ?= auto
# How long make torture runs.
MINUTES ?= 60
# Without bytecode every process of every test would compile again all that it imports.
unexport PYTHONDONTWRITEBYTECODE

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

eval: $(VENV)/.run ## Compare the systems of EXPERIMENT (default: those of both built-in collections)
	$(BIN)/fusion-bench eval $(EXPERIMENT)
ifeq ($(origin EXPERIMENT),file)
	$(BIN)/fusion-bench eval experiments/referee.yaml
endif

tune: $(VENV)/.run ## Tune the system that EXPERIMENT names under 'tune', and judge the gain
	$(BIN)/fusion-bench tune $(EXPERIMENT)

gate: $(VENV)/.run ## Hold EXPERIMENT to its committed baseline
	$(BIN)/fusion-bench gate $(EXPERIMENT)

self-test: $(VENV)/.dev ## Put the gate on trial and renew docs/studies/gate-self-test.md
	$(BIN)/python -m benchmarks.studies.self_test

dataset: $(VENV)/.collections ## Rebuild datasets/attack and datasets/referee from their texts
	$(BIN)/python datasets/attack/rebuild
	$(BIN)/python datasets/referee/rebuild

bench: $(VENV)/.dev ## Measure speed against ranx, side by side (a few minutes)
	$(BIN)/python -m benchmarks


verdict-pages: $(VENV)/.dev ## Make every page of docs/ that holds a verdict again (some hours)
	$(BIN)/python -m benchmarks.studies

simulations: $(VENV)/.dev ## Simulate what docs/studies/statistics.md promises, and renew its tables (half an hour)
	$(BIN)/python -m benchmarks.studies.simulations

live: $(VENV)/.dev ## Answer queries one by one and compare the order with eval's (minutes)
	$(BIN)/python -m benchmarks.live_replay "rrf-v2 pos 1/rank"

scaling: $(VENV)/.dev ## Measure time and memory from 10^3 to 10^6 queries (a quarter of an hour)
	$(BIN)/python -m benchmarks.scaling

leaderboard: $(VENV)/.dev ## Run every method on every collection (half an hour; resumes)
	$(BIN)/python -m benchmarks.studies.leaderboard --jobs 2

hybrid: $(VENV)/.dev ## Compare semche's retriever over Chroma with its figures on nfcorpus (some three minutes)
	$(BIN)/python -m benchmarks.studies.hybrid

engines: $(VENV)/.dev ## Replay what real engines fuse on nfcorpus, and renew a table of docs/studies/engines.md (ten minutes)
	$(BIN)/python -m benchmarks.studies.pulled_engines

methods: $(VENV)/.dev ## Renew experiments/methods.yaml from the registries
	$(BIN)/python -m benchmarks.studies.leaderboard.methods

pictures: eval $(VENV)/.browser ## Renew the README's pictures from the default experiment (needs chromium)
	$(BIN)/python -m benchmarks.screenshots

constraints: ## Renew .ci/constraints.txt: the newest versions that pyproject.toml allows
	$(PYTHON) .ci/renew_constraints.py $(CONSTRAINTS)

docs: $(VENV)/.dev ## Build the documentation into docs/_build/html
	$(BIN)/python -m docs.website

schemas: $(VENV)/.run ## Renew fusion_bench/schemas from the records' models
	$(BIN)/fusion-bench dataset schema --out fusion_bench/schemas --force

test: $(VENV)/.dev ## Set up and run everything that CI runs, but the browser
	@$(MAKE) --no-print-directory --jobs 2 types lint layers docs tests
	@echo "Left out: tests/browser. Run 'make test-browser', which needs Debian's chromium."

test-browser: $(VENV)/.browser ## Test the report page and the console in Debian's chromium
	@command -v chromium > /dev/null || { echo "no chromium: run 'apt-get install chromium' as root"; exit 1; }
	$(BIN)/pytest -n $(WORKERS) --dist loadfile tests/browser

# mypy uses one core for a minute or two, so that it runs beside the others.
check: $(VENV)/.dev ## Lint, layers, types and the everyday tests: a few minutes, before each commit
	@$(MAKE) --no-print-directory --jobs 2 types lint layers everyday

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

layers: $(VENV)/.dev
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy
	for each in attack referee; do (cd datasets/$$each/rebuild && MYPYPATH=../.. ../../../$(BIN)/mypy \
		--config-file ../../../pyproject.toml --cache-dir ../../../.mypy_cache .) || exit 1; done

tests: $(VENV)/.dev
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

everyday: $(VENV)/.dev ## Run the tests that are not marked slow, with fewer examples each
	HYPOTHESIS_PROFILE=everyday $(BIN)/pytest -n $(WORKERS) --dist loadfile -m "not slow"

torture: $(VENV)/.dev ## Kill, mutate and let writes fail for MINUTES (default: 60)
	$(BIN)/python -m tests.attacks.torture --minutes $(MINUTES)

coverage: $(VENV)/.dev ## Run the tests with coverage, which takes two to three times as long
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --cov --cov-report=term

format: $(VENV)/.dev ## Format the code and fix what a linter can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove everything that these targets made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* dist build

# A stamp for each set of packages, so that a second call starts at once. Installing also compiles.
NATIVE := hatch_build.py fusion_bench/ranking/_native.c
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml $(CONSTRAINTS) $(NATIVE) | $(BIN)/python
	@echo "Setting up $(VENV) (about a minute, once)"
	$(INSTALL) .
	@touch $@

$(VENV)/.dev: pyproject.toml $(CONSTRAINTS) $(NATIVE) | $(BIN)/python
	@echo "Setting up $(VENV) for tests (a minute or two, once)"
	$(INSTALL) '.[dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.browser: pyproject.toml $(CONSTRAINTS) $(VENV)/.dev
	$(INSTALL) '.[browser]'
	@touch $@

$(VENV)/.collections: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(INSTALL) '.[collections]'
	@touch $@ $(VENV)/.run
