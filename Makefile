# Two commands for a newcomer: `make lab` and `make test`. Both need only python3 >= 3.11 and a
# package index. Node, where it is there, checks the browser modules. `make` alone prints the list.

VENV ?= .venv
JOBS ?= 2
# More options for JupyterLab, for example LAB_FLAGS="--no-browser --port 9999".
LAB_FLAGS ?=
# More options for pytest in every tier, for example PYTEST_FLAGS="-x -k manifest".
PYTEST_FLAGS ?=
# How many times as much as in CI `make test-interop-large` compares and `make test-properties` tries.
SIZE ?= 100

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
.PHONY: docs bench bench-check bench-checksums bench-index bench-object-store bench-read bench-spark bench-spark-scale bench-ui bench-ui-changes bench-ui-scale bench-write capabilities conflict-grid differential differential-planted fuzz-indices fuzz-kernels help kernels lab demo demo-data test test-binder test-ceph test-notebooks-browser test-setup test-fast test-js test-interop test-interop-large test-minimum test-newest test-properties test-ui test-spark test-spark-cluster lint mutation notebooks protos screenshot clean race simulate stateful torture torture-beside torture-cells torture-datasets torture-files torture-kills torture-losses torture-replies torture-spark torture-spark-kills torture-stores torture-streams reliability wheel

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

demo-data: $(DEMO_DONE)  ## write the demo dataset, if it is not there

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

wheel: $(VENV)/.stamp-venv  ## build sdist and wheels into dist/, check them, try each in a fresh environment
	@$(PIP) --editable '.[release]'
	@$(PY) -m tests.support.release

test-minimum: $(VENV)/.stamp-venv  ## unit tests of the engine with the lowest versions of its dependencies
	@$(PIP) --editable '.[release]'
	@$(PY) -m tests.support.release --minimum

test-newest: $(VENV)/.stamp-venv  ## fast tests with the newest Python that is found and the newest dependencies
	@$(PY) -m tests.support.release --newest

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

test-fast: $(VENV)/.stamp-test  ## unit, property and house tests: no pylance, no browser
	@status=0; \
	sh tests/js/run.sh test || status=1; \
	sh tests/in_parts.sh $$((2 * $(JOBS))) $(PY) -m pytest -m "not interop and not slow and not ui and not spark" $(PYTEST_FLAGS) || status=1; \
	exit $$status

kernels:  ## compile the loops of lance_nb/encodings/kernels again, where they lie
	$(PY) -W ignore -c "from setuptools import setup; setup()" --quiet build_ext --inplace --force

test-js:  ## unit tests of the browser modules (needs Node; says so and skips where it is missing)
	@sh tests/js/run.sh test

# Exit status 5 is pytest's "no tests": fine only while the folder does not exist.
test-interop: $(VENV)/.stamp-test  ## compare with pylance; also the slow tests
	$(PY) -m pytest -n $(JOBS) --dist worksteal -m "(interop or slow) and not ui and not spark" $(PYTEST_FLAGS) \
	    || { [ $$? -eq 5 ] && [ ! -d tests/interop ]; }

test-interop-large: $(VENV)/.stamp-test  ## the same with SIZE times the seeds (100; takes hours)
	LANCE_NB_TEST_SCALE=$(SIZE) $(PY) -m pytest -n $(JOBS) --dist worksteal -m "(interop or slow) and not ui and not spark" \
	    -o faulthandler_timeout=0 $(PYTEST_FLAGS) tests/interop tests/hostile

test-properties: $(VENV)/.stamp-test  ## property tests with SIZE times as many examples, new ones each time
	LANCE_NB_TEST_SCALE=$(SIZE) $(PY) -m pytest -n $(JOBS) --dist worksteal -m "not interop and not slow and not ui and not spark" \
	    -o faulthandler_timeout=0 $(PYTEST_FLAGS) tests/property tests/unit

# A browser that shares two cores is late now and then: what fails runs again, and is printed as a
# rerun (R). What is broken fails three times.
test-ui: $(VENV)/.stamp-test  ## drive JupyterLab in a real browser
	$(PY) -m pytest -n $(JOBS) --dist loadfile -m ui --reruns 2 $(PYTEST_FLAGS) || { [ $$? -eq 5 ] && [ ! -d tests/ui ]; }

test-spark: $(VENV)/.stamp-test  ## run plans and the data source on a real Spark (needs Java 17)
	$(PY) -m pytest -m spark $(PYTEST_FLAGS) || { [ $$? -eq 5 ] && [ ! -d tests/spark ]; }

test-spark-cluster: $(VENV)/.stamp-test  ## the same on a standalone master with two workers; ROWS=5000000
	$(PY) -m tests.spark.cluster $(or $(ROWS),5000000)

test-ceph: $(VENV)/.stamp-test  ## commit to a Ceph object store (Debian's packages, root)
	S3_SERVER=ceph $(PY) -m pytest tests/interop/remote/test_s3_store.py \
	    tests/interop/remote/test_s3_commits.py $(PYTEST_FLAGS)

