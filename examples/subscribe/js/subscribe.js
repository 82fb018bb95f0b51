// Prints the run events of a tenant, one JSON document per line. After a restart it resumes where it
// ended. See ../README.md.
import { readFileSync } from "node:fs";
import { jetstream } from "@nats-io/jetstream";
import { connect, nkeyAuthenticator, usernamePasswordAuthenticator } from "@nats-io/transport-node";

const { NATS_URL, NATS_NKEY, NATS_PASSWORD, TENANT, READER = TENANT, CONSUMER = "events", COUNT = "0" } = process.env;
const nc = await connect({
  servers: NATS_URL,
  inboxPrefix: `_INBOX_${READER}`,
  authenticator: NATS_NKEY
    ? nkeyAuthenticator(new TextEncoder().encode(readFileSync(NATS_NKEY, "utf8").trim()))
    : usernamePasswordAuthenticator(TENANT, NATS_PASSWORD),
});

const last = new Map(); // sequence of the last event of each run: frames may be redelivered
let left = Number(COUNT); // 0 means no limit
const consumer = await jetstream(nc, { checkAPI: false }).consumers.get("WAYBILL_RUNS", `${TENANT}=${CONSUMER}`);
// A frame redelivered after later frames would be skipped as printed.
if ((await consumer.info(true)).config.max_ack_pending !== 1) throw new Error(`consumer ${TENANT}=${CONSUMER}: create it with --max-pending 1`);
for await (const m of await consumer.consume({ max_messages: 1 })) {
  const [, , , , runId, kind] = m.subject.split(".");
  if (kind !== "start" && kind !== "open") { // these have the run's record, no events
    for (const event of m.json()) {
      if (event.sequence <= (last.get(runId) ?? -1)) continue;
      last.set(runId, event.sequence);
      console.log(JSON.stringify(event));
      left--;
    }
  }
  await m.ackAck();
  if (kind === "end") last.delete(runId);
  if (Number(COUNT) > 0 && left <= 0) break;
}
await nc.drain();
