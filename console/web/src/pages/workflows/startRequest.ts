import { stringifyJson, type Json } from "../../api/json";
import { quoted, type HostRequest } from "../../copyas/requests";

export type StartBody = { workflowId: string; inputs?: { [name: string]: Json }; configurable?: { [name: string]: Json }; tags?: string[] };

/** The request that starts a run, to copy as a command. */
export function startRequest(body: StartBody): HostRequest {
  const flags = [
    body.inputs && `--input ${quoted(stringifyJson(body.inputs))}`,
    body.configurable && `--configurable ${quoted(stringifyJson(body.configurable))}`,
    ...(body.tags ?? []).map((t) => `--tag ${quoted(t)}`),
  ];
  return { method: "POST", path: "/v1/runs", body, waybill: ["run start", quoted(body.workflowId), ...flags.filter(Boolean)].join(" ") };
}
