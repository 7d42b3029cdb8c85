#!/bin/sh
# Says what is installed: sbom.sh PREFIX SBOM
#
# Runs where requirements/sbom.txt and container/ are. PREFIX is what install.sh has made. Leaves server.cdx.json in the
# folder SBOM, and makes the files that are there already reproducible.
set -eu
prefix=$1
sbom=$2

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv --without-pip "$tools"
python3 -m pip --python "$tools/bin/python" install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
    -r requirements/sbom.txt
"$tools/bin/cyclonedx-py" environment --output-reproducible --output-file "$sbom/server.cdx.json" "$prefix/bin/python"
python3 container/settle_sbom.py "$sbom"/*.cdx.json