test-binder:  ## build binder/ as Binder does, in a fresh virtual environment, and run the tour
	@folder=$$(mktemp -d) && bash tests/interop/notebooks/build_as_binder.sh . $$folder; \
	status=$$?; rm -rf $$folder; exit $$status

bench: $(VENV)/.stamp-test  ## time real tables against pylance, worst ratio first; BENCH_FLAGS='--only NAME --growth --json FILE'
	$(PY) -m tests.benchmarks.tables $(BENCH_FLAGS)

bench-check: $(VENV)/.stamp-test  ## fail when a ratio fell by a third below tests/benchmarks/ratios.json; BENCH_FLAGS='--size ci'
	$(PY) -m tests.benchmarks.tables --check $(BENCH_FLAGS)

bench-read: $(VENV)/.stamp-test  ## time reading against pylance; BENCH_FLAGS='--rows N --only NAME'
	$(PY) -m tests.benchmarks.read $(BENCH_FLAGS)

bench-write: $(VENV)/.stamp-test  ## time writing against pylance; BENCH_FLAGS as above, and --no-sync
	$(PY) -m tests.benchmarks.write $(BENCH_FLAGS)

bench-object-store: $(VENV)/.stamp-test  ## time a far S3 server against pylance, count requests; BENCH_FLAGS='--drivers --only NAME --delay-ms 50'
	$(PY) -m tests.benchmarks.object_store $(BENCH_FLAGS)

bench-index: $(VENV)/.stamp-test  ## time indices against pylance, cold, warm and far; BENCH_FLAGS='--only scalars|texts|builds|requests|vectors'
	$(PY) -m tests.benchmarks.index_search $(BENCH_FLAGS)

bench-checksums: $(VENV)/.stamp-test  ## what checksums cost writing, on disk and in memory; BENCH_FLAGS='--bytes N --only NAME'
	$(PY) -m tests.benchmarks.checksums $(BENCH_FLAGS)

bench-ui: $(VENV)/.stamp-test  ## time the explorer in JupyterLab and Chromium; BENCH_FLAGS='--only NAME --data FOLDER'
	$(PY) -m tests.benchmarks.ui.explorer_speed $(BENCH_FLAGS)

bench-ui-changes: $(VENV)/.stamp-test  ## time the Changes tab in the same way; BENCH_FLAGS as above
	$(PY) -m tests.benchmarks.ui.changes_speed $(BENCH_FLAGS)

bench-ui-scale: $(VENV)/.stamp-test  ## waiting, freezes and memory of the explorer on large datasets; BENCH_FLAGS as above
	$(PY) -m tests.benchmarks.ui.scale $(BENCH_FLAGS)

bench-spark: $(VENV)/.stamp-test  ## time Spark's verbs against df.write.parquet; BENCH_FLAGS='--rows N'
	$(PY) -m tests.benchmarks.spark $(BENCH_FLAGS)

bench-spark-scale: $(VENV)/.stamp-test  ## plan time, memory and cost per task at 100, 10,000 and 100,000 fragments
	$(PY) -m tests.benchmarks.spark_scale $(BENCH_FLAGS)

race: $(VENV)/.stamp-test  ## 8 processes, ours and pylance's, commit 2,000 times to one dataset
	$(PY) -m tests.concurrency.processes $(or $(COMMITS),250) --ours 4 --pylance 4 --keep

simulate: $(VENV)/.stamp-test  ## many seeded histories of writers that meet and fail; HISTORIES=100000
	$(PY) -m tests.concurrency.simulation $(or $(HISTORIES),100000) $(or $(SEED),1) --jobs $(JOBS) --keep

torture: torture-kills torture-losses torture-beside torture-stores torture-spark torture-spark-kills torture-streams torture-cells torture-replies torture-datasets torture-files simulate race stateful reliability  ## all long runs; KILLS= STATES= SPARK_ROUNDS= SPARK_KILLS= STREAM_REPLAYS= CELLS= REPLIES= DAMAGES= FILES= HISTORIES= COMMITS= RUNS= SEED=1

torture-kills: $(VENV)/.stamp-test  ## kill writers at every call that changes the disk; KILLS=2000 SEED=1
	$(PY) -m tests.torture.kills $(or $(KILLS),2000) $(or $(SEED),1) --jobs $(JOBS) --keep

torture-losses: $(VENV)/.stamp-test  ## lose what was not synced when the power failed; STATES=10000 SEED=1
	$(PY) -m tests.torture.losses $(or $(STATES),10000) $(or $(SEED),1) --jobs $(JOBS) --keep

torture-beside: $(VENV)/.stamp-test  ## kill writers while pylance commits; BESIDE=700 SEED=1
	$(PY) -m tests.torture.beside $(or $(BESIDE),700) $(or $(SEED),1) --jobs $(JOBS) --keep

torture-stores: $(VENV)/.stamp-test  ## kill writers that commit through a manifest store; KIND=sqlite STORES=700 SEED=1
	$(PY) -m tests.torture.stores $(or $(STORES),700) $(or $(SEED),1) --kind $(or $(KIND),sqlite) --jobs $(JOBS) --keep

