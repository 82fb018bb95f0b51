#!/bin/sh
# Prints the frames of a tenant, one JSON document per line, with the nats command line. After a
# restart it resumes where it ended. See README.md.
set -eu
: "${NATS_URL:?}" "${TENANT:?}"
consumer=$TENANT=${CONSUMER:-events} inbox=_INBOX_${READER:-$TENANT}
if [ -n "${NATS_NKEY:-}" ]; then
  n() { nats --server "$NATS_URL" --nkey "$NATS_NKEY" --inbox-prefix "$inbox" "$@"; }
else
  n() { nats --server "$NATS_URL" --user "$TENANT" --password "$NATS_PASSWORD" --inbox-prefix "$inbox" "$@"; }
fi
n consumer info WAYBILL_RUNS "$consumer" > /dev/null # prints the error and ends if the consumer is missing
count=${COUNT:-0} # frames; 0 means no limit
while :; do
  # next prints the frame, then acknowledges it.
  n consumer next WAYBILL_RUNS "$consumer" --raw --timeout 30s 2> /dev/null || continue
  echo
  [ "$count" -eq 0 ] || [ "$((count -= 1))" -gt 0 ] || break
done
