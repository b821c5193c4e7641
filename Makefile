# SPDX-License-Identifier: BSD-3-Clause
# Every target does its own set-up: python3 (3.11 or later), a C compiler and a package index are
# all that is needed. PYTHON=python3.12 make test   chooses another interpreter.
PYTHON ?= python3
VENV ?= .venv
SETUP_ARGS ?=
DEMO ?= examples/demo.py
PAPERS ?=
BENCH ?= -m benchmarks.speed
PYTEST_ARGS ?=
INPUTS ?= 10000
RUN ?=
MUTANTS ?=
SEED ?= 0

comma := ,
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
# For programs that call others by name: meson calls cython and ninja, cython-lint pycodestyle.
WITH_PATH := PATH="$(abspath $(BIN)):$$PATH"
# Directories are listed too: their time changes when a file is added or removed.
SOURCES := $(shell find src -not -path '*/__pycache__*') meson.build meson.options pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help demo test test-full quick fuzz mutants test-levels test-c test-aarch64 test-windows test-clang \
  test-sklearn test-browser walk \
  checked sanitize sanitize-memory sanitize-threads lint format bench gallery docs papers package clean
.DELETE_ON_ERROR:

help:
	@echo 'make demo      build the package and show what it does'
	@echo 'make test      run the tests on the built package      (PYTEST_ARGS="-k factor -x")'
	@echo 'make test-full the same, every case of the products that rotate'
	@echo 'make quick     a case of every fourth test, in under a minute'
	@echo 'make fuzz      hostile files, arrays and stores        (INPUTS=100000 SEED=1)'
	@echo 'make mutants   faults put in one at a time: does a test notice?  (MUTANTS="store cli")'
	@echo 'make checked   make test, the core compiled with bounds checks'
	@echo 'make sanitize  core, engine, laws and hostile inputs under sanitizers'
	@echo 'make test-levels   core, engine and laws at every SIMD level that this CPU has'
	@echo 'make test-c        the C loops of every level against plain ones, without Python'
	@echo 'make test-aarch64  the same, cross-compiled and run on an emulator  (qemu-user)'
	@echo 'make test-windows  the same for Windows  (mingw-w64, wine)'
	@echo 'make test-clang    the tests of the core, compiled by Clang'
	@echo "make test-sklearn  scikit-learn's own tests of its SVMs, on ours"
	@echo "make walk          a newcomer's first hour, with the wheel in an empty environment"
	@echo 'make lint      style, types, and the direction of imports'
	@echo 'make format    rewrite the sources in the house format'
	@echo 'make bench     measure against refitting with other libraries'
	@echo 'make gallery   run examples/gallery and write docs/gallery.md'
	@echo 'make docs      build the documentation site into build/docs'
	@echo 'make papers    redo the tables and figures of the papers  (PAPERS=--quick)'
	@echo 'make package   build and install into $(VENV) only'
	@echo 'make clean     remove what these targets made'

demo: package $(VENV)/.has-demo
	$(PY) $(DEMO)

# Two processes, so one BLAS thread in each: more would compete for the same cores.
test: package $(VENV)/.has-test
	OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 $(PYTEST_ARGS)

# Laws x families x solvers x estimators, of which `make test` runs a part, another every day.
test-full:
	$(MAKE) test PYTEST_ARGS='--full $(PYTEST_ARGS)'

# The inner loop, in under a minute: of every fourth test one case, others every day.
quick: package $(VENV)/.has-test
	OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 -q --quick $(PYTEST_ARGS)

# Hostile files, arrays and stores, drawn by Hypothesis; what breaks a promise is kept.
fuzz: package $(VENV)/.has-test
	PYTHONPATH=tests $(PY) -m fuzz.run --inputs $(INPUTS) --seed $(SEED)

# Faults put into a copy of the package, one at a time; nine of ten must be noticed.
mutants: package $(VENV)/.has-test
	PYTHONPATH=tests $(PY) -m mutants.run $(MUTANTS)

# In a noexcept function an IndexError is only printed; the -W makes it fail the test.
checked:
	$(MAKE) test VENV=.venv-checked SETUP_ARGS=--config-settings=setup-args=-Dchecked=true \
	  PYTEST_ARGS='-W error::pytest.PytestUnraisableExceptionWarning $(PYTEST_ARGS)'

