# Two commands for a newcomer: `make lab` and `make test`. Both need only python3 >= 3.11 and a
# package index. Node, where it is there, checks the browser modules. `make` alone prints the list.

VENV ?= .venv
JOBS ?= 2
# More options for JupyterLab, for example LAB_FLAGS="--no-browser --port 9999".
LAB_FLAGS ?=
# More options for pytest in every tier, for example PYTEST_FLAGS="-x -k manifest".
PYTEST_FLAGS ?=
# How many times as much as in CI is tried: `make test-interop SIZE=100` takes hours.
ifdef SIZE
export LANCE_NB_TEST_SCALE := $(SIZE)
PYTEST_FLAGS += -o faulthandler_timeout=0
endif

PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
TOUR := notebooks/01_tour.ipynb
DEMO := notebooks/data/demo.lance
# lance_nb.magic.demo creates this tag last, so its file means that the dataset is complete.
DEMO_DONE := $(DEMO)/_refs/tags/reviewed.json
OUT := notebooks/out
# An installation compiles them, so a change of theirs installs anew.
LOOPS := lance_nb/encodings/kernels/_compiled.pyx
# Spark as pyproject.toml asks for it.
SPARK := $(shell sed -n 's/^spark = \[\(.*\)\]$$/\1/p' pyproject.toml)

# Tests write thousands of small datasets, and every commit waits for the disk several times; in
# memory they do not. Only where there is room: 4 GB.
SHM_FREE := $(shell df --output=avail /dev/shm 2>/dev/null | tail -n 1)
ifeq ($(shell [ "$(or $(SHM_FREE),0)" -gt 4000000 ] && echo yes),yes)
export PYTEST_DEBUG_TEMPROOT := /dev/shm
endif

# Container images often forbid Python to keep what it has compiled. Tests start hundreds of
# processes, and each would compile all that it imports anew: 3 s of processor for a notebook's kernel.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help lab demo test test-setup test-fast test-interop test-ui test-spark lint docs wheel notebooks screenshot reference protos bench faults mutation clean

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

# ------------------------------------------------------------------------------- environment

# A version that all our dependencies have wheels for comes before whatever `python3` is. The pip that
# comes with it may be old: 23.2 takes 90 s of processor to choose our packages, 26.3 takes 30.
$(VENV)/.stamp-venv:
	@python=""; \
	for name in python3.14 python3.13 python3.12 python3.11 python3; do \
	    if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        python=$$name; break; \
	    fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "lance_nb needs Python 3.11 or newer, and no python3 on PATH is." >&2; \
	    echo "Install one (for example: apt install python3 python3-venv) and run make again." >&2; \
	    exit 1; \
	fi; \
	echo "Creating $(VENV) with $$($$python --version)"; \
	if ! $$python -m venv $(VENV); then \
	    echo "$$python cannot create a virtual environment." >&2; \
	    echo "On Debian and Ubuntu: apt install python3-venv. Then run make again." >&2; \
	    exit 1; \
	fi
	@$(PIP) --upgrade pip || echo "Going on with the pip that is there"
	@touch $@

$(VENV)/.stamp-lab: pyproject.toml $(LOOPS) $(VENV)/.stamp-venv
	@echo "Installing lance_nb and JupyterLab into $(VENV) (a minute or two, once)"
	@$(PIP) --editable '.[lab]'
	@touch $@

# `test` contains `lab`, so this one fulfils both. Spark comes as an archive of 450 MB from which pip
# builds a wheel: that is done beside everything else, and without compressing what is unpacked at
# once. Should it fail, the last pip builds it as usual and says why. Of all packages, only what is
# used is compiled, when it is used; tests are compiled while Spark is unpacked, since later two
# processes would each do it. That is all it is for: what it finds wrong, the tests will say.
$(VENV)/.stamp-test: pyproject.toml $(LOOPS) $(VENV)/.stamp-venv
	@echo "Installing lance_nb and what its tests need into $(VENV) (a minute or two, once)"
	@printf '[bdist_wheel]\ncompression = stored\n' >$(VENV)/stored.cfg
	@DIST_EXTRA_CONFIG=$(abspath $(VENV))/stored.cfg $(PY) -m pip wheel --quiet --quiet \
	    --disable-pip-version-check --no-deps --wheel-dir $(VENV)/wheels $(SPARK) & spark=$$!; \
	$(PIP) --no-compile --editable '.[test-tools]'; status=$$?; \
	wait $$spark; exit $$status
	@$(PY) -m pytest --collect-only -q -q >/dev/null 2>&1 & compiled=$$!; \
	$(PIP) --no-compile --find-links $(VENV)/wheels --editable '.[test]'; status=$$?; \
	wait $$compiled; exit $$status
	@rm -rf $(VENV)/wheels $(VENV)/stored.cfg
	@touch $(VENV)/.stamp-lab $@

# ---------------------------------------------------------------------------------- notebooks

$(DEMO_DONE): | $(VENV)/.stamp-lab
	@$(PY) notebooks/demo_data.py $(DEMO)

lab: $(VENV)/.stamp-lab $(DEMO_DONE)  ## open JupyterLab on the tour of lance_nb
	@echo "Opening JupyterLab on the tour, $(TOUR). Ctrl-C twice ends it."
	@$(PY) -m jupyterlab $(TOUR) --LabApp.default_url=/lab/tree/$(notdir $(TOUR)) \
	    $$([ "$$(id -u)" != 0 ] || echo --allow-root) $(LAB_FLAGS)

