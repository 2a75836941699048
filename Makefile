# Two commands do everything on a fresh machine with Python 3.11: `make demo` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint types imports format bench constraints clean

help:
	@echo "make demo      run the example agent: a good build passes, a faulty one is caught"
	@echo "make test      the fast tests (under 5 minutes, setup included)"
	@echo "make test-all  every test, as CI runs them"
	@echo "make lint types imports   static checks;  make format   apply the formatter"
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

test-all: $(SETUP)
	$(BIN)/python -m pytest -q -n 2 --cov --cov-report=term-missing:skip-covered

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
