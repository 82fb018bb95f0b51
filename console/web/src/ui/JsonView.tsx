import { useState, type ReactNode } from "react";
import { ExactNumber, isObject, stringifyJson, type Json } from "../api/json";
import { Name, Text } from "./Text";

type Props = {
  value: Json;
  /** Number of levels that are initially open. */
  open?: number;
  /** JSON Pointer of the value to highlight. */
  mark?: string;
  /** Rendered after a value; receives its pointer. */
  after?: (pointer: string, value: Json) => ReactNode;
};

/** Shows a JSON value as a tree. Strings are plain text; numbers are shown as written. */
export function JsonView({ value, open = 3, mark, after }: Props): ReactNode {
  return (
    <div className="json">
      <Value value={value} pointer="" depth={0} open={open} {...(mark === undefined ? {} : { mark })} {...(after ? { after } : {})} />
    </div>
  );
}

type ValueProps = { value: Json; pointer: string; depth: number; open: number; name?: string; mark?: string; after?: Props["after"] };

function Value(props: ValueProps): ReactNode {
  const { value, pointer, name, mark, after } = props;
  const marked = mark === pointer;
  const label = name === undefined ? null : <span className="json-key"><Name text={name} /></span>;
  if (Array.isArray(value) || isObject(value)) return <Branch {...props} value={value} label={label} marked={marked} />;
  return (
    <div className={marked ? "json-row marked" : "json-row"}>
      {label}
      <Leaf value={value} />
      {after?.(pointer, value)}
    </div>
  );
}

function Branch(props: ValueProps & { value: Json[] | { [name: string]: Json }; label: ReactNode; marked: boolean }): ReactNode {
  const { value, pointer, depth, open, label, mark, after, marked } = props;
  const [shown, setShown] = useState(depth < open || (mark?.startsWith(`${pointer}/`) ?? false));
  const [limit, setLimit] = useState(100);
  const entries: [string, Json][] = Array.isArray(value) ? value.map((v, i) => [String(i), v]) : Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0) {
    return (
      <div className={marked ? "json-row marked" : "json-row"}>
        {label}
        <span className="json-punct">{Array.isArray(value) ? "[]" : "{}"}</span>
        {after?.(pointer, value)}
      </div>
    );
  }
  return (
    <div className={marked ? "json-branch marked" : "json-branch"}>
      <details open={shown} onToggle={(event) => setShown(event.currentTarget.open)}>
        <summary>
          {label}
          <span className="json-punct">{size}</span>
        </summary>
        {shown && (
          <div className="json-children">
            {entries.slice(0, limit).map(([key, child]) => (
              <Value
                key={key}
                value={child}
                name={key}
                pointer={`${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`}
                depth={depth + 1}
                open={open}
                {...(mark === undefined ? {} : { mark })}
                {...(after ? { after } : {})}
              />
            ))}
            {entries.length > limit && (
              <button type="button" className="quiet" onClick={() => setLimit(limit + 1000)}>
                {entries.length - limit} more
              </button>
            )}
          </div>
        )}
      </details>
      {after && <span className="json-after">{after(pointer, value)}</span>}
    </div>
  );
}

function Leaf({ value }: { value: null | boolean | number | string | ExactNumber }): ReactNode {
  if (typeof value === "string") return <span className="json-string">{<Text text={value} quoted />}</span>;
  if (value === null) return <span className="json-null">null</span>;
  if (typeof value === "boolean") return <span className="json-bool">{String(value)}</span>;
  return <span className="json-number">{value instanceof ExactNumber ? value.text : stringifyJson(value)}</span>;
}
