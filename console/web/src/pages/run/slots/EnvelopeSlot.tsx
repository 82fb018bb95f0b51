import type { ReactNode } from "react";
import type { RunEvent, RunSnapshot } from "../../../api/model";
import type { RunLog } from "../../../live/runLog";

/** What the inspector adds below an event: how the envelope it belongs to went through the gates. */
export function EnvelopeSlot(_props: { event: RunEvent; log: RunLog; snapshot: RunSnapshot | undefined }): ReactNode {
  return null;
}
