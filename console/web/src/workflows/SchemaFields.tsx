import type { ReactNode } from "react";
import { Field, type Draft } from "../inbox/Fields";
import { controlOf } from "../inbox/schema";
import { number, text } from "../ladder/events";
import type { Json } from "../api/json";
import { escapeHidden } from "../ui/escape";
import { Icon } from "../ui/Icon";
import { childPath, entriesOf, newItem, shapeOf, shown, type Entries, type Schema } from "./form";

export type FormState = {
  id: string;
  entries: Entries;
  wrong: ReadonlyMap<string, readonly string[]>;
  disabled: boolean;
  change: (path: string, entry: Entries[string]) => void;
  /** Replaces everything below a path. */
  replace: (path: string, entries: Entries) => void;
  /** A note below a field, such as why it is empty. */
  notes?: ReadonlyMap<string, string>;
  secret?: ReadonlySet<string>;
};

type Props = { state: FormState; schema: Schema; path: string; name: string; required: boolean; depth?: number };

/** The fields of an object: one control for each value, and a group for each object and list. */
export function SchemaFields({ state, schema, path, depth = 0 }: Omit<Props, "name" | "required">): ReactNode {
  const shape = shapeOf(schema, depth);
  if (shape.form !== "object") return null;
  return shape.fields.map((f) => <SchemaField key={f.name} state={state} schema={f.schema} path={childPath(path, f.name)} name={f.name} required={f.required} depth={depth + 1} />);
}

function SchemaField(props: Props): ReactNode {
  const { state, schema, path, name, required, depth = 0 } = props;
  const shape = shapeOf(schema, depth);
  if (shape.form === "leaf") return <Leaf {...props} />;
  const label = labelOf(schema, name, required);
  const wrong = state.wrong.get(path);
  return (
    <fieldset aria-invalid={wrong !== undefined} disabled={state.disabled}>
      <legend>{escapeHidden(label)}</legend>
      {text(schema.description) && <p className="dim small">{escapeHidden(text(schema.description) ?? "")}</p>}
      {shape.form === "object" ? <SchemaFields state={state} schema={schema} path={path} depth={depth} /> : <List {...props} item={shape.item} />}
      <Examples state={state} schema={schema} path={path} depth={depth} />
      {wrong?.map((w) => (
        <p key={w} className="wrong">
          {escapeHidden(w)}
        </p>
      ))}
    </fieldset>
  );
}

function List({ state, path, name, item, depth = 0 }: Props & { item: Schema }): ReactNode {
  const keys = state.entries[path];
  const items = Array.isArray(keys) ? keys : [];
  return (
    <>
      {items.map((key, i) => (
        <div key={key} className="array-item">
          <SchemaField state={state} schema={item} path={childPath(path, key)} name={`${name} ${i + 1}`} required depth={depth + 1} />
          <button
            type="button"
            className="quiet"
            aria-label={`Remove ${name} ${i + 1}`}
            onClick={() => {
              state.replace(childPath(path, key), {});
              state.change(path, items.filter((k) => k !== key));
            }}
          >
            <Icon name="cross" />
          </button>
        </div>
      ))}
      <div>
        <button type="button" onClick={() => state.change(path, [...items, newItem()])}>
          <Icon name="plus" /> Add
        </button>
      </div>
    </>
  );
}

function Leaf({ state, schema, path, name, required, depth = 0 }: Props): ReactNode {
  const id = `${state.id}${path}`;
  const entry = state.entries[path];
  const { form } = controlOf(schema);
  const note = state.notes?.get(path);
  const wrong = state.wrong.get(path);
  const hint = [text(schema.description), limits(schema), note].filter(Boolean).join(" · ");
  if (state.secret?.has(path) && form === "text") {
    return <SecretField id={id} label={labelOf(schema, name, required)} hint={hint} state={state} path={path} />;
  }
  const removable = !required && entry !== undefined && (form === "yes-no" || form === "choice");
  return (
    <div>
      <Field
        id={id}
        label={labelOf(schema, name, required)}
        hint={hint || undefined}
        schema={schema}
        draft={entry as Draft}
        wrong={wrong && escapeHidden(wrong.join("; "))}
        disabled={state.disabled}
        onChange={(d) => state.change(path, typeof d === "boolean" ? String(d) : d)}
      />
      {removable && (
        <button type="button" className="quiet small" onClick={() => state.change(path, undefined)}>
          Clear {escapeHidden(name)}
        </button>
      )}
      <Examples state={state} schema={schema} path={path} depth={depth} />
    </div>
  );
}

/** A value that is masked in the log is not shown while it is typed. */
function SecretField({ id, label, hint, state, path }: { id: string; label: string; hint: string; state: FormState; path: string }): ReactNode {
  const entry = state.entries[path];
  const wrong = state.wrong.get(path);
  return (
    <div className="field">
      <label htmlFor={id}>{escapeHidden(label)}</label>
      <input
        id={id}
        type="password"
        autoComplete="off"
        value={typeof entry === "string" ? entry : ""}
        disabled={state.disabled}
        aria-invalid={wrong !== undefined}
        aria-describedby={`${id}-hint${wrong ? ` ${id}-wrong` : ""}`}
        onChange={(e) => state.change(path, e.target.value)}
      />
      <p className="dim small field-hint" id={`${id}-hint`}>
        {escapeHidden([hint, "Masked in the log."].filter(Boolean).join(" · "))}
      </p>
      {wrong && (
        <p className="wrong" id={`${id}-wrong`}>
          {escapeHidden(wrong.join("; "))}
        </p>
      )}
    </div>
  );
}

const shortExample = 60;

function Examples({ state, schema, path, depth }: { state: FormState; schema: Schema; path: string; depth: number }): ReactNode {
  const examples = Array.isArray(schema.examples) ? (schema.examples as Json[]).slice(0, 5) : [];
  if (examples.length === 0) return null;
  return (
    <p className="field-examples small dim">
      Example{examples.length > 1 && "s"}:
      {examples.map((e, i) => {
        const all = shown(e);
        return (
          // Two examples may be equal, and they never change.
          // oxlint-disable-next-line react/no-array-index-key
          <button key={i} type="button" className="quiet" disabled={state.disabled} title={escapeHidden(all)} onClick={() => state.replace(path, entriesOf(schema, e, path, depth))}>
            {escapeHidden(all.length > shortExample ? `${all.slice(0, shortExample)}…` : all)}
          </button>
        );
      })}
    </p>
  );
}

function labelOf(schema: Schema, name: string, required: boolean): string {
  const title = text(schema.title);
  const label = title === undefined ? name : title.toLowerCase() === name.toLowerCase() ? title : `${title} (${name})`;
  return `${label}${required ? "" : ", optional"}`;
}

/** The limits of a value, in words. */
function limits(schema: Schema): string {
  const out: string[] = [];
  const least = number(schema.minimum);
  const most = number(schema.maximum);
  if (least !== undefined && most !== undefined) out.push(`from ${least} to ${most}`);
  else if (least !== undefined) out.push(`at least ${least}`);
  else if (most !== undefined) out.push(`at most ${most}`);
  if (text(schema.pattern)) out.push(`must match ${text(schema.pattern)}`);
  return out.join(", ");
}
