# Everything starts here: `make` lists the targets. Each one makes its own environment first.
.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all test-interop test-long test-floor test-matrix check format bench lock clean

PYTHON_VENV := .venv/bin/python
# Hundreds of processes start below: what one compiles, the others read, whatever the machine's settings are.
export PYTHONDONTWRITEBYTECODE :=
TYPED := src tests $(sort $(dir $(wildcard demo/*.py bench/*.py)))

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv:  ## make or update .venv from requirements.lock
	@tools/bootstrap.sh

demo: venv  ## show what pyhudi does, on a real data set
	@java_home="$$(tools/find_java.sh)" && JAVA_HOME="$$java_home" $(PYTHON_VENV) -m demo.flights

test: venv  ## the tests of every change
	@tools/run_tests.sh

test-all: test test-interop test-long test-floor test-matrix  ## also the four that follow, which take hours

test-interop: venv  ## against the real Apache Hudi, and servers that stand for Google Cloud Storage and Azure
	@tools/cloud_servers.sh
	@echo "== Interop tests"
	@java_home="$$(tools/find_java.sh 17 17)" && JAVA_HOME="$$java_home" $(PYTHON_VENV) -m pytest tests -m interop

test-long: venv  ## long random runs
	@echo "== Long tests"
	@java_home="$$(tools/find_java.sh 17 17)" && \
	  JAVA_HOME="$$java_home" $(PYTHON_VENV) -m pytest tests -m "long and not interop" -n 2 --dist worksteal

test-floor: venv  ## the oldest packages
	@tools/floor.sh

test-matrix: venv  ## every PySpark
	@tools/pyspark_matrix.sh

check: venv  ## format, lint, types, layers, sizes
	@echo "== Format" && $(PYTHON_VENV) -m ruff format --check .
	@echo "== Lint" && $(PYTHON_VENV) -m ruff check .
	@echo "== Types" && $(PYTHON_VENV) -m mypy $(TYPED)
	@echo "== Layers, sizes, import" && $(PYTHON_VENV) -m pytest -q \
	  tests/unit/test_layers.py tests/unit/test_sizes.py tests/unit/test_import.py

format: venv  ## format the code and mend what the linter can
	@$(PYTHON_VENV) -m ruff check --fix --exit-zero .
	@$(PYTHON_VENV) -m ruff format .

bench: venv  ## measure
	@java_home="$$(tools/find_java.sh)" && JAVA_HOME="$$java_home" $(PYTHON_VENV) -m bench

lock: venv  ## write the lock files anew (UPGRADE=--upgrade: with the newest versions)
	@tools/lock.sh $(UPGRADE)

clean:  ## remove environments, caches and what was built
	rm -rf .venv .venvs .mypy_cache .ruff_cache .pytest_cache .hypothesis .bench build dist \
	  spark-warehouse metastore_db derby.log artifacts src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
