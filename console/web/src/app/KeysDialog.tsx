import type { ReactNode } from "react";
import { Dialog } from "../ui/Dialog";
import { currentShortcuts, setKeysEnabled, useKeysEnabled } from "./keys";

/** Lists the active keyboard shortcuts, with a switch to disable them. */
export function KeysDialog({ open, onClose }: { open: boolean; onClose: () => void }): ReactNode {
  const enabled = useKeysEnabled();
  return (
    <Dialog open={open} onClose={onClose} title="Keyboard shortcuts">
      {open && (
        <dl className="keys">
          {currentShortcuts().map((shortcut) => (
            <div key={shortcut.keys}>
              <dt>
                {shortcut.keys.split(" ").map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{shortcut.does}</dd>
            </div>
          ))}
        </dl>
      )}
      <label className="check">
        <input type="checkbox" checked={enabled} onChange={(event) => setKeysEnabled(event.target.checked)} />
        Single-key shortcuts (inactive in text fields)
      </label>
    </Dialog>
  );
}
