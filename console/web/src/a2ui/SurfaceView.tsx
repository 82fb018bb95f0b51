import type { ReactNode } from "react";
import { SurfaceForm } from "./SurfaceForm";

/** A surface to look at: it is answered where its question is, and not here. */
export function SurfaceView({ payload }: { payload: unknown }): ReactNode {
  return <SurfaceForm payload={payload} />;
}
