// Validates an AsyncAPI document with the parser of the AsyncAPI Initiative.
const { readFileSync } = require("node:fs");
const { Parser } = require("@asyncapi/parser");

async function main() {
  const { document, diagnostics } = await new Parser().parse(readFileSync(process.argv[2], "utf8"));
  const found = diagnostics.filter((d) => d.code !== "asyncapi-latest-version"); // 3.0 on purpose: few tools know 3.1
  for (const d of found) console.log(`${d.severity} ${d.code} ${d.path.join("/")}: ${d.message}`);
  if (document === undefined || found.some((d) => d.severity <= 1)) process.exit(1);
  for (const channel of document.channels()) console.log(`channel ${channel.id()}: ${channel.messages().length}`);
}

void main();
