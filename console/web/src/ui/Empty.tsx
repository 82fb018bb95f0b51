import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";

/** What a page shows in place of content: a sign, what is missing, and the next step. */
export function Empty({ icon, title, children }: { icon: IconName; title?: string; children: ReactNode }): ReactNode {
  return (
    <div className="empty">
      <span className="empty-sign" aria-hidden="true">
        <Icon name={icon} />
      </span>
      {title !== undefined && <h1>{title}</h1>}
      {children}
    </div>
  );
}
