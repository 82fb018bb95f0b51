import { useState, type KeyboardEvent, type ReactNode } from "react";
import { Link } from "wouter";
import { stringifyJson, type Json } from "../../api/json";
import type { RunEvent, RunSnapshot } from "../../api/model";
import { hostURL } from "../../api/base";
import type { RunLog } from "../../live/runLog";
import { useIsRecorded } from "../../live/useRunLog";
import { CopyButton } from "../../ui/CopyButton";
import { Icon } from "../../ui/Icon";
import { JsonView } from "../../ui/JsonView";
import { countRedactions, Name, Redacted, Text } from "../../ui/Text";
import { clock, duration } from "../../ui/time";
import { useFocusAndReturn } from "./panel/focus";
import { EnvelopeSlot } from "./slots/EnvelopeSlot";

type Props = {
  event: RunEvent;
  log: RunLog;
  snapshot: RunSnapshot | undefined;
  onSelect: (seq: number) => void;
  onClose: () => void;
  onFork: (seq: number) => void;
};

// Larger payloads are rendered on request.
const large = 256 * 1024;

/** Shows one event in full, as recorded. */
export function Inspector({ event, log, snapshot, onSelect, onClose, onFork }: Props): ReactNode {
  const heading = useFocusAndReturn();
  const recorded = useIsRecorded();
  const onKey = (key: KeyboardEvent): void => {
    if (key.key === "Escape") onClose();
  };
  const before = log.events[event.sequence - 1];
  return (
    <aside className="inspector opened" aria-label={`Event ${event.sequence}`} onKeyDown={onKey}>
      <div className="inspector-head">
        <h2 ref={heading} tabIndex={-1}>
          <span className="dim">#{event.sequence}</span> <Name text={event.type} />
        </h2>
        <button type="button" className="quiet" aria-label="Previous event" disabled={event.sequence === 0} onClick={() => onSelect(event.sequence - 1)}>
          <Icon name="up" />
        </button>
        <button type="button" className="quiet" aria-label="Next event" disabled={event.sequence >= log.last} onClick={() => onSelect(event.sequence + 1)}>
          <Icon name="down" />
        </button>
        <button type="button" className="quiet" aria-label="Close the event" onClick={onClose}>
          <Icon name="cross" />
        </button>
      </div>
      <dl className="facts">
        <div>
          <dt>Time</dt>
          <dd>
            <time dateTime={event.timestamp} title={event.timestamp}>
              {clock(event.timestamp)}
            </time>
            {before && <span className="dim"> +{duration(Date.parse(event.timestamp) - Date.parse(before.timestamp))}</span>}
          </dd>
        </div>
        {event.nodeId && (
          <div>
            <dt>Node</dt>
            <dd>
              <Name text={event.nodeId} />
            </dd>
          </div>
        )}
        {event.contentTrust && (
          <div>
            <dt>Trust</dt>
            <dd>{event.contentTrust === "untrusted" ? <span className="badge ask">untrusted</span> : "trusted"}</dd>
          </div>
        )}
        {event.causationId && (
          <div>
            <dt>Caused by</dt>
            <dd>
              <Cause id={event.causationId} log={log} />
            </dd>
          </div>
        )}
        <div>
          <dt>Id</dt>
          <dd>
            <code className="small"><Name text={event.eventId} /></code> <CopyButton text={event.eventId} what="the id of the event" />
            {!recorded && <CopyButton text={() => linkTo(event)} what="the link to the event" icon="link" />}
          </dd>
        </div>
      </dl>
      <Payload key={event.sequence} value={event.payload} />
      <EnvelopeSlot event={event} log={log} snapshot={snapshot} />
      {!recorded && (
        <div className="inspector-end">
          <button type="button" onClick={() => onFork(event.sequence)}>
            <Icon name="fork" /> Fork from here…
          </button>
        </div>
      )}
    </aside>
  );
}

function linkTo(event: RunEvent): string {
  return `${hostURL}/console/runs/${event.runId}?e=${event.sequence}`;
}

function Cause({ id, log }: { id: string; log: RunLog }): ReactNode {
  const cause = log.events.find((event) => event.eventId === id);
  return cause ? <Link href={`/runs/${cause.runId}?e=${cause.sequence}`}>#{cause.sequence}</Link> : <code className="small"><Name text={id} /></code>;
}

type Form = "tree" | "raw";

function Payload({ value }: { value: Json }): ReactNode {
  const [form, setForm] = useState<Form>("tree");
  const written = stringifyJson(value);
  const [asked, ask] = useState(written.length <= large);
  const taken = countRedactions(written);
  return (
    <section aria-label="Payload" className="payload">
      <div className="card-head">
        <h3>Payload</h3>
        <span className="dim small">{size(written.length)}</span>
        {taken > 0 && (
          <span className="small">
            <Redacted /> {taken} {taken === 1 ? "time" : "times"}
          </span>
        )}
        <span className="grow" />
        <span className="choices" role="group" aria-label="Form of the payload">
          {(["tree", "raw"] as const).map((name) => (
            <button key={name} type="button" className="choice" aria-pressed={form === name} onClick={() => setForm(name)}>
              {name}
            </button>
          ))}
        </span>
        <CopyButton text={() => stringifyJson(value, 2)} what="the payload" />
      </div>
      {asked ? (
        form === "tree" ? (
          <JsonView value={value} after={copies} />
        ) : (
          <pre className="raw">
            <Text text={stringifyJson(value, 2)} />
          </pre>
        )
      ) : (
        <button type="button" onClick={() => ask(true)}>
          Show {size(written.length)}
        </button>
      )}
    </section>
  );
}

function copies(pointer: string, value: Json): ReactNode {
  return pointer ? <Copies pointer={pointer} value={value} /> : null;
}

function Copies({ pointer, value }: { pointer: string; value: Json }): ReactNode {
  return (
    <span className="copies">
      <CopyButton text={typeof value === "string" ? value : stringifyJson(value, 2)} what={`the value at ${pointer}`} />
      <CopyButton text={pointer} what={`the pointer ${pointer}`} icon="link" />
    </span>
  );
}

function size(characters: number): string {
  if (characters < 1024) return `${characters} B`;
  return characters < 1024 * 1024 ? `${(characters / 1024).toFixed(1)} kB` : `${(characters / 1024 / 1024).toFixed(1)} MB`;
}
