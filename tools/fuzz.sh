#!/usr/bin/env bash
# Runs every fuzz target of the workspace, one after the other, each for the
# given time (default 10s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sed 's/^func //' | while read -r target; do
		echo "== $dir $target"
		(cd "$dir" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" .)
	done
done
