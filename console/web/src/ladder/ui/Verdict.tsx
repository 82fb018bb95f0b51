import type { ReactNode } from "react";
import { Icon, type IconName } from "../../ui/Icon";
import type { Story } from "../model";
import { Name } from "../../ui/Text";

const signs: Record<Story["tone"], IconName> = { good: "check", bad: "cross", open: "play", note: "dot" };
const tones: Record<Story["tone"], string> = { good: "good", bad: "bad", open: "run", note: "idle" };

/** The outcome in one line. */
export function Verdict({ story }: { story: Story }): ReactNode {
  return (
    <p className={`verdict ${tones[story.tone]}`}>
      <span className="verdict-sign" aria-hidden="true">
        <Icon name={signs[story.tone]} />
      </span>
      <span>
        <strong>
          <Name text={story.headline} />
        </strong>
        {story.code && (
          <>
            {" "}
            <code>
              <Name text={story.code} />
            </code>
          </>
        )}
        {story.detail && <span className="verdict-detail"> <Name text={story.detail} /></span>}
      </span>
    </p>
  );
}
