import { useQuery } from "@tanstack/react-query";
import { Suspense, useEffect, useId, useMemo, useRef, useState, type FormEvent, type ReactNode } from "react";
import { Link, useLocation, useParams, useSearch } from "wouter";
import { api, bodyAs } from "../../api/client";
import { ApiError, isStatus } from "../../api/errors";
import { useRepeat } from "../../api/repeat";
import { isObject, parseJson, stringifyJson, type Json } from "../../api/json";
import type { RunSnapshot } from "../../api/model";
import { useMay } from "../../api/session";
import { CopyAs } from "../../copyas/CopyAs";
import { violations } from "../../inbox/schema";
import { record, text, texts } from "../../ladder/events";
import { ErrorNote } from "../../ui/ErrorNote";
import { shortId } from "../../ui/Id";
import { Name, Text, countRedactions } from "../../ui/Text";
import { useTitle } from "../../ui/title";
import type { Definition } from "../../workflows/definition";
import { childPath, collect, entriesOf, inputSchema, placed, resolved, type Entries, type Schema } from "../../workflows/form";
import { useDefinition } from "../../workflows/host";
import { workflowPath } from "../../workflows/path";
import { SchemaFields, type FormState } from "../../workflows/SchemaFields";
import { useEntries } from "../../workflows/useEntries";
import { loaded } from "../../ui/load";
import { NoWorkflow } from "./NoWorkflow";
import { startRequest, type StartBody } from "./startRequest";
import "../../styles/form.css";
import "./workflows.css";

const Graph = loaded(() => import("../../workflows/Graph"));

/** Starts a run, from a form of the workflow's inputs. `?from=RUN` fills the form from a run. */
export default function StartPage(): ReactNode {
  const { workflowId = "" } = useParams<{ workflowId: string }>();
  const from = new URLSearchParams(useSearch()).get("from") ?? undefined;
  return <Start key={`${workflowId} ${from ?? ""}`} workflowId={workflowId} from={from} />;
}

function Start({ workflowId, from }: { workflowId: string; from: string | undefined }): ReactNode {
  const definition = useDefinition(workflowId, undefined);
  const source = useQuery({
    queryKey: ["run", from ?? ""],
    queryFn: ({ signal }) => bodyAs<RunSnapshot>(api.GET("/v1/runs/{runId}", { params: { path: { runId: from ?? "" } }, signal })),
    enabled: from !== undefined,
    refetchOnMount: "always",
  });
  // A form must not change while it is filled in.
  const [begun, begin] = useState<{ definition: Definition; source: RunSnapshot | undefined }>();
  if (!begun && definition.data && !definition.isFetching && (from === undefined || (source.data && !source.isFetching))) begin({ definition: definition.data, source: source.data });
  const name = text(definition.data?.name) || workflowId;
  const title = from ? `Run ${name} again` : `Start a run of ${name}`;
  useTitle(title);
  if (isStatus(definition.error, 404)) return <NoWorkflow workflowId={workflowId} />;
  const error = definition.error ?? source.error;
  return (
    <>
      <nav aria-label="Breadcrumb" className="small crumbs">
        <Link href="/workflows">Workflows</Link> / <Link href={workflowPath(workflowId)}><Name text={name} /></Link>
      </nav>
      <div className="page-head">
        <h1>
          <Name text={title} />
        </h1>
      </div>
      {error && <ErrorNote error={error} onRetry={() => void (definition.error ? definition.refetch() : source.refetch())} />}
      {!error && !begun && <p className="loading">Loading the form…</p>}
      {begun && (
        <div className="start">
          <StartForm workflowId={workflowId} {...begun} />
          <About definition={begun.definition} />
        </div>
      )}
    </>
  );
}

/** What the run will do. */
function About({ definition }: { definition: Definition }): ReactNode {
  const description = text(definition.description);
  return (
    <aside className="start-about" aria-label="About the workflow">
      {description && (
        <p>
          <Text text={description} />
        </p>
      )}
      <Suspense fallback={null}>
        <Graph definition={definition} />
      </Suspense>
    </aside>
  );
}

type Prepared = {
  inputs: Schema;
  secret: Set<string>;
  examples: Definition[];
  options: Schema | undefined;
  entries: Entries;
  optionEntries: Entries;
  other: string;
  otherOptions: string;
  tags: string;
  notes: Map<string, string>;
};

