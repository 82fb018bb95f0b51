// The channel that notifies the other tabs of answers and assignees.

const channel = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel("waybill-answers");

/** Notifies the other tabs of a change. */
export function notifyTabs(): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a broadcast channel has one origin
  channel?.postMessage("changed");
}

/** Calls a listener when another tab has changed a question. */
export function onChangeElsewhere(listener: () => void): () => void {
  channel?.addEventListener("message", listener);
  return () => channel?.removeEventListener("message", listener);
}