# Sanitizers of GCC: address and undefined behaviour for what works on arrays, threads for the pool.
# Python itself is not compiled with them, so their library is loaded before it. The first finding
# ends the run. Leaks are not looked for: Python keeps what it has until it ends.
SANITIZE := tests/core tests/engine tests/laws tests/hostile tests/fuzz
SANITIZED = $(addprefix --config-settings=setup-args=,-Db_sanitize=$(1) -Db_lundef=false \
  -Dbuildtype=custom -Doptimization=0 -Ddebug=true)
PRELOAD = LD_PRELOAD="$$($(CC) -print-file-name=lib$(1).so) $$($(CC) -print-file-name=libstdc++.so)"

sanitize: sanitize-memory sanitize-threads

sanitize-memory:
	$(MAKE) package .venv-sanitize/.has-test VENV=.venv-sanitize \
	  SETUP_ARGS='$(call SANITIZED,address$(comma)undefined)'
	$(call PRELOAD,asan) PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1 \
	  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=1 \
	  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  .venv-sanitize/bin/python -m pytest -n 2 $(SANITIZE) $(PYTEST_ARGS)

# Without randomised addresses, which the thread sanitizer cannot place its shadow among. It ends a
# child of fork that starts threads, as one test's does, unless told not to (die_after_fork): it
# does not follow memory there. The parent is looked at as ever.
sanitize-threads:
	$(MAKE) test-c CC='$(CC) -g -fsanitize=thread' RUN='setarch -R'
	$(MAKE) package .venv-tsan/.has-test VENV=.venv-tsan SETUP_ARGS='$(call SANITIZED,thread)'
	$(call PRELOAD,tsan) OPENBLAS_NUM_THREADS=1 TSAN_OPTIONS=halt_on_error=1:die_after_fork=0 \
	  setarch -R .venv-tsan/bin/python -m pytest tests/core/test_thread_pool.py $(PYTEST_ARGS)

# `make test` runs at the highest level.
test-levels: package $(VENV)/.has-test
	for level in $$($(PY) -c 'from adiabat._core import simd; print(*simd.levels())'); do \
	  echo "SIMD level $$level"; \
	  ADIABAT_SIMD=$$level OPENBLAS_NUM_THREADS=1 \
	    $(PY) -m pytest -n 2 tests/core tests/engine tests/laws $(PYTEST_ARGS) || exit 1; \
	done

# One program for each level: tests/c/kernels.c with the loops compiled for it. The last two are
# wide and narrow vectors of the compiler's own making, so that the blocking for 32 registers of
# 64 bytes is tested where there are none, and for one number at a time.
KERNELS := -O3 -std=c11 -Wall -Wextra -Wno-psabi -Werror -pedantic -ffp-contract=off \
  -Isrc/adiabat/_core tests/c/kernels.c src/adiabat/_core/simd_level.c \
  src/adiabat/_core/thread_pool.c -lm -lpthread
GENERIC := -DSIMD_GENERIC -DSIMD_LEVEL=generic
CROSS_CC ?= aarch64-linux-gnu-gcc
EMULATOR ?= qemu-aarch64
WINDOWS_CC ?= x86_64-w64-mingw32-gcc
WINE ?= wine64

test-c:
	mkdir -p build
	$(CC) -DSIMD_LEVEL=baseline $(KERNELS) -o build/kernels && $(RUN) build/kernels
	if grep -qw avx2 /proc/cpuinfo; then \
	  $(CC) -DSIMD_LEVEL=v3 -march=x86-64-v3 $(KERNELS) -o build/kernels && $(RUN) build/kernels; fi
	if grep -qw avx512vl /proc/cpuinfo; then \
	  $(CC) -DSIMD_LEVEL=v4 -march=x86-64-v4 $(KERNELS) -o build/kernels && $(RUN) build/kernels; fi
	$(CC) $(GENERIC) -DSIMD_BYTES=64 -DSIMD_REGISTERS=32 $(KERNELS) -o build/kernels \
	  && $(RUN) build/kernels
	$(CC) $(GENERIC) -DSIMD_BYTES=8 $(KERNELS) -o build/kernels && $(RUN) build/kernels

# Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user.
test-aarch64:
	mkdir -p build
	$(CROSS_CC) -static -DSIMD_LEVEL=neon $(KERNELS) -o build/kernels-aarch64
	$(EMULATOR) build/kernels-aarch64
	$(CROSS_CC) -static $(GENERIC) $(KERNELS) -o build/kernels-aarch64
	$(EMULATOR) build/kernels-aarch64

# With the atomics that MSVC has. Debian: gcc-mingw-w64-x86-64, wine64.
test-windows:
	mkdir -p build
	$(WINDOWS_CC) -static -DADIABAT_WIN32_ATOMICS -DSIMD_LEVEL=v3 -march=x86-64-v3 $(KERNELS) \
	  -o build/kernels.exe
	WINEDEBUG=-all $(WINE) build/kernels.exe

test-clang:
	$(MAKE) test-c CC=clang
	$(MAKE) test VENV=.venv-clang CC=clang PYTEST_ARGS='tests/core $(PYTEST_ARGS)'

# Every page of the service in a real browser. Debian: chromium.
test-browser: package $(VENV)/.has-test
	$(PIP) install playwright
	ADIABAT_BROWSER=1 $(PY) -m pytest tests/service/test_browser.py $(PYTEST_ARGS)

# scikit-learn's own tests of its SVMs, with our classes in their place.
test-sklearn: package $(VENV)/.has-test
	PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -q -c /dev/null -p no:cacheprovider \
	  -p scikit_learn_suite.plugin --pyargs sklearn.svm.tests.test_svm sklearn.svm.tests.test_sparse

# The wheel, an environment with nothing else in it, the tour, and a pipeline of one's own.
walk: package
	rm -rf build/wheel
	$(WITH_PATH) $(PIP) wheel --no-build-isolation --no-deps --wheel-dir build/wheel \
	  --config-settings=build-dir=$(VENV)/build .
	$(PY) tests/walks/newcomer.py build/wheel/*.whl

lint: $(VENV)/.has-lint
	$(BIN)/ruff check --output-format=concise .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(WITH_PATH) cython-lint src
	PYTHONPATH=src $(BIN)/lint-imports

format: $(VENV)/.has-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Twenty minutes on two cores; PAPERS=--quick takes one or two, and leaves docs/reproduction.md alone.
papers: package $(VENV)/.has-bench $(VENV)/.has-demo
	$(PY) -m benchmarks.papers $(PAPERS)

bench: package $(VENV)/.has-bench
	$(PY) $(BENCH)

gallery: package $(VENV)/.has-plots
	$(PY) -W error examples/gallery

# Warnings are errors, so that a page never points at nothing.
docs: package $(VENV)/.has-docs
	$(PY) -m sphinx -q -W --keep-going -b html docs build/docs
	@echo 'build/docs/index.html'

package: $(VENV)/.package

clean:
	rm -rf docs/auto_gallery docs/api .venv .venv-checked .venv-clang .venv-sanitize .venv-tsan build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache \
	  .hypothesis

# What pyproject.toml asks for: of the build, of the package, and of one of its extras.
define requirements
import sys, tomllib
with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
extra = sys.argv[1]
if extra == "build":
    print("ninja", *settings["build-system"]["requires"], sep="\n")
else:
    print(*settings["project"]["optional-dependencies"][extra], sep="\n")
print(*settings["project"]["dependencies"], sep="\n")
endef
export requirements

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo '$(PYTHON) is older than 3.11; try PYTHON=python3.11 make ...' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Not compiled at once: of some 12,000 files a run imports a part, and Python compiles that.
$(VENV)/.has-%: pyproject.toml | $(VENV)/bin/python
	$(PY) -c "$$requirements" $* > $(VENV)/requirements-$*.txt
	$(PIP) install --no-compile -r $(VENV)/requirements-$*.txt
	touch $@

# A wheel, not an editable install: what is tested is what users get. Meson's directory is kept
# inside the environment, so that only changed files are compiled again. The stamp has the time at
# which the build began: a file saved meanwhile is then still newer.
$(VENV)/.package: $(SOURCES) $(VENV)/.has-build
	touch $@.begun
	$(WITH_PATH) $(PIP) install --no-build-isolation --no-deps \
	  --config-settings=build-dir=$(VENV)/build $(SETUP_ARGS) .
	mv $@.begun $@
