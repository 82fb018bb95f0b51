import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { hostURL } from "../api/base";
import { parseJson } from "../api/json";
import type { RunRow } from "../api/model";
import { openStream } from "../live/link";

// Changes of runs within this time cause one reload.
const settle = 1000;

/** Loads the runs and figures of a workflow again when one of its runs changes. */
export function useFeed(workflowId: string): void {
  const client = useQueryClient();
  useEffect(() => {
    let soon: ReturnType<typeof setTimeout> | undefined;
    const again = (): void => {
      soon = undefined;
      void client.invalidateQueries({ predicate: ({ queryKey: [what, id] }) => what === "workflow-statistics" || (what === "workflow-runs" && id === workflowId) });
    };
    const close = openStream(`${hostURL}/v1/runs:watch`, undefined, {
      onFrames: (frames) => {
        if (frames.some((f) => f.event === "run" && (parseJson(f.data) as unknown as RunRow).workflowId === workflowId)) soon ??= setTimeout(again, settle);
      },
      // Changes before the feed was open require a reload.
      onState: (state) => {
        if (state === "live") soon ??= setTimeout(again);
      },
      onClosed: () => undefined,
      onRefused: () => undefined,
    });
    return () => {
      clearTimeout(soon);
      close();
    };
  }, [client, workflowId]);
}
