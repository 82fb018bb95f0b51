// agent.mjs for A2A 0.3: the same answers, with the SDK of that version.
import express from "express";
import { DefaultRequestHandler, InMemoryTaskStore } from "a2a-js-sdk-0.3/server";
import { A2AExpressApp } from "a2a-js-sdk-0.3/server/express";
import { setTimeout as pause } from "node:timers/promises";

const part = (text) => ({ kind: "text", text });

class Agent {
  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const text = userMessage.parts.map((p) => p.text ?? JSON.stringify(p.data)).join("\n");
    const update = (state, message) => bus.publish({
      kind: "status-update", taskId, contextId, final: state !== "working", status: { state, message, timestamp: new Date().toISOString() },
    });
    bus.publish({ kind: "task", id: taskId, contextId, status: { state: "working" }, artifacts: [], history: [userMessage] });
    await pause(120);
    if (text === "ask") {
      update("input-required", { kind: "message", messageId: "q", role: "agent", parts: [part("Which one?")], taskId, contextId });
      bus.finished();
      return;
    }
    const chunks = text === "stream" ? ["Hel", "lo", " wor", "ld"] : [`${userMessage.messageId} said: ${text}`];
    chunks.forEach((chunk, i) => bus.publish({
      kind: "artifact-update", taskId, contextId, append: i > 0, lastChunk: i === chunks.length - 1,
      artifact: { artifactId: "answer", name: "answer", parts: [part(chunk)] },
    }));
    update("completed");
    bus.finished();
  }

  async cancelTask(taskId, bus) {
    bus.publish({ kind: "status-update", taskId, contextId: "", final: true, status: { state: "canceled", timestamp: new Date().toISOString() } });
    bus.finished();
  }
}

const port = Number(process.env.PORT);
const card = {
  name: "double", description: "repeats its messages", version: "1.0.0", protocolVersion: "0.3.0", url: `http://127.0.0.1:${port}/`,
  preferredTransport: "JSONRPC", capabilities: { streaming: true }, defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"], skills: [],
};
const app = express();
app.use((req, res, next) => {
  const token = process.env.TOKEN;
  if (token && req.headers.authorization !== `Bearer ${token}`) {
    res.status(401).end();
    return;
  }
  next();
});
new A2AExpressApp(new DefaultRequestHandler(card, new InMemoryTaskStore(), new Agent())).setupRoutes(app, "");
app.listen(port);
