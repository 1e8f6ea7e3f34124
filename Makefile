# make demo   match a real matrix and a mesh, and prove the result
# make test   the tests that need no GPU, except those marked long
# make lint   ruff, mypy and pyright
# make test-long   the tests marked long
# make test-bounds   the tests of the CPU's kernels, which then check every index
# make test-lowest   some tests with the lowest versions that pyproject.toml admits
# make docs   the documentation site, in .venv/site
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# CuPy for the driver's CUDA, only where there is an NVIDIA driver at all.
CUDA   := $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: \([0-9]*\).*/,cuda\1/p')

# Without a driver, what only a GPU can run is not even skipped: of all tests it is a quarter.
HERE   := $(if $(shell nvidia-smi -L 2>/dev/null),, and (emulated or not gpu))

# Tests start many processes, which share the bytecode of the sources.
unexport PYTHONDONTWRITEBYTECODE

# The workers take all cores, so threads of their own for small matrices would only be in the way.
export OPENBLAS_NUM_THREADS := 1

# Workers begin at different places, so that they seldom compile the same kernel at the same time.
WORKERS := -n auto --maxprocesses 4 --dist worksteal

LOWEST := $(VENV)/lowest

.PHONY: demo test test-long test-bounds test-lowest lint docs clean

demo: $(VENV)/.demo
	$(BIN)/gpumatch match datasets/west0067.mtx.gz
	$(BIN)/python -m graphs delaunay 16 --seed 1 -o $(VENV)/delaunay_n16.npz
	$(BIN)/gpumatch match $(VENV)/delaunay_n16.npz

test: $(VENV)/.test
	$(BIN)/python -m pytest $(WORKERS) -m "not long$(HERE)"

test-long: $(VENV)/.test
	$(BIN)/python -m pytest $(WORKERS) -m "long$(HERE)"

# Numba does not notice the switch, so what it compiles here is kept apart. The tests of numba_tools
# have kernels of their own, and those of a GPU, emulated or not, run CUDA's. The checks are made
# before LLVM optimises, so it need not optimise far, which takes a quarter of the compiler's time.
# They are the same for each type of costs.
test-bounds: $(VENV)/.test
	NUMBA_BOUNDSCHECK=1 NUMBA_OPT=1 NUMBA_CACHE_DIR=$(abspath $(VENV))/checked-kernels $(BIN)/python -m pytest \
	    $(WORKERS) -m "not long and not gpu and not dtypes" --ignore tests/cpu/numba_tools \
	    tests/cpu tests/linalg tests/problems

# The parts of Numba that gpumatch depends on, and a small problem for each family of kernels.
test-lowest: $(LOWEST)/.test
	NUMBA_CACHE_DIR=$(abspath $(LOWEST))/kernels $(LOWEST)/bin/python -m pytest \
	    $(WORKERS) -m "not long$(HERE)" tests/cpu/numba_tools tests/cpu/test_families.py

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/basedpyright --pythonpath $(BIN)/python

docs: $(VENV)/.docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs $(VENV)/site
	$(BIN)/python -m bench report --out $(VENV)/site/benchmarks.html

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml Makefile | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[data$(CUDA)]'
	touch $@

$(VENV)/.test: pyproject.toml Makefile | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[test]'
	touch $@

$(LOWEST)/.test: pyproject.toml Makefile
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	    print(*(one.split(",")[0].replace(">=", "==") for one in project["dependencies"]))' \
	    | xargs $(LOWEST)/bin/python -m pip install --quiet pytest pytest-timeout pytest-xdist hypothesis
	$(LOWEST)/bin/python -m pip install --quiet --no-deps -e .
	touch $@

$(VENV)/.lint: pyproject.toml Makefile | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[lint,viz]'
	touch $@

$(VENV)/.docs: pyproject.toml Makefile | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[docs,networkx]'
	touch $@

# All that .ci/run needs but the lowest versions, by one installation instead of three.
$(VENV)/.all: pyproject.toml Makefile | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[test,lint,viz,docs,networkx]'
	touch $(VENV)/.test $(VENV)/.lint $(VENV)/.docs $@

clean:
	rm -rf $(VENV)
