#!/bin/sh
# Makes a folder that runs on a Debian 12 machine without any package installed:
# the binary, the shared libraries that the base system lacks, and licences.
#   tools/package.sh [DIR]                DIR: dist/weft when absent; replaced
#   tools/package.sh --binary FILE DIR    packs a binary that is already built
# The binary looks for libraries in lib/ beside itself first (cli/BUILD.bazel).
set -eu
. "$(dirname "$0")/bazel.sh"

binary=""
if [ "${1:-}" = --binary ]; then
  binary=$2
  shift 2
fi
folder=${1:-$root/dist/weft}
if [ -e "$folder" ] && [ -n "$(ls -A "$folder")" ] && [ ! -e "$folder/weft" ]; then
  echo "tools/package.sh: $folder: not empty and no package: name another" >&2
  exit 1
fi
if [ -z "$binary" ]; then
  "$root/tools/install.sh"
  weft_build //cli:weft
  binary=$root/bazel-bin/cli/weft
fi

# Libraries of every Debian system: apt itself needs them.
base='^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so'
libraries() { LD_LIBRARY_PATH= ldd "$1" | awk '$2 == "=>" { print $1, $3 }'; }

new=$folder.new
rm -rf "$new"
mkdir -p "$new/lib" "$new/licenses"
cp -L "$binary" "$new/weft"
chmod u+w "$new/weft"
strip "$new/weft"
libraries "$binary" | grep -Ev "$base" | while read -r name path; do
  if [ ! -e "$path" ]; then
    echo "tools/package.sh: $name: not found: run tools/install.sh" >&2
    exit 1
  fi
  cp -L "$path" "$new/lib/$name"
done

# Of the libraries beside the binary, and of those that were linked into it.
cp -L "$root/LICENSE" "$new/LICENSE"
bundled=$(for library in "$new"/lib/*; do
  dpkg -S "*/$(basename "$library")" | cut -d: -f1
done | sort -u)
for package in $bundled libabsl-dev libprotobuf-dev libpcre2-dev libutf8proc-dev \
  libxxhash-dev libonnx-dev libcli11-dev nlohmann-json3-dev; do
  copyright=/usr/share/doc/$package/copyright
  [ -e "$copyright" ] && cp -L "$copyright" "$new/licenses/$package"
done

# Runs with nothing from the environment, and finds nothing elsewhere.
env -i "$new/weft" run -n 1 --quiet >/dev/null
if LD_LIBRARY_PATH= ldd "$new/weft" | grep -E '=>' | grep -Ev "^[[:space:]]*${base#^}" |
  grep -v "=> $(cd "$new" && pwd)/lib/"; then
  echo "tools/package.sh: the libraries above are not in the folder" >&2
  exit 1
fi
rm -rf "$folder"
mv "$new" "$folder"
du -sh "$folder" >&2
