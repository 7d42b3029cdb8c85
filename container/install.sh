#!/bin/sh
# Installs the server into an environment of its own: install.sh PREFIX DIST
#
# Runs where requirements/run.txt is. PREFIX becomes a virtual environment with exactly what that lock names, checked by
# hash, and the one wheel in DIST. It has no pip. Nothing is compiled: a package without a wheel is an error here.
set -eu
prefix=$1
dist=$2

python3 -m venv --without-pip "$prefix"
install_there() {
    python3 -m pip --python "$prefix/bin/python" install --quiet --disable-pip-version-check --no-compile "$@"
}
install_there --require-hashes --only-binary=:all: -r requirements/run.txt
install_there --no-deps --no-index "$dist"/*.whl
# Now, because the file system is read-only later; and not checked against the sources at each start, because nobody
# changes them. No times in the files, so that they are the same in each build.
# `-f`: pip may have imported what it installed, and left behind a file that looks at the time of its source.
"$prefix/bin/python" -m compileall -q -f --invalidation-mode unchecked-hash "$prefix/lib"
