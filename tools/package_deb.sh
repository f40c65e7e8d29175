#!/bin/sh
# Makes a package for Debian 12 of a folder that tools/package.sh made: the binary
# with Debian's own libraries, man page, completions and a systemd unit that is not
# enabled.
#   tools/package_deb.sh FOLDER OUT.deb
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
package=$2
files=$root/packaging

for tool in dpkg-deb dpkg-shlibdeps chrpath; do
  command -v $tool >/dev/null || {
    echo "tools/package_deb.sh: no $tool: apt-get install dpkg-dev chrpath" >&2
    exit 1
  }
done
version=$("$folder/weft" --version | sed -n 's/^weft \([0-9.]*\).*/\1/p')
architecture=$(dpkg --print-architecture)
# The same sources give the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null ||
  stat -L -c %Y "$root/LICENSE")}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
umask 022
install -D -m 755 "$folder/weft" "$tree/usr/bin/weft"
# In the folder it looks for libraries beside itself.
chrpath -d "$tree/usr/bin/weft" >/dev/null
strip --remove-section=.comment --remove-section=.note "$tree/usr/bin/weft"

put() {  # PATH: standard input
  mkdir -p "$tree/${1%/*}"
  cat >"$tree/$1"
}
weft() { env -u WEFT_CACHE "$folder/weft" "$@"; }
weft manual | gzip -9n | put usr/share/man/man1/weft.1.gz
weft completion bash | put usr/share/bash-completion/completions/weft
weft completion zsh | put usr/share/zsh/vendor-completions/_weft
weft completion fish | put usr/share/fish/vendor_completions.d/weft.fish
put lib/systemd/system/weft.service <"$files/weft.service"
put etc/default/weft <"$files/weft.default"
put usr/share/doc/weft/copyright <"$files/copyright"
put usr/share/lintian/overrides/weft <"$files/lintian-overrides"
# Of what is in the binary; other libraries have packages of their own.
for copyright in "$folder"/licenses/*-dev; do
  name=${copyright##*/}
  gzip -9nc "$copyright" | put "usr/share/doc/weft/linked/$name.gz"
done
date=$(LC_ALL=C date -R -u -d "@$SOURCE_DATE_EPOCH")
maintainer="weft maintainers <weft@packages.debian.org>"
gzip -9n <<END | put usr/share/doc/weft/changelog.gz
weft ($version) unstable; urgency=medium

  * Built from the sources of this version.

 -- $maintainer  $date
END

# The names of Debian's packages for the libraries that the binary asks for.
mkdir "$work/debian"
: >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$tree/usr/bin/weft" 2>/dev/null |
  sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || {
  echo "tools/package_deb.sh: dpkg-shlibdeps does not say what the binary needs" >&2
  exit 1
}
mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<END
Package: weft
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: $depends
Recommends: ca-certificates, libcurl4
Suggests: graphviz
Section: science
Priority: optional
Description: compiler and server for language models on CPUs
 weft reads language models in GGUF files, compiles them into plans, and
 runs them on processors with AVX2, AVX-512 or NEON: text, chat in the
 terminal, and a server that speaks OpenAI's API. The same tokens give the
 same bits, whatever the batch or the number of threads.
 .
 Models are fetched with weft pull. A systemd unit, weft.service, is installed
 and not enabled.
END
echo /etc/default/weft >"$tree/DEBIAN/conffiles"
(cd "$tree" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z |
  xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
find "$tree" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group --build "$tree" "$package.new" >/dev/null
mv "$package.new" "$package"
