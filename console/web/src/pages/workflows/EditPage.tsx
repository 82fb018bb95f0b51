import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Suspense, useEffect, useId, useMemo, useRef, useState, type ReactNode } from "react";
import { Link, useLocation, useParams, useSearch } from "wouter";
import { hostURL } from "../../api/base";
import { api, body, bodyAs, fetchJson } from "../../api/client";
import { ApiError, isStatus } from "../../api/errors";
import { isObject, parseJson, type Json } from "../../api/json";
import { useMay } from "../../api/session";
import { text, texts } from "../../ladder/events";
import { announce } from "../../ui/announce";
import { Changes } from "../../ui/Changes";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { loaded } from "../../ui/load";
import { Name } from "../../ui/Text";
import { useTitle } from "../../ui/title";
import { definitionChanges } from "../../workflows/compare";
import type { Definition } from "../../workflows/definition";
import type { EditorHandle, Finding } from "../../workflows/Editor";
import type { Schema } from "../../workflows/form";
import { loadVersions, useDefinition, useVersions } from "../../workflows/host";
import { workflowPath } from "../../workflows/path";
import { keepDraft, loadDraft, nextVersion, toBegin, toCopy, toEdit } from "./draft";
import { NoWorkflow } from "./NoWorkflow";
import { readOnlyReason } from "./words";
import "../../styles/form.css";
import "./workflows.css";

const Editor = loaded(() => import("../../workflows/Editor"));

/** The editor of a new version, of a copy (`?copy=ID`) or of a new workflow. */
export default function EditPage(): ReactNode {
  const { workflowId } = useParams<{ workflowId?: string }>();
  const params = new URLSearchParams(useSearch());
  const copy = params.get("copy") ?? undefined;
  const version = params.get("version") ?? undefined;
  const source = workflowId ?? copy;
  if (source === undefined) return <Begin />;
  return <FromWorkflow key={`${source} ${version ?? ""}`} workflowId={source} version={version} copy={workflowId === undefined} />;
}

function Begin(): ReactNode {
  const [first] = useState(() => toBegin(`${hostURL}/schemas/workflow.schema.json`));
  return <Edit title="New workflow" draftKey="new" first={first} base={undefined} opened={undefined} taken={[]} />;
}

function FromWorkflow({ workflowId, version, copy }: { workflowId: string; version: string | undefined; copy: boolean }): ReactNode {
  const versions = useVersions(workflowId);
  const definition = useDefinition(workflowId, version);
  // What is edited must not change under the hands.
  const [start, setStart] = useState<{ first: string; base: Definition; opened: string | undefined; taken: string[] }>();
  const { data } = versions;
  const def = definition.data;
  if (!start && data && def && !versions.isFetching && !definition.isFetching) {
    const taken = data.versions.map((v) => v.version);
    setStart({ first: copy ? toCopy(def) : toEdit(def, taken), base: def, opened: copy ? undefined : data.versions.find((v) => v.current)?.digest, taken });
  }
  const name = (def && text(def.name)) || workflowId;
  const title = copy ? `Copy ${name}` : `Edit ${name}`;
  useTitle(title);
  if (isStatus(versions.error, 404) || isStatus(definition.error, 404)) return <NoWorkflow workflowId={workflowId} />;
  const error = versions.error ?? definition.error;
  if (error) return <ErrorNote error={error} onRetry={() => void (versions.error ? versions.refetch() : definition.refetch())} />;
  const readOnly = data && !copy ? readOnlyReason(data.origin, data.file) : undefined;
  if (readOnly) {
    return (
      <>
        <h1>
          <Name text={title} />
        </h1>
        <p className="note">{readOnly}</p>
        <Link href={`/workflows-new?copy=${encodeURIComponent(workflowId)}`} className="button primary">
          Save as a copy…
        </Link>
      </>
    );
  }
  if (!start) return <p className="loading">Loading the definition…</p>;
  return <Edit title={title} draftKey={`${copy ? "copy" : "edit"}:${workflowId}:${version ?? ""}`} {...start} />;
}

type EditProps = {
  title: string;
  draftKey: string;
  first: string;
  /** The definition that changes are shown against. */
  base: Definition | undefined;
  /** The digest of the current version when the editor was opened; undefined for a new workflow. */
  opened: string | undefined;
  taken: readonly string[];
};

type Checked = { text: string; findings: readonly Finding[] };

