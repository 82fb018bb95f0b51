import { useId, useRef, useState, type ReactNode } from "react";
import { useLocation } from "wouter";
import { api, body, idempotencyKey } from "../api/client";
import { ApiError } from "../api/errors";
import { stringifyJson } from "../api/json";
import type { RunSnapshot } from "../api/model";
import { CopyAs } from "../copyas/CopyAs";
import { asCurl, forkRequest } from "../copyas/requests";
import { Explanation } from "../explain/Explanation";
import type { RunLog } from "../live/runLog";
import { Dialog } from "../ui/Dialog";
import { effectsFrom, effectsInWords } from "./effects";
import { Name } from "../ui/Text";
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
  const [configurable, setConfigurable] = useState(() => stringifyJson(snapshot.configurable ?? {}, 2));
  const [tags, setTags] = useState((snapshot.tags ?? []).join(", "));
  const [metadata, setMetadata] = useState(() => stringifyJson(snapshot.metadata ?? {}, 2));
  const [state, setState] = useState<{ busy: boolean; error?: unknown }>({ busy: false });
  const sending = useRef(false);
  const fromSeq = /^\d+$/.test(from) ? Number(from) : undefined;
  const overlay = mode === "branch" ? overlayOf(snapshot, configurable, tags, metadata) : {};
  const most = log.ended ? Math.max(0, log.last) : log.events.length;
  const wrong = fromSeq === undefined || fromSeq > most ? `Enter a number from 0 to ${most}.` : undefined;
  const request = fromSeq === undefined ? undefined : { mode, fromSeq, ...(overlay.value ? { runOptionsOverlay: overlay.value } : {}) };
  const effects = effectsInWords(effectsFrom(log.events, fromSeq ?? 0));
  const submit = (): void => {
    if (!request || wrong || overlay.wrong || sending.current) return;
    sending.current = true;
    setState({ busy: true });
    body<{ runId: string }>(
      api.POST("/v1/runs/{runId}:fork", { params: { path: { runId: snapshot.runId } }, headers: { "Idempotency-Key": idempotencyKey() }, body: request as never }) as Promise<{ data?: { runId: string } }>,
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
          <Area id={`${id}c`} label="Run options (configurable), as JSON" value={configurable} onChange={setConfigurable} />
          <div className="field">
            <label htmlFor={`${id}t`}>Tags, separated by commas</label>
            <input id={`${id}t`} value={tags} autoComplete="off" onChange={(e) => setTags(e.target.value)} />
          </div>
          <Area id={`${id}m`} label="Metadata, as JSON" value={metadata} onChange={setMetadata} />
          {overlay.wrong && <p className="wrong">{overlay.wrong}</p>}
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
        <button type="submit" className="primary" disabled={state.busy || wrong !== undefined || overlay.wrong !== undefined}>
          {mode === "replay" ? "Replay" : "Branch"} from #{from}
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </form>
  );
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
      now = JSON.parse(written);
    } catch {
      return { wrong: `${name} is not valid JSON.` };
    }
    if (typeof now !== "object" || now === null || Array.isArray(now)) return { wrong: `${name} must be an object.` };
    if (stringifyJson(now) !== stringifyJson(was ?? {})) value[name] = now;
  }
  const list = tags.split(",").map((t) => t.trim()).filter(Boolean);
  if (stringifyJson(list) !== stringifyJson(source.tags ?? [])) value.tags = list;
  return Object.keys(value).length > 0 ? { value } : {};
}
