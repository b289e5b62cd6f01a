# The verbs, the same for people and CI. Each installs its requirements into .venv/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUN := $(VENV)/.run
DEV := $(VENV)/.dev
TESTS ?= tests
FAST := $(addprefix tests/,model state protocol resume snapshot memory journal rehearsal model_server)

# Without byte code, each of the many processes that the tests start would compile Segue again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast soak certify check format bench build lock clean

help:             ## List the verbs
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

demo: $(RUN)      ## Watch a workflow survive a pause and a kill -9
	@$(BIN)/python -m segue demo

test: $(DEV)      ## Run the tests
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(TESTS)

test-fast: $(DEV) ## Run the tests that start no server and no workflow, in under a minute
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(FAST)

soak: $(DEV)      ## Run the long tests too
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "soak or not soak" $(TESTS)

certify: $(DEV)   ## Kill real agents and bring them back; AGENTS="claude codex" chooses
	@$(BIN)/python -m certify $(AGENTS)

check: $(DEV)     ## Lint, types, the map of packages, language, and generated files
	@$(PIP) check
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/pyright
	@$(BIN)/python scripts/ratchet.py
	@$(BIN)/python scripts/generated.py --check

format: $(DEV)    ## Format the code, and write the generated files again
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/python scripts/generated.py

bench: $(DEV)     ## Measure, and write build/bench.json
	@$(BIN)/python -m benchmarks

build: $(DEV)     ## Make the wheel and the source archive in dist/
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist .

lock: $(DEV)      ## Write the requirements files again (asks the package index)
	@$(PIP) install uv
	@$(BIN)/python scripts/lock.py

clean:            ## Remove the output of the other verbs
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "Segue needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "The virtual environment was not created; on Debian: apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }

# The files list all packages, so pip does not resolve any.
$(RUN): requirements/run.txt pyproject.toml | $(BIN)/python
	@echo "Installing the packages that Segue needs"
	@$(PIP) install --no-deps --require-hashes -r requirements/run.txt
	@$(PIP) install --no-build-isolation --no-deps --editable .
	@touch $@

$(DEV): requirements/dev.txt $(RUN) | $(BIN)/python
	@echo "Installing the packages that its tests and checks need"
	@$(PIP) install --no-build-isolation --no-deps --require-hashes -r requirements/dev.txt
	@touch $@
