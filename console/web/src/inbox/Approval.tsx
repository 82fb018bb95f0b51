import { useQuery } from "@tanstack/react-query";
import { useId, useState, type ReactNode } from "react";
import { fetchJson } from "../api/client";
import type { Json } from "../api/json";
import { record, text, texts } from "../ladder/events";
import { Payload } from "../media/Payload";
import { Explanation } from "../explain/Explanation";
import { Text } from "../ui/Text";
import { offered, type Action, type KindProps, type Question } from "./question";
import { ValueForm } from "./ValueForm";

const names: Record<Action, string> = { accept: "Accept", reject: "Reject", refine: "Refine…", "edit-accept": "Edit and accept…", ask: "Ask…" };

/** An approval: the content under review, then the decisions of its gate. */
export function Approval({ question, blocked, busy, places, untrusted, answer }: KindProps): ReactNode {
  const { data } = question;
  const prefix = useId();
  const [panel, setPanel] = useState<Action>();
  const [comment, setComment] = useState("");
  const [words, setWords] = useState("");
  const [edits, setEdits] = useState(false);
  const [wrong, setWrong] = useState<string>();
  const [voter, setVoter] = useState("");
  const [override, setOverride] = useState(false);
  const approverNames = texts(data.approversList);
  const votes = question.votes !== undefined || approverNames.length > 0;
  const surface = isSurface(data.artifactData, text(data.artifactType));
  // Actions of a model-written surface do not decide an approval (OpenWOP envelope contract §12, §18).
  const tainted = untrusted === true && surface;
  const role = text(record(data.override).requiredRole);
  const send = (action: Action, more: Record<string, unknown> = {}): void => {
    answer({
      action,
      ...(voter ? { voter } : {}),
      ...(override && role && (action === "accept" || action === "edit-accept") ? { override: true, reason: comment } : comment && action !== "ask" ? { feedback: comment } : {}),
      ...more,
    });
  };
  const press = (action: Action): void => {
    setWrong(undefined);
    if (action === "edit-accept") setEdits(true);
    if (action === "accept" || action === "reject") send(action);
    else setPanel(panel === action ? undefined : action);
  };
  const confirm = (): void => {
    if (words.trim() === "") {
      setWrong(panel === "ask" ? "Write a question." : "Describe what to improve.");
      return;
    }
    if (panel === "ask") send("ask", { question: words });
    else if (panel === "refine") send("refine", { refineFeedback: { scope: "whole", text: words } });
  };
  const off = (action: Action): boolean => busy || blocked !== undefined || (tainted && (action === "accept" || action === "edit-accept"));
  const described = text(data.description);
  return (
    <div className="question-form">
      {described && (
        <p>
          <Text text={described} />
        </p>
      )}
      {data.artifactData === undefined || data.artifactData === null ? (
        <p className="dim">This question has no content to review.</p>
      ) : (
        <section className="artifact" aria-label="Under review">
          <p className="dim small">
            Under review{text(data.artifactType) && text(data.artifactType) !== "approval" ? `: ${text(data.artifactType)}` : ""}
          </p>
          <Payload kind={surface ? "ui.a2ui-surface" : text(data.artifactType)} payload={data.artifactData as Json} />
        </section>
      )}
      {votes && (
        <div className="field">
          <label htmlFor={`${prefix}voter`}>Vote as</label>
          {approverNames.length > 0 ? (
            <select id={`${prefix}voter`} value={voter} disabled={blocked !== undefined} onChange={(e) => setVoter(e.target.value)}>
              <option value="">the key's own user</option>
              {approverNames.map((n) => (
                <option key={n} value={n}>
                  {n}
                </option>
              ))}
            </select>
          ) : (
            <input id={`${prefix}voter`} value={voter} maxLength={256} disabled={blocked !== undefined} autoComplete="off" placeholder="the key's own user" onChange={(e) => setVoter(e.target.value)} />
          )}
        </div>
      )}
      <div className="field">
        <label htmlFor={`${prefix}comment`}>{override ? "Reason" : "Comment"}</label>
        <textarea id={`${prefix}comment`} data-comment rows={2} value={comment} maxLength={4096} disabled={blocked !== undefined} onChange={(e) => setComment(e.target.value)} />
      </div>
      {role && (
        <label className="check">
          <input type="checkbox" checked={override} disabled={blocked !== undefined} onChange={(e) => setOverride(e.target.checked)} />
          Override the gate, as the role {role}; it is written to the audit log
        </label>
      )}
      {tainted && (
        <div className="note ask" id={`${prefix}tainted`}>
          <Explanation code="untrusted_content_blocks_approval" message="This content is untrusted and cannot be accepted." />
        </div>
      )}
      {edits && (
        <div className="panel" hidden={panel !== "edit-accept"}>
          <EditForm question={question} off={off("edit-accept")} places={places} onSend={(editedArtifactData) => send("edit-accept", { editedArtifactData })} onBack={() => setPanel(undefined)} />
        </div>
      )}
      {panel !== undefined && panel !== "edit-accept" && (
        <form
          className="panel"
          noValidate
          onSubmit={(e) => {
            e.preventDefault();
            confirm();
          }}
        >
          <div className="field">
            <label htmlFor={`${prefix}panel`}>{panel === "ask" ? "Your question" : "What to improve"}</label>
            <textarea id={`${prefix}panel`} rows={3} value={words} aria-invalid={wrong !== undefined} onChange={(e) => setWords(e.target.value)} />
            {wrong && <p className="wrong">{wrong}</p>}
          </div>
          <div className="decisions">
            <button type="submit" className="primary" disabled={off(panel)}>
              {panel === "ask" ? "Send the question" : "Send back for refinement"}
            </button>
            <button type="button" onClick={() => setPanel(undefined)}>
              Go back
            </button>
          </div>
        </form>
      )}
      <fieldset className={panel === undefined ? "decisions sticky" : "decisions"} aria-describedby={tainted ? `${prefix}tainted` : undefined}>
        <legend className="unseen">Decision</legend>
        {offered(question).map((action) => (
          <button
            key={action}
            type="button"
            className={action === "accept" ? "primary" : action === "reject" ? "danger" : undefined}
            data-action={action}
            disabled={off(action)}
            aria-expanded={action === "accept" || action === "reject" ? undefined : panel === action}
            onClick={() => press(action)}
          >
            {names[action]}
          </button>
        ))}
      </fieldset>
    </div>
  );
}

