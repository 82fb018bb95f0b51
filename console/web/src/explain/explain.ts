// The host's error table, generated from protocol/fault.
import table from "../gen/errors.json";
import { lookup } from "../api/lookup";

export interface Explanation {
  code: string;
  /** The HTTP status; 0 for codes of runs and nodes only. */
  http: number;
  grpc: string;
  retry: boolean;
  meaning: string;
  next: string;
  owner: string;
}

const rows = table as Record<string, Omit<Explanation, "code">>;

/** Returns the row of a code; undefined for codes of workflows and vendors. */
export function explain(code: string): Explanation | undefined {
  const row = lookup(rows, code);
  return row && { code, ...row };
}

export const codes = (): string[] => Object.keys(rows);

const owners: Record<string, string> = {
  model: "the model, on retry",
  "workflow author": "the workflow's author",
  operator: "the host's operator",
  caller: "the caller",
};

/** Names the owner of the next step. */
export const ownerInWords = (owner: string): string => lookup(owners, owner) ?? owner;
