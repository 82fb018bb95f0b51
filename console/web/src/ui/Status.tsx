import type { ReactNode } from "react";

type Look = { word: string; glyph: string; tone: string };

const looks: { [status: string]: Look } = {
  pending: { word: "Queued", glyph: "·", tone: "idle" },
  running: { word: "Running", glyph: "▶", tone: "run" },
  "waiting-approval": { word: "Needs approval", glyph: "⍰", tone: "ask" },
  "waiting-input": { word: "Needs an answer", glyph: "?", tone: "ask" },
  "waiting-external": { word: "Waiting for outside", glyph: "⇄", tone: "ask" },
  paused: { word: "Paused", glyph: "‖", tone: "hold" },
  cancelling: { word: "Cancelling", glyph: "⊘", tone: "idle" },
  cancelled: { word: "Cancelled", glyph: "⊘", tone: "idle" },
  completed: { word: "Completed", glyph: "✓", tone: "good" },
  failed: { word: "Failed", glyph: "✕", tone: "bad" },
  stalled: { word: "Stalled", glyph: "!", tone: "bad" },
  // Nodes know two more.
  skipped: { word: "Skipped", glyph: "↷", tone: "idle" },
  suspended: { word: "Waiting", glyph: "?", tone: "ask" },
};

/** How a status looks: always a word and a sign, the colour is the third. */
export function lookOf(status: string): Look {
  return looks[status] ?? { word: status, glyph: "·", tone: "idle" };
}

/** The chip of a status. An outline says that the host derived it. */
export function Status({ status, stalled }: { status: string; stalled?: boolean }): ReactNode {
  const look = lookOf(stalled ? "stalled" : status);
  return (
    <span className={`status ${look.tone}${stalled ? " outline" : ""}`}>
      <span className="glyph" aria-hidden="true">
        {look.glyph}
      </span>
      {look.word}
    </span>
  );
}
