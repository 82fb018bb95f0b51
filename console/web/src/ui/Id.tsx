import type { ReactNode } from "react";
import { CopyButton } from "./CopyButton";
import { plain } from "./plain";

/** An id in short, its whole self in the accessible name and on the clipboard. */
export function Id({ id, what }: { id: string; what: string }): ReactNode {
  return (
    <span className="id">
      <code title={plain(id)}>
        <span aria-hidden="true">{plain(shortId(id))}</span>
        <span className="unseen">{plain(id)}</span>
      </code>
      <CopyButton text={id} what={what} />
    </span>
  );
}

/** The end of an id, where the ids of one host differ most. */
export function shortId(id: string): string {
  const [, prefix = "", rest = id] = /^([a-z]+_)(.+)$/.exec(id) ?? [];
  return rest.length <= 10 ? id : `${prefix}…${rest.slice(-8)}`;
}
