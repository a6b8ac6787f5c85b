#!/usr/bin/env bash
# A stand-in of the official python:3.13-slim-trixie, for machines that reach a Debian mirror but no image registry:
# Debian trixie with its Python 3.13 as `python`, free to be installed into. Usage: base_image.sh TAG. Needs root, debootstrap,
# buildah. The mirror is the first Debian one that apt is configured with.
set -euo pipefail

tag=$1
mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "Debian" { print $2; exit }')
[[ -n $mirror ]] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/$')

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
debootstrap --variant=minbase --include=python3,python3-pip,ca-certificates trixie "$folder/tree" "$mirror" >"$folder/log" 2>&1 ||
	{ tail -n 20 "$folder/log" >&2; exit 1; }
umount "$folder/tree/proc" "$folder/tree/sys" 2>/dev/null || true
rm -rf "$folder"/tree/usr/lib/python3*/EXTERNALLY-MANAGED "$folder"/tree/var/cache/apt/archives/*.deb "$folder"/tree/var/lib/apt/lists/*
ln -s ../../bin/python3 "$folder/tree/usr/local/bin/python"

container=$(buildah from scratch)
buildah copy --quiet "$container" "$folder/tree" /
buildah config --env PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
buildah commit --quiet --rm "$container" "$tag"
