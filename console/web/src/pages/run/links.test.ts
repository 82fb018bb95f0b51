import { expect, test } from "vitest";
import { linksOf } from "./links";

test("links of a run have its members, escaped; others are not of a run", () => {
  const links = [
    { name: "Logs", url: "https://logs.example/q?run={runId}&from={startedAt}&to={completedAt}" },
    { name: "Wiki", url: "https://wiki.example/" },
  ];
  expect(linksOf(links, { runId: "r&1", workflowId: "w", status: "running", startedAt: "2026-11-22T10:00:00.000Z" })).toEqual([
    { name: "Logs", url: "https://logs.example/q?run=r%261&from=2026-11-22T10%3A00%3A00.000Z&to=" },
  ]);
});