demo: $(VENV)/.stamp-lab $(DEMO_DONE)  ## run the tour without a browser and keep the result
	@mkdir -p $(OUT)
	@start=$$(date +%s); \
	$(PY) -m nbconvert --log-level=WARN --to notebook --execute \
	    --ExecutePreprocessor.timeout=600 --output-dir $(OUT) --output 01_tour.ipynb $(TOUR) && \
	$(PY) -m nbconvert --log-level=ERROR --to html --output-dir $(OUT) $(OUT)/01_tour.ipynb && \
	echo "The tour ran in $$(( $$(date +%s) - start )) s. Result, with every output:" && \
	echo "  $(OUT)/01_tour.ipynb" && \
	echo "  $(OUT)/01_tour.html"

# ------------------------------------------------------------------------------ documentation

docs: $(VENV)/.stamp-venv  ## build the documentation into build/docs
	@$(PIP) --editable '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet
	@echo "The documentation: build/docs/index.html"

# ------------------------------------------------------------------------------------- releases

wheel: $(VENV)/.stamp-venv  ## build archives into dist/ and try each; WHEEL_FLAGS=--minimum or --newest: test with such dependencies
	@$(PIP) --editable '.[release]'
	@$(PY) -m tests.support.release $(WHEEL_FLAGS)

# -------------------------------------------------------------------------------------- tests

# All tiers run even when one fails, so that one run shows everything; the closing table says
# which failed and how long each took.
test: test-setup  ## install what tests need, then lint and run every tier
	@MAKE="$(MAKE)" sh tests/tiers.sh

# System packages come while pip works; neither needs the other.
test-setup:
	@{ sh tests/system_packages.sh; sh tests/js/run.sh install; } & packages=$$!; \
	$(MAKE) --no-print-directory $(VENV)/.stamp-test; status=$$?; \
	wait $$packages; exit $$status

lint: $(VENV)/.stamp-test  ## ruff, mypy, import floors, TypeScript and Biome, generated files up to date
	@status=0; \
	$(PY) -m mypy & mypy=$$!; \
	$(PY) -m ruff check . || status=1; \
	$(VENV)/bin/lint-imports --no-logo || status=1; \
	$(PY) protos/compile.py --check || status=1; \
	sh tests/js/run.sh lint || status=1; \
	wait $$mypy || status=1; \
	exit $$status

test-fast: $(VENV)/.stamp-test  ## unit, property, house and JavaScript tests: no pylance, no browser; SIZE=100: as many examples
	@status=0; \
	sh tests/js/run.sh test || status=1; \
	sh tests/in_parts.sh $$((2 * $(JOBS))) $(PY) -m pytest -m "not interop and not slow and not ui and not spark" $(PYTEST_FLAGS) || status=1; \
	exit $$status

# Exit status 5 is pytest's "no tests": fine only while the folder does not exist.
test-interop: $(VENV)/.stamp-test  ## compare with pylance; also the slow tests; SIZE=100: as many cases
	$(PY) -m pytest -n $(JOBS) --dist worksteal -m "(interop or slow) and not ui and not spark" $(PYTEST_FLAGS) \
	    || { [ $$? -eq 5 ] && [ ! -d tests/interop ]; }

# A browser that shares two cores is late now and then: what fails runs again, and is printed as a
# rerun (R). What is broken fails three times.
test-ui: $(VENV)/.stamp-test  ## drive JupyterLab in a real browser
	$(PY) -m pytest -n $(JOBS) --dist loadfile -m ui --reruns 2 $(PYTEST_FLAGS) || { [ $$? -eq 5 ] && [ ! -d tests/ui ]; }

test-spark: $(VENV)/.stamp-test  ## run plans and the data source on a real Spark (needs Java 17)
	$(PY) -m pytest -m spark $(PYTEST_FLAGS) || { [ $$? -eq 5 ] && [ ! -d tests/spark ]; }

bench: $(VENV)/.stamp-test  ## measure, beside pylance; NAME=read, BENCH_FLAGS='--only NAME'; NAME=--help lists the names
	$(PY) -m tests.benchmarks $(or $(NAME),tables) $(BENCH_FLAGS)

faults: $(VENV)/.stamp-test  ## make faults of one kind happen, or list the kinds; NAME=kills FLAGS='2000 1 --jobs 2 --keep'
	$(PY) -m tests.faults $(NAME) $(FLAGS)

mutation: $(VENV)/.stamp-test  ## change expressions of the engine and see whether tests fail; COUNT=400 SEED=1 FLAGS=
	@$(PIP) --editable '.[mutation]'
	$(PY) -m tests.mutation.run --count $(or $(COUNT),400) --seed $(or $(SEED),1) $(FLAGS)

reference: $(VENV)/.stamp-test  ## write the generated pages of notebooks/reference
	$(PY) -m tests.support.reference_pages
	$(PY) -m tests.faults report

notebooks: $(VENV)/.stamp-test  ## run all notebooks and save them with their outputs; NOTEBOOKS=03
	$(PY) -m tests.support.notebooks $(NOTEBOOKS)

screenshot: $(VENV)/.stamp-test  ## take the README's moving picture of the explorer (needs Chromium)
	$(PY) -m tests.support.screenshot

protos: $(VENV)/.stamp-test  ## compile protos/ into lance_nb/_pb
	$(PY) protos/compile.py

clean:  ## remove everything that make made, the virtual environment included
	rm -rf $(VENV) $(OUT) notebooks/data build dist tests/artifacts tests/benchmarks/data \
	    .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis tests/js/node_modules
	rm -rf lance_nb.egg-info lance_nb/encodings/kernels/_compiled.c lance_nb/encodings/kernels/_compiled.*.so
	find lance_nb tests notebooks protos -name __pycache__ -type d -prune -exec rm -rf {} +
