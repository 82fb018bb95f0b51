import type { ReactNode } from "react";
import { CopyButton } from "./CopyButton";
import { escapeHidden } from "./escape";

/** A shortened id; the full id is in the accessible name and on the clipboard. */
export function Id({ id, what }: { id: string; what: string }): ReactNode {
  return (
    <span className="id">
      <code title={escapeHidden(id)}>
        <span aria-hidden="true">{escapeHidden(shortId(id))}</span>
        <span className="unseen">{escapeHidden(id)}</span>
      </code>
      <CopyButton text={id} what={what} />
    </span>
  );
}

/** Returns the end of an id, where the ids of one host differ most. */
export function shortId(id: string): string {
  const [, prefix = "", rest = id] = /^([a-z]+_)(.+)$/.exec(id) ?? [];
  return rest.length <= 10 ? id : `${prefix}…${rest.slice(-8)}`;
}
