#!/usr/bin/env bash
# Runs make targets in lanes: the lanes side by side, the targets of a lane one after another.
#
#	tools/lanes.sh 'lint; faults ONLY=kills KILLS=30' 'test; race'
#
# The output of a target is printed when it ends. The first failure ends all lanes. The seconds of
# each target, by the clock and of processors, are printed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# target NAME TARGET runs one target.
target() {
	local log=$logs/$1 status=0 TIMEFORMAT='%0R s %0U s user %0S s system'
	echo "== make $2"
	# shellcheck disable=SC2086 # a target and its variables
	{ time make --no-print-directory $2 >"$log" 2>&1 </dev/null || status=$?; } 2>"$log.time"
	exec 9>"$logs/printing"
	flock 9
	echo "== make $2: status $status, output:"
	cat "$log"
	exec 9>&-
	printf '%s  make %s\n' "$(cat "$log.time")" "$2" >>"$logs/seconds"
	return "$status"
}

set -m # each lane is a process group, and ends with all its processes
pids=()
for lane in "$@"; do
	(
		n=0
		while read -r step; do
			[ -z "$step" ] || target "$BASHPID.$((n += 1))" "$step" || exit 1
		done < <(tr ';' '\n' <<<"$lane")
	) &
	pids+=($!)
done
trap 'kill -- "${pids[@]/#/-}" 2>/dev/null || true; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM
failed=0
for _ in "${pids[@]}"; do
	wait -n || { failed=1 && break; }
done
cat "$logs/seconds"
exit "$failed"
