#!/usr/bin/env bash
# On a machine with a TMA-capable GPU: build the extension, run tests/gpu (which writes tests/gpu/RESULTS.md), and time.
# Usage: tools/gpu.sh [output folder] [pytest arguments ...]
#   CUDA_TMA_COMMIT  names the commit in RESULTS.md, where there is no git
#   CUDA_TMA_SITE    folder to install into, to be used again by later commands
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-build/gpu}")
shift || true
mkdir -p "$out"
export CUDA_TMA_COMMIT=${CUDA_TMA_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
site=${CUDA_TMA_SITE:-$(mktemp -d)}
python3 -m pip install -q --no-build-isolation --no-deps --no-index --upgrade --target "$site" .
# Tests run beside the installed package, so that `import cuda_tma` cannot find the sources instead.
for folder in tests examples benchmarks; do [ -d "$folder" ] && cp -r "$folder" "$site"; done
status=0
(cd "$site" && PYTHONPATH="$site:${PYTHONPATH:-}" python3 -m pytest tests/gpu -p no:cacheprovider "$@") || status=$?
cp "$site/tests/gpu/RESULTS.md" "$out/"
if ls benchmarks/__main__.py >/dev/null 2>&1; then
  (cd "$site" && PYTHONPATH="$site:${PYTHONPATH:-}" python3 -m benchmarks --output "$out") || status=$?
fi
exit $status