/** The form as it is at first: with the defaults of the workflow, or with what a run was given. */
function prepare(definition: Definition, source: RunSnapshot | undefined): Prepared {
  const { schema, sensitive, examples } = inputSchema(definition);
  const properties = record(schema.properties);
  const notes = new Map<string, string>();
  const entries: Record<string, Entries[string]> = {};
  const given = record(source?.inputs) as Definition;
  for (const [name, s] of Object.entries(properties)) {
    const path = childPath("", name);
    let value = source ? given[name] : (record(s).default as Json | undefined);
    if (source && value === undefined) value = record(s).default as Json | undefined;
    if (value !== undefined && countRedactions(stringifyJson(value)) > 0) {
      notes.set(path, "The run's value is redacted. Enter it again.");
      value = undefined;
    }
    Object.assign(entries, entriesOf(record(s), value, path, 1));
  }
  const others = Object.fromEntries(Object.entries(given).filter(([name]) => !Object.hasOwn(properties, name)));
  const declared = record(definition.configurableSchema);
  const options: Schema | undefined = Object.keys(record(declared.properties)).length > 0 ? { ...resolved(declared), type: "object" } : undefined;
  const chosen = record(source?.configurable) as Definition;
  const known = record(options?.properties);
  const defaults = Object.fromEntries(Object.entries(known).flatMap(([name, s]) => (record(s).default === undefined ? [] : [[name, record(s).default as Json]])));
  const otherOptions = Object.fromEntries(Object.entries(chosen).filter(([name]) => !Object.hasOwn(known, name)));
  return {
    inputs: schema,
    secret: new Set([...sensitive].map((name) => childPath("", name))),
    examples,
    options,
    entries,
    optionEntries: options ? entriesOf(options, { ...defaults, ...chosen }, "") : {},
    other: Object.keys(others).length > 0 ? stringifyJson(others, 2) : "",
    otherOptions: Object.keys(otherOptions).length > 0 ? stringifyJson(otherOptions, 2) : "",
    tags: (source?.tags ?? []).join(", "),
    notes,
  };
}

type Failure = { error: unknown; wrong: Map<string, string[]> };

