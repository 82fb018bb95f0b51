import type { ReactNode } from "react";
import type { Json } from "../api/json";
import type { Change } from "./changes";
import { JsonView } from "./JsonView";
import { Name } from "./Text";

type Props = { list: readonly Change[]; /** What the two are called. */ names: readonly [a: string, b: string]; /** What is said where nothing differs. */ same: string };

/** Lists the paths at which two documents differ, with both values. */
export function Changes({ list, names: [a, b], same }: Props): ReactNode {
  if (list.length === 0) return <p className="dim">{same}</p>;
  return (
    <table className="changes">
      <thead>
        <tr>
          <th scope="col">path</th>
          <th scope="col">{a}</th>
          <th scope="col">{b}</th>
        </tr>
      </thead>
      <tbody>
        {list.map((c) => (
          <tr key={c.pointer}>
            <th scope="row">
              <code>
                <Name text={c.pointer || "/"} />
              </code>
            </th>
            <td>
              <Value value={c.a} />
            </td>
            <td>
              <Value value={c.b} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Value({ value }: { value: Json | undefined }): ReactNode {
  if (value === undefined) return <span className="dim">nothing</span>;
  return <JsonView value={value} open={1} />;
}
