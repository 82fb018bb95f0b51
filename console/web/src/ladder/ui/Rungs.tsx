import type { ReactNode } from "react";
import { asks, type Rung } from "../model";
import { Cell, cellClass } from "./Ladder";

/** The gates of a single document. */
export function Rungs({ rungs, name }: { rungs: Rung[]; name: string }): ReactNode {
  return (
    <table className="ladder wide">
      <caption className="unseen">Gates from shape to routing</caption>
      <thead>
        <tr>
          <th scope="col" className="gate-col">
            <span className="unseen">Gate</span>
          </th>
          <th scope="col">{name}</th>
        </tr>
      </thead>
      <tbody>
        {rungs.map((rung, i) => (
          <tr key={rung.gate}>
            <th scope="row">
              <span className="gate-number" aria-hidden="true">
                {i + 1}
              </span>
              <span className="gate-name">{rung.gate}</span>
              <span className="gate-asks">{asks[rung.gate]}</span>
            </th>
            <td className={cellClass(rung, true)}>
              <Cell rung={rung} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
