import { lazy, Suspense, useState, type ReactNode } from "react";
import { SurfaceView } from "../a2ui/SurfaceView";
import { isObject, stringifyJson, type Json } from "../api/json";
import type { Rendering } from "../ladder/model";
import { CopyButton } from "../ui/CopyButton";
import { JsonView } from "../ui/JsonView";
import { Name, Text } from "../ui/Text";
import { Media } from "./Media";

type View = "rendered" | "tree" | "raw";

/** Shows a payload: rendered by its kind or rendering hint, as a tree, and raw. */
export function Payload({ kind, payload, rendering }: { kind: string | undefined; payload: unknown; rendering?: Rendering | undefined }): ReactNode {
  const value = payload as Json;
  const shown = rendered(kind, value, rendering);
  const [view, setView] = useState<View>(shown === undefined ? "tree" : "rendered");
  const reasoning = isObject(value) && typeof value.reasoning === "string" && value.reasoning !== "" ? value.reasoning : undefined;
  const views: View[] = shown === undefined ? ["tree", "raw"] : ["rendered", "tree", "raw"];
  return (
    <>
      <fieldset className="payload-tabs">
        <legend className="unseen">Payload as</legend>
        {views.map((v) => (
          <button key={v} type="button" aria-pressed={v === view} onClick={() => setView(v)}>
            {v}
          </button>
        ))}
        <CopyButton text={() => stringifyJson(value, 2)} what="the payload" />
      </fieldset>
      {reasoning !== undefined && view !== "raw" && (
        <details className="reasoning">
          <summary>Reasoning: the model's own text, not used for routing</summary>
          <blockquote>
            <Text text={reasoning} />
          </blockquote>
        </details>
      )}
      {view === "rendered" && shown}
      {view === "tree" && <JsonView value={isObject(value) && reasoning !== undefined ? without(value, "reasoning") : value} open={6} />}
      {view === "raw" && (
        <pre className="payload-raw">
          <Text text={stringifyJson(value, 2)} />
        </pre>
      )}
    </>
  );
}

function without(value: { [name: string]: Json }, name: string): Json {
  const { [name]: _, ...rest } = value;
  return rest;
}

function rendered(kind: string | undefined, value: Json, hint: Rendering | undefined): ReactNode | undefined {
  switch (kind) {
    case "media.image":
    case "media.audio":
    case "media.file":
      return <Media form={kind.slice("media.".length) as "image" | "audio" | "file"} payload={value} rendering={hint} />;
    case "ui.a2ui-surface":
      return <SurfaceView payload={value} />;
    case "error":
      return <ModelError payload={value} />;
    case "clarification.request":
      return <Questions payload={value} />;
  }
  switch (hint?.display) {
    case "image":
    case "audio":
    case "file":
      return <Media form={hint.display} payload={value} rendering={hint} />;
    case "markdown":
    case "code":
    case "card":
      return <Written value={value} hint={hint} />;
  }
  return undefined;
}

/** An error reported by the model, which is not an error of the host. */
function ModelError({ payload }: { payload: Json }): ReactNode {
  const p = isObject(payload) ? payload : {};
  return (
    <div className="note idle">
      <p>
        <strong>The model reported an error.</strong> {typeof p.code === "string" && <code><Name text={p.code} /></code>}
      </p>
      {typeof p.message === "string" && (
        <p>
          <Text text={p.message} quoted />
        </p>
      )}
      {isObject(p.details) && <JsonView value={p.details} />}
    </div>
  );
}

function Questions({ payload }: { payload: Json }): ReactNode {
  const list = isObject(payload) && Array.isArray(payload.questions) ? payload.questions.filter(isObject) : [];
  return (
    <ol className="questions">
      {list.map((q) => (
        <li key={String(q.id)}>
          <Text text={String(q.question)} />
        </li>
      ))}
    </ol>
  );
}

const Markdown = lazy(() => import("./Markdown"));

// Longer texts are shown unformatted, because formatting them is slow.
const maxShown = 100_000;

const Prose = ({ text }: { text: string }): ReactNode => (
  <Suspense fallback={<Text text={text} />}>
    <Markdown text={text} />
  </Suspense>
);

/** A text rendered by its hint; markup in it stays text. */
function Written({ value, hint }: { value: Json; hint: Rendering }): ReactNode {
  const text = typeof value === "string" ? value : isObject(value) ? ([value.text, value.content, value.markdown, value.code].find((v) => typeof v === "string") as string | undefined) : undefined;
  return (
    <div className={hint.display === "card" ? "card" : undefined}>
      {hint.title && (
        <p>
          <strong>
            <Text text={hint.title} />
          </strong>
        </p>
      )}
      {hint.display === "code" && hint.lang && <p className="dim small">{hint.lang}</p>}
      {text === undefined ? <JsonView value={value} /> : hint.display === "code" ? <pre><Text text={text} /></pre> : hint.display === "markdown" && text.length <= maxShown ? <Prose text={text} /> : <Text text={text} />}
    </div>
  );
}
