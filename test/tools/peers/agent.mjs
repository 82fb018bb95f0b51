// An A2A agent that works on every message for a moment and repeats it. "ask" makes it ask back,
// "stream" makes it stream its answer in chunks. It speaks A2A 1.0, and 0.3 as well with LEGACY.
import express from "express";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import { Role, TaskState } from "@a2a-js/sdk";
import { setTimeout as pause } from "node:timers/promises";

const part = (text) => ({ content: { $case: "text", value: text }, metadata: {}, filename: "", mediaType: "text/plain" });

class Agent {
  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const text = userMessage.parts.map((p) => (p.content?.$case === "text" ? p.content.value : JSON.stringify(p.content?.value))).join("\n");
    const status = (state, message) => ({ state, message, timestamp: new Date().toISOString() });
    bus.publish(AgentEvent.task({
      id: taskId, contextId, status: status(TaskState.TASK_STATE_WORKING), artifacts: [], history: [userMessage], metadata: {},
    }));
    await pause(120);
    if (text === "ask") {
      const question = {
        messageId: "q", role: Role.ROLE_AGENT, parts: [part("Which one?")], taskId, contextId, metadata: {}, extensions: [], referenceTaskIds: [],
      };
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(TaskState.TASK_STATE_INPUT_REQUIRED, question), metadata: {} }));
      bus.finished();
      return;
    }
    const chunks = text === "stream" ? ["Hel", "lo", " wor", "ld"] : [`${userMessage.messageId} said: ${text}`];
    chunks.forEach((chunk, i) => bus.publish(AgentEvent.artifactUpdate({
      taskId, contextId, append: i > 0, lastChunk: i === chunks.length - 1, metadata: {},
      artifact: { artifactId: "answer", name: "answer", description: "", metadata: {}, extensions: [], parts: [part(chunk)] },
    })));
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(TaskState.TASK_STATE_COMPLETED), metadata: {} }));
    bus.finished();
  }

  async cancelTask(taskId, bus) {
    bus.publish(AgentEvent.statusUpdate({
      taskId, contextId: "", status: { state: TaskState.TASK_STATE_CANCELED, timestamp: new Date().toISOString() }, metadata: {},
    }));
    bus.finished();
  }
}

const port = Number(process.env.PORT);
const url = `http://127.0.0.1:${port}/`;
const endpoint = (protocolVersion) => ({ url, protocolBinding: "JSONRPC", protocolVersion, tenant: "" });
const card = {
  name: "double", description: "tells what it was told", version: "1.0.0", provider: undefined, documentationUrl: "", iconUrl: "",
  supportedInterfaces: process.env.LEGACY ? [endpoint("0.3"), endpoint("1.0")] : [endpoint("1.0")],
  capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions: [] },
  securitySchemes: {}, securityRequirements: [], defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"], skills: [], signatures: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Agent());
const legacyCompat = { enabled: Boolean(process.env.LEGACY) };
const app = express();
app.use((req, res, next) => {
  const token = process.env.TOKEN;
  if (token && req.headers.authorization !== `Bearer ${token}`) {
    res.status(401).end();
    return;
  }
  next();
});
app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }));
app.use("/", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }));
app.listen(port);
