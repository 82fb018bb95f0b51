import type { ReactNode } from "react";

/** An error code, verbatim, with what it means and who can do what about it. */
export function ErrorCode({ code, message }: { code: string; message?: string }): ReactNode {
  return (
    <>
      <code>{code}</code> {message}
    </>
  );
}
