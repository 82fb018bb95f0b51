// Prints the run events of a tenant, one JSON document a line, and goes on where it
// ended when it is started again. See ../README.md.
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

const last = new Map(); // sequence of the last event of each run: a frame may come twice
let left = Number(COUNT); // 0: for ever
const consumer = await jetstream(nc, { checkAPI: false }).consumers.get("WAYBILL_RUNS", `${TENANT}=${CONSUMER}`);
// What comes again after what follows it would pass for printed.
if ((await consumer.info(true)).config.max_ack_pending !== 1) throw new Error(`consumer ${TENANT}=${CONSUMER}: want one made with --max-pending 1`);
for await (const m of await consumer.consume({ max_messages: 1 })) {
  const [, , , , runId, kind] = m.subject.split(".");
  if (kind !== "start" && kind !== "open") { // those hold the run's record
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
