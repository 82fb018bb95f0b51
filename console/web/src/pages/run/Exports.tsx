import { useState, type FocusEvent, type KeyboardEvent, type ReactNode } from "react";
import { Link } from "wouter";
import { errorOf } from "../../api/errors";
import { isObject, parseJson } from "../../api/json";
import type { RunSnapshot } from "../../api/model";
import { announce } from "../../ui/announce";
import { hostURL } from "../../api/base";
import type { RunLog } from "../../live/runLog";
import { copyText } from "../../ui/CopyButton";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { rawEvents, save } from "./export";
import { text } from "./events";

type Status = { words: string } | { error: unknown };

/** Exports of a run: debug bundle, events, and the equivalent commands. */
export function Exports({ snapshot, log }: { snapshot: RunSnapshot; log: RunLog }): ReactNode {
  const [status, setStatus] = useState<Status>();
  const { runId } = snapshot;
  const run = (what: Promise<string>): void => {
    setStatus({ words: "Loading…" });
    what.then(
      (words) => {
        setStatus({ words });
        announce(words);
      },
      (error: unknown) => setStatus({ error }),
    );
  };
  const copy = (what: string, command: string): void =>
    run(copyText(command).then((ok) => (ok ? `Copied as ${what}.` : "The browser blocked copying.")));
  return (
    <details className="menu" onKeyDown={closeByKey} onBlur={closeWhenLeft}>
      <summary className="button">
        Export <Icon name="down" />
      </summary>
      <div className="menu-body card">
        <button type="button" className="quiet" onClick={() => run(saveBundle(runId))}>
          Save the debug bundle
        </button>
        <button type="button" className="quiet" onClick={() => run(saveEvents(runId))}>
          Save the events as JSON lines
        </button>
        <Link href={`/runs/${encodeURIComponent(runId)}/report`} className="button quiet">
          Report to print
        </Link>
        <button type="button" className="quiet" onClick={() => copy("curl", `curl -s -H "Authorization: Bearer $WAYBILL_TOKEN" ${hostURL}/v1/runs/${runId}`)}>
          Copy as curl
        </button>
        <button type="button" className="quiet" onClick={() => copy("a command", `waybill run ${log.ended ? "get" : "watch"} ${runId}`)}>
          Copy as waybill command
        </button>
        {status && ("words" in status ? <p className="said small dim">{status.words}</p> : <ErrorNote error={status.error} />)}
      </div>
    </details>
  );
}

// Escape closes the menu and restores focus; moving focus elsewhere closes it, too.
function closeByKey(event: KeyboardEvent<HTMLDetailsElement>): void {
  if (event.key !== "Escape" || !event.currentTarget.open) return;
  event.currentTarget.open = false;
  event.currentTarget.querySelector("summary")?.focus();
}

function closeWhenLeft(event: FocusEvent<HTMLDetailsElement>): void {
  if (event.relatedTarget && !event.currentTarget.contains(event.relatedTarget)) event.currentTarget.open = false;
}

async function fetchBytes(path: string): Promise<ArrayBuffer> {
  const response = await fetch(hostURL + path);
  if (!response.ok) throw errorOf(response, await response.json().catch(() => undefined));
  return response.arrayBuffer();
}

async function saveBundle(runId: string): Promise<string> {
  const bytes = await fetchBytes(`/v1/runs/${encodeURIComponent(runId)}/debug-bundle`);
  save(`waybill-${runId}-bundle.json`, "application/json", [bytes]);
  const bundle = parseJson(new TextDecoder().decode(bytes));
  if (!isObject(bundle)) return "Saved.";
  const events = Array.isArray(bundle.events) ? bundle.events.length : 0;
  const size = bundle.truncated ? `cut to ${events.toLocaleString("en")} events (${text(bundle.truncatedReason).replaceAll("_", " ")})` : `complete, ${events.toLocaleString("en")} events`;
  const redaction = bundle.redactionApplied ? `redacted, mode ${text(bundle.redactionMode)}` : "not redacted";
  return `Saved: ${size}; ${redaction}.`;
}

const pageSize = 5000;

async function saveEvents(runId: string): Promise<string> {
  const lines: string[] = [];
  for (;;) {
    const page = new TextDecoder().decode(
      await fetchBytes(`/v1/runs/${encodeURIComponent(runId)}/events/poll?lastSequence=${lines.length - 1}&timeout=1&limit=${pageSize}`),
    );
    const events = rawEvents(page);
    lines.push(...events);
    if (events.length < pageSize) break;
  }
  save(`waybill-${runId}-events.jsonl`, "application/x-ndjson", [lines.map((line) => `${line}\n`).join("")]);
  return `Saved: ${lines.length.toLocaleString("en")} events, exactly as recorded.`;
}
