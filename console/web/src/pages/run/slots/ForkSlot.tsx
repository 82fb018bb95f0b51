import { Suspense, useState, type ReactNode } from "react";
import { loaded } from "../../../ui/load";
import type { RunSnapshot } from "../../../api/model";
import type { RunLog } from "../../../live/runLog";

type Props = { snapshot: RunSnapshot; log: RunLog; /** The event to fork from. */ seq: number; open: boolean; onClose: () => void };

const ForkDialog = loaded(() => import("../../../fork/ForkDialog").then((m) => ({ default: m.ForkDialog })));

/** The fork dialog, loaded on first use. */
export function ForkSlot(props: Props): ReactNode {
  const [wanted, want] = useState(false);
  if (props.open && !wanted) want(true);
  // The dialog stays mounted, so that it can restore focus on close.
  return wanted ? (
    <Suspense fallback={null}>
      <ForkDialog {...props} />
    </Suspense>
  ) : null;
}
