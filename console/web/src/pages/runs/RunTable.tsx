import type { ReactNode } from "react";
import { Link } from "wouter";
import type { RunRow } from "../../api/model";
import { escapeHidden } from "../../ui/escape";
import { Id, shortId } from "../../ui/Id";
import { Code } from "../../ui/Code";
import { Status } from "../../ui/Status";
import { Name } from "../../ui/Text";
import { waitWords } from "../../ui/wait";
import { none, type Column } from "./columns";
import { formatFilter } from "./filter";
import { isNewestFirst, sortedBy, sorts, viewURL, type View } from "./query";
import type { Selection } from "./selection";

type Props = { rows: RunRow[]; view: View; columns: Column[]; body: { current: HTMLTableSectionElement | null }; selection: Selection };

/** The runs, one row each. */
export function RunTable({ rows, view, columns, body, selection }: Props): ReactNode {
  const name = sorts.find((s) => s.sort === view.sort)?.name ?? "";
  return (
    <table>
      <caption className="unseen">{isNewestFirst(view) ? "Runs, newest first" : `Runs, sorted by ${name}`}</caption>
      <thead>
        <tr>
          {selection.on && (
            <th scope="col">
              <span className="unseen">Selected</span>
            </th>
          )}
          <th scope="col">Status</th>
          <th scope="col">Run</th>
          <th scope="col" className="wide-only">
            Details
          </th>
          {columns.map((c) => (
            <SortHeading key={c.id} column={c} view={view} />
          ))}
        </tr>
      </thead>
      <tbody ref={body}>
        {rows.map((row) => (
          <tr key={row.runId}>
            {selection.on && (
              <td className="pick">
                <input
                  type="checkbox"
                  checked={selection.has(row.runId)}
                  aria-label={`Select ${escapeHidden(row.workflowId)} ${shortId(row.runId)}`}
                  onChange={(event) => selection.set([row], event.target.checked)}
                />
              </td>
            )}
            <td className="status-cell">
              <Status status={row.status} stalled={row.stalled} quarantined={row.quarantine !== undefined} />
            </td>
            <td className="run-cell">
              <Link href={`/runs/${row.runId}`} className="run-link">
                <Name text={row.workflowId} />
              </Link>
              <Id id={row.runId} what="the id of the run" />
            </td>
            <td className="known">
              <Details row={row} view={view} />
            </td>
            {columns.map((c) => (
              <Fact key={c.id} column={c} row={row} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Fact({ column, row }: { column: Column; row: RunRow }): ReactNode {
  const value = column.cell(row);
  return (
    <td className={`fact${column.num ? " num nowrap" : ""}${value === none ? " none" : ""}`} data-label={column.name}>
      {value}
    </td>
  );
}

function SortHeading({ column, view }: { column: Column; view: View }): ReactNode {
  const current = view.sort === column.sort;
  const direction = view.order === "asc" ? "ascending" : "descending";
  return (
    <th scope="col" className={column.num ? "num" : undefined} aria-sort={current ? direction : undefined}>
      <Link href={viewURL(sortedBy(view, column.sort))} className="sort">
        {column.name}
        <span aria-hidden="true" className="arrow">
          {current ? (view.order === "asc" ? "↑" : "↓") : ""}
        </span>
      </Link>
    </th>
  );
}

function Details({ row, view }: { row: RunRow; view: View }): ReactNode {
  return (
    <>
      {row.errorCode && (
        <code className="bad-text">
          <Code text={row.errorCode} />
        </code>
      )}
      {row.quarantine && (
        <code className="bad-text">
          <Code text={row.quarantine.reason} />
        </code>
      )}
      {row.waits && !row.quarantine && (
        <span className="waits">
          <Name text={waitWords(row.waits)} />
        </span>
      )}
      {row.tags.map((tag) => (
        <Link key={tag} href={viewURL({ ...view, filter: formatFilter([{ name: "tag", value: tag }]) })} className="tag" title={escapeHidden(tag)}>
          <Name text={tag} />
        </Link>
      ))}
      {row.inputPreview && (
        <span className="preview" title={escapeHidden(row.inputPreview)}>
          <Name text={row.inputPreview} />
        </span>
      )}
    </>
  );
}
