import type { components } from "../../api/schema";

export const count = (n: number): string => `${n} ${n === 1 ? "run" : "runs"}`;

/** Summarises the results of a bulk cancellation. */
export function tally(results: readonly components["schemas"]["BulkCancelResult"][]): string {
  const cancelled = results.filter((r) => r.ok).length;
  const ended = results.filter((r) => r.error?.code === "run_terminal").length;
  const refused = results.length - cancelled - ended;
  return [`${count(cancelled)} cancelled`, ...(ended > 0 ? [`${ended} had ended before`] : []), ...(refused > 0 ? [`${refused} not cancelled`] : [])].join(", ");
}
