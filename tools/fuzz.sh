#!/usr/bin/env bash
# Runs every fuzz target of the workspace, one after the other, each for the
# given time (default 10s). The targets are found, not listed: a new one is run
# without a word here.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}

git ls-files --cached --others --exclude-standard '*_test.go' |
	xargs grep -HoE '^func Fuzz[A-Za-z0-9_]+' |
	while IFS=: read -r file func; do
		target=${func#func }
		echo "== $(dirname "$file") $target"
		(cd "$(dirname "$file")" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" . </dev/null)
	done
