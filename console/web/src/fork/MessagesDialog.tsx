import { useEffect, useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { useLocation } from "wouter";
import { useForkNode, useNodeInput, type NodeInput } from "../play/host";
import { Dialog } from "../ui/Dialog";
import { ErrorNote } from "../ui/ErrorNote";
import { Icon } from "../ui/Icon";
import { countRedactions } from "../ui/Text";
import { editOf, messagesOf, roles, systemOf, type Conversation, type Message } from "./messages";
import "./fork.css";
import "../styles/form.css";

type Props = { runId: string; nodeId: string; conversations: Conversation[]; onClose: () => void };

/** Starts a branch in which a node sends other messages to its model. */
export function MessagesDialog({ runId, nodeId, conversations, onClose }: Props): ReactNode {
  const given = useNodeInput(runId, nodeId);
  return (
    <Dialog open onClose={onClose} title={`Edit the messages of ${nodeId}`} wide>
      {given.error && <ErrorNote error={given.error} onRetry={() => void given.refetch()} />}
      {given.isPending && <p className="loading">Loading the messages…</p>}
      {given.data && <Messages runId={runId} nodeId={nodeId} conversations={conversations} given={given.data} onClose={onClose} />}
    </Dialog>
  );
}

function Messages({ runId, nodeId, conversations, given, onClose }: Props & { given: NodeInput }): ReactNode {
  const id = useId();
  const [, navigate] = useLocation();
  const fork = useForkNode(runId, nodeId);
  const [at, choose] = useState(conversations.length - 1);
  const first = (i: number): Message[] => messagesOf(conversations[i] as Conversation, given.inputs);
  const [messages, setMessages] = useState(() => first(at));
  const recordedSystem = systemOf(given.config);
  const [system, setSystem] = useState(recordedSystem);
  const [added, setAdded] = useState(0);
  const [state, setState] = useState<{ busy: boolean; error?: unknown }>({ busy: false });
  const same = system === recordedSystem && JSON.stringify(messages) === JSON.stringify(first(at));
  const empty = messages.length === 0 || messages.some((m) => m.text.trim() === "");
  const redacted = [...messages.map((m) => m.text), ...(system === recordedSystem ? [] : [system ?? ""])].some((text) => countRedactions(text) > 0);
  const nextFocus = useRef<string>(undefined);
  useEffect(() => {
    if (nextFocus.current !== undefined) document.getElementById(nextFocus.current)?.focus();
    nextFocus.current = undefined;
  });
  const removeMessage = (i: number): void => {
    const rest = messages.filter((_, other) => other !== i);
    const next = rest[Math.min(i, rest.length - 1)];
    nextFocus.current = next ? `${id}t${next.key}` : `${id}add`;
    setMessages(rest);
  };
  const change = (key: string, to: Partial<Message>): void => setMessages(messages.map((m) => (m.key === key ? { ...m, ...to } : m)));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (state.busy || same || empty || redacted) return;
    setState({ busy: true });
    fork(editOf(given.config, messages, system)).then(
      (made) => {
        onClose();
        navigate(`/runs/${encodeURIComponent(made)}`);
      },
      (error: unknown) => setState({ busy: false, error }),
    );
  };
  return (
    <form className="fork" noValidate onSubmit={submit}>
      <p className="dim">
        A branch of the run executes this node again with these messages in place of its prompt, and continues: models are called and billed, tools run, people are asked, webhooks are sent.
      </p>
      {conversations.length > 1 && (
        <div className="field">
          <label htmlFor={`${id}call`}>Messages of</label>
          <select
            id={`${id}call`}
            value={at}
            onChange={(e) => {
              choose(Number(e.target.value));
              setMessages(first(Number(e.target.value)));
            }}
          >
            {conversations.map((c, i) => (
              <option key={c.call} value={i}>
                call {c.call}
              </option>
            ))}
          </select>
        </div>
      )}
      {system === undefined ? (
        <p className="dim small">The system text comes from a template. The playground can replace it.</p>
      ) : (
        <div className="field">
          <label htmlFor={`${id}system`}>System text, optional</label>
          <textarea id={`${id}system`} value={system} disabled={state.busy} onChange={(e) => setSystem(e.target.value)} />
          {system !== recordedSystem && countRedactions(system ?? "") > 0 && <p className="wrong">A value is redacted. Enter it again, or delete it.</p>}
        </div>
      )}
      <ol className="messages">
        {messages.map((m, i) => (
          <li key={m.key} className="message">
            <div className="message-head">
              <label htmlFor={`${id}t${m.key}`}>Message {i + 1}</label>
              <select aria-label={`Role of message ${i + 1}`} value={m.role} disabled={state.busy} onChange={(e) => change(m.key, { role: e.target.value })}>
                {roles.map((role) => (
                  <option key={role}>{role}</option>
                ))}
              </select>
              <button type="button" className="quiet" disabled={state.busy} aria-label={`Remove message ${i + 1}`} onClick={() => removeMessage(i)}>
                <Icon name="cross" />
              </button>
            </div>
            <textarea id={`${id}t${m.key}`} value={m.text} disabled={state.busy} onChange={(e) => change(m.key, { text: e.target.value })} />
            {countRedactions(m.text) > 0 && <p className="wrong">A value is redacted. Enter it again, or delete it.</p>}
          </li>
        ))}
      </ol>
      <div>
        <button
          id={`${id}add`}
          type="button"
          disabled={state.busy}
          onClick={() => {
            setMessages([...messages, { key: `new${added}`, role: messages.at(-1)?.role === "user" ? "assistant" : "user", text: "" }]);
            setAdded(added + 1);
          }}
        >
          <Icon name="plus" /> Add a message
        </button>
      </div>
      {state.error !== undefined && <ErrorNote error={state.error} />}
      {redacted && (
        <p id={`${id}redacted`} role="status" className="wrong">
          The log has a redaction in place of a value. The model would get the text of the redaction: edit each marked text first.
        </p>
      )}
      <div className="fork-end">
        <button type="submit" className="primary" disabled={state.busy || same || empty || redacted} aria-describedby={redacted ? `${id}redacted` : undefined}>
          Branch with these messages
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </form>
  );
}
