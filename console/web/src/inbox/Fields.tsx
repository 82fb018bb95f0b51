import type { ReactNode } from "react";
import { Text } from "../ui/Text";
import { controlOf } from "./schema";
import { stringifyJson } from "../api/json";
import { lookup } from "../api/lookup";

/** The typed value of a field; undefined means empty. Numbers and JSON are kept as typed. */
export type Draft = string | boolean | string[] | undefined;

type Props = { id: string; label: string; hint?: string | undefined; schema: unknown; draft: Draft; wrong: string | undefined; disabled: boolean; onChange: (d: Draft) => void };

/** A labelled control for a schema. */
export function Field({ id, label, hint, schema, draft, wrong, disabled, onChange }: Props): ReactNode {
  const control = controlOf(schema);
  const described = [hint ? `${id}-hint` : "", wrong ? `${id}-wrong` : ""].filter(Boolean).join(" ");
  const aria = { "aria-invalid": wrong !== undefined, ...(described ? { "aria-describedby": described } : {}) };
  const notes = (
    <>
      {hint && (
        <p className="dim small field-hint" id={`${id}-hint`}>
          <Text text={hint} />
        </p>
      )}
      {wrong && (
        <p className="wrong" id={`${id}-wrong`}>
          {wrong}
        </p>
      )}
    </>
  );
  if (control.form === "yes-no" || control.form === "several" || (control.form === "choice" && control.options.length <= 4)) {
    const options = control.form === "yes-no" ? [true, false] : control.options;
    const several = control.form === "several";
    const chosen = Array.isArray(draft) ? draft : draft === undefined ? [] : [String(draft)];
    return (
      <fieldset className="field" {...aria} id={id} tabIndex={-1} disabled={disabled}>
        <legend>
          <Text text={label} />
        </legend>
        {options.map((o, i) => {
          const value = written(o);
          return (
            <label key={value} className="check">
              <input
                type={several ? "checkbox" : "radio"}
                name={id}
                value={value}
                id={`${id}-${i}`}
                checked={chosen.includes(value)}
                onChange={(e) => onChange(several ? (e.target.checked ? [...chosen, value] : chosen.filter((c) => c !== value)) : value)}
              />
              {control.form === "yes-no" ? (o ? "Yes" : "No") : String(o)}
            </label>
          );
        })}
        {notes}
      </fieldset>
    );
  }
  const text = typeof draft === "string" ? draft : "";
  return (
    <div className="field">
      <label htmlFor={id}>
        <Text text={label} />
      </label>
      {control.form === "choice" ? (
        <select id={id} value={text} disabled={disabled} {...aria} onChange={(e) => onChange(e.target.value === "" ? undefined : e.target.value)}>
          <option value="">Choose one</option>
          {control.options.map((o) => (
            <option key={written(o)} value={written(o)}>
              {String(o)}
            </option>
          ))}
        </select>
      ) : control.form === "number" ? (
        <input id={id} inputMode={control.whole ? "numeric" : "decimal"} value={text} disabled={disabled} autoComplete="off" {...aria} onChange={(e) => onChange(e.target.value)} />
      ) : control.form === "text" && control.format !== undefined && lookup(inputs, control.format) ? (
        <input id={id} type={lookup(inputs, control.format)} value={text} disabled={disabled} autoComplete="off" {...aria} onChange={(e) => onChange(e.target.value)} />
      ) : (
        <textarea
          id={id}
          rows={control.form === "json" ? 4 : 2}
          className={control.form === "json" ? "mono" : undefined}
          spellCheck={control.form !== "json"}
          value={text}
          disabled={disabled}
          {...aria}
          onChange={(e) => onChange(e.target.value)}
        />
      )}
      {control.form === "text" && control.maxLength !== undefined && (
        <p className="dim small">
          {[...text].length} of {control.maxLength} characters
        </p>
      )}
      {control.form === "json" && <p className="dim small">As JSON.</p>}
      {notes}
    </div>
  );
}

const inputs: Record<string, string> = { date: "date", email: "email", uri: "url", time: "time" };

const written = (o: unknown): string => (typeof o === "string" ? o : stringifyJson(o));

/** Converts a draft to its value; wrong has the validation error. */
export function valueOf(schema: unknown, draft: Draft): { value?: unknown; wrong?: string } {
  const control = controlOf(schema);
  switch (control.form) {
    case "yes-no":
      return draft === undefined ? { wrong: "answer yes or no" } : { value: String(draft) === "true" };
    case "choice": {
      const found = control.options.find((o) => written(o) === draft);
      return found === undefined ? { wrong: `choose one of ${control.options.map(String).join(", ")}` } : { value: found };
    }
    case "several": {
      const chosen = Array.isArray(draft) ? draft : [];
      return { value: control.options.filter((o) => chosen.includes(written(o))) };
    }
    case "number": {
      const t = String(draft ?? "").trim();
      if (t === "") return { wrong: "write a number" };
      const n = Number(t);
      if (!Number.isFinite(n)) return { wrong: "enter a number" };
      return control.whole && !Number.isInteger(n) ? { wrong: "enter a whole number" } : { value: n };
    }
    case "text":
      return draft === undefined || draft === "" ? { wrong: "enter an answer" } : { value: String(draft) };
    case "json":
      try {
        return { value: JSON.parse(String(draft ?? "")) as unknown };
      } catch {
        return { wrong: "enter valid JSON" };
      }
  }
}
