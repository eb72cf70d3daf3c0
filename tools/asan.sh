#!/usr/bin/env bash
# Build the extensions with AddressSanitizer under build/asan, next to copies of the files that the tests read, and run
# the tests of the extensions there. An AddressSanitizer error ends the run. This needs gcc and its libasan, and a
# Python with the dependencies of the tests, setuptools and Cython. Usage: tools/asan.sh PYTHON [pytest arguments ...]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(command -v "$1")
case $python in /*) ;; *) python=$PWD/$python ;; esac
shift
site=build/asan/site
rm -rf "$site"
"$python" -c 'import Cython, setuptools' 2>/dev/null || "$python" -m pip install --quiet cython setuptools
CFLAGS="-fsanitize=address -fno-omit-frame-pointer -g" LDFLAGS="-fsanitize=address" \
  "$python" setup.py --quiet build --build-base build/asan --build-lib "$site"
cp -r tests examples benchmarks docs tools README.md pyproject.toml "$site"
cd "$site"
# NVRTC opens a library in its own folder. With the sanitizer, its runpath no longer applies.
nvrtc='from cuda.pathfinder import load_nvidia_dynamic_lib as load; print(load("nvrtc").abs_path)'
export LD_LIBRARY_PATH="$(dirname "$("$python" -c "$nvrtc")"):${LD_LIBRARY_PATH-}"
# Leaks are not reported, because Python itself frees little at its end. With malloc, the sanitizer also checks
# Python's own objects. C++ interceptors must be loaded before the libraries that throw (torch, NVRTC), hence
# libstdc++.
export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)"
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc PYTHONPATH=$PWD
# Exclude tests that run compilers (NVRTC, nvcc) and those that make environments.
mapfile -t tests < <(grep -rlE '\bdriver[,)]|_dlpack|_export|describe_tensor|params_of' --include='test_*.py' tests |
  grep -vE '/(benchmarks|docs|evaluation|examples|gpu|include|tools)/|test_(contributing|driver|environments|structure)')
# One test places a semaphore of the C library in a struct. The sanitizer has its own semaphore, so the wait returns.
exec "$python" -m pytest -p no:cacheprovider -q "${tests[@]}" \
  --deselect tests/_read/test_dlpack.py::test_deleters_are_called_without_the_gil "$@"
