import type { ReactNode } from "react";
import { SurfaceForm } from "./SurfaceForm";

/** A read-only surface. It is answered at its question. */
export function SurfaceView({ payload }: { payload: unknown }): ReactNode {
  return <SurfaceForm payload={payload} />;
}
