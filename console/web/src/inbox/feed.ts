import { useEffect, useRef, useState } from "react";
import { hostURL } from "../api/base";
import { parseJson } from "../api/json";
import type { RunRow } from "../api/model";
import { openStream } from "../live/link";

/** Calls `changed` when a run changes, at most once per interval; returns false if the feed is unavailable. */
export function useRunFeed(on: boolean, interval: number, concerns: (row: RunRow) => boolean, changed: () => void): boolean {
  const [fed, setFed] = useState(true);
  const latest = useRef({ concerns, changed });
  useEffect(() => {
    latest.current = { concerns, changed };
  });
  useEffect(() => {
    if (!on) return;
    let soon: ReturnType<typeof setTimeout> | undefined;
    const again = (): void => {
      soon ??= setTimeout(() => {
        soon = undefined;
        latest.current.changed();
      }, interval);
    };
    const close = openStream(`${hostURL}/v1/runs:watch`, undefined, {
      onFrames: (frames) => frames.some((f) => f.event === "run" && latest.current.concerns(parseJson(f.data) as unknown as RunRow)) && again(),
      onState: (state) => {
        setFed(state !== "polling");
        if (state === "live") again();
      },
      onClosed: () => undefined,
      onRefused: () => setFed(false),
    });
    return () => {
      clearTimeout(soon);
      close();
    };
  }, [on, interval]);
  return fed;
}

/** Reports whether a run has an open question. */
export const asks = (row: RunRow): boolean => row.status.startsWith("waiting") || (row.waits?.questions ?? 0) > 0;