function Edit({ title, draftKey, first, base, opened, taken }: EditProps): ReactNode {
  useTitle(title);
  const id = useId();
  const [, navigate] = useLocation();
  const client = useQueryClient();
  const may = useMay("workflows:write");
  const [draft] = useState(() => loadDraft(draftKey));
  const [begun, setBegun] = useState(draft ?? first);
  const [written, setWritten] = useState(begun);
  const [restored, setRestored] = useState(draft !== undefined && draft !== first);
  const [checked, setChecked] = useState<Checked>();
  const [saving, setSaving] = useState<{ busy: boolean; error?: unknown; conflict?: Conflict }>({ busy: false });
  const editor = useRef<EditorHandle>(null);
  const schema = useQuery({ queryKey: ["workflow-schema"], queryFn: ({ signal }) => fetchJson<Schema>("/schemas/workflow.schema.json", { signal }), staleTime: Number.POSITIVE_INFINITY });
  const capabilities = useQuery({ queryKey: ["capabilities"], queryFn: ({ signal }) => bodyAs<{ [name: string]: Json }>(api.GET("/.well-known/openwop", { signal })), staleTime: Number.POSITIVE_INFINITY });
  const kinds = useMemo(() => texts(capabilities.data?.supportedEnvelopes), [capabilities.data]);
  const changed = written !== first;
  useEffect(() => {
    const stay = (event: BeforeUnloadEvent): void => {
      if (changed) event.preventDefault();
    };
    window.addEventListener("beforeunload", stay);
    return () => window.removeEventListener("beforeunload", stay);
  }, [changed]);
  const definition = useMemo(() => parsed(written), [written]);
  const differences = useMemo(() => (definition && base ? definitionChanges(base, definition) : []), [definition, base]);
  const current = checked?.text === written ? checked.findings : undefined;
  const errors = current?.filter((f) => f.severity === "error") ?? [];
  const wrong = !may ? "Your key cannot save workflows: it lacks the scope workflows:write." : current === undefined ? "The host checks the definition." : errors.length > 0 ? "Correct the problems first." : undefined;
  const savedId = text(definition?.id) ?? "";
  const version = text(definition?.version) ?? "";

  const put = async (): Promise<void> => {
    const answer = await body(api.POST("/v1/workflows", { body: written as never, bodySerializer: (sent: unknown) => sent as string }));
    keepDraft(draftKey, undefined);
    await client.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith("workflow") });
    announce(`Saved ${answer.workflowId}, version ${answer.version}`);
    navigate(workflowPath(answer.workflowId));
  };
  const save = async (anyway: boolean): Promise<void> => {
    if (wrong || saving.busy) return;
    setSaving({ busy: true });
    try {
      const conflict = anyway ? undefined : await conflictOf(savedId, opened, base !== undefined && savedId === text(base.id));
      if (conflict) setSaving({ busy: false, conflict });
      else await put();
    } catch (error) {
      setSaving({ busy: false, error });
    }
  };
  const change = (next: string): void => {
    setWritten(next);
    keepDraft(draftKey, next === first ? undefined : next);
    setSaving((s) => (s.error === undefined && !s.conflict ? s : { busy: s.busy }));
  };
  const discard = (): void => {
    keepDraft(draftKey, undefined);
    setRestored(false);
    setBegun(first);
    setWritten(first);
  };
  return (
    <>
      <nav aria-label="Breadcrumb" className="small crumbs">
        <Link href="/workflows">Workflows</Link>
        {base && text(base.id) && (
          <>
            {" "}
            / <Link href={workflowPath(text(base.id) ?? "")}>{<Name text={text(base.name) || (text(base.id) ?? "")} />}</Link>
          </>
        )}
      </nav>
      <div className="page-head">
        <h1>
          <Name text={title} />
        </h1>
      </div>
      {restored && (
        <p className="note small" role="status">
          Your unsaved changes were restored.{" "}
          <button type="button" onClick={discard}>
            Discard them
          </button>
        </p>
      )}
      <div className="edit">
        <Suspense fallback={<p className="loading">Loading the editor…</p>}>
          <Editor
            key={begun}
            text={begun}
            schema={schema.data}
            kinds={kinds}
            label="Definition, as JSON"
            check={check}
            onChange={change}
            onFindings={(t, findings) => setChecked({ text: t, findings })}
            handle={editor}
          />
        </Suspense>
        <div className="edit-side">
          <section className="card" aria-label="Save">
            <div className="field">
              <label htmlFor={`${id}v`}>Version</label>
              <input id={`${id}v`} value={version} disabled={definition === undefined} autoComplete="off" spellCheck={false} onChange={(e) => editor.current?.set("version", e.target.value)} />
              {taken.includes(version) && savedId === text(base?.id) && (
                <p className="wrong">
                  This version exists, and versions do not change.{" "}
                  <button type="button" onClick={() => editor.current?.set("version", nextVersion(version, taken))}>
                    Use {nextVersion(version, taken)}
                  </button>
                </p>
              )}
            </div>
            <p className="small dim">
              Saved as <code><Name text={savedId || "–"} /></code>. New runs use this version; runs that exist keep theirs.
            </p>
            {saving.conflict && <ConflictNote conflict={saving.conflict} onSave={() => void save(true)} />}
            {saving.error !== undefined && <ErrorNote error={saving.error} />}
            <div className="buttons">
              <button type="button" className="primary" disabled={wrong !== undefined || saving.busy} onClick={() => void save(false)}>
                {saving.busy ? "Saving…" : "Save"}
              </button>
              <Link href={base && opened !== undefined ? workflowPath(text(base.id) ?? "") : "/workflows"} className="button">
                Close
              </Link>
            </div>
            {wrong && <p className="small dim">{wrong}</p>}
          </section>
          <Problems findings={current} onChoose={(f) => editor.current?.goTo(f)} />
          {base && (
            <details className="card">
              <summary>
                {differences.length === 1 ? "1 change" : `${differences.length} changes`} since version <Name text={text(base.version) ?? ""} />
              </summary>
              <Changes list={differences} names={["old", "new"]} same="Nothing has changed." />
            </details>
          )}
          <p className="small dim">
            Ctrl-Space completes names and values. The host checks while you type. <a href={`${hostURL}/schemas/workflow.schema.json`}>The JSON Schema</a>
          </p>
        </div>
      </div>
    </>
  );
}

