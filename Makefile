# `make demo` and `make test` set up everything they need in .venv, from Python 3.11+, pip and git alone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-fast test-full lint docs bench bench-check results clean

# A file's tests stay in one process: its fixtures are made and its kernels compiled once. Three processes for two cores,
# because some tests wait for sockets and other processes. Files run in the order of tests/order.py, the longest first.
# Byte code is written, so that no process compiles it again. Skipped tests are listed with their reasons (-rs).
WORKERS ?= 3
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -rs

demo: $(VENV)/.demo
	$(BIN)/recrawl demo --database demo.db --plot demo.png

test: $(VENV)/.test
	$(PYTEST) -m "not full"

test-fast: $(VENV)/.test
	$(PYTEST) -n 2 -m "not slow and not full" --hypothesis-profile fast

test-full: $(VENV)/.test
	$(PYTEST) --hypothesis-profile full

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

# The documentation site; a warning is an error. Open docs/_build/index.html.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -E -W --keep-going -q -b html docs docs/_build

bench: $(VENV)/.test
	$(BIN)/python benchmarks/bench_solve.py
	$(BIN)/python benchmarks/bench_estimate.py
	$(BIN)/python benchmarks/bench_schedule.py
	$(BIN)/python benchmarks/bench_simulate.py
	$(BIN)/python benchmarks/bench_detect.py
	$(PIP) -e .[scrapy]
	$(BIN)/python benchmarks/bench_crawl.py

# Whether every benchmark still runs: each at its smallest size, nothing is written.
bench-check: $(VENV)/.test
	$(BIN)/python benchmarks/check.py

# Which committed results are older than the code they rest on.
results: $(BIN)/python
	$(BIN)/python benchmarks/made_with.py

# Where the system's Python lacks ensurepip, virtualenv (unpacked beside the environment) makes it instead.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV) && \
	$(PYTHON) -m pip install --quiet --target $(VENV)-tool virtualenv && \
	PYTHONPATH=$(VENV)-tool $(PYTHON) -m virtualenv $(VENV); }

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e .[data,crawl]
	@touch $@

# Clients that test the HTTP interface pin other versions of packages than recrawl uses: theirs are left out.
$(VENV)/.test: $(BIN)/python pyproject.toml constraints.txt tests/clients.txt
	$(PIP) -e .[test]
	$(PIP) --no-deps -r tests/clients.txt
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e .[docs]
	@touch $@

clean:
	rm -rf docs/_build $(VENV) $(VENV)-tool demo.png demo.db demo.db-wal demo.db-shm demo.db.lock
