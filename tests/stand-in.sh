#!/bin/sh
# stand-in.sh IMAGE ENTRYPOINT USER PROGRAM...: an image of these programs and the libraries they need,
# for an engine that cannot pull the real one. Labelled, so that nobody takes it for that.
set -eu

image=$1
entrypoint=$2 # [] for none
user=$3       # the real image's, so that what only root may read is noticed
shift 3

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -m 1777 "$root/tmp" "$root/prometheus"
mkdir -p "$root/usr/local/bin"
ln -s usr/local/bin "$root/bin"
cp "$@" "$root/usr/local/bin"
for program in "$@"; do
    ldd "$program" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$root/${library%/*}"
        cp -L "$library" "$root$library"
    done
done
tar -C "$root" -c . | docker import --change 'LABEL request-mirror.stand-in=true' \
    --change "ENTRYPOINT $entrypoint" --change "USER $user" - "$image" >/dev/null
