import type { ReactNode } from "react";

/** The Waybill logo. */
export function Mark(): ReactNode {
  return (
    <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true" className="mark">
      <path d="M4 9l5.5 14L16 11l6.5 12L28 9" fill="none" stroke="currentColor" strokeWidth="3.4" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}
