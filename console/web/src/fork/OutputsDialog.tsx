import { useId, useMemo, useState, type FormEvent, type ReactNode } from "react";
import { useLocation } from "wouter";
import { isObject, stringifyJson, type Json } from "../api/json";
import { portsSchema } from "../play/edits";
import { useForkNode } from "../play/host";
import { Dialog } from "../ui/Dialog";
import { ErrorNote } from "../ui/ErrorNote";
import { collect, entriesOf, type Schema } from "../workflows/form";
import { SchemaFields } from "../workflows/SchemaFields";
import { useEntries } from "../workflows/useEntries";
import "./fork.css";
import "../styles/form.css";

type Props = { runId: string; nodeId: string; outputs: { [port: string]: Json }; onClose: () => void };

// What a failed node would have returned is not known.
const ofFailed: Schema = { type: "object", properties: { output: { description: "What the node returns instead of failing" } }, required: ["output"] };

/** Starts a branch in which a node returns other values than it did. Without outputs, it failed. */
export function OutputsDialog({ runId, nodeId, outputs, onClose }: Props): ReactNode {
  const id = useId();
  const [, navigate] = useLocation();
  const fork = useForkNode(runId, nodeId);
  const schema = useMemo(() => (Object.keys(outputs).length > 0 ? portsSchema(outputs) : ofFailed), [outputs]);
  const [first] = useState(() => entriesOf(schema, outputs, ""));
  const form = useEntries(first);
  const [state, setState] = useState<{ busy: boolean; error?: unknown }>({ busy: false });
  const collected = collect(schema, form.entries, "", "");
  const value = isObject(collected.value) ? collected.value : {};
  const same = stringifyJson(value) === stringifyJson(outputs);
  const wrong = new Map([...collected.wrong].map(([path, words]) => [path, [words]]));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (state.busy || wrong.size > 0 || same) return;
    setState({ busy: true });
    fork({ outputs: value }).then(
      (made) => {
        onClose();
        navigate(`/runs/${encodeURIComponent(made)}`);
      },
      (error: unknown) => setState({ busy: false, error }),
    );
  };
  return (
    <Dialog open onClose={onClose} title={`Edit the outputs of ${nodeId}`} wide>
      <form className="fork" noValidate onSubmit={submit}>
        <p className="dim">
          A branch of the run continues after this node with these values. The node is not executed again; the nodes after it are: models are called and billed, tools run, people are asked, webhooks are sent.
        </p>
        <SchemaFields state={{ id, entries: form.entries, wrong, disabled: state.busy, change: form.change, replace: form.replace }} schema={schema} path="" />
        {state.error !== undefined && <ErrorNote error={state.error} />}
        <div className="fork-end">
          <button type="submit" className="primary" disabled={state.busy || wrong.size > 0 || same}>
            Branch with these outputs
          </button>
          <button type="button" onClick={onClose}>
            Go back
          </button>
        </div>
      </form>
    </Dialog>
  );
}
