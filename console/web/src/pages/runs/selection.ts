import { useState } from "react";
import type { RunRow } from "../../api/model";

export type Selection = { on: boolean; has: (runId: string) => boolean; set: (rows: readonly RunRow[], on: boolean) => void; begin: () => void; end: () => void };

/** The selected rows. */
export function useSelection(rows: readonly RunRow[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>();
  return {
    on: ids !== undefined,
    has: (runId) => ids?.has(runId) === true && rows.some((row) => row.runId === runId),
    set: (some, on) => {
      const next = new Set(ids);
      for (const { runId } of some) if (on) next.add(runId); else next.delete(runId);
      setIds(next);
    },
    begin: () => setIds(new Set()),
    end: () => setIds(undefined),
  };
}
