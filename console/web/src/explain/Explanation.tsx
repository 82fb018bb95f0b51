import type { ReactNode } from "react";
import { CopyButton } from "../ui/CopyButton";
import { explain, ownerInWords } from "./explain";
import { Name, Text } from "../ui/Text";
import "./explain.css";

/** An error code with its meaning and the next step. */
export function Explanation({ code, message }: { code: string; message?: string | undefined }): ReactNode {
  const row = explain(code);
  return (
    <div className="explanation">
      <p className="explanation-code">
        <code>
          <Name text={code} />
        </code>
        <CopyButton text={code} what={`the code ${code}`} />
        {message && <span className="explanation-message"><Text text={message} /></span>}
      </p>
      {row ? (
        <dl>
          <div>
            <dt>Meaning</dt>
            <dd>{row.meaning}</dd>
          </div>
          <div>
            <dt>Next step</dt>
            <dd>
              <Steps text={row.next} /> <span className="dim">For {ownerInWords(row.owner)}.</span>
            </dd>
          </div>
        </dl>
      ) : (
        <p className="dim">This code comes from the workflow or one of its nodes. The host's error table does not list it.</p>
      )}
    </div>
  );
}

/** A sentence of the table; text in backticks is a command. */
function Steps({ text }: { text: string }): ReactNode {
  return text.split("`").map((part, i) => (i % 2 === 1 ? <code key={part}>{part}</code> : part));
}