function parsed(written: string): Definition | undefined {
  try {
    const value = parseJson(written);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const finding =
  (severity: Finding["severity"]) =>
  ({ path, rule, message }: { path: string; rule: string; message: string }): Finding => ({ path, rule, message, severity });

/** What the host finds in a document. It registers nothing. */
async function check(written: string): Promise<Finding[]> {
  try {
    const found = await body(api.POST("/v1/workflows:validate", { body: written as never, bodySerializer: (sent: unknown) => sent as string }));
    return [...found.problems.map(finding("error")), ...found.warnings.map(finding("warning"))];
  } catch (error) {
    const problems = error instanceof ApiError && Array.isArray(error.details?.problems) ? error.details.problems.filter(isObject) : [];
    if (problems.length > 0) return problems.map((p): Finding => ({ path: text(p.path) ?? "", rule: text(p.rule) ?? "", message: text(p.message) ?? "", severity: "error" }));
    return [{ path: "", rule: error instanceof ApiError ? error.code : "", message: error instanceof Error ? error.message : String(error), severity: "error" }];
  }
}

function Problems({ findings, onChoose }: { findings: readonly Finding[] | undefined; onChoose: (finding: Finding) => void }): ReactNode {
  const count = findings?.length ?? 0;
  return (
    <section className="card" aria-label="Problems" aria-live="polite">
      <h2>
        {findings === undefined ? "Checking…" : count === 0 ? (
          <>
            <Icon name="check" /> No problems
          </>
        ) : count === 1 ? "1 problem" : `${count} problems`}
      </h2>
      {count > 0 && (
        <ol className="problems">
          {findings?.map((f) => (
            <li key={`${f.path} ${f.rule} ${f.message}`}>
              <button type="button" onClick={() => onChoose(f)}>
                <span className={f.severity === "error" ? "bad-text" : "ask-text"}>{f.severity}: </span>
                <Name text={f.message} />
                {f.path && (
                  <code>
                    <Name text={f.path} />
                  </code>
                )}
              </button>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

type Conflict = { workflowId: string; version: string; kind: "newer" | "exists" | "hides" };

/** Looks for what was registered since the editor was opened. */
async function conflictOf(workflowId: string, opened: string | undefined, same: boolean): Promise<Conflict | undefined> {
  let versions;
  try {
    versions = await loadVersions(workflowId);
  } catch (error) {
    if (isStatus(error, 404)) return undefined; // the first of its id
    throw error;
  }
  const current = versions.versions.find((v) => v.current);
  if (!current) return undefined;
  const conflict = (kind: Conflict["kind"]): Conflict => ({ workflowId, version: current.version, kind });
  if (versions.origin !== "tenant") return conflict("hides");
  if (!same || opened === undefined) return conflict("exists");
  return current.digest === opened ? undefined : conflict("newer");
}

function ConflictNote({ conflict: { workflowId, version, kind }, onSave }: { conflict: Conflict; onSave: () => void }): ReactNode {
  return (
    <div className="note ask" role="alert">
      <p>
        {kind === "newer" && `Version ${version} was saved by someone else after you opened the editor. Compare before you save: new runs would use yours.`}
        {kind === "exists" && `A workflow with the id ${workflowId} exists, at version ${version}. Give yours another id, or save it as a version of that one.`}
        {kind === "hides" && `The host shares a workflow with the id ${workflowId}. Yours would hide it from your tenant. Give yours another id, or save it anyway.`}
      </p>
      <div className="buttons">
        <button type="button" onClick={onSave}>
          Save anyway
        </button>
        <Link href={workflowPath(workflowId)} className="button">
          See {version}
        </Link>
      </div>
    </div>
  );
}