torture-spark: $(VENV)/.stamp-test  ## let tasks, executors, commits and drivers of jobs on Spark fail; SPARK_ROUNDS=60 SEED=1
	$(PY) -W ignore -m tests.torture.spark_failures $(or $(SPARK_ROUNDS),60) $(or $(SEED),1) --keep

torture-spark-kills: $(VENV)/.stamp-test  ## kill workers, executors and drivers at every stage of jobs on Spark; SPARK_KILLS=144 SEED=1
	$(PY) -W ignore -m tests.torture.spark_kills $(or $(SPARK_KILLS),144) $(or $(SEED),1) --keep

torture-streams: $(VENV)/.stamp-test  ## offer batches of streams on Spark again after commits of others; STREAM_REPLAYS=100 SEED=1
	$(PY) -W ignore -m tests.torture.stream_replays $(or $(STREAM_REPLAYS),100) $(or $(SEED),1) --keep

torture-cells: $(VENV)/.stamp-test  ## one or two faults at the steps of every change, in memory; CELLS=10000 SEED=1
	$(PY) -m tests.concurrency.crash_grid $(or $(CELLS),10000) $(or $(SEED),1) --jobs $(JOBS) --keep

torture-replies: $(VENV)/.stamp-test  ## each of six errors at every call to the disk; REPLIES=13400 SEED=1
	$(PY) -m tests.concurrency.lost_replies $(or $(REPLIES),13400) $(or $(SEED),1) --jobs $(JOBS) --keep

torture-datasets: $(VENV)/.stamp-test  ## damage whole datasets, call every verb of ours; DAMAGES=100000 SEED=1
	$(PY) -m tests.hostile.whole $(or $(DAMAGES),100000) $(or $(SEED),1) --jobs $(JOBS) --keep

torture-files: $(VENV)/.stamp-test  ## damage data files of every version and read them; FILES=150000 SEED=1
	$(PY) -m tests.hostile.fuzz $(or $(FILES),150000) $(or $(SEED),1) --jobs $(JOBS) --keep

fuzz-indices: $(VENV)/.stamp-test  ## damage index files of every kind and search them; CASES=5000 SEED=1
	$(PY) -m tests.hostile.indices $(or $(CASES),5000) $(or $(SEED),1) --seconds 900

fuzz-kernels: $(VENV)/.stamp-test  ## compiled loops on hostile input under AddressSanitizer (needs gcc); CASES=200000 SEED=1
	$(PY) -m tests.hostile.kernels $(or $(CASES),200000) $(or $(SEED),1) --seconds 900

reliability: $(VENV)/.stamp-test  ## write RELIABILITY.md from the stored results of long runs
	$(PY) -m tests.torture.report

stateful: $(VENV)/.stamp-test  ## random sequences of every verb against a model; RUNS=10000 SEED=1
	$(PY) -m tests.stateful.sequences $(or $(RUNS),10000) $(or $(SEED),1) --keep

differential: $(VENV)/.stamp-test  ## random schemas, histories and reads against pylance; MINUTES=30 SEED= CASES=
	$(PY) -m tests.differential.run --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED)) $(if $(CASES),--cases $(CASES))

mutation: $(VENV)/.stamp-test  ## change expressions of the engine and see whether tests fail; COUNT=400 SEED=1 FLAGS=
	@$(PIP) --editable '.[mutation]'
	$(PY) -m tests.mutation.run --count $(or $(COUNT),400) --seed $(or $(SEED),1) $(FLAGS)

differential-planted: $(VENV)/.stamp-test  ## how soon the differential cases find each of some planted defects
	$(PY) -m tests.differential.planted

conflict-grid: $(VENV)/.stamp-test  ## print which changes get along with which others, as one table
	@$(PY) -m tests.support.print_grid

capabilities: $(VENV)/.stamp-test  ## write the generated tables of the documentation
	$(PY) -m tests.support.capabilities

notebooks: $(VENV)/.stamp-test  ## run all notebooks and save them with their outputs
	$(PY) -m tests.support.notebooks $(NOTEBOOKS)

test-notebooks-browser: $(VENV)/.stamp-test  ## run all notebooks in a real JupyterLab; NOTEBOOKS=03, FLAGS=--without-java
	$(PY) -m tests.support.notebooks_in_browser $(FLAGS) $(NOTEBOOKS)

screenshot: $(VENV)/.stamp-test  ## take the README's picture of the explorer (needs Chromium)
	$(PY) -m tests.support.screenshot

protos: $(VENV)/.stamp-test  ## compile protos/ into lance_nb/_pb
	$(PY) protos/compile.py

clean:  ## remove everything that make made, the virtual environment included
	rm -rf $(VENV) $(OUT) notebooks/data build dist tests/artifacts tests/benchmarks/data \
	    .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis tests/js/node_modules
	rm -rf lance_nb.egg-info lance_nb/encodings/kernels/_compiled.c lance_nb/encodings/kernels/_compiled.*.so
	find lance_nb tests notebooks protos -name __pycache__ -type d -prune -exec rm -rf {} +
