#!/bin/sh
# Makes a container image with the program of the exemplars, a shell, and nothing from a registry: for
# `tulpar experiment scenarios study.yaml --container exemplars.tar`.
#
#   exemplars/image.sh [PROGRAM [IMAGE.tar]]
#
# PROGRAM is exemplars/target/release/tulpar-exemplars if not said, IMAGE.tar exemplars.tar. It needs podman or docker, busybox and
# ldd; what the program and busybox are linked with is copied from this machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/target/release/tulpar-exemplars}
image=${2:-exemplars.tar}
[ -x "$program" ] || { echo "no program $program: cargo build --release --manifest-path $here/Cargo.toml" >&2; exit 2; }
busybox=$(command -v busybox) || { echo "busybox is not installed" >&2; exit 2; }
engine=${ENGINE:-$(command -v podman || command -v docker)} || { echo "neither podman nor docker is installed" >&2; exit 2; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/files/bin" "$root/files/etc" "$root/files/tmp" "$root/files/proc" "$root/files/dev" "$root/files/sys"
cp "$busybox" "$root/files/bin/busybox"
cp "$program" "$root/files/bin/tulpar-exemplars"
for name in sh cat cp mkdir mv rm ls env true sleep; do ln -s busybox "$root/files/bin/$name"; done
echo 'root:x:0:0::/:/bin/sh' > "$root/files/etc/passwd"
# Libraries keep their places, so that the loader finds them without a table.
for file in "$busybox" "$program"; do
    ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$root/files$(dirname "$library")"
        cp -L "$library" "$root/files$library"
    done
done
tar -C "$root/files" -cf "$root/files.tar" .
"$engine" import "$root/files.tar" localhost/tulpar-exemplars:1 >/dev/null
rm -f "$image"
"$engine" save --output "$image" localhost/tulpar-exemplars:1 >/dev/null
echo "$image: $(du -k "$image" | cut -f1) KB"
