import type { ReactNode } from "react";
import type { Story } from "../story";

const signs: Record<Story["tone"], string> = { good: "✓", bad: "✕", open: "…", note: "·" };
const tones: Record<Story["tone"], string> = { good: "good", bad: "bad", open: "run", note: "idle" };

/** What became of it, in one line that is read first. */
export function Verdict({ story }: { story: Story }): ReactNode {
  return (
    <p className={`verdict ${tones[story.tone]}`}>
      <span className="verdict-sign" aria-hidden="true">
        {signs[story.tone]}
      </span>
      <span>
        <strong>{story.headline}</strong>
        {story.code && (
          <>
            {" "}
            <code>{story.code}</code>
          </>
        )}
        {story.detail && <span className="verdict-detail"> {story.detail}</span>}
      </span>
    </p>
  );
}
