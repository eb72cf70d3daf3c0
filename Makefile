# make demo | test | check | bench | docs | clean
#
# Each runs in .venv, made on demand from Python, a C compiler and the package index; PYTHON says which Python.
# To use a Python that already has what is needed (no network is asked for), leave VENV empty:
#     make demo VENV= PYTHON=python3
# ARGS goes to the command: make demo ARGS="--input picture.png", make test ARGS="-m 'not slow'".

PYTHON ?= python3
VENV ?= .venv
ARGS ?=

CYTHON := $(wildcard cuda_tma/*.pyx cuda_tma/*.pxd)
stubs := $(subst /,.,$(basename $(wildcard cuda_tma/*.pyi)))
absent := 'cuda_tma\..*\.__buffer__' # Python has it from 3.12 on; type checkers always want it

ifeq ($(VENV),)
built := build-in-place
python := $(PYTHON)
else
built := $(VENV)/built
python := $(VENV)/bin/python
export PATH := $(abspath $(VENV))/bin:$(PATH)
endif

.PHONY: demo test check bench docs clean build-in-place

demo: $(built)
	$(python) -m cuda_tma demo $(ARGS)

test: $(built)
	$(python) -m pytest $(ARGS)

check: $(built)
	$(python) -m ruff check
	$(python) -m ruff format --check
	cython-lint $(CYTHON)
	$(python) -m mypy
	echo $(absent) | $(python) -m mypy.stubtest $(stubs) --mypy-config-file pyproject.toml --ignore-missing-stub \
	    --allowlist /dev/stdin --ignore-unused-allowlist

bench: $(built)
	$(python) -m benchmarks $(ARGS)

docs: $(built)
	$(python) tools/write_rules.py
	$(python) tools/draw_docs.py

clean:
	rm -rf build dist *.egg-info cuda_tma/*.so $(VENV)

# An editable installation: pip builds the extensions beside their sources, with the build needs of pyproject.toml.
$(VENV)/built: pyproject.toml setup.py $(CYTHON)
	test -x $(python) || $(PYTHON) -m venv $(VENV)
	$(python) -m pip install --quiet --editable ".[test,check]"
	touch $@

build-in-place:
	$(PYTHON) setup.py --quiet build_ext --inplace
