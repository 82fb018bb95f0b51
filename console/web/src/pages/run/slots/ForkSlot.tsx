import { Suspense, useState, type ReactNode } from "react";
import { loaded } from "../../../ui/load";
import type { RunSnapshot } from "../../../api/model";
import type { RunLog } from "../../../live/runLog";

type Props = { snapshot: RunSnapshot; log: RunLog; /** The event to fork from. */ seq: number; open: boolean; onClose: () => void };

const ForkDialog = loaded(() => import("../../../fork/ForkDialog").then((m) => ({ default: m.ForkDialog })));

/** The dialog that makes another run out of the start of this one; it is loaded when it is first wanted. */
export function ForkSlot(props: Props): ReactNode {
  const [wanted, want] = useState(false);
  if (props.open && !wanted) want(true);
  // Once loaded it stays: a dialog that closes gives the focus back to where it was.
  return wanted ? (
    <Suspense fallback={null}>
      <ForkDialog {...props} />
    </Suspense>
  ) : null;
}
