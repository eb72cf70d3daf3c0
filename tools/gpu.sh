#!/usr/bin/env bash
# On a machine with a TMA-capable GPU: build the extension, run tests/gpu (which writes tests/gpu/RESULTS.md), and time.
# Usage: tools/gpu.sh [output folder] [pytest arguments ...]. CUDA_TMA_COMMIT names the commit where there is no git.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-build/gpu}
shift || true
mkdir -p "$out"
export CUDA_TMA_COMMIT=${CUDA_TMA_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
site=$(mktemp -d)
python3 -m pip install -q --no-build-isolation --no-deps --no-index --target "$site" .
export PYTHONPATH="$site:$PWD"
status=0
# From another folder, so that `import cuda_tma` finds the package as installed and not the sources beside it.
rm -rf "$site/tests" && cp -r tests "$site/tests" && mkdir -p "$site/examples" && cp -r examples "$site/"
(cd "$site" && PYTHONPATH="$site" python3 -m pytest tests/gpu -p no:cacheprovider "$@") || status=$?
cp "$site/tests/gpu/RESULTS.md" "$out/" 2>/dev/null && cp "$out/RESULTS.md" tests/gpu/RESULTS.md || true
exit $status
