// What an error code means and who does what about it: the table of the host itself, generated from protocol/fault.
import table from "../gen/errors.json";
import { lookup } from "../api/lookup";

export interface Explanation {
  code: string;
  /** The HTTP status; 0 for a code that only a run or a node has. */
  http: number;
  grpc: string;
  retry: boolean;
  meaning: string;
  next: string;
  owner: string;
}

const rows = table as Record<string, Omit<Explanation, "code">>;

/** Codes of workflows' and vendors' own are in no table. */
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

/** Who acts, as a part of a sentence. */
export const ownerInWords = (owner: string): string => lookup(owners, owner) ?? owner;
