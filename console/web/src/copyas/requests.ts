// Requests to the host as shell commands. Credentials are an environment variable, never a value.
import { hostURL } from "../api/base";
import { stringifyJson } from "../api/json";

export interface HostRequest {
  method: "GET" | "POST";
  /** The path relative to the host's URL. */
  path: string;
  body?: unknown;
  /** The arguments of the waybill command. */
  waybill?: string;
  /** The gRPC method and its message. */
  grpc?: { method: string; message: unknown };
  /** The request needs no credential, because its path contains a token. */
  open?: boolean;
}

/** Quotes a shell word unless it is plain. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

export function asCurl(r: HostRequest, host: string = hostURL): string {
  const parts = ["curl -sS"];
  if (r.method !== "GET") parts.push(`-X ${r.method}`);
  if (!r.open) parts.push('-H "Authorization: Bearer $WAYBILL_TOKEN"');
  if (r.body !== undefined) parts.push("-H 'Content-Type: application/json'", `-d ${quoted(stringifyJson(r.body))}`);
  parts.push(quoted(host + r.path));
  return parts.join(" ");
}

export function asWaybill(r: HostRequest): string | undefined {
  return r.waybill && `waybill ${r.waybill}`;
}

export function asGrpcurl(r: HostRequest, address: string): string | undefined {
  if (!r.grpc) return undefined;
  const plain = address.startsWith("grpc://") ? "-plaintext " : "";
  const at = address.replace(/^grpcs?:\/\//, "");
  return `grpcurl ${plain}${r.open ? "" : '-H "authorization: Bearer $WAYBILL_TOKEN" '}-d ${quoted(JSON.stringify(r.grpc.message))} ${quoted(at)} ${r.grpc.method}`;
}

const id = encodeURIComponent;

export const envelopeRequest = (runId: string, envelope: string): HostRequest => ({
  method: "GET", path: `/v1/runs/${id(runId)}/events/poll?limit=1000`, waybill: `envelope explain ${quoted(runId)} ${quoted(envelope)}`,
  grpc: { method: "waybill.host.v1.Host/PollRunEvents", message: { run_id: runId, limit: 1000 } },
});

export const answerRequest = (runId: string, nodeId: string, resumeValue: unknown): HostRequest => ({
  method: "POST", path: `/v1/runs/${id(runId)}/interrupts/${id(nodeId)}`, body: { resumeValue },
  waybill: `interrupt answer ${quoted(runId)} ${quoted(nodeId)} --value ${quoted(JSON.stringify(resumeValue))}`,
});

export const forkRequest = (runId: string, body: { mode: string; fromSeq: number; runOptionsOverlay?: unknown }): HostRequest => ({
  method: "POST", path: `/v1/runs/${id(runId)}:fork`, body,
  waybill: `run fork ${quoted(runId)} --mode ${body.mode} --from-seq ${body.fromSeq}${body.runOptionsOverlay === undefined ? "" : ` --overlay ${quoted(JSON.stringify(body.runOptionsOverlay))}`}`,
});

export const diffRequest = (a: string, b: string): HostRequest => ({
  method: "GET", path: `/v1/runs/${id(a)}:diff?against=${id(b)}`, waybill: `run diff ${quoted(a)} ${quoted(b)}`,
  grpc: { method: "waybill.host.v1.Host/DiffRuns", message: { run_id: a, against: b } },
});
