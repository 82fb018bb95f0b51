import { useState, type ReactNode } from "react";
import { announce } from "./announce";
import { Icon, type IconName } from "./Icon";
import { escapeHidden } from "./escape";

type Props = { text: string | (() => string); what: string; icon?: IconName; children?: ReactNode };

/** A button that copies a text; its name states the content. */
export function CopyButton({ text, what: named, icon = "copy", children }: Props): ReactNode {
  const what = escapeHidden(named);
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      className="quiet copy"
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={() => {
        void copyText(typeof text === "string" ? text : text()).then((ok) => {
          announce(ok ? `Copied ${what}` : `The browser blocked copying ${what}`);
          setDone(ok);
          setTimeout(() => setDone(false), 1500);
        });
      }}
    >
      {children}
      <Icon name={done ? "check" : icon} />
    </button>
  );
}

/** Copies a text; returns false if the browser denies it, as on non-loopback http. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
