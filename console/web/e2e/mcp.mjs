// An MCP server on its standard input and output, of one tool: it gives back what it is given.
import { createInterface } from "node:readline";

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "echo", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "echo", inputSchema: { type: "object" } }] }),
  "tools/call": ({ arguments: given }) => ({ content: [{ type: "text", text: JSON.stringify(given) }], structuredContent: given }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method]?.(params) ?? {} }));
}
