import { useState, type ReactNode } from "react";
import { hiddenChars, codePoint } from "./escape";

// What the host puts in the place of what it has taken out.
const redaction = /\[REDACTED(?::([^\]\s]+))?\]/g;

const maxShown = 2000;

/** How often the host has taken something out of a text. */
export function countRedactions(text: string): number {
  return text.match(redaction)?.length ?? 0;
}

/** A text from outside, never markup: hidden characters are shown by their number, redactions as a chip, and a long text in part. */
export function Text({ text, quoted }: { text: string; quoted?: boolean }): ReactNode {
  const [all, setAll] = useState(false);
  const shown = all || text.length <= maxShown ? text : text.slice(0, maxShown);
  return (
    <bdi className="text" dir="auto">
      {quoted && "“"}
      {pieces(shown)}
      {quoted && shown === text && "”"}
      {shown !== text && (
        <>
          …{" "}
          <button type="button" className="quiet" onClick={() => setAll(true)}>
            {(text.length - maxShown).toLocaleString("en")} more characters
          </button>
        </>
      )}
    </bdi>
  );
}

/** A name, an id or a sentence from outside in the middle of other words: it can hide nothing, and turn nothing around. */
export function Name({ text }: { text: string }): ReactNode {
  return <bdi dir="auto">{visible(text.length <= maxShown ? text : `${text.slice(0, maxShown)}…`, 0)}</bdi>;
}

function pieces(text: string): ReactNode[] {
  const out: ReactNode[] = [];
  let from = 0;
  for (const match of text.matchAll(redaction)) {
    if (match.index > from) out.push(...visible(text.slice(from, match.index), from));
    out.push(<Redacted key={match.index} {...(match[1] ? { rule: match[1] } : {})} />);
    from = match.index + match[0].length;
  }
  if (from < text.length) out.push(...visible(text.slice(from), from));
  return out;
}

function visible(text: string, offset: number): ReactNode[] {
  const out: ReactNode[] = [];
  let from = 0;
  for (const match of text.matchAll(hiddenChars)) {
    if (match.index > from) out.push(text.slice(from, match.index));
    out.push(
      <span key={offset + match.index} className="hidden-char">
        {codePoint(match[0])}
      </span>,
    );
    from = match.index + match[0].length;
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

/** Says that the host has taken something out here. There is nothing to reveal: it was never stored. */
export function Redacted({ rule }: { rule?: string }): ReactNode {
  return <span className="redacted">redacted{rule ? `: ${rule}` : ""}</span>;
}