function StartForm({ workflowId, definition, source }: { workflowId: string; definition: Definition; source: RunSnapshot | undefined }): ReactNode {
  const id = useId();
  const [, navigate] = useLocation();
  const may = useMay("runs:create");
  const first = useMemo(() => prepare(definition, source), [definition, source]);
  const inputs = useEntries(first.entries);
  const options = useEntries(first.optionEntries);
  const [other, setOther] = useState(first.other);
  const [otherOptions, setOtherOptions] = useState(first.otherOptions);
  const [tags, setTags] = useState(first.tags);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const [failures, setFailures] = useState(0);
  const repeat = useRepeat();
  const form = useRef<HTMLFormElement>(null);

  const made = readForm();
  const wrongOf = (kind: "input" | "option"): ReadonlyMap<string, string[]> =>
    new Map([...(failure?.wrong ?? [])].filter(([p]) => p.startsWith(`${kind}:`)).map(([p, w]) => [p.slice(kind.length + 1), w]));
  const state = (kind: "input" | "option"): FormState => {
    const { entries, change, replace } = kind === "input" ? inputs : options;
    // A message stays until its field is changed.
    const forget = (path: string): void => setFailure((f) => f && { ...f, wrong: new Map([...f.wrong].filter(([p]) => p !== `${kind}:${path}`)) });
    return {
      id: `${id}${kind}`,
      entries,
      wrong: wrongOf(kind),
      disabled: busy,
      change: (path, entry) => {
        change(path, entry);
        forget(path);
      },
      replace: (path, next) => {
        replace(path, next);
        forget(path);
      },
      ...(kind === "input" ? { notes: first.notes, secret: first.secret } : {}),
    };
  };

  function readForm(): { body: StartBody; wrong: Map<string, string[]>; place: (problems: { path: string; message: string }[]) => Map<string, string[]> } {
    const values = collect(first.inputs, inputs.entries, "", "/inputs");
    const chosen = first.options && collect(first.options, options.entries, "", "/configurable");
    const wrong = new Map<string, string[]>();
    const add = (key: string, words: string): void => void wrong.set(key, [...(wrong.get(key) ?? []), words]);
    for (const [p, w] of values.wrong) add(`input:${p}`, w);
    for (const [p, w] of chosen?.wrong ?? []) add(`option:${p}`, w);
    const place = (problems: { path: string; message: string }[]): Map<string, string[]> => {
      const out = new Map<string, string[]>();
      const parts = (prefix: string): { path: string; message: string }[] => problems.filter((p) => p.path === prefix || p.path.startsWith(`${prefix}/`));
      const rest = problems.filter((p) => !/^\/(inputs|configurable)(\/|$)/.test(p.path));
      for (const [kind, collected, its] of [["input", values, parts("/inputs")], ["option", chosen, parts("/configurable")]] as const) {
        for (const [p, w] of collected ? placed(its, collected) : placed(its)) out.set(p || collected ? `${kind}:${p}` : "", w);
      }
      if (rest.length > 0) out.set("", [...(out.get("") ?? []), ...rest.map((p) => (p.path ? `${p.path}: ${p.message}` : p.message))]);
      return out;
    };
    for (const [kind, collected, schema, root] of [["input", values, first.inputs, "/inputs"], ["option", chosen, first.options, "/configurable"]] as const) {
      if (!collected || collected.wrong.size > 0) continue;
      const found = [...violations(plain(schema), plain(collected.value))].map(([pointer, message]) => ({ path: root + pointer, message }));
      for (const [p, w] of placed(found, collected)) add(`${kind}:${p}`, w.join("; "));
    }
    const body: StartBody = { workflowId };
    const more = objectIn(other);
    if (typeof more === "string") add("other", more);
    const value = { ...(isObject(values.value) ? values.value : {}), ...(typeof more === "string" ? {} : more) };
    if (Object.keys(value).length > 0) body.inputs = value;
    const moreOptions = objectIn(otherOptions);
    if (typeof moreOptions === "string") add("otherOptions", moreOptions);
    const configurable = { ...(isObject(chosen?.value) ? chosen.value : {}), ...(typeof moreOptions === "string" ? {} : moreOptions) };
    if (Object.keys(configurable).length > 0) body.configurable = configurable;
    const list = tags.split(",").map((t) => t.trim()).filter(Boolean);
    if (list.length > 0) body.tags = list;
    return { body, wrong, place };
  }

  const fail = (next: Failure): void => {
    setFailure(next);
    setBusy(false);
    setFailures((n) => n + 1);
  };
  // After the messages are rendered, focus goes to the first field that has one.
  useEffect(() => {
    if (failures > 0) form.current?.querySelector<HTMLElement>(":is(input, select, textarea, fieldset)[aria-invalid=true], [role=alert]")?.focus();
  }, [failures]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (busy) return;
    if (made.wrong.size > 0) {
      fail({ error: undefined, wrong: made.wrong });
      return;
    }
    setBusy(true);
    setFailure(undefined);
    repeat(stringifyJson(made.body), (key) => bodyAs<{ runId: string }>(api.POST("/v1/runs", { params: { header: { "Idempotency-Key": key } }, body: made.body as never }))).then(
      ({ runId }) => navigate(`/runs/${encodeURIComponent(runId)}`),
      (error: unknown) => {
        fail({ error, wrong: made.place(problemsOf(error)) });
      },
    );
  };
  const example = (values: Definition): void => {
    const next: Record<string, Entries[string]> = {};
    for (const [name, s] of Object.entries(record(first.inputs.properties))) Object.assign(next, entriesOf(record(s), values[name] ?? (record(s).default as Json | undefined), childPath("", name), 1));
    inputs.reset(next);
    setFailure(undefined);
  };
  const hasInputs = Object.keys(record(first.inputs.properties)).length > 0;
  const general = failure?.wrong.get("") ?? [];
  return (
    <form ref={form} className="start-form" noValidate onSubmit={submit}>
      {source && (
        <p className="note small">
          Filled in from <Link href={`/runs/${source.runId}`}>run {shortId(source.runId)}</Link>. A new run starts with what you change here; it uses the current version of the workflow.
        </p>
      )}
      {first.examples.length > 0 && (
        <div className="buttons" role="group" aria-label="Examples">
          {first.examples.map((e, i) => (
            // oxlint-disable-next-line react/no-array-index-key -- examples never change
            <button key={i} type="button" onClick={() => example(e)}>
              Fill in example{first.examples.length > 1 ? ` ${i + 1}` : ""}
            </button>
          ))}
        </div>
      )}
      {hasInputs ? <SchemaFields state={state("input")} schema={first.inputs} path="" /> : <p className="dim">This workflow declares no inputs.</p>}
      {first.options && (
        <fieldset>
          <legend>Run options</legend>
          <SchemaFields state={state("option")} schema={first.options} path="" />
        </fieldset>
      )}
      <details className="start-more" open={Boolean(first.other || first.otherOptions || first.tags) || failure?.wrong.has("other") || failure?.wrong.has("otherOptions") || undefined}>
        <summary>Tags and more</summary>
        <div>
          <div className="field">
            <label htmlFor={`${id}tags`}>Tags, separated by commas</label>
            <input id={`${id}tags`} value={tags} autoComplete="off" disabled={busy} onChange={(e) => setTags(e.target.value)} />
          </div>
          <JsonField id={`${id}other`} label="Inputs that the workflow does not declare, as a JSON object" value={other} wrong={failure?.wrong.get("other")} disabled={busy} onChange={setOther} />
          <JsonField id={`${id}options`} label="Other run options (configurable), as a JSON object" value={otherOptions} wrong={failure?.wrong.get("otherOptions")} disabled={busy} onChange={setOtherOptions} />
        </div>
      </details>
      {failure !== undefined && (failure.error !== undefined || failure.wrong.size > 0) && (
        <div className="note bad" role="alert" tabIndex={-1}>
          {failure.error === undefined ? <p>Correct the marked fields.</p> : <FailureWords error={failure.error} atFields={[...failure.wrong.keys()].some(Boolean)} />}
          {[...general, ...(wrongOf("input").get("") ?? []), ...(wrongOf("option").get("") ?? [])].map((w) => (
            <p key={w}>
              <Name text={w} />
            </p>
          ))}
        </div>
      )}
      <div className="start-end">
        <button type="submit" className="primary" disabled={busy || !may}>
          {busy ? "Starting…" : "Start the run"}
        </button>
        <Link href={workflowPath(workflowId)} className="button">
          Back to the workflow
        </Link>
        <span className="grow" />
        <CopyAs request={startRequest(masked(made.body, first.secret))} />
        {!may && <p className="dim small">Your key cannot start runs: it lacks the scope runs:create.</p>}
      </div>
    </form>
  );
}

