import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** A key that may do everything, one that may only look, and a secret that must show nowhere. */
export const key = "hk_test_3f6a1c9e7b2d4850";
export const readKey = "hk_test_b81d5e0f94c7362a";
export const secret = "canary-7Qd2xV9mK4pLz";

const binary = process.env.WAYBILL_BIN ?? new URL("../../../bin/waybill", import.meta.url).pathname;

const packs = new URL("../../../test/conformance/testdata/packs", import.meta.url).pathname;

export type RunEventDoc = { eventId: string; sequence: number; type: string; nodeId?: string; timestamp: string; payload: Record<string, unknown> };

/** A real host: `waybill dev` in a directory and on ports of its own. */
export class Host {
  readonly dir = mkdtempSync(join(tmpdir(), "waybill-e2e-"));
  readonly basePath: string;
  readonly #args: string[];
  #process: ChildProcess | undefined;
  url = "";
  /** Its output so far. */
  output = "";

  constructor(basePath = "", args: string[] = []) {
    this.basePath = basePath;
    this.#args = args;
  }

  /** The address of the console. */
  get console(): string {
    return `${this.url}/console/`;
  }

  async start(): Promise<void> {
    const ready = join(this.dir, "ready.json");
    rmSync(ready, { force: true });
    const secrets = join(this.dir, "secrets.yaml");
    writeFileSync(secrets, `canary: ${secret}\n`, { mode: 0o600 });
    const port = this.url ? new URL(this.url).port : "0";
    const args = ["dev", "--data-dir", join(this.dir, "data"), "--http-addr", `127.0.0.1:${port}`, "--grpc-addr", "127.0.0.1:0", "--ready-file", ready];
    args.push("--test-seams", "--durability", "process", "--secrets-file", secrets, "--packs", packs, "--prompt-observability", "full");
    args.push("--api-key", `${key}=default:*`, "--api-key", `${readKey}=default:runs:read,manifest:read`);
    if (this.basePath) args.push("--base-path", this.basePath);
    const child = spawn(binary, [...args, ...this.#args], { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    child.stdout.on("data", (text: Buffer) => (this.output += text.toString()));
    child.stderr.on("data", (text: Buffer) => (this.output += text.toString()));
    for (let waited = 0; !existsSync(ready); waited += 20) {
      if (waited > 20_000 || child.exitCode !== null) throw new Error(`the host did not start:\n${this.output}`);
      await pause(20);
    }
    this.url = (JSON.parse(readFileSync(ready, "utf8")) as { http: string }).http.replace(/\/$/, "");
    if (this.basePath && !this.url.endsWith(this.basePath)) this.url += this.basePath;
  }

  /** Kills the process, as in a crash. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }

  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  }

  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.call(method, path, body);
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  /** Registers a workflow of nodes that follow each other. */
  async workflow(id: string, nodes: Node[], variables: Variable[] = [], edges = chain(nodes), settings: object = {}): Promise<void> {
    await this.json("POST", "/v1/workflows", {
      id,
      name: id,
      version: "1.0",
      nodes: nodes.map((n) => ({ name: n.id, position: { x: 0, y: 0 }, config: {}, inputs: {}, ...n })),
      edges,
      triggers: [{ id: "manual", type: "manual", enabled: true }],
      variables,
      metadata: {},
      settings,
    });
  }

  async run(workflowId: string, more: object = {}): Promise<string> {
    return (await this.json<{ runId: string }>("POST", "/v1/runs", { workflowId, ...more })).runId;
  }

  /** Starts a run and waits until it has one of these statuses. */
  async runUntil(workflowId: string, statuses: string[], more: object = {}): Promise<string> {
    const id = await this.run(workflowId, more);
    await this.until(id, statuses);
    return id;
  }

  async until(runId: string, statuses: string[]): Promise<void> {
    for (let waited = 0; ; waited += 30) {
      const { status } = await this.json<{ status: string }>("GET", `/v1/runs/${runId}`);
      if (statuses.includes(status)) return;
      if (waited > 20_000) throw new Error(`${runId} is ${status}, not ${statuses.join(" or ")}`);
      await pause(30);
    }
  }

  /** The JSON output of a command. */
  command(...args: string[]): unknown {
    const env = { ...process.env, WAYBILL_URL: this.url, WAYBILL_TOKEN: key, XDG_CONFIG_HOME: this.dir, HOME: this.dir };
    return JSON.parse(execFileSync(binary, args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  }

  async events(runId: string): Promise<RunEventDoc[]> {
    const out: RunEventDoc[] = [];
    for (;;) {
      const page = await this.json<{ events: RunEventDoc[] }>("GET", `/v1/runs/${runId}/events/poll?lastSequence=${out.length - 1}&timeout=1&limit=5000`);
      out.push(...page.events);
      if (page.events.length < 5000) return out;
    }
  }
}

type Node = { id: string; typeId: string; config?: object; inputs?: object };
type Variable = { name: string; type: string; required?: boolean; defaultValue?: unknown };

function chain(nodes: Node[]): object[] {
  return nodes.slice(1).map((n, i) => ({ id: `e${i}`, sourceNodeId: nodes[i]?.id, targetNodeId: n.id }));
}

/** The workflows that the tests run. */
export async function prepare(host: Host): Promise<void> {
  const delay = { delayMs: { type: "variable", variableName: "delayMs" } };
  await host.workflow("steps", [
    { id: "first", typeId: "core.noop" },
    { id: "second", typeId: "core.noop" },
    { id: "third", typeId: "core.noop" },
  ]);
  await host.workflow("wait", [{ id: "pause", typeId: "core.delay", inputs: delay }], [{ name: "delayMs", type: "number", defaultValue: 30_000 }]);
  await host.workflow("gate", [{ id: "gate", typeId: "core.approvalGate", config: { title: "Refund?", actions: ["accept", "reject"] } }]);
  await host.workflow("fail", [{ id: "fail", typeId: "core.fail" }]);
  await host.workflow("talk", [{ id: "ai", typeId: "core.ai.callPrompt", config: { promptId: "conformance.stream-text-noop", expectsStreaming: true } }]);
  await host.workflow("echo", [{ id: "echo", typeId: "core.identity", inputs: { value: { type: "variable", variableName: "value" } } }], [{ name: "value", type: "object", defaultValue: {} }]);
}

/** Options of a run whose model streams these tokens. */
export function says(tokens: string[], more: object = {}): object {
  return { configurable: { mockProvider: { id: "stream-text", config: { tokens, ...more } } } };
}
