import { useState, type ReactNode } from "react";
import { hiddenChars, codePoint } from "./escape";

// The host's placeholder for redacted text.
const redaction = /\[REDACTED(?::([^\]\s]+))?\]/g;

const maxShown = 2000;

/** Counts the redactions in a text. */
export function countRedactions(text: string): number {
  return text.match(redaction)?.length ?? 0;
}

/** Shows untrusted text, never as markup. Hidden characters appear as code points, redactions as chips, long texts truncated. */
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

/** Shows an untrusted name, id or sentence inline. It cannot hide characters or change the text direction. */
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

/** Marks redacted text. The original was never stored. */
export function Redacted({ rule }: { rule?: string }): ReactNode {
  return <span className="redacted">redacted{rule ? `: ${rule}` : ""}</span>;
}
