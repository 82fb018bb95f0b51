import { useId, useRef, useState, type ReactNode } from "react";
import { stringifyJson, type Json } from "../api/json";
import { JsonView } from "../ui/JsonView";
import { Name, Text } from "../ui/Text";
import { escapeHidden } from "../ui/escape";
import { answerOf, checkValues, initialValues, isField, parseSurface, type Component, type Field, type Surface, type Values } from "./parse";
import "./surface.css";
import "../styles/form.css";

/** The origin of a surface. */
export interface Provenance {
  /** The log shows that a model wrote it; otherwise its workflow may have. */
  written?: boolean | undefined;
  nodeId?: string | undefined;
  model?: string | undefined;
  trust?: string | undefined;
}

type Props = {
  payload: unknown;
  provenance?: Provenance;
  /** The surface's title is already shown above it. */
  titled?: boolean;
  /** A partial surface has no actions. */
  partial?: boolean;
  /** Why the form cannot be sent; undefined means it can. */
  blocked?: string | undefined;
  /** A request is in progress. */
  busy?: boolean;
  onResume?: (values: Values) => void;
};

/**
 * A form or card of the closed catalogue, written by a model. It is data: nothing is executed or fetched, and its
 * buttons only call onResume (OpenWOP envelope contract §18).
 */
export function SurfaceForm(props: Props): ReactNode {
  const parsed = parseSurface(props.payload);
  if ("refused" in parsed) return <Unshown reason={parsed.refused} payload={props.payload} />;
  return <Shown {...props} surface={parsed.surface} />;
}

function Unshown({ reason, payload }: { reason: string; payload: unknown }): ReactNode {
  return (
    <div className="note ask">
      <p>
        <strong>This form is not shown.</strong> It does not match the form catalogue of this console: <code>{reason}</code>
      </p>
      <details>
        <summary>Its JSON</summary>
        <JsonView value={payload as Json} />
      </details>
    </div>
  );
}

function Shown({ surface, provenance, titled, partial, blocked, busy, onResume }: Props & { surface: Surface }): ReactNode {
  const [typed, setTyped] = useState<Values>(() => initialValues(surface));
  const [wrong, setWrong] = useState<Map<string, string>>(new Map());
  const form = useRef<HTMLFormElement>(null);
  const prefix = useId();
  // Typed values survive an update of the surface; new fields start with their defaults.
  const values: Values = Object.assign(initialValues(surface), pick(surface, typed));
  const reason = partial ? "The form is still being written." : blocked;
  const submit = (): void => {
    const found = checkValues(surface, values);
    setWrong(found);
    const [first] = found.keys();
    if (first !== undefined) form.current?.querySelector<HTMLElement>(`#${CSS.escape(prefix + first)}`)?.focus();
    else onResume?.(answerOf(surface, values));
  };
  const levels = headingLevels(titled ? { ...surface, title: "" } : surface);
  return (
    <div className="surface">
      <p className="surface-frame">
        <span>{provenance?.written === false ? "Written for this run, by its workflow or a model" : "Written by the model"}</span>
        {provenance?.nodeId && <span> · node <Name text={provenance.nodeId} /></span>}
        {provenance?.model && <span> · <Name text={provenance.model} /></span>}
        {provenance?.trust && <span> · {provenance.trust}</span>}
      </p>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault(); // Enter does not submit; only a button does
        }}
      >
        {surface.title && !titled && (
          <h3 className="surface-title">
            <Text text={surface.title} />
          </h3>
        )}
        {surface.components.map((c, i) => (
            <Part
              // Texts have no ids, so their index is the key.
              key={"id" in c ? `id ${c.id}` : `at ${i}`}
              part={c}
              level={levels[i] ?? 3}
              id={"id" in c ? prefix + c.id : prefix}
              value={isField(c) ? values[c.id] : undefined}
              wrong={isField(c) ? wrong.get(c.id) : undefined}
              reason={reason}
              busy={busy ?? false}
              inert={!onResume}
              onChange={(v) => {
                if (!isField(c)) return;
                setTyped({ ...typed, [c.id]: v });
                if (wrong.has(c.id)) setWrong(new Map([...wrong].filter(([id]) => id !== c.id)));
              }}
              onPress={submit}
            />
        ))}
      </form>
      {reason && onResume && <p className="dim small surface-reason">{reason}</p>}
      {onResume && surface.components.some(isField) && (
        <details className="small">
          <summary>Preview answer</summary>
          <pre>{stringifyJson({ resumeValue: answerOf(surface, values) }, 2)}</pre>
        </details>
      )}
    </div>
  );
}

