#!/bin/sh
# Formats C++ and Bazel files as the project has them.
#   tools/format.sh [--check] [FILE...]     these files; none: all of the project
# --check changes nothing and fails if it would.
# clang-format: Debian's package. buildifier: `npm install -g @bazel/buildifier`;
# Bazel files are left alone where it is absent.
set -eu

refuse() {
  echo "tools/format.sh: $1" >&2
  exit 2
}

mode=fix
flags=-i
if [ "${1:-}" = --check ]; then
  mode=check
  flags="--dry-run --Werror"
  shift
fi
for file in "$@"; do
  case $file in
    -*) refuse "unknown argument $file: want [--check] [FILE...]" ;;
    *.cc | *.h | *.inl | *.bazel | *.bzl | WORKSPACE | */WORKSPACE) ;;
    *) refuse "neither C++ nor Bazel's: $file" ;;
  esac
  [ -f "$file" ] || refuse "no such file: $file"
done

if ! command -v clang-format >/dev/null; then
  echo "tools/format.sh: no clang-format: apt-get install clang-format" >&2
  exit 1
fi
buildifier=$(command -v buildifier || true)
[ -n "$buildifier" ] ||
  echo "tools/format.sh: no buildifier: Bazel files were not looked at" >&2

code=0
if [ $# -gt 0 ]; then
  for file in "$@"; do
    case $file in
      *.cc | *.h | *.inl) clang-format --style=Google $flags "$file" || code=1 ;;
      *) [ -z "$buildifier" ] || "$buildifier" -mode="$mode" "$file" || code=1 ;;
    esac
  done
  exit $code
fi
cd "$(dirname "$0")/.."
git ls-files -z '*.cc' '*.h' '*.inl' |
  xargs -0 clang-format --style=Google $flags || code=1
if [ -n "$buildifier" ]; then
  git ls-files -z '*.bazel' '*.bzl' WORKSPACE |
    xargs -0 "$buildifier" -mode="$mode" || code=1
fi
exit $code
