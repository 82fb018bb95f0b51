import type { ReactNode } from "react";

export type Column<Row> = { name: string; of: (row: Row) => ReactNode; num?: boolean };

type Props<Row> = { title: string; rows: readonly Row[]; id: (row: Row) => string; columns: readonly Column<Row>[]; none: string; children?: ReactNode };

/** A titled table. The first column names the row. */
export function Table<Row>({ title, rows, id, columns, none, children }: Props<Row>): ReactNode {
  return (
    <section className="dash-table">
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <p className="dim small">{none}</p>
      ) : (
        <div className="scroll" role="region" aria-label={title} tabIndex={0}>
          <table>
            <thead>
              <tr>
                {columns.map((c) => (
                  <th key={c.name} scope="col" className={c.num ? "num" : undefined}>
                    {c.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={id(row)}>
                  {columns.map((c, i) =>
                    i === 0 ? (
                      <th key={c.name} scope="row">
                        {c.of(row)}
                      </th>
                    ) : (
                      <td key={c.name} className={c.num ? "num" : undefined}>
                        {c.of(row)}
                      </td>
                    ),
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {children}
    </section>
  );
}

/** Figures in a row. */
export function Figures({ label, figures }: { label: string; figures: readonly (readonly [string, string])[] }): ReactNode {
  return (
    <dl className="figures" aria-label={label}>
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
