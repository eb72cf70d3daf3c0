#!/usr/bin/env bash
# On a machine with a TMA-capable GPU: build the extension, run tests/gpu (which writes tests/gpu/RESULTS.md), run what
# the header does once more under compute-sanitizer's memcheck, and time.
# Usage: tools/gpu.sh [output folder] [pytest arguments ...]
#   CUDA_TMA_COMMIT  names the commit in RESULTS.md, where there is no git
#   CUDA_TMA_SITE    folder to install into, to be used again by later commands
#   CUDA_TMA_BENCH   off: do not time
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-build/gpu}")
shift || true
mkdir -p "$out"
export CUDA_TMA_COMMIT=${CUDA_TMA_COMMIT:-$(python3 -m tests.gpu.results commit)}
site=${CUDA_TMA_SITE:-$(mktemp -d)}
python3 -m pip install -q --no-build-isolation --no-deps --no-index --upgrade --target "$site" .
# Tests run beside the installed package, so that `import cuda_tma` cannot find the sources instead.
for folder in tests examples benchmarks; do [ -d "$folder" ] && cp -r "$folder" "$site"; done
status=0
touch "$site/started"
(cd "$site" && PYTHONPATH="$site:${PYTHONPATH:-}" python3 -m pytest tests/gpu -p no:cacheprovider "$@") || status=$?
if command -v compute-sanitizer >/dev/null; then
  # API errors are not reported, as the package itself asks the driver for what an older one lacks; nor child processes,
  # which fault on purpose.
  (cd "$site" && PYTHONPATH="$site:${PYTHONPATH:-}" CUDA_TMA_RESULTS=off compute-sanitizer --tool memcheck \
    --target-processes application-only --report-api-errors no --error-exitcode 9 \
    python3 -m pytest tests/gpu/test_header*.py tests/gpu/test_im2col.py -q -p no:cacheprovider) >"$out/memcheck.log" 2>&1 || status=$?
  echo "- compute-sanitizer memcheck of test_header*.py and test_im2col.py:" \
    "$(grep -E ' passed| failed' "$out/memcheck.log" | tail -1); $(grep 'ERROR SUMMARY' "$out/memcheck.log" | tail -1)" |
    if [ "$site/tests/gpu/RESULTS.md" -nt "$site/started" ]; then tee -a "$site/tests/gpu/RESULTS.md"; else cat; fi
fi
cp "$site/tests/gpu/RESULTS.md" "$out/"
if [ "${CUDA_TMA_BENCH:-on}" != off ]; then
  (cd "$site" && PYTHONPATH="$site:${PYTHONPATH:-}" python3 -m benchmarks --output "$out") || status=$?
fi
exit $status
