#!/bin/sh
# Installs what is missing, builds everything and runs the tests.
#   tools/test.sh                     the tests
#   tools/test.sh --long              and those tagged `long` (tests/README.md)
#   tools/test.sh --config=asan //tests/loaders/...
# Other arguments go to `bazel test`; those that name targets stand in place of
# all (write options with `=`). The last line is `N passed, N failed`; a test
# that could not be built has failed, and so has a run without any test.
set -eu
. "$(dirname "$0")/bazel.sh"

long=no
targets=no
for argument; do
  shift
  case $argument in
    --long) long=yes && continue ;;
    -*) ;;
    *) targets=yes ;;
  esac
  set -- "$@" "$argument"
done

"$root/tools/install.sh"
if [ $targets = no ]; then
  # Tests and programs, not `//...`: a library that is named is compiled twice,
  # the second time for a shared library that nobody wants.
  programs=$(cd "$root" && bazel query --noshow_progress \
    'kind("(binary|test) rule", //...) except attr(tags, "\bmanual\b", //...)' \
    2>/dev/null </dev/null) || {
    echo "tools/test.sh: cannot list the targets: see bazel query //..." >&2
    exit 1
  }
  set -- "$@" $programs
fi
if [ $long = yes ]; then
  # Tagged `manual`, too, so that //... does not mean them.
  long_tests=$(cd "$root" && bazel query --noshow_progress \
    'attr(tags, "\blong\b", tests(//...))' 2>/dev/null </dev/null) || {
    echo "tools/test.sh: cannot list the long tests: see bazel query //..." >&2
    exit 1
  }
  set -- "$@" $long_tests
fi

vocabularies=${WEFT_VOCAB_DIR:-$root/../shared/vocab}
if [ -d "$vocabularies" ]; then
  WEFT_VOCAB_DIR=$(cd "$vocabularies" && pwd)
  export WEFT_VOCAB_DIR
fi

# What Bazel did, one JSON object a line.
events=$(mktemp)
trap 'rm -f "$events"' EXIT
if [ -t 2 ]; then progress=--show_progress; else progress=--noshow_progress; fi
code=0
weft_bazel test $progress --keep_going --build_event_json_file="$events" \
  "$@" || code=$?

tests=$(grep '"id":{"targetConfigured"' "$events" | grep -c '"testSize"') || true
passed=$(grep '"id":{"testSummary"' "$events" |
  grep -c '"overallStatus":"PASSED"') || true
if [ "$tests" = 0 ] && [ $code = 0 ]; then
  echo "tools/test.sh: no test was run: check the targets" >&2
  code=1
fi
echo "$passed passed, $((tests - passed)) failed"
exit $code
