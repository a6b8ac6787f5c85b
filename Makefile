# Two commands for people: `make demo` and `make test`. Both stand on `make install`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := .demo
SOURCES := src tests benchmarks examples

.PHONY: install demo test lint format bench clean
.DEFAULT_GOAL := install

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[sentence-transformers,demo,dev]'
	touch $@

demo: install
	mkdir -p $(DEMO)
	HF_HUB_OFFLINE=1 $(BIN)/retrieval-eval demo --cache $(DEMO)/cache --json $(DEMO)/report.json --markdown $(DEMO)/report.md
	@echo "The whole report: $(DEMO)/report.md and $(DEMO)/report.json"

test: install
	$(BIN)/python -m pytest --numprocesses 2 --cov --cov-report term:skip-covered

lint: install
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: install
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(DEMO) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage
