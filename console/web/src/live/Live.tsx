import type { ReactNode } from "react";
import type { LiveState } from "./sse";

const words: { [state in LiveState]: string } = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  polling: "Polling",
  ended: "Ended",
  refused: "Refused",
};

/** Shows how the page is kept up to date. */
export function Live({ state }: { state: LiveState }): ReactNode {
  return <span className={`live is-${state}`}>{words[state]}</span>;
}
