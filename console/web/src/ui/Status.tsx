import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";
import { lookup } from "../api/lookup";
import { escapeHidden } from "./escape";

// The glyph is for document titles, which cannot contain icons.
type Look = { word: string; glyph: string; icon: IconName; tone: string };

const looks: { [status: string]: Look } = {
  pending: { word: "Queued", glyph: "·", icon: "dot", tone: "idle" },
  running: { word: "Running", glyph: "▶", icon: "play", tone: "run" },
  "waiting-approval": { word: "Needs approval", glyph: "?", icon: "shield", tone: "ask" },
  "waiting-input": { word: "Needs an answer", glyph: "?", icon: "question", tone: "ask" },
  "waiting-external": { word: "Waiting (external)", glyph: "⇄", icon: "swap", tone: "ask" },
  paused: { word: "Paused", glyph: "‖", icon: "pause", tone: "hold" },
  cancelling: { word: "Cancelling", glyph: "⊘", icon: "ban", tone: "idle" },
  cancelled: { word: "Cancelled", glyph: "⊘", icon: "ban", tone: "idle" },
  completed: { word: "Completed", glyph: "✓", icon: "check", tone: "good" },
  failed: { word: "Failed", glyph: "✕", icon: "cross", tone: "bad" },
  quarantined: { word: "Quarantined", glyph: "!", icon: "bang", tone: "bad" },
  stalled: { word: "Stalled", glyph: "!", icon: "bang", tone: "bad" },
  // Nodes have two more statuses.
  skipped: { word: "Skipped", glyph: "↷", icon: "skip", tone: "idle" },
  suspended: { word: "Waiting", glyph: "?", icon: "question", tone: "ask" },
};

/** Returns the word, glyph, icon and colour of a status. */
export function lookOf(status: string): Look {
  return lookup(looks, status) ?? { word: escapeHidden(status), glyph: "·", icon: "dot", tone: "idle" };
}

/** A status chip. An outline marks a status that the host derived. */
export function Status({ status, stalled, quarantined }: { status: string; stalled?: boolean; quarantined?: boolean }): ReactNode {
  const look = lookOf(quarantined ? "quarantined" : stalled ? "stalled" : status);
  return (
    <span className={`status ${look.tone}${stalled || quarantined ? " outline" : ""}`}>
      <Icon name={look.icon} />
      {look.word}
    </span>
  );
}
