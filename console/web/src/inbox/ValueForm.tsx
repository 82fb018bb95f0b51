import { useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { parseJson, stringifyJson, type Json } from "../api/json";
import { Text } from "../ui/Text";
import { collect, entriesOf, placed, type Entries } from "../workflows/form";
import { SchemaFields, type FormState } from "../workflows/SchemaFields";
import { asForm, editSchema } from "./edit";
import { violations } from "./schema";

type Props = {
  name: string;
  /** The schema of the value, if there is one. */
  declared: unknown;
  /** The value has to satisfy the schema; otherwise the schema only gives the fields. */
  checks?: boolean;
  initial: Json | undefined;
  send: string;
  off: boolean;
  /** The host's validation errors by pointer, and where the value is in the answer. */
  places: Map<string, string>;
  root?: string;
  onSend: (value: Json) => void;
  children?: ReactNode;
};

/** Edits a value with a field for each of its parts, or as JSON. */
export function ValueForm({ name, declared, checks = true, initial, send, off, places, root = "", onSend, children }: Props): ReactNode {
  const id = useId();
  const [{ schema, wrapped }] = useState(() => asForm(editSchema(declared, initial), name));
  const wrap = (value: Json | undefined): Json | undefined => (wrapped && value !== undefined ? { [name]: value } : value);
  const [entries, setEntries] = useState<Entries>(() => entriesOf(schema, wrap(initial), ""));
  const [json, setJson] = useState<string>();
  const [wrong, setWrong] = useState<Map<string, string[]>>(new Map());
  const form = useRef<HTMLFormElement>(null);

  const collected = collect(schema, entries, "", "");
  const current = wrapped ? (collected.value as { [name: string]: Json } | undefined)?.[name] : collected.value;
  const atRoot = (pointer: string): string => (wrapped ? `/${name}${pointer}` : pointer);
  const refuse = (problems: { path: string; message: string }[]): void => {
    const at = json === undefined ? placed(problems.map((p) => ({ ...p, path: atRoot(p.path) })), collected) : new Map([["", problems.map((p) => `${p.path} ${p.message}`.trim())]]);
    setWrong(at);
    // The fields get their mark in the next frame.
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (off) return;
    let value = current;
    if (json !== undefined) {
      try {
        value = parseJson(json);
      } catch (error) {
        setWrong(new Map([["", [`This is not valid JSON: ${error instanceof Error ? error.message : String(error)}`]]]));
        return;
      }
    } else if (collected.wrong.size > 0) {
      setWrong(new Map([...collected.wrong].map(([path, why]) => [path, [why]])));
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
      return;
    }
    const found = checks ? violations(declared, JSON.parse(stringifyJson(value ?? null)) as unknown) : new Map<string, string>();
    if (found.size > 0) {
      refuse([...found].map(([path, message]) => ({ path, message })));
      return;
    }
    setWrong(new Map());
    onSend(value ?? null);
  };
  const toggle = (): void => {
    setWrong(new Map());
    if (json === undefined) {
      setJson(stringifyJson(current ?? null, 2));
      return;
    }
    try {
      setEntries(entriesOf(schema, wrap(parseJson(json)), ""));
      setJson(undefined);
    } catch (error) {
      setWrong(new Map([["", [`This is not valid JSON: ${error instanceof Error ? error.message : String(error)}`]]]));
    }
  };
  const ofHost = [...places].filter(([path]) => path.startsWith(root)).map(([path, message]) => ({ path: atRoot(path.slice(root.length)), message }));
  const shown = wrong.size > 0 || ofHost.length === 0 ? wrong : placed(ofHost, collected);
  const general = json === undefined ? shown.get("") : (wrong.get("") ?? ofHost.map((p) => `${p.path} ${p.message}`.trim()));
  const state: FormState = {
    id,
    entries,
    wrong: shown,
    disabled: off,
    change: (path, entry) => {
      setEntries({ ...entries, [path]: entry });
      setWrong(new Map([...wrong].filter(([at]) => at !== path)));
    },
    replace: (path, next) => setEntries({ ...Object.fromEntries(Object.entries(entries).filter(([at]) => at !== path && !at.startsWith(`${path}/`))), ...next }),
  };
  return (
    <form ref={form} noValidate className="value-form" aria-label={name} onSubmit={submit}>
      {json === undefined ? (
        <SchemaFields state={state} schema={schema} path="" />
      ) : (
        <div className="field">
          <label htmlFor={`${id}json`}>{name}, as JSON</label>
          <textarea id={`${id}json`} className="mono" rows={Math.min(24, json.split("\n").length + 2)} spellCheck={false} value={json} disabled={off} aria-invalid={general !== undefined && general.length > 0} onChange={(e) => setJson(e.target.value)} />
        </div>
      )}
      {general?.map((why) => (
        <p key={why} className="wrong" role="alert">
          <Text text={why} />
        </p>
      ))}
      <div className="decisions">
        <button type="submit" className="primary" disabled={off}>
          {send}
        </button>
        {children}
        <button type="button" className="quiet" disabled={off} onClick={toggle}>
          {json === undefined ? "Edit as JSON" : "Edit as a form"}
        </button>
      </div>
    </form>
  );
}
