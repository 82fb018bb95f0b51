// Verifies deliveries of webhooks with the library of Standard Webhooks. It reads an array of
// {secret, headers, body} from its input, and writes what the library says of each.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const verdicts = JSON.parse(readFileSync(0, "utf8")).map(({ secret, headers, body }) => {
  try {
    return { event: new Webhook(secret).verify(body, headers) };
  } catch (e) {
    return { error: e.message };
  }
});
process.stdout.write(JSON.stringify(verdicts));
