#!/bin/sh
# Prints the frames of a tenant, one JSON document a line, with the nats command
# line, and goes on where it ended when it is started again. See README.md.
set -eu
: "${NATS_URL:?}" "${TENANT:?}"
consumer=${CONSUMER:-$TENANT} inbox=_INBOX_${READER:-$TENANT}
if [ -n "${NATS_NKEY:-}" ]; then
  n() { nats --server "$NATS_URL" --nkey "$NATS_NKEY" --inbox-prefix "$inbox" "$@"; }
else
  n() { nats --server "$NATS_URL" --user "$TENANT" --password "$NATS_PASSWORD" --inbox-prefix "$inbox" "$@"; }
fi
# The consumer is made once; afterwards it is there already.
n request --raw --timeout 5s "\$JS.API.CONSUMER.CREATE.WAYBILL_RUNS.$consumer.openwop.events.$TENANT.>" \
  "{\"stream_name\":\"WAYBILL_RUNS\",\"config\":{\"durable_name\":\"$consumer\",\"name\":\"$consumer\",\"deliver_policy\":\"all\",\"replay_policy\":\"instant\",\
\"filter_subject\":\"openwop.events.$TENANT.>\",\"ack_policy\":\"explicit\",\"ack_wait\":30000000000,\"max_ack_pending\":1}}" > /dev/null
count=${COUNT:-0} # frames; 0: for ever
while :; do
  # A frame is printed, and acknowledged when it has been.
  n consumer next WAYBILL_RUNS "$consumer" --raw --wait 30s 2> /dev/null || continue
  echo
  [ "$count" -eq 0 ] || [ "$((count -= 1))" -gt 0 ] || break
done
