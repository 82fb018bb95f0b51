import { useId, useMemo, useRef, useState, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { api, body } from "../api/client";
import { ApiError } from "../api/errors";
import { isObject, parseJson, stringifyJson, type Json } from "../api/json";
import type { RunSnapshot } from "../api/model";
import { useRepeat } from "../api/repeat";
import { CopyAs } from "../copyas/CopyAs";
import { asCurl, forkRequest } from "../copyas/requests";
import { Explanation } from "../explain/Explanation";
import type { RunLog } from "../live/runLog";
import { Dialog } from "../ui/Dialog";
import { effectsFrom, effectsInWords } from "./effects";
import { Name } from "../ui/Text";
import { record } from "../ladder/events";
import type { Definition } from "../workflows/definition";
import { collect, entriesOf, resolved, type Entries, type Schema } from "../workflows/form";
import { useDefinition } from "../workflows/host";
import { workflowPath } from "../workflows/path";
import { SchemaFields } from "../workflows/SchemaFields";
import { useEntries } from "../workflows/useEntries";
import "./fork.css";
import "../styles/form.css";

type Mode = "replay" | "branch";
type Props = { snapshot: RunSnapshot; log: RunLog; seq: number; open: boolean; onClose: () => void };

/** The dialog to fork a run. */
export function ForkDialog({ snapshot, log, seq, open, onClose }: Props): ReactNode {
  return (
    <Dialog open={open} onClose={onClose} title="Fork this run" wide>
      {open && <Fork key={seq} snapshot={snapshot} log={log} seq={seq} onClose={onClose} />}
    </Dialog>
  );
}

function Fork({ snapshot, log, seq, onClose }: Omit<Props, "open">): ReactNode {
  const id = useId();
  const [, navigate] = useLocation();
  const [mode, setMode] = useState<Mode>("replay");
  const [from, setFrom] = useState(String(seq));
  const options = useOptions(snapshot);
  const form = useEntries(options.first);
  const [rest, setRest] = useState<string>();
  const [tags, setTags] = useState((snapshot.tags ?? []).join(", "));
  const [metadata, setMetadata] = useState(() => stringifyJson(snapshot.metadata ?? {}, 2));
  const [state, setState] = useState<{ busy: boolean; error?: unknown }>({ busy: false });
  const sending = useRef(false);
  const repeat = useRepeat();
  const fromSeq = /^\d+$/.test(from) ? Number(from) : undefined;
  const written = rest ?? stringifyJson(options.rest, 2);
  const collected = options.schema && collect(options.schema, form.entries, "", "");
  const overlay = mode === "branch" ? overlayOf(snapshot, withOptions(written, collected?.value), tags, metadata) : {};
  const wrongOptions = new Map([...(collected?.wrong ?? [])].map(([path, words]) => [path, [words]]));
  const unready = options.loading || wrongOptions.size > 0;
  const most = log.ended ? Math.max(0, log.last) : log.events.length;
  const wrong = fromSeq === undefined || fromSeq > most ? `Enter a number from 0 to ${most}.` : undefined;
  const request = fromSeq === undefined ? undefined : { mode, fromSeq, ...(overlay.value ? { runOptionsOverlay: overlay.value } : {}) };
  const effects = effectsInWords(effectsFrom(log.events, fromSeq ?? 0));
  const submit = (): void => {
    if (!request || wrong || overlay.wrong || (mode === "branch" && unready) || sending.current) return;
    sending.current = true;
    setState({ busy: true });
    repeat(stringifyJson(request), (key) =>
      body<{ runId: string }>(
        api.POST("/v1/runs/{runId}:fork", { params: { path: { runId: snapshot.runId } }, headers: { "Idempotency-Key": key }, body: request as never }) as Promise<{ data?: { runId: string } }>,
      ),
    )
      .then((made) => {
        onClose();
        navigate(`/runs/${encodeURIComponent(made.runId)}`);
      })
      .catch((error: unknown) => {
        sending.current = false;
        setState({ busy: false, error });
      });
  };
  return (
    <form
      className="fork"
      noValidate
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      <fieldset className="fork-modes">
        <legend className="unseen">Mode</legend>
        <Choice
          name={id}
          mode="replay"
          chosen={mode}
          onChoose={setMode}
          effect={`Uses recorded results: no model calls, no external calls, no webhooks.${effects.length > 0 ? ` Taken from the record: ${effects.join(", ")}.` : ""}`}
        />
        <Choice
          name={id}
          mode="branch"
          chosen={mode}
          onChoose={setMode}
          effect={`Executes again from here: models are called and billed, tools run, people are asked, webhooks are sent.${effects.length > 0 ? ` The source run did this from here: ${effects.join(", ")}.` : ""}`}
        />
      </fieldset>
      <div className="field">
        <label htmlFor={`${id}from`}>Start again from event</label>
        <input id={`${id}from`} inputMode="numeric" value={from} autoComplete="off" aria-invalid={wrong !== undefined} onChange={(e) => setFrom(e.target.value)} />
        {wrong && <p className="wrong">{wrong}</p>}
      </div>
      {fromSeq !== undefined && !wrong && <Prefix log={log} fromSeq={fromSeq} />}
      {mode === "branch" ? (
        <fieldset className="overlay">
          <legend>Changes for the branch</legend>
          {options.schema && (
            <SchemaFields state={{ id: `${id}o`, entries: form.entries, wrong: wrongOptions, disabled: state.busy, change: form.change, replace: form.replace }} schema={options.schema} path="" />
          )}
          <Area id={`${id}c`} label={options.schema ? "Other run options (configurable), as JSON" : "Run options (configurable), as JSON"} value={written} onChange={setRest} />
          <div className="field">
            <label htmlFor={`${id}t`}>Tags, separated by commas</label>
            <input id={`${id}t`} value={tags} autoComplete="off" onChange={(e) => setTags(e.target.value)} />
          </div>
          <Area id={`${id}m`} label="Metadata, as JSON" value={metadata} onChange={setMetadata} />
          {overlay.wrong && <p className="wrong">{overlay.wrong}</p>}
          <p className="dim small">
            A branch keeps the inputs of the run. <Link href={workflowPath(snapshot.workflowId, "start", { from: snapshot.runId })}>Run it again with other inputs…</Link>
          </p>
        </fieldset>
      ) : (
        <p className="dim small">A replay has no changes: it uses the recorded results.</p>
      )}
      {request && (
        <section aria-label="The request" className="fork-request">
          <div className="chosen-head">
            <h3>The request</h3>
            <CopyAs request={forkRequest(snapshot.runId, request)} />
          </div>
          <pre>{asCurl(forkRequest(snapshot.runId, request))}</pre>
        </section>
      )}
      {state.error !== undefined && (
        <div className="note bad" role="alert">
          {state.error instanceof ApiError ? <Explanation code={state.error.code} message={state.error.message} /> : <p>{String(state.error)}</p>}
        </div>
      )}
      <div className="fork-end">
        <button type="submit" className="primary" disabled={state.busy || wrong !== undefined || overlay.wrong !== undefined || (mode === "branch" && unready)}>
          {mode === "replay" ? "Replay" : "Branch"} from #{from}
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </form>
  );
}

type Options = { loading: boolean; schema: Schema | undefined; first: Entries; rest: { [name: string]: Json } };

/** The run options that the run's workflow declares, with the run's values; rest are those that it does not. */
function useOptions(snapshot: RunSnapshot): Options {
  const version = snapshot.waybill?.workflowVersion;
  const { data, isPending } = useDefinition(snapshot.workflowId, version, version !== undefined);
  // A live run's snapshot is loaded again and again. Its options never change, so the form must not begin again.
  const given = stringifyJson(snapshot.configurable ?? {});
  return useMemo(() => optionsOf(data, parseJson(given) as Definition, version !== undefined && isPending), [data, given, version, isPending]);
}

function optionsOf(definition: Definition | undefined, given: Definition, loading: boolean): Options {
  const schema: Schema = { ...resolved(record(definition?.configurableSchema)), type: "object" };
  const known = record(schema.properties);
  if (Object.keys(known).length === 0) return { loading, schema: undefined, first: {}, rest: given };
  return { loading, schema, first: entriesOf(schema, given, ""), rest: Object.fromEntries(Object.entries(given).filter(([name]) => !Object.hasOwn(known, name))) };
}

// The options of the form and the others, as one document.
function withOptions(rest: string, chosen: Json | undefined): string {
  if (!isObject(chosen) || Object.keys(chosen).length === 0) return rest;
  try {
    const others = parseJson(rest);
    return isObject(others) ? stringifyJson({ ...others, ...chosen }) : rest;
  } catch {
    return rest;
  }
}

function Choice({ name, mode, chosen, onChoose, effect }: { name: string; mode: Mode; chosen: Mode; onChoose: (m: Mode) => void; effect: string }): ReactNode {
  const id = `${name}${mode}`;
  return (
    <div className="fork-mode">
      <input type="radio" id={id} name={name} value={mode} checked={chosen === mode} aria-describedby={`${id}effect`} onChange={() => onChoose(mode)} />
      <div>
        <label htmlFor={id}>{mode === "replay" ? "Replay" : "Branch"}</label>
        <p className="dim" id={`${id}effect`}>
          {effect}
        </p>
      </div>
    </div>
  );
}

function Area({ id, label, value, onChange }: { id: string; label: string; value: string; onChange: (v: string) => void }): ReactNode {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea id={id} className="mono" rows={3} spellCheck={false} value={value} onChange={(e) => onChange(e.target.value)} />
    </div>
  );
}

