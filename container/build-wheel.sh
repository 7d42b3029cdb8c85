#!/bin/sh
# Builds the wheel: build-wheel.sh DIST
#
# Runs where the sources are, with the built dashboard among them, and leaves one wheel in the folder DIST. The wheel is
# the same, byte for byte, whenever and wherever it is built: hatchling takes the times in it from SOURCE_DATE_EPOCH, or
# else a fixed one.
set -eu
dist=$1

test -f src/probe/web/site/index.html || { echo "build-wheel.sh: the dashboard is not built" >&2; exit 1; }
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv --without-pip "$tools"
python3 -m pip --python "$tools/bin/python" install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
    -r requirements/build.txt
"$tools/bin/python" -m build --wheel --no-isolation --outdir "$dist" .
