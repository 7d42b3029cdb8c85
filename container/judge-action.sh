#!/usr/bin/env bash
# What action.yml does: installs MCP Probe into a folder of its own, judges a client, and writes a summary of the job.
# Its input are the variables that action.yml sets. The status is that of `mcp-probe judge`.
set -euo pipefail

home=$(mktemp -d)
"$PYTHON" -m venv "$home"
# Judging needs no dashboard, so nothing has to be built for it.
if [ -n "$VERSION" ]; then what="mcp-probe-server==$VERSION"; else what="$SOURCE"; fi
HATCH_BUILD_NO_HOOKS=true "$home/bin/python" -m pip install --quiet --disable-pip-version-check "$what"

mkdir -p "$REPORT"
# Both are command lines, as a person would write them in a terminal.
declare -a options="($OPTIONS)" client="($CLIENT)"
status=0
"$home/bin/mcp-probe" judge --json "$REPORT/report.json" --junit "$REPORT/report.xml" --html "$REPORT/report.html" \
    --badge "$REPORT/badge.svg" "${options[@]}" -- "${client[@]}" | tee "$REPORT/report.txt" || status=$?

{
    printf '## MCP client\n\n'
    # A code block ends at its fence, and a report may have one in it.
    printf '~~~~~~text\n'
    sed 's/~~~~~~/~~~~ ~~/g' "$REPORT/report.txt"
    printf '~~~~~~\n'
} >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
printf 'report=%s\n' "$REPORT" >>"${GITHUB_OUTPUT:-/dev/null}"
rm -rf "$home"
exit "$status"
