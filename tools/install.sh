#!/bin/sh
# Installs what a build of weft needs and this machine lacks (Debian 12).
#   tools/install.sh [--check] [--aarch64]
#     --check     only tells what is missing
#     --aarch64   and what compiles for 64-bit ARM and runs the result here
# Does nothing when all is there. Needs root or sudo otherwise. Prints to
# standard error only.
set -eu

check=no
aarch64=""
for argument; do
  case $argument in
    --check) check=yes ;;
    --aarch64) aarch64="g++-aarch64-linux-gnu qemu-user" ;;
    *) echo "tools/install.sh: $argument: unknown" >&2 && exit 2 ;;
  esac
done

# The one list of packages. oneDNN, OpenSSL and cpp-httplib are linked as shared
# libraries, libcurl and Open MPI are loaded when they are needed; the others are linked as archives, or
# they are headers only; python3-jinja2 is what a test compares with.
packages="
  bazel-bootstrap
  chrpath
  dpkg-dev
  g++
  libabsl-dev
  libbenchmark-dev
  libcli11-dev
  libcpp-httplib-dev
  libcurl4-openssl-dev
  libdnnl-dev
  libgmock-dev
  libgtest-dev
  libncurses-dev
  libonnx-dev
  libopenmpi-dev
  libpcre2-dev
  libprotobuf-dev
  libssl-dev
  libutf8proc-dev
  libxxhash-dev
  nlohmann-json3-dev
  openmpi-bin
  protobuf-compiler
  python3-jinja2
  zlib1g-dev
"

if ! command -v dpkg-query >/dev/null; then
  echo "tools/install.sh: no dpkg on this machine: install these Debian 12" \
    "packages, or what equals them, by hand:" $packages >&2
  exit 1
fi

missing=""
for package in $packages $aarch64; do
  case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
    installed*) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

if [ $check = yes ]; then
  echo "missing:$missing" >&2
  exit 1
fi

if [ "$(id -u)" = 0 ]; then
  as_root="env"
elif command -v sudo >/dev/null; then
  as_root="sudo env"
else
  echo "tools/install.sh: needs root to install packages: run as root:" \
    "apt-get install$missing" >&2
  exit 1
fi

echo "installing:$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  $as_root DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
    -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" \
    </dev/null >"$log" 2>&1
}
# The list of packages is fetched only when the one at hand does not do.
if ! apt install --no-install-recommends $missing; then
  if ! { apt update && apt install --no-install-recommends $missing; }; then
    cat "$log" >&2
    echo "tools/install.sh: apt-get failed (see above): check the network and" \
      "the package sources, then run: apt-get install$missing" >&2
    exit 1
  fi
fi
