# Two commands matter: `make demo` and `make test`. The rest is for developers.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
RUNS ?= runs

.PHONY: demo test test-flower test-slow test-parity check format bench screenshot clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# A stamp per kind of installation: pip runs again only when what it reads has changed.
$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.installed

demo: $(VENV)/.installed  ## compare seven schemes on real data: a table and a page
	rm -rf $(RUNS)/demo
	$(BIN)/fedcohort demo --out $(RUNS)/demo
	@echo "For more, put it on your path: . $(BIN)/activate; fedcohort --help"

test: $(VENV)/.installed-dev  ## every test but the slow ones and those that start Flower
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m 'not slow and not flower'

test-flower: $(VENV)/.installed-dev  ## real Flower processes on this machine: Ray, TLS, kill and restart
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m flower tests/flower

test-slow: $(VENV)/.installed-dev  ## what takes minutes; findings are in docs/
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m 'slow and not parity'

test-parity: $(VENV)/.installed-dev  ## simulator against Flower, twenty seeds under every kernel; about an hour
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto -m parity tests/flower

check: $(VENV)/.installed-dev  ## lint, format, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.installed-dev  ## ratios side by side in one run
	for script in benchmarks/*.py; do echo "== $$script"; OPENBLAS_NUM_THREADS=1 $(BIN)/python $$script || exit 1; done

screenshot: demo  ## the picture in the README
	$(MAKE) $(VENV)/.installed-dev
	$(BIN)/python docs/screenshot.py $(RUNS)/demo docs/images/report.png

clean:
	rm -rf $(VENV) $(RUNS) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