// The validator knows JavaScript's numbers only. The host validates the exact ones.
const plain = <T,>(value: T): unknown => (value === undefined ? undefined : JSON.parse(stringifyJson(value)));

/** Parses a JSON object; a text is what is wrong with it. */
function objectIn(written: string): Definition | string {
  if (written.trim() === "") return {};
  try {
    const value = parseJson(written);
    return isObject(value) ? value : "enter a JSON object";
  } catch (error) {
    return `enter valid JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function problemsOf(error: unknown): { path: string; message: string }[] {
  if (!(error instanceof ApiError)) return [];
  const { problems, path } = error.details ?? {};
  if (Array.isArray(problems)) return problems.filter(isObject).map((p) => ({ path: text(p.path) ?? "", message: text(p.message) ?? "" }));
  const places = [...(text(path) === undefined ? [] : [text(path) as string]), ...texts(error.details?.places)];
  return places.map((p) => ({ path: p, message: error.message }));
}

function FailureWords({ error, atFields }: { error: unknown; atFields: boolean }): ReactNode {
  if (!(error instanceof ApiError)) return <p>{error instanceof Error ? error.message : String(error)} Try again: the run is started only once.</p>;
  return (
    <p>
      <code>{error.code}</code> {atFields ? "The host rejected the marked fields." : <Text text={error.message} />}
    </p>
  );
}

// A copied command must not contain what the log masks.
function masked(body: StartBody, secret: ReadonlySet<string>): StartBody {
  if (!body.inputs || secret.size === 0) return body;
  return { ...body, inputs: Object.fromEntries(Object.entries(body.inputs).map(([name, v]) => [name, secret.has(childPath("", name)) ? "…" : v])) };
}

type JsonFieldProps = { id: string; label: string; value: string; wrong: readonly string[] | undefined; disabled: boolean; onChange: (v: string) => void };

function JsonField({ id, label, value, wrong, disabled, onChange }: JsonFieldProps): ReactNode {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea id={id} className="mono" rows={3} spellCheck={false} value={value} disabled={disabled} aria-invalid={wrong !== undefined} aria-describedby={wrong ? `${id}-wrong` : undefined} onChange={(e) => onChange(e.target.value)} />
      {wrong && (
        <p className="wrong" id={`${id}-wrong`}>
          {wrong.join("; ")}
        </p>
      )}
    </div>
  );
}
