import type { ReactNode } from "react";
import type { RunLog } from "../../../live/runLog";
import type { RunSnapshot } from "../../../api/model";

/** What a person has to answer, at the top of a run that waits for one. */
export function InterruptSlot(_props: { snapshot: RunSnapshot; log: RunLog }): ReactNode {
  return null;
}