type EditProps = { question: Question; off: boolean; places: Map<string, string>; onSend: (value: Json) => void; onBack: () => void };

/** Edits the content under review. Its fields are those that the gate's schema of answers declares, or the content's kind. */
function EditForm({ question, off, places, onSend, onBack }: EditProps): ReactNode {
  const declared = record(record(question.resumeSchema).properties).editedArtifactData;
  const type = text(question.data.artifactType);
  const kind = declared === undefined && type?.includes(".") ? type : undefined; // the names of other contents have no dot
  const { data, isPending } = useQuery({
    queryKey: ["schema", kind],
    queryFn: ({ signal }) => fetchJson(`/schemas/envelopes/${encodeURIComponent(kind ?? "")}.schema.json`, { signal, credentials: "omit" }),
    enabled: kind !== undefined,
    staleTime: 300_000,
    retry: false,
  });
  if (kind !== undefined && isPending) return <p className="loading">Loading…</p>;
  return (
    <ValueForm
      name="Edited version"
      declared={declared ?? data}
      checks={declared !== undefined}
      initial={(question.data.artifactData ?? null) as Json}
      send="Accept the edited version"
      off={off}
      places={places}
      root="/editedArtifactData"
      onSend={onSend}
    >
      <button type="button" onClick={onBack}>
        Go back
      </button>
    </ValueForm>
  );
}

const isSurface = (artifact: unknown, type: string | undefined): boolean => type === "ui.a2ui-surface" || text(record(artifact).catalogVersion) !== undefined;