/** Lists the inherited events. */
function Prefix({ log, fromSeq }: { log: RunLog; fromSeq: number }): ReactNode {
  const shown = 6;
  const before = log.events.slice(Math.max(0, fromSeq - shown), fromSeq);
  return (
    <section aria-label="Inherited events" className="prefix">
      <h3>{fromSeq === 0 ? "Nothing is inherited: the fork starts from the beginning" : `Inherited: ${fromSeq} event${fromSeq === 1 ? "" : "s"}`}</h3>
      {before.length > 0 && (
        <ol start={before[0]?.sequence ?? 0}>
          {fromSeq > before.length && <li className="dim">… {fromSeq - before.length} before</li>}
          {before.map((e) => (
            <li key={e.eventId}>
              <span className="prefix-seq">#{e.sequence}</span> <Name text={e.type} /> <span className="dim">{e.nodeId && <Name text={e.nodeId} />}</span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** Returns the overlay of a branch: only the options that differ from the source. */
export function overlayOf(source: Pick<RunSnapshot, "configurable" | "tags" | "metadata">, configurable: string, tags: string, metadata: string): { value?: Record<string, unknown>; wrong?: string } {
  const value: Record<string, unknown> = {};
  for (const [name, written, was] of [
    ["configurable", configurable, source.configurable],
    ["metadata", metadata, source.metadata],
  ] as const) {
    let now: unknown;
    try {
      now = parseJson(written);
    } catch {
      return { wrong: `${name} is not valid JSON.` };
    }
    if (!isObject(now)) return { wrong: `${name} must be an object.` };
    if (stringifyJson(now) !== stringifyJson(was ?? {})) value[name] = now;
  }
  const list = tags.split(",").map((t) => t.trim()).filter(Boolean);
  if (stringifyJson(list) !== stringifyJson(source.tags ?? [])) value.tags = list;
  return Object.keys(value).length > 0 ? { value } : {};
}
