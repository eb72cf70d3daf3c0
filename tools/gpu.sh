#!/usr/bin/env bash
# Build and install the package on a machine with a TMA-capable GPU, and run one or more stages:
#   tests      tests/gpu, in several processes at a time, which writes tests/gpu/RESULTS.md
#   sanitize   the tests of the header, and the small cases of every example, again under compute-sanitizer's memcheck
#              and synccheck
#   bench      python -m benchmarks
# The first two stages run at the same time, in a dozen processes.
# Usage: tools/gpu.sh [output folder] [pytest arguments ...]
#   CUDA_TMA_STAGES  the stages (default: "tests sanitize bench")
#   CUDA_TMA_COMMIT  the commit in RESULTS.md, without git; "-dirty" means that files were changed
#   CUDA_TMA_SITE    the folder of the installation, which later commands use again
#   CUDA_TMA_WHEEL   the wheel to install (default: the script builds it)
#   CUDA_TMA_PROCESSES  the number of processes that run the tests (default: 4)
#   CUDA_TMA_TOOLS   the tools of the sanitizer, a few minutes each (default: "memcheck synccheck")
#   CUDA_TMA_BENCH   the arguments of the benchmarks, such as "kernels --runs 5"
# The sanitizer stage appends to a RESULTS.md of the same commit: that of the output folder, if an earlier command wrote
# one.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-build/gpu}")
shift || true
mkdir -p "$out"
stages=" ${CUDA_TMA_STAGES:-tests sanitize bench} "
export CUDA_TMA_COMMIT=${CUDA_TMA_COMMIT:-$(python3 -m tests.gpu.results commit)}
site=${CUDA_TMA_SITE:-$(mktemp -d)}
python3 -m pip install -q --no-build-isolation --no-deps --no-index --upgrade --target "$site" "${CUDA_TMA_WHEEL:-.}"
# Tests run next to the installed package, so that `import cuda_tma` does not find the sources.
for each in tests examples benchmarks evaluation tools docs README.md; do [ -e "$each" ] && cp -r "$each" "$site"; done
[ -f "$out/RESULTS.md" ] && cp "$out/RESULTS.md" "$site/tests/gpu/"
cd "$site"
export PYTHONPATH="$site:${PYTHONPATH:-}"
status=0
running=() # processes of the first two stages, which run at the same time

tested() { # Run a part of the tests by number and files, which writes a part of the record.
  local part=$1
  shift
  CUDA_TMA_RESULTS=$out/part$part.json python3 -m pytest "$@" -p no:cacheprovider >"$out/part$part.log" 2>&1
}

sanitized() { # Run a command under a tool; the last words of the command and of the tool become a line of RESULTS.md.
  local tool=$1 name=$2 log="$out/$1-$2.log" ended=0
  shift 2
  # API errors are not reported, because the package requests entries that older drivers lack. Child
  # processes are not reported either, because they fault on purpose.
  local quiet=()
  [ "$tool" != memcheck ] || quiet=(--report-api-errors no)
  compute-sanitizer --tool "$tool" --target-processes application-only "${quiet[@]}" --error-exitcode 9 "$@" >"$log" 2>&1 || ended=$?
  [ $ended = 0 ] || echo "$tool of $name ended with $ended" >>"$log"
  echo "- compute-sanitizer $tool of $name:" \
    "$(grep -E '^ok:| passed| failed|ended with|Error:' "$log" | grep -v '^=' | tail -1);" \
    "$(grep 'ERROR SUMMARY' "$log" | tail -1 | tr -d =)" >"$out/$tool-$name.line"
  return $ended
}

sanitized_examples() { # tool
  local tool=$1 example name small ended=0
  for example in examples/[!_]*.py; do
    name=$(basename "$example" .py)
    grep -q 'TARGETS = .*"sm_90' "$example" || continue # this example has no kernel for this GPU
    small=$(grep -q SMALL "$example" && echo --small || true)
    sanitized "$tool" "$name" python3 "$example" $small || ended=$?
  done
  return $ended
}

rm -f "$out"/part*.json "$out"/*.line
case $stages in *" tests "*)
  # These tests measure the memory of the GPU and the time of a launch, so no other process runs.
  alone=tests/gpu/test_torch_operator.py
  count=${CUDA_TMA_PROCESSES:-4} files=()
  for each in tests/gpu/test_*.py; do [ "$each" = $alone ] || files+=("$each"); done
  for ((part = 0; part < count; ++part)); do
    own=()
    for ((i = part; i < ${#files[@]}; i += count)); do own+=("${files[i]}"); done
    tested $part "${own[@]}" "$@" &
    running+=($!)
  done ;;
esac
case $stages in *" sanitize "*)
  for tool in ${CUDA_TMA_TOOLS:-memcheck synccheck}; do
    sanitized_examples "$tool" &
    running+=($!)
    CUDA_TMA_RESULTS=off CUDA_TMA_WATCH=off sanitized $tool header-and-im2col \
      python3 -m pytest tests/gpu/test_header*.py tests/gpu/test_im2col.py tests/gpu/test_products.py -q -p no:cacheprovider &
    running+=($!)
  done ;;
esac
for each in "${running[@]}"; do wait "$each" || status=$?; done
case $stages in *" tests "*)
  tested "$count" $alone "$@" || status=$?
  tail -n 30 "$out"/part?.log
  python3 -m tests.gpu.results write "$out"/part*.json || status=$? ;;
esac
case $stages in *" sanitize "*)
  cat "$out"/*.line
  # These lines belong to the record of the same commit.
  if grep -qx -e "- commit: $CUDA_TMA_COMMIT" tests/gpu/RESULTS.md; then cat "$out"/*.line >>tests/gpu/RESULTS.md; fi ;;
esac
cp tests/gpu/RESULTS.md "$out/"
case $stages in *" bench "*)
  # shellcheck disable=SC2086 # words
  python3 -m benchmarks ${CUDA_TMA_BENCH:-} --output "$out" || status=$? ;;
esac
exit $status
