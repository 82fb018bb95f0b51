import type { ReactNode } from "react";
import { Explanation } from "../explain/Explanation";

/** An error code, verbatim, with what it means and who can do what about it. */
export function ErrorCode({ code, message }: { code: string; message?: string }): ReactNode {
  return <Explanation code={code} message={message} />;
}
