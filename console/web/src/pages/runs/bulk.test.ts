import { expect, test } from "vitest";
import { tally } from "./bulk";

const refused = (code: string): { runId: string; ok: boolean; error: { code: string; error: string; message: string } } => ({ runId: "b", ok: false, error: { code, error: code, message: "no" } });

test.each<[Parameters<typeof tally>[0], string]>([
  [[{ runId: "a", ok: true, status: "cancelled" }], "1 run cancelled"],
  [[{ runId: "a", ok: true, status: "cancelling" }, refused("run_terminal")], "1 run cancelled, 1 had ended before"],
  [[refused("run_not_found")], "0 runs cancelled, 1 not cancelled"],
])("of %j one reads %s", (results, words) => expect(tally(results)).toBe(words));
