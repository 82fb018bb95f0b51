// Parses an A2UI surface of the closed catalogue 0.9.1 (OpenWOP envelope contract §3.5, §18). Documents that differ
// from the catalogue in any way are not rendered.

export const catalogVersion = "0.9.1";

/** Limits of one surface. */
export const maxComponents = 200;
export const maxBytes = 64 * 1024;

export type Target = "resume" | "exchange";

export interface Option {
  value: string;
  label: string;
}

export type Component =
  | { component: "heading"; text: string; level?: number }
  | { component: "text"; text: string }
  | { component: "field.text"; id: string; label: string; placeholder?: string; required?: boolean }
  | { component: "field.date"; id: string; label: string; required?: boolean }
  | { component: "field.select"; id: string; label: string; options: Option[]; required?: boolean }
  | { component: "field.checkbox"; id: string; label: string; default?: boolean }
  | { component: "action.button"; id: string; label: string; action: { target: Target } };

export type Field = Extract<Component, { component: `field.${string}` }>;

export interface Surface {
  title?: string;
  components: Component[];
}

export type Parsed = { surface: Surface } | { refused: string };

class Refused extends Error {}

const refuse = (where: string, why: string): never => {
  throw new Refused(`${where}: ${why}`);
};

type Check = (v: unknown, where: string) => void;

const isText: Check = (v, where) => {
  if (typeof v !== "string") refuse(where, "must be a string");
};
const isFlag: Check = (v, where) => {
  if (typeof v !== "boolean") refuse(where, "must be true or false");
};
const isID: Check = (v, where) => {
  isText(v, where);
  if (v === "") refuse(where, "must not be empty");
  // Some hosts store the button's name in this member of the answer; a field must not overwrite it.
  if (v === "action" || v === "__proto__") refuse(where, `no component may have the id "${String(v)}"`);
};
const isLevel: Check = (v, where) => {
  if (!Number.isInteger(v) || Number(v) < 1 || Number(v) > 6) refuse(where, "must be a level from 1 to 6");
};
const isOptions: Check = (v, where) => {
  if (!Array.isArray(v) || v.length === 0) return refuse(where, "must have at least one option");
  v.forEach((o, i) => closed(o, `${where}/${i}`, { value: isText, label: isText }, {}));
};
const isAction: Check = (v, where) =>
  closed(v, where, {
    target: (t, at) => {
      if (t !== "resume" && t !== "exchange") refuse(at, "must be resume or exchange");
    },
  }, {});

const catalogue: Record<Component["component"], [required: Record<string, Check>, optional: Record<string, Check>]> = {
  heading: [{ text: isText }, { level: isLevel }],
  text: [{ text: isText }, {}],
  "field.text": [{ id: isID, label: isText }, { placeholder: isText, required: isFlag }],
  "field.date": [{ id: isID, label: isText }, { required: isFlag }],
  "field.select": [{ id: isID, label: isText, options: isOptions }, { required: isFlag }],
  "field.checkbox": [{ id: isID, label: isText }, { default: isFlag }],
  "action.button": [{ id: isID, label: isText, action: isAction }, {}],
};

function members(v: unknown, where: string): Record<string, unknown> {
  if (typeof v !== "object" || v === null || Array.isArray(v)) return refuse(where || "/", "must be an object");
  return v as Record<string, unknown>;
}

/** Checks an object's required and optional members; others are rejected. */
function closed(v: unknown, where: string, required: Record<string, Check>, optional: Record<string, Check>): void {
  const m = members(v, where);
  for (const name of Object.keys(m)) {
    if (!Object.hasOwn(required, name) && !Object.hasOwn(optional, name)) refuse(`${where}/${name}`, "is not in the catalogue");
  }
  for (const [name, check] of Object.entries(required)) {
    if (!Object.hasOwn(m, name)) refuse(`${where}/${name}`, "is missing");
    check(m[name], `${where}/${name}`);
  }
  for (const [name, check] of Object.entries(optional)) {
    if (Object.hasOwn(m, name)) check(m[name], `${where}/${name}`);
  }
}

function isComponent(v: unknown, where: string): void {
  const m = members(v, where);
  const kind = m.component;
  if (typeof kind !== "string" || !Object.hasOwn(catalogue, kind)) {
    return refuse(`${where}/component`, `"${String(kind)}" is not in the catalogue`);
  }
  const [required, optional] = catalogue[kind as Component["component"]];
  closed(v, where, { component: isText, ...required }, optional);
}

const isComponents: Check = (v, where) => {
  if (!Array.isArray(v)) return refuse(where, "must be a list of components");
  if (v.length > maxComponents) return refuse(where, `${v.length} components, the limit is ${maxComponents}`);
  const ids = new Map<string, number>();
  v.forEach((c, i) => {
    isComponent(c, `${where}/${i}`);
    const id = (c as { id?: string }).id;
    if (id === undefined) return;
    const first = ids.get(id);
    if (first !== undefined) refuse(`${where}/${i}/id`, `component ${first} has the same id`);
    ids.set(id, i);
  });
};

/** Parses the payload of a ui.a2ui-surface envelope; errors contain the path. */
export function parseSurface(payload: unknown): Parsed {
  try {
    const bytes = new TextEncoder().encode(JSON.stringify(payload) ?? "").length;
    if (bytes > maxBytes) refuse("/", `${bytes} bytes, the limit is ${maxBytes}`);
    const version = members(payload, "").catalogVersion;
    if (version !== catalogVersion) refuse("/catalogVersion", `${JSON.stringify(version) ?? "missing"}, this console supports ${catalogVersion}`);
    closed(
      payload, "",
      { catalogVersion: isText, surface: (s, at) => closed(s, at, { components: isComponents }, { title: isText }) },
      { reasoning: (r, at) => r !== null && isText(r, at) },
    );
    return { surface: (payload as { surface: Surface }).surface };
  } catch (e) {
    if (e instanceof Refused) return { refused: e.message };
    throw e;
  }
}

export const isField = (c: Component): c is Field => c.component.startsWith("field.");

export type Values = Record<string, string | boolean>;

/** Returns the initial values of a surface, in a map without a prototype. */
export function initialValues(s: Surface): Values {
  const values = Object.create(null) as Values;
  for (const c of s.components) {
    if (isField(c)) values[c.id] = c.component === "field.checkbox" ? (c.default ?? false) : "";
  }
  return values;
}

/** Validates the values; returns messages by field id. */
export function checkValues(s: Surface, values: Values): Map<string, string> {
  const wrong = new Map<string, string>();
  for (const c of s.components) {
    if (!isField(c) || c.component === "field.checkbox") continue;
    const v = values[c.id];
    if (c.required && (v === "" || v === undefined)) wrong.set(c.id, `${c.label}: this is required`);
    else if (c.component === "field.select" && v && !c.options.some((o) => o.value === v)) wrong.set(c.id, `${c.label}: choose one of the options`);
    else if (c.component === "field.date" && typeof v === "string" && v !== "" && !/^\d{4}-\d{2}-\d{2}$/.test(v)) wrong.set(c.id, `${c.label}: enter a date such as 2026-01-31`);
  }
  return wrong;
}

/** Returns the values to send by field id, without empty ones. */
export function answerOf(s: Surface, values: Values): Values {
  const out = Object.create(null) as Values;
  for (const c of s.components) {
    if (!isField(c)) continue;
    const v = values[c.id];
    if (v !== undefined && v !== "") out[c.id] = v;
  }
  return out;
}
