# `make` lists the targets. Each one sets up what it needs in .venv; nothing else has to be done first.
#   make test PYTHON=/path/to/python    uses that interpreter for a new .venv

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
PYENV_ROOT ?= $(HOME)/.pyenv
# Every interpreter is started before it is chosen: a pyenv shim may exist on PATH and fail.
CANDIDATES := $(PYTHON) python3.13 python3.14 python3.12 python3 \
	$(wildcard $(PYENV_ROOT)/versions/3.13*/bin/python) $(wildcard $(PYENV_ROOT)/versions/*/bin/python)
# The figures and tables of the four papers, one notebook or two for each paper.
REPRODUCTIONS := $(wildcard notebooks/reproductions/*.ipynb)
# Those that take some minutes run with the slow tests, longer ones with the exhaustive tests; the longest come first.
SLOW_NOTEBOOKS := $(patsubst %,notebooks/%.ipynb,choosing_bounds quickstart reading_a_private_posterior)
EXHAUSTIVE_NOTEBOOKS := $(patsubst %,notebooks/%.ipynb,private_regression hospital_readmissions hidden_markov_case_study choosing_epsilon choosing_a_sampler) \
	$(REPRODUCTIONS)
NOTEBOOKS := $(filter-out $(SLOW_NOTEBOOKS) $(EXHAUSTIVE_NOTEBOOKS),$(wildcard notebooks/*.ipynb))
FAST_TESTS := $(patsubst %,tests/%,accounting theorems datasets metrics rows/test_parquet.py rows/test_stored.py test_compiling.py test_domain.py test_import_cost.py \
	test_layers.py test_names.py test_progress.py test_random.py test_settings.py test_warm.py) \
	tests/audit/test_sensitivity.py
BENCHMARKS := $(wildcard benchmarks/bench_*.py)
# Peers of `make compare` and `make benchmark` that cannot live with us, or together. A Python that has no build of one is passed over for the next.
PEERS := diffprivlib d3p opacus
PEER_PYTHONS := 3.12 3.13 3.11
PEER_INDEX_opacus := --extra-index-url https://download.pytorch.org/whl/cpu

# Local copies of the data sets, where there are any.
SHARED_DATA := $(realpath ../shared/data)
ifneq ($(SHARED_DATA),)
PYMC_DP_DATA ?= $(SHARED_DATA)
export PYMC_DP_DATA
endif

# Two workers on two cores: more threads in each only get in each other's way.
test test-fast test-slow test-exhaustive coverage: export NUMBA_NUM_THREADS := 1
test test-fast test-slow test-exhaustive coverage: export OMP_NUM_THREADS := 1
test test-fast test-slow test-exhaustive coverage: export OPENBLAS_NUM_THREADS := 1
test test-fast test-slow test-exhaustive coverage: export MKL_NUM_THREADS := 1
# Experiments of notebooks that are repeated for error bars: once will do to see that they run.
test-slow test-exhaustive: export PYMC_DP_REPEATS := 1

# Tests of the kernel that compare pairs of neighbours: so many, of each operation and relation, are taken by `test-slow`.
PAIRS := $(patsubst %,tests/kernel/test_%.py,choices sums tallies gram exact metric)

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F '|' '{ printf "%-20s %s\n", $$1, $$2 }'

.PHONY: demo
demo: $(VENV)/.demo ## the main job: fair survey, epsilon = 1, trace, report and pictures
	$(BIN)/python notebooks/demo.py

.PHONY: demo-scale
demo-scale: $(VENV)/.demo-scale ## 1e7 simulated rows of Parquet through a hierarchical model, in blocks
	$(BIN)/python notebooks/demo_scale.py

.PHONY: test
test: $(VENV)/.test ## all quick tests, doctests included: a quarter of an hour on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal $(if $(NOTEBOOKS),--nbmake $(NOTEBOOKS)) tests pymc_dp

.PHONY: test-fast
test-fast: $(VENV)/.test ## tests of what compiles no model: accounting, intervals, draws, theorems, metrics, domains
	$(BIN)/python -m pytest -n 2 --dist worksteal $(FAST_TESTS)

.PHONY: test-slow
test-slow: $(VENV)/.test ## slow tests and the notebooks of some minutes: an hour on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal --nbmake --nbmake-timeout 1800 $(SLOW_NOTEBOOKS)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not exhaustive" tests
	PYMC_DP_PAIRS=1000 $(BIN)/python -m pytest -n 2 --dist worksteal $(PAIRS)

.PHONY: test-exhaustive
test-exhaustive: $(VENV)/.test ## all other cases of slow tests, and the longest notebooks: many hours
	$(BIN)/python -m pytest -n 2 --dist worksteal --nbmake --nbmake-timeout 1800 $(EXHAUSTIVE_NOTEBOOKS)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m exhaustive tests

.PHONY: mutants
mutants: $(VENV)/.test ## eighty mistakes that break a guarantee, one at a time: which quick test notices each; hours, goes on where it was stopped
	nice $(BIN)/python -m tests.mutants

.PHONY: wheel
wheel: $(BIN)/.pip ## wheel and sdist, in dist
	rm -rf dist
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'build>=1.3'
	$(BIN)/python -m build --outdir dist

.PHONY: test-wheel
test-wheel: wheel ## the wheel in an empty environment: the first block of the README, and its file read without the package
	$(BIN)/python -m tests.wheel

.PHONY: coverage
coverage: $(VENV)/.coverage ## lines of the package that the quick tests run; fails below 90%
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered tests pymc_dp

.PHONY: reproduce
reproduce: $(VENV)/.reproduce ## all figures and tables of the four papers, with all repeats, in outputs/reproductions
	mkdir -p outputs/reproductions
	@for notebook in $(REPRODUCTIONS); do \
		echo "== $$notebook"; \
		$(BIN)/jupyter nbconvert --to html --execute --ExecutePreprocessor.timeout=-1 --output-dir outputs/reproductions "$$notebook" || exit 1; \
	done

.PHONY: docs
docs: $(VENV)/.docs ## the site, in outputs/docs; a warning is an error
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet --jobs auto docs outputs/docs
	@echo "open outputs/docs/index.html"

.PHONY: screenshots
screenshots: docs $(VENV)/.demo ## every page of the site as pictures, wide and narrow, light and dark, in outputs/screenshots; needs Chromium
	$(BIN)/python docs/screenshots.py

.PHONY: notebooks
notebooks: $(VENV)/.reproduce ## run all notebooks in place, hours of it, and note the version in each
	$(BIN)/python notebooks/execute.py

.PHONY: golden
golden: $(VENV)/.test ## write the numbers and texts of tests/golden anew; read the diff before you commit it
	$(BIN)/python -m tests.golden.make

.PHONY: lint
lint: $(VENV)/.lint ## ruff, formatting, mypy --strict
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

.PHONY: format
format: $(VENV)/.lint ## repair what ruff can repair
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

.PHONY: benchmark
benchmark: $(VENV)/.benchmark .venv-diffprivlib/.tried ## print ratios of speed against hand-written loops, DuckDB and Polars
	$(BIN)/python -m pytest benchmarks/speed --benchmark-only --benchmark-columns=min,median,rounds --benchmark-group-by=group
	@for file in $(BENCHMARKS); do echo "== $$file"; $(BIN)/python "$$file" || exit 1; done

.PHONY: calibrate
calibrate: $(VENV)/.test $(VENV)/.real ## intervals of dp.Gradients on simulated and on real tables, hours of it; goes on where it was stopped
	$(BIN)/python benchmarks/calibrate.py
	$(BIN)/python -m benchmarks.real

.PHONY: compare
compare: $(VENV)/.compare $(PEERS:%=.venv-%/.tried) ## the tables of docs/compared.md: beside diffprivlib, d3p, Opacus, JAX
	$(BIN)/python benchmarks/compare.py again
	$(BIN)/python benchmarks/_thresholds.py

.PHONY: clean
clean: ## remove the environment and all caches
	rm -rf $(VENV) $(PEERS:%=.venv-%) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist docs/notebooks docs/api/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per dependency group of pyproject.toml.
$(VENV)/.%: pyproject.toml $(BIN)/.pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group $*
	@touch $@

# An environment of its own for a peer; where none can be had, an empty folder, and the table says so.
.venv-%/.tried: pyproject.toml
	@for version in $(PEER_PYTHONS); do \
		for candidate in python$$version $(PYENV_ROOT)/versions/$$version*/bin/python; do \
			"$$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1 && break; candidate=; \
		done; \
		[ -n "$$candidate" ] || continue; \
		rm -rf .venv-$*; \
		"$$candidate" -m venv .venv-$* && .venv-$*/bin/python -m pip install --quiet --upgrade 'pip>=25.1' \
			&& .venv-$*/bin/python -m pip install --quiet --disable-pip-version-check $(PEER_INDEX_$*) --group compare-$* \
			&& break; \
		rm -rf .venv-$*; \
	done; \
	mkdir -p .venv-$* && touch $@

# `pip install --group` needs pip >= 25.1.
$(BIN)/.pip:
	@chosen=; \
	for candidate in $(CANDIDATES); do \
		if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; then \
			chosen=$$candidate; break; \
		fi; \
	done; \
	if [ -z "$$chosen" ]; then \
		echo "No Python >= 3.12 that runs (with its venv module) was found. Tried: $(CANDIDATES)" >&2; \
		echo "Install one, for example:  pyenv install 3.13   or   apt install python3.13-venv   or   brew install python@3.13" >&2; \
		echo "or name it:                make PYTHON=/path/to/python3.13 <target>" >&2; \
		exit 1; \
	fi; \
	echo "Setting up $(VENV) with $$("$$chosen" -c 'import sys; print(sys.executable, sys.version.split()[0])')"; \
	rm -rf $(VENV) && "$$chosen" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@
