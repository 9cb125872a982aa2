# Everything happens in .venv; each stamp in it says what has been installed already.
VENV  := .venv
# The first that runs and is new enough: a name on the PATH may be a shim for nothing.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done)
BIN   := $(VENV)/bin

.PHONY: demo test random gpu slow lint types bench ptx corpus docs floors clean

demo: $(VENV)/.run
	$(BIN)/teeny run softmax_triton

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto

# Random programs on the CPU device and on an oracle; TEENY_PROGRAMS=20000 makes about so many new ones.
random: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m random tests/devices/cpu/test_differential.py

# What only a GPU can show: its tests, under compute-sanitizer too, and what it leaves us to lose.
gpu: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group gpu
	$(BIN)/python -m pytest -m cuda
	$(BIN)/python -m benchmarks gpu

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# Pages that are written by the tool itself.
docs: $(VENV)/.run
	$(BIN)/teeny isa --markdown > docs/isa.md

# The oldest dependencies that pyproject.toml allows, in an environment of their own.
floors:
	$(PYTHON) -m venv $(VENV)-floors
	$(PYTHON) .ci/floors.py > $(VENV)-floors/floors.txt
	$(VENV)-floors/bin/python -m pip install --quiet "pip>=25.1"
	$(VENV)-floors/bin/python -m pip install --quiet --group dev --editable . --constraint $(VENV)-floors/floors.txt
	$(VENV)-floors/bin/python -m pytest -n auto

# PTX is committed, and made anew only when a source or a compiler changes. Pythons that have Triton and numba-cuda:
# make corpus TRITONS="3.9/bin/python 3.6/bin/python 3.4/bin/python 3.2/bin/python" NUMBA=numba/bin/python
TRITONS ?= $(PYTHON)
NUMBA   ?= $(PYTHON)

ptx:
	$(PYTHON) ptx/regenerate.py cuda
	for python in $(TRITONS); do $$python ptx/regenerate.py triton || exit 1; done
	$(PYTHON) benchmarks/kernels/regenerate.py cuda
	$(firstword $(TRITONS)) benchmarks/kernels/regenerate.py triton

corpus:
	$(PYTHON) tests/corpus/regenerate.py nvcc clang handmade
	for python in $(TRITONS); do $$python tests/corpus/regenerate.py triton || exit 1; done
	$(NUMBA) tests/corpus/regenerate.py numba
	$(PYTHON) tests/unseen/regenerate.py nvcc clang
	$(NUMBA) tests/unseen/regenerate.py numba

$(VENV)/.python:
	@test -n "$(PYTHON)" || { echo "teeny needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "the venv module is missing (on Debian: apt install python3-venv)"; exit 2; }
	@touch $@

$(VENV)/.run: $(VENV)/.python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable .
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-floors .mypy_cache .ruff_cache .pytest_cache
