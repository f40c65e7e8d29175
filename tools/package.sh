#!/bin/sh
# Makes a folder that runs on a Debian 12 machine without any package installed:
# the binary, the C interface (lib/libweft.so, include/weft.h), the shared libraries
# that the base system lacks, man page, completions and licences. Beside it, the same
# as weft-VERSION-linux-MACHINE.tar.gz, and a package for Debian (package_deb.sh).
#   tools/package.sh [DIR]                DIR: dist/weft when absent; replaced
#   tools/package.sh --built BINARY LIBRARY DIR    packs what is already built
# The binary looks for libraries in lib/ beside itself first (cli/BUILD.bazel).
set -eu
. "$(dirname "$0")/bazel.sh"

binary=""
if [ "${1:-}" = --built ]; then
  binary=$2
  library=$3
  shift 3
fi
folder=${1:-$root/dist/weft}
if [ -e "$folder" ] && [ -n "$(ls -A "$folder")" ] && [ ! -e "$folder/weft" ]; then
  echo "tools/package.sh: $folder: not empty and no package: name another" >&2
  exit 1
fi
if [ -z "$binary" ]; then
  "$root/tools/install.sh"
  # `weft --version` says which; of a copy that was changed, nothing.
  commit=$(git -C "$root" diff --quiet HEAD 2>/dev/null &&
    git -C "$root" rev-parse --short=12 HEAD) || commit=""
  weft_build --per_file_copt="cli/version\\.cc@-DWEFT_COMMIT=\"$commit\"" \
    //cli:weft //runtime/c:libweft.so
  binary=$root/bazel-bin/cli/weft
  library=$root/bazel-bin/runtime/c/libweft.so
fi

# Libraries of every Debian system: apt itself needs them.
base='^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so'
libraries() { LD_LIBRARY_PATH= ldd "$1" | awk '$2 == "=>" { print $1, $3 }'; }

new=$folder.new
rm -rf "$new"
mkdir -p "$new/lib" "$new/include" "$new/licenses"
cp -L "$binary" "$new/weft"
cp -L "$library" "$new/lib/libweft.so"
cp -L "$root/runtime/c/weft.h" "$new/include/weft.h"
chmod u+w "$new/weft" "$new/lib/libweft.so" "$new/include/weft.h"
strip "$new/weft" "$new/lib/libweft.so"
# libcurl is loaded when something is pulled (runtime/hub/curl.h).
curl=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | awk '$1 == "libcurl.so.4" { print $NF; exit }')
if [ -z "$curl" ]; then
  echo "tools/package.sh: libcurl.so.4: not found: run tools/install.sh" >&2
  exit 1
fi
cp -L "$curl" "$new/lib/libcurl.so.4"
{ libraries "$binary" && libraries "$library" && libraries "$curl"; } | sort -u | grep -Ev "$base" | while read -r name path; do
  if [ ! -e "$path" ]; then
    echo "tools/package.sh: $name: not found: run tools/install.sh" >&2
    exit 1
  fi
  cp -L "$path" "$new/lib/$name"
done

# Of the libraries beside the binary, and of those that were linked into it.
cp -L "$root/LICENSE" "$new/LICENSE"
bundled=$(for file in "$new"/lib/*; do
  [ "${file##*/}" = libweft.so ] || dpkg -S "*/${file##*/}" | cut -d: -f1
done | sort -u)
for package in $bundled libabsl-dev libprotobuf-dev libpcre2-dev libutf8proc-dev \
  libxxhash-dev libncurses-dev libonnx-dev libcli11-dev nlohmann-json3-dev; do
  copyright=/usr/share/doc/$package/copyright
  [ -e "$copyright" ] && cp -L "$copyright" "$new/licenses/$package"
done

# Runs with nothing from the environment, and finds nothing elsewhere.
env -i "$new/weft" run -n 1 --quiet >/dev/null
if {
  for file in "$new/weft" "$new/lib/libweft.so"; do LD_LIBRARY_PATH= ldd "$file"; done
  LD_LIBRARY_PATH="$(cd "$new" && pwd)/lib" ldd "$new/lib/libcurl.so.4"
} |
  grep -E '=>' | grep -Ev "^[[:space:]]*${base#^}" |
  grep -v "=> $(cd "$new" && pwd)/lib/"; then
  echo "tools/package.sh: the libraries above are not in the folder" >&2
  exit 1
fi
mkdir "$new/share"
"$new/weft" manual >"$new/share/weft.1"
for shell in bash zsh fish; do
  "$new/weft" completion $shell >"$new/share/weft.$shell"
done
cp -L "$root/packaging/weft.service" "$root/packaging/README" "$new/"
rm -rf "$folder"
mv "$new" "$folder"

version=$("$folder/weft" --version | sed -n 's/^weft \([0-9.]*\).*/\1/p')
name=weft-$version-linux-$(uname -m)
beside=$(dirname "$folder")
tar -C "$beside" --owner=0 --group=0 --sort=name \
  --transform "s,^$(basename "$folder"),$name," -czf "$beside/$name.tar.gz.new" \
  "$(basename "$folder")"
mv "$beside/$name.tar.gz.new" "$beside/$name.tar.gz"
if command -v dpkg-deb >/dev/null; then
  package=$beside/weft_${version}_$(dpkg --print-architecture).deb
  "$root/tools/package_deb.sh" "$folder" "$package"
fi
du -sh "$folder" "$beside/$name.tar.gz" "${package:-$folder}" >&2
