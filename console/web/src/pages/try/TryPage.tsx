import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useId, useState, type ReactNode } from "react";
import { api, bodyAs } from "../../api/client";
import { useTitle } from "../../ui/title";
import { Explanation } from "../../explain/Explanation";
import { record } from "../../ladder/events";
import { asks, gateNumber, type Story } from "../../ladder/model";
import { stoppedAt } from "../../ladder/rungs";
import { useCapabilities, useSchema } from "../../ladder/ui/context";
import { Rungs } from "../../ladder/ui/Rungs";
import { Verdict } from "../../ladder/ui/Verdict";
import { ErrorNote } from "../../ui/ErrorNote";
import { JsonView } from "../../ui/JsonView";
import { judge, kindOf, outcomeIn, type Given, type Judged, type Reading } from "./judge";
import { Name } from "../../ui/Text";
import "../../styles/form.css";
import "./try.css";

// The host reads an answer when it has not changed for this long.
const settle = 250;

/** Returns what the host finds in an answer, in the way of a run. */
function useReading({ text, askedKind, accepts }: Given): { reading: Reading | undefined; error: Error | null } {
  const [asked, ask] = useState<Given>();
  const wanted = text.trim() !== "" && outcomeIn(text) === undefined;
  const words = accepts.join(" ");
  useEffect(() => {
    if (!wanted) return undefined;
    const timer = setTimeout(() => ask({ text, askedKind, accepts: words.split(" ").filter(Boolean) }), settle);
    return () => clearTimeout(timer);
  }, [wanted, text, askedKind, words]);
  const { data, error } = useQuery({
    queryKey: ["answer", asked],
    queryFn: ({ signal }) => bodyAs<Reading>(api.POST("/v1/answers:read", { body: { text: asked?.text ?? "", kind: asked?.askedKind ?? "", accepts: asked?.accepts ?? [] }, signal })),
    enabled: wanted && asked !== undefined,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  return { reading: wanted ? data : undefined, error: wanted ? error : null };
}

/** Checks a pasted answer against the gates without a run. The host reads it, and records nothing. */
export default function TryPage(): ReactNode {
  useTitle("Try an answer");
  const id = useId();
  const versions = record(useCapabilities().schemaVersions);
  const [answer, setAnswer] = useState("");
  const [askedKind, setAskedKind] = useState("");
  const [accepts, setAccepts] = useState("");
  const given: Given = { text: useDeferredValue(answer), askedKind, accepts: accepts.split(/[\s,]+/).filter((kind) => kind !== "") };
  const { reading, error } = useReading(given);
  const kind = given.text.trim() === "" ? undefined : kindOf(given, reading);
  const known = kind !== undefined && versions[kind] !== undefined ? kind : undefined;
  const schema = useSchema(known, {}, "envelope");
  const unread = reading === undefined && outcomeIn(given.text) === undefined;
  const judged = given.text.trim() === "" || unread || (known !== undefined && schema === undefined) ? undefined : judge(given, reading, { versions, schema });
  return (
    <div className="envelope-page try">
      <h1>Try an answer</h1>
      <p>
        Paste a model's answer, an envelope or an acceptor response. The host reads it as in a run, and this page checks it against the host's schemas. Nothing is recorded, and no run starts.
      </p>
      <div className="try-parts">
        <div className="try-given">
          <div className="field">
            <label htmlFor={`${id}a`}>Answer</label>
            <textarea id={`${id}a`} className="mono" rows={14} spellCheck={false} value={answer} onChange={(e) => setAnswer(e.target.value)} placeholder='{"type": "error", "payload": {"code": "…", "message": "…"}}' />
          </div>
          <div className="field">
            <label htmlFor={`${id}k`}>Kind requested by the node</label>
            <select id={`${id}k`} value={askedKind} onChange={(e) => setAskedKind(e.target.value)}>
              <option value="">none: the answer is an envelope</option>
              {Object.keys(versions).map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </div>
          <div className="field">
            <label htmlFor={`${id}c`}>Kinds accepted by its contract (empty means all)</label>
            <input id={`${id}c`} className="mono" value={accepts} onChange={(e) => setAccepts(e.target.value)} spellCheck={false} autoComplete="off" />
          </div>
        </div>
        <section aria-label="Ladder of the answer" className="try-found">
          {error && <ErrorNote error={error} />}
          {judged ? <Found judged={judged} /> : <p className="empty">The ladder of the answer appears here.</p>}
        </section>
      </div>
    </div>
  );
}

function Found({ judged }: { judged: Judged }): ReactNode {
  const { rungs, kind, payload, problems, note } = judged;
  const stop = stoppedAt(rungs);
  const first = problems[0]?.instancePointer;
  return (
    <>
      <Verdict story={storyOf(judged)} />
      {note && <p className="dim small">{note}</p>}
      <Rungs rungs={rungs} name={kind ?? "Answer"} />
      {stop?.code && (
        <>
          <h2>Gate {stop.gate}: {asks[stop.gate]}</h2>
          <Explanation code={stop.code} message={stop.reason} />
        </>
      )}
      {problems.length > 0 && (
        <ul className="problems" aria-label="Problems">
          {problems.map((p) => (
            <li key={`${p.instancePointer ?? ""} ${p.message}`}>
              {p.instancePointer !== undefined && <code className="place"><Name text={p.instancePointer || "/"} /></code>} <Name text={p.message} />
            </li>
          ))}
        </ul>
      )}
      {stop?.acceptedKinds && (
        <p>
          Accepted:{" "}
          {stop.acceptedKinds.map((name) => (
            <code key={name} className="chip">
              {name}
            </code>
          ))}
        </p>
      )}
      {payload !== undefined && problems.length > 0 && (
        <section aria-label="Payload">
          <h2>Payload</h2>
          <JsonView value={payload} open={6} key={first ?? ""} {...(first === undefined ? {} : { mark: first })} />
        </section>
      )}
    </>
  );
}

function storyOf({ rungs, kind }: Judged): Story {
  const stop = stoppedAt(rungs);
  if (stop) return { tone: "bad", headline: `Stopped at gate ${gateNumber(stop.gate)} of ${rungs.length}, ${stop.gate}${kind ? `: ${kind}` : ""}`, code: stop.code };
  if (rungs.every((r) => r.state === "passed")) return { tone: "good", headline: "Accepted: all eight gates passed" };
  if (rungs.some((r) => r.state === "passed")) return { tone: "good", headline: "Valid up to the contract gate" };
  return { tone: "bad", headline: "No document in the answer" };
}
