#!/bin/sh
# Formats C++ and Bazel files as the project has them.
#   tools/format.sh [--check]     --check changes nothing and fails if it would
# clang-format: Debian's package. buildifier: `npm install -g @bazel/buildifier`;
# Bazel files are left alone where it is absent.
set -eu
cd "$(dirname "$0")/.."

mode=fix
[ "${1:-}" = --check ] && mode=check

if ! command -v clang-format >/dev/null; then
  echo "tools/format.sh: no clang-format: apt-get install clang-format" >&2
  exit 1
fi
code=0
flags=-i
[ $mode = check ] && flags="--dry-run --Werror"
git ls-files -z '*.cc' '*.h' '*.inl' |
  xargs -0 clang-format --style=Google $flags || code=1
if command -v buildifier >/dev/null; then
  git ls-files -z '*.bazel' '*.bzl' WORKSPACE |
    xargs -0 buildifier -mode="$mode" || code=1
else
  echo "tools/format.sh: no buildifier: Bazel files were not looked at" >&2
fi
exit $code
