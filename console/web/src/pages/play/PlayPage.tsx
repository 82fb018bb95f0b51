import { useQueryClient } from "@tanstack/react-query";
import { useId, useMemo, useRef, useState, type FormEvent, type ReactNode } from "react";
import { Link, useLocation, useParams } from "wouter";
import { isStatus } from "../../api/errors";
import { stringifyJson } from "../../api/json";
import type { RunRow } from "../../api/model";
import { useMay } from "../../api/session";
import { texts } from "../../ladder/events";
import { useCapabilities } from "../../ladder/ui/context";
import { useView } from "../../live/useView";
import { useRunLog } from "../../live/useRunLog";
import { configChanges, configSchema, portChanges, portsSchema, templateOf, withConfig, type Edit, type Members } from "../../play/edits";
import { executionIn, useForkNode, maxTries, playground, tagOf, useEnded, useNodeInput, useTries, variantOf, type NodeInput } from "../../play/host";
import { announce } from "../../ui/announce";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { shortId } from "../../ui/Id";
import { Name } from "../../ui/Text";
import { useTitle } from "../../ui/title";
import { entriesOf } from "../../workflows/form";
import { useDefinition, useVersions } from "../../workflows/host";
import { workflowPath } from "../../workflows/path";
import { SchemaFields } from "../../workflows/SchemaFields";
import { useEntries } from "../../workflows/useEntries";
import { useSnapshot } from "../run/useRun";
import { keepDraft, toCopy, toEdit } from "../workflows/draft";
import { readOnlyReason } from "../workflows/words";
import { Variant } from "./Variant";
import "../../styles/form.css";
import "../run/panel/panel.css";
import "./play.css";

/** Tries a recorded model call again with other settings, and compares the answers. */
export default function PlayPage(): ReactNode {
  const { runId = "", nodeId = "" } = useParams<{ runId: string; nodeId: string }>();
  return <Play key={`${runId} ${nodeId}`} runId={runId} nodeId={nodeId} />;
}

function Play({ runId, nodeId }: { runId: string; nodeId: string }): ReactNode {
  const given = useNodeInput(runId, nodeId);
  useTitle(`Playground · ${nodeId}`);
  return (
    <>
      <nav aria-label="Breadcrumb" className="small crumbs">
        <Link href="/">Runs</Link> / <Link href={`/runs/${encodeURIComponent(runId)}`}>{shortId(runId)}</Link>
      </nav>
      <div className="page-head">
        <h1>
          Playground: <Name text={nodeId} />
        </h1>
      </div>
      {given.error && (isStatus(given.error, 404) ? <p className="empty">This node has not started in the run, or you do not have access to it.</p> : <ErrorNote error={given.error} onRetry={() => void given.refetch()} />)}
      {given.isPending && <p className="loading">Loading the call…</p>}
      {given.data && (given.data.error ? <p className="note bad"><Name text={given.data.error.message} /></p> : <Found runId={runId} given={given.data} />)}
    </>
  );
}

function Found({ runId, given }: { runId: string; given: NodeInput }): ReactNode {
  const { nodeId } = given;
  const tries = useTries(runId, nodeId);
  const rows = tries.data ?? [];
  const ended = useEnded(rows);
  const log = useRunLog(runId);
  const recorded = useView(log);
  const groups = new Map<number, RunRow[]>();
  for (const row of rows) groups.set(variantOf(row), [...(groups.get(variantOf(row)) ?? []), row]);
  const last = Math.max(0, ...groups.keys());
  const own = executionIn(recorded.data ?? undefined, nodeId);
  return (
    <div className="play">
      <Settings runId={runId} given={given} last={last} />
      <section aria-label="Answers" className="variants">
        {tries.error && <ErrorNote error={tries.error} onRetry={() => void tries.refetch()} />}
        {own && <Variant title="Recorded" nodeId={nodeId} recorded={given} rows={[]} ended={ended} source={{ runId, execution: own }} />}
        {[...groups]
          .sort(([a], [b]) => b - a)
          .map(([n, list]) => (
            <Variant key={n} title={`Variant ${n}`} nodeId={nodeId} recorded={given} rows={list} ended={ended} />
          ))}
      </section>
    </div>
  );
}

const inWords = (found: Map<string, string>): Map<string, string[]> => new Map([...found].map(([path, words]) => [path, [words]]));

type Sending = { busy: boolean; error?: unknown };

