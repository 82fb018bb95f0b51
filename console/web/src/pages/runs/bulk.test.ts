// @vitest-environment jsdom
import { expect, test } from "vitest";
import { tally, type Action, type Result } from "./bulk";

const refused = (code: string): Result => ({ runId: "b", ok: false, error: { code, message: "no" } });

test.each<[Action, Result[], string]>([
  ["cancel", [{ runId: "a", ok: true }], "1 run cancelled"],
  ["cancel", [{ runId: "a", ok: true }, refused("run_terminal")], "1 run cancelled, 1 had ended before"],
  ["cancel", [refused("run_not_found")], "0 runs cancelled, 1 not cancelled"],
  ["retry", [{ runId: "a", ok: true, newRunId: "n" }, { runId: "b", ok: true, newRunId: "m" }], "2 runs started again"],
  ["delete", [refused("conflict"), { runId: "a", ok: true }], "1 run deleted, 1 not deleted"],
])("the results of %s %j read %s", (action, results, words) => expect(tally(action, results)).toBe(words));
