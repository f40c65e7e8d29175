#!/bin/sh
# Puts Debian's libraries for arm64, of this machine's own release, into a
# folder: static ones, and cpp-httplib with what it needs, which is shared only.
# Nearly all headers are the same for every architecture: tools/install.sh has
# installed them.
#   third_party/arm64_libraries.sh DIR
# Needs the network and neither root nor a foreign architecture in dpkg: apt
# works on a state of its own inside DIR.
set -eu
folder=$1
packages="
  libabsl-dev
  libbrotli1
  libcpp-httplib-dev
  libcpp-httplib0.11
  libcurl4-openssl-dev
  libgmock-dev
  libgtest-dev
  libncurses-dev
  libopenmpi-dev
  libpcre2-dev
  libprotobuf-dev
  libssl-dev
  libssl3
  libutf8proc-dev
  libxxhash-dev
  zlib1g
  zlib1g-dev
"
mkdir -p "$folder/state/lists/partial" "$folder/cache/archives/partial" \
  "$folder/packages" "$folder/tree" "$folder/lib"
: >"$folder/status"
apt() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 \
    -o Dir::State="$folder/state" -o Dir::State::status="$folder/status" \
    -o Dir::Cache="$folder/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}
apt update
(cd "$folder/packages" && apt download $packages)
for package in "$folder"/packages/*.deb; do
  dpkg-deb -x "$package" "$folder/tree"
done
mv "$folder"/tree/usr/lib/aarch64-linux-gnu/*.a "$folder/lib"
for shared in brotli cpp-httplib crypto ssl; do
  mv "$folder"/tree/usr/lib/aarch64-linux-gnu/lib$shared*.so* "$folder/lib"
done
mv "$folder"/tree/lib/aarch64-linux-gnu/libz.so.1* "$folder/lib"
# Of OpenSSL, curl and Open MPI, headers are the architecture's own.
mv "$folder"/tree/usr/include/aarch64-linux-gnu "$folder/include"
mv "$folder"/tree/usr/lib/aarch64-linux-gnu/openmpi/include "$folder/include/mpi"
rm -r "$folder/state" "$folder/cache" "$folder/packages" "$folder/tree" \
  "$folder/status"