function Settings({ runId, given, last }: { runId: string; given: NodeInput; last: number }): ReactNode {
  const id = useId();
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const may = useMay("runs:create", "runs:read", "workflows:write");
  const capabilities = useCapabilities();
  const kinds = useMemo(() => texts(capabilities.supportedEnvelopes), [capabilities]);
  const { config, inputs, nodeId, typeId, untrusted } = given;
  const schema = useMemo(() => configSchema(typeId, config, kinds), [typeId, config, kinds]);
  const ports = useMemo(() => portsSchema(inputs), [inputs]);
  const [firstConfig] = useState(() => entriesOf(schema, config, ""));
  const [firstPorts] = useState(() => entriesOf(ports, inputs, ""));
  const form = useEntries(firstConfig);
  const values = useEntries(firstPorts);
  const [times, setTimes] = useState("1");
  const [state, setState] = useState<Sending>({ busy: false });
  const sent = useRef(new Map<string, number>());
  const fork = useForkNode(runId, nodeId);
  const changed = configChanges(schema, form.entries, config);
  const ported = portChanges(ports, values.entries, inputs);
  const n = /^\d+$/.test(times) ? Number(times) : 0;
  const wrongTimes = n < 1 || n > maxTries ? `Enter a number from 1 to ${maxTries}.` : undefined;
  const edit: Edit = { ...(Object.keys(changed.changes).length > 0 ? { config: changed.changes } : {}), ...(Object.keys(ported.changes).length > 0 ? { inputs: ported.changes } : {}) };
  const wrong = changed.wrong.size > 0 || ported.wrong.size > 0;
  const blocked = may ? undefined : "Your key needs the scopes runs:create, runs:read and workflows:write to try a call.";

  const attempt = (work: () => Promise<void>): void => {
    if (state.busy) return;
    setState({ busy: true });
    work().then(
      () => setState({ busy: false }),
      (error: unknown) => setState({ busy: false, error }),
    );
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (blocked || wrong || wrongTimes) return;
    attempt(async () => {
      const written = stringifyJson(edit as Members);
      const variant = sent.current.get(written) ?? Math.max(last, ...sent.current.values()) + 1;
      try {
        for (let i = 0; i < n; i++) {
          await fork({ ...edit, only: true, tags: [playground, tagOf(runId, nodeId), `variant:${variant}`] });
          sent.current.set(written, variant);
        }
      } finally {
        await client.invalidateQueries({ queryKey: ["tries", runId, nodeId] });
      }
      announce(`Started ${n === 1 ? "a try" : `${n} tries`} of variant ${variant}`);
    });
  };
  const branch = (): void => attempt(async () => navigate(`/runs/${encodeURIComponent(await fork(edit))}`));
  const notes = new Map<string, string>();
  for (const member of ["system", "prompt"] as const) {
    const template = templateOf(config, member);
    if (template !== undefined) notes.set(`/${member}`, `Comes from the template ${template}. A text here replaces it.`);
  }
  return (
    <form className="play-form card" aria-label="Settings" noValidate onSubmit={submit}>
      <h2>Settings</h2>
      <SchemaFields state={{ id: `${id}c`, entries: form.entries, wrong: inWords(changed.wrong), disabled: state.busy, change: form.change, replace: form.replace, notes }} schema={schema} path="" />
      {Object.keys(inputs).length > 0 && (
        <details open={ported.wrong.size > 0 || undefined}>
          <summary>Inputs, as recorded</summary>
          {untrusted.length > 0 && <p className="small dim">Untrusted, also if changed: <Name text={untrusted.join(", ")} /></p>}
          <div className="play-inputs">
            <SchemaFields state={{ id: `${id}p`, entries: values.entries, wrong: inWords(ported.wrong), disabled: state.busy, change: values.change, replace: values.replace }} schema={ports} path="" />
          </div>
        </details>
      )}
      <div className="field play-times">
        <label htmlFor={`${id}n`}>How many times</label>
        <input id={`${id}n`} inputMode="numeric" value={times} autoComplete="off" aria-invalid={wrongTimes !== undefined} onChange={(e) => setTimes(e.target.value)} />
        {wrongTimes && <p className="wrong">{wrongTimes}</p>}
      </div>
      <p className="small dim">Each try is a run of this node alone: the model is called and billed, and nothing else of the workflow is executed. No webhook gets anything of it.</p>
      {blocked && <p className="note small">{blocked}</p>}
      {state.error !== undefined && <ErrorNote error={state.error} />}
      <div className="buttons">
        <button type="submit" className="primary" disabled={state.busy || wrong || wrongTimes !== undefined || blocked !== undefined}>
          <Icon name="play" /> {state.busy ? "Starting…" : n > 1 ? `Try ${n} times` : "Try"}
        </button>
        <SaveButton runId={runId} nodeId={nodeId} changes={changed.changes} wrong={wrong} />
        <button type="button" disabled={state.busy || wrong || blocked !== undefined || Object.keys(edit).length === 0} onClick={branch} title="Start a branch of the run that executes this node with these settings, and continues">
          <Icon name="fork" /> Branch the run
        </button>
      </div>
    </form>
  );
}

/** Opens the editor with the settings in the node of the current version. */
function SaveButton({ runId, nodeId, changes, wrong }: { runId: string; nodeId: string; changes: Members; wrong: boolean }): ReactNode {
  const [, navigate] = useLocation();
  const log = useRunLog(runId);
  const { data: snapshot } = useSnapshot(runId, log);
  const workflowId = snapshot?.workflowId ?? "";
  const known = snapshot !== undefined;
  const versions = useVersions(workflowId, known);
  const definition = useDefinition(workflowId, undefined, known);
  const next = definition.data && withConfig(definition.data, nodeId, changes);
  const none = Object.keys(changes).length === 0;
  const why = none ? "Change a setting first." : definition.data && !next ? `The current version of the workflow has no node ${nodeId}.` : undefined;
  const open = (): void => {
    if (!next || !versions.data) return;
    if (readOnlyReason(versions.data.origin, versions.data.file)) {
      keepDraft(`copy:${workflowId}:`, toCopy(next));
      navigate(`/workflows-new?copy=${encodeURIComponent(workflowId)}`);
      return;
    }
    keepDraft(`edit:${workflowId}:`, toEdit(next, versions.data.versions.map((v) => v.version)));
    navigate(workflowPath(workflowId, "edit"));
  };
  return (
    <button type="button" disabled={wrong || none || !next || !versions.data} title={why} onClick={open}>
      Save as a new version…
    </button>
  );
}
