import type { ReactNode } from "react";
import type { RunSnapshot } from "../../../api/model";
import type { RunLog } from "../../../live/runLog";

type Props = { snapshot: RunSnapshot; log: RunLog; /** The event to fork from. */ seq: number; open: boolean; onClose: () => void };

/** The dialog that makes another run out of the start of this one. */
export function ForkSlot(_props: Props): ReactNode {
  return null;
}
