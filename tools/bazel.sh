# Read by the scripts beside it: `weft_bazel COMMAND ...` runs Bazel in the
# repository, with as many compilers at once as the machine's cores and memory
# carry (one takes up to 1.5 GB). Its output goes to standard error.

root=$(cd "$(dirname "$0")/.." && pwd)

weft_jobs() {
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ { print int($2 / 1500000) }' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

weft_bazel() {
  command=$1
  shift
  (cd "$root" && bazel "$command" --jobs="$(weft_jobs)" "$@") </dev/null >&2
}

# Builds targets; silent unless it takes time on a terminal or something fails.
weft_build() {
  if [ -t 2 ]; then progress=--show_progress; else progress=--noshow_progress; fi
  weft_bazel build $progress --show_result=0 \
    --ui_event_filters=-info,-stdout,-stderr,-warning "$@" && return
  echo "$(basename "$0"): the build failed: for what the compiler says run:" \
    "bazel build $*" >&2
  return 1
}