/** Returns the level of each heading: below the frame's heading, and at most one below the previous heading. */
export function headingLevels(s: Surface): number[] {
  const out: number[] = [];
  let last = s.title ? 3 : 2;
  for (const c of s.components) {
    if (c.component === "heading") last = Math.min(last + 1, 6, (s.title ? 3 : 2) + (c.level ?? 1));
    out.push(last);
  }
  return out;
}

function pick(s: Surface, typed: Values): Values {
  const out = Object.create(null) as Values;
  for (const c of s.components) {
    const v = isField(c) ? typed[c.id] : undefined;
    if (v !== undefined && isField(c) && (typeof v === "boolean") === (c.component === "field.checkbox")) out[c.id] = v;
  }
  return out;
}

type PartProps = {
  part: Component;
  level: number;
  id: string;
  value: string | boolean | undefined;
  wrong: string | undefined;
  reason: string | undefined;
  busy: boolean;
  inert: boolean;
  onChange: (v: string | boolean) => void;
  onPress: () => void;
};

function Part({ part: c, level, reason, busy, inert, onPress, ...field }: PartProps): ReactNode {
  switch (c.component) {
    case "heading": {
      const Heading = `h${level}` as "h3";
      return (
        <Heading>
          <Text text={c.text} />
        </Heading>
      );
    }
    case "text":
      return (
        <p>
          <Text text={c.text} />
        </p>
      );
    case "action.button": {
      const blocked = c.action.target === "exchange" ? "This host does not support conversations." : reason;
      return (
        <button type="button" className={c.action.target === "resume" ? "primary" : undefined} disabled={inert || busy || blocked !== undefined} title={blocked} onClick={onPress}>
          <Name text={c.label} />
        </button>
      );
    }
    default:
      return <Input field={c} {...field} inert={inert} />;
  }
}

function Input({ field: c, id, value, wrong, inert, onChange }: { field: Field } & Pick<PartProps, "id" | "value" | "wrong" | "inert" | "onChange">): ReactNode {
  const hint = `${id}-wrong`;
  const required = "required" in c && c.required === true;
  const common = { id, disabled: inert, "aria-invalid": wrong !== undefined, ...(wrong === undefined ? {} : { "aria-describedby": hint }) };
  if (c.component === "field.checkbox") {
    return (
      <p className="check">
        <input type="checkbox" {...common} checked={value === true} onChange={(e) => onChange(e.target.checked)} />
        <label htmlFor={id}>
          <Name text={c.label} />
        </label>
      </p>
    );
  }
  const text = typeof value === "string" ? value : "";
  return (
    <div className="surface-field">
      <label htmlFor={id}>
          <Name text={c.label} />
        </label>
      {required && (
        <span className="dim small" aria-hidden="true">
          {" "}
          required
        </span>
      )}
      {c.component === "field.select" ? (
        <select {...common} value={text} required={required} onChange={(e) => onChange(e.target.value)}>
          <option value="">{required ? "Choose one" : "No choice"}</option>
          {c.options.map((o) => (
            <option key={o.value} value={o.value}>
              {escapeHidden(o.label)}
            </option>
          ))}
        </select>
      ) : (
        <input
          {...common}
          type={c.component === "field.date" ? "date" : "text"}
          value={text}
          required={required}
          autoComplete="off"
          {...(c.component === "field.text" && c.placeholder ? { placeholder: escapeHidden(c.placeholder) } : {})}
          onChange={(e) => onChange(e.target.value)}
        />
      )}
      {wrong && (
        <p className="wrong" id={hint}>
          {wrong}
        </p>
      )}
    </div>
  );
}
