import type { Statistics } from "../../workflows/host";

/** The share of completed runs among those that completed or failed. */
export function rateWords({ completed, failed }: Pick<Statistics, "completed" | "failed">): string {
  const all = completed + failed;
  if (all === 0) return "–";
  // Only runs without a failure have 100 %.
  const percent = failed === 0 ? 100 : Math.min(99.9, (completed / all) * 100);
  return `${percent >= 99 && percent < 100 ? percent.toFixed(1) : Math.round(percent)} %`;
}

/** The mean cost of the runs whose cost is known. An unknown cost is not 0. */
export function costWords({ priced, costUsd }: Pick<Statistics, "priced" | "costUsd">): string {
  if (priced === 0) return "–";
  const mean = Number(costUsd) / priced;
  if (mean === 0) return "$0";
  if (mean < 0.0001) return "< $0.0001";
  return `$${mean < 0.1 ? Number(mean.toPrecision(2)).toString() : mean.toFixed(2)}`;
}

/** Where a definition comes from. */
export function originWords(origin: string, file: string | undefined): string {
  if (file) return `file ${file}`;
  return origin === "shared" ? "shared by the host" : "registered by your tenant";
}

/** Why a definition cannot be changed here; undefined if it can. */
export function readOnlyReason(origin: string, file: string | undefined): string | undefined {
  if (file) return `This workflow is read from the host's file ${file}, so it cannot be changed here. Change the file, or save a copy.`;
  return origin === "shared" ? "All tenants of this host share this workflow, so it cannot be changed here. Save a copy." : undefined;
}
