import { useRef, useState, type FormEvent, type ReactNode } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { isTerminal, type RunRow } from "../../api/model";
import { useConfig, useMay } from "../../api/session";
import { hostURL } from "../../api/base";
import { useShortcuts } from "../../app/keys";
import { useTitle } from "../../ui/title";
import { Ago } from "../../ui/Ago";
import { CopyButton } from "../../ui/CopyButton";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { Id, shortId } from "../../ui/Id";
import { Live } from "../../live/Live";
import { Status } from "../../ui/Status";
import { clock, duration, useNow } from "../../ui/time";
import { BulkCancel } from "./BulkCancel";
import { count } from "./bulk";
import { choices, formatFilter, jump, parseFilter } from "./filter";
import { FilterHelp } from "./FilterHelp";
import { SavedFilters } from "./SavedFilters";
import { waitWords } from "../../ui/wait";
import { useRuns } from "./useRuns";
import { Name } from "../../ui/Text";
import { escapeHidden } from "../../ui/escape";
import "./runs.css";

export default function RunsPage(): ReactNode {
  useTitle("Runs");
  const [, navigate] = useLocation();
  const filter = new URLSearchParams(useSearch()).get("filter") ?? "";
  const runs = useRuns(filter);
  const list = useRef<HTMLTableSectionElement>(null);
  const search = useRef<HTMLInputElement>(null);
  useShortcuts([
    { keys: "/", does: "Search runs", run: () => search.current?.focus() },
    { keys: "j", does: "Next run", run: () => moveFocus(list.current, 1) },
    { keys: "k", does: "Previous run", run: () => moveFocus(list.current, -1) },
  ]);
  const setFilter = (text: string): void => navigate(filterURL(text));
  const selection = useSelection(runs.rows);
  const [cancelling, cancel] = useState<RunRow[]>();
  return (
    <div className="runs">
      <div className="page-head">
        <h1>Runs</h1>
        <Live state={runs.live} />
        <span className="grow" />
        <nav aria-label="More tools" className="more-tools small">
          <Link href="/diff">Compare runs…</Link>
          <Link href="/try">Try an answer…</Link>
          <Link href="/bundle">Open a file…</Link>
        </nav>
      </div>
      <FilterBar key={filter} filter={filter} onChange={setFilter} input={search} />
      {runs.error && (
        <>
          <ErrorNote error={runs.error} onRetry={runs.again} />
          {runs.rows.length > 0 && <p className="dim small">What follows is as of {clock(new Date(runs.asOf).toISOString()).slice(0, 8)}.</p>}
        </>
      )}
      {runs.rows.length > 0 && <SelectionBar selection={selection} rows={runs.rows} onCancel={cancel} />}
      {runs.rows.length > 0 && <RunTable rows={runs.rows} body={list} selection={selection} />}
      {cancelling && (
        <BulkCancel
          rows={cancelling}
          onClose={(done) => {
            cancel(undefined);
            if (done) selection.end();
          }}
        />
      )}
      {!runs.loading && !runs.error && runs.rows.length === 0 && (filter ? <NothingFits filter={filter} /> : <NothingYet />)}
      {runs.loading && <p className="loading">Loading runs…</p>}
      {runs.more && (
        <p className="more">
          <button type="button" onClick={runs.more} disabled={runs.loadingMore}>
            {runs.loadingMore ? "Loading…" : "Show older runs"}
          </button>
        </p>
      )}
    </div>
  );
}

function filterURL(filter: string): string {
  return filter ? `/?filter=${encodeURIComponent(filter)}` : "/";
}

type BarProps = { filter: string; onChange: (filter: string) => void; input: { current: HTMLInputElement | null } };

function FilterBar({ filter, onChange, input }: BarProps): ReactNode {
  const [, navigate] = useLocation();
  const [text, setText] = useState(filter);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const place = jump(text);
    if (place) navigate(place);
    else onChange(text.trim());
  };
  const { terms } = parseFilter(filter);
  return (
    <search className="filter">
      <form onSubmit={submit}>
        <input
          ref={input}
          type="search"
          aria-label="Filter runs, or go to an id"
          placeholder="status:failed workflow:triage since:2h, or an id"
          value={text}
          onChange={(event) => setText(event.target.value)}
          spellCheck={false}
          autoComplete="off"
        />
        <button type="submit">Filter</button>
      </form>
      <ul className="choices" aria-label="Quick filters">
        {choices.map((choice) => (
          <li key={choice.name}>
            <Link href={filterURL(choice.filter)} aria-current={choice.filter === filter ? "true" : undefined}>
              {choice.name}
            </Link>
          </li>
        ))}
      </ul>
      <SavedFilters filter={filter} url={filterURL} />
      <FilterHelp
        filter={filter}
        url={filterURL}
        onWord={(name) => {
          setText(`${text.trim()} ${name}:`.trimStart());
          input.current?.focus();
        }}
      />
      {terms.length > 0 && (
        <ul className="terms" aria-label="Conditions">
          {terms.map((t, i) => {
            const shown = `${t.name}: ${t.value}`;
            return (
              <li key={`${t.name}:${t.value}`}>
                <span>{shown}</span>
                <button type="button" className="quiet" aria-label={`Remove ${shown}`} onClick={() => onChange(formatFilter(terms.filter((_, j) => j !== i)))}>
                  <Icon name="cross" />
                </button>
              </li>
            );
          })}
        </ul>
      )}
    </search>
  );
}

type Selection = { on: boolean; has: (runId: string) => boolean; set: (rows: readonly RunRow[], on: boolean) => void; begin: () => void; end: () => void };

/** The selected rows. Only active runs can be selected. */
function useSelection(rows: readonly RunRow[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>();
  return {
    on: ids !== undefined,
    has: (runId) => ids?.has(runId) === true && rows.some((row) => row.runId === runId && !isTerminal(row.status)),
    set: (some, on) => {
      const next = new Set(ids);
      for (const { runId } of some) if (on) next.add(runId); else next.delete(runId);
      setIds(next);
    },
    begin: () => setIds(new Set()),
    end: () => setIds(undefined),
  };
}

function SelectionBar({ selection, rows, onCancel }: { selection: Selection; rows: RunRow[]; onCancel: (rows: RunRow[]) => void }): ReactNode {
  const may = useMay("runs:cancel");
  const open = rows.filter((row) => !isTerminal(row.status));
  const chosen = open.filter((row) => selection.has(row.runId));
  if (!selection.on) {
    return may && open.length > 0 ? (
      <p className="selecting">
        <button type="button" className="quiet" onClick={selection.begin}>
          Select runs…
        </button>
      </p>
    ) : null;
  }
  return (
    <p className="selecting">
      <button type="button" onClick={() => selection.set(open, chosen.length < open.length)}>
        {chosen.length < open.length ? `Select all ${open.length} active` : "Select none"}
      </button>
      <button type="button" className="danger" disabled={chosen.length === 0} onClick={() => onCancel(chosen)}>
        Cancel {count(chosen.length)}…
      </button>
      <button type="button" className="quiet" onClick={selection.end}>
        Done
      </button>
    </p>
  );
}

function RunTable({ rows, body, selection }: { rows: RunRow[]; body: { current: HTMLTableSectionElement | null }; selection: Selection }): ReactNode {
  return (
    <table>
      <caption className="unseen">Runs, newest first</caption>
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
          <th scope="col" className="num">
            Created
          </th>
          <th scope="col" className="num">
            Took
          </th>
        </tr>
      </thead>
      <tbody ref={body}>
        {rows.map((row) => (
          <tr key={row.runId}>
            {selection.on && (
              <td>
                {!isTerminal(row.status) && (
                  <input
                    type="checkbox"
                    aria-label={`Select ${escapeHidden(row.workflowId)} ${shortId(row.runId)}`}
                    checked={selection.has(row.runId)}
                    onChange={(event) => selection.set([row], event.target.checked)}
                  />
                )}
              </td>
            )}
            <td>
              <Status status={row.status} stalled={row.stalled} quarantined={row.quarantine !== undefined} />
            </td>
            <td className="run-cell">
              <Link href={`/runs/${row.runId}`} className="run-link">
                <Name text={row.workflowId} />
              </Link>
              <Id id={row.runId} what="the id of the run" />
            </td>
            <td className="known">
              {row.errorCode && <code className="bad-text"><Name text={row.errorCode} /></code>}
              {row.quarantine && <code className="bad-text"><Name text={row.quarantine.reason} /></code>}
              {row.waits && !row.quarantine && <span className="waits"><Name text={waitWords(row.waits)} /></span>}
              {row.tags.map((tag) => (
                <Link key={tag} href={filterURL(formatFilter([{ name: "tag", value: tag }]))} className="tag">
                  <Name text={tag} />
                </Link>
              ))}
            </td>
            <td className="num nowrap">
              <Ago at={row.createdAt} />
            </td>
            <td className="num nowrap">
              <Took row={row} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Took({ row }: { row: RunRow }): ReactNode {
  if (!row.startedAt) return "–";
  if (row.completedAt) return duration(Date.parse(row.completedAt) - Date.parse(row.startedAt));
  return isTerminal(row.status) ? "–" : <Growing since={row.startedAt} />;
}

function Growing({ since }: { since: string }): ReactNode {
  return `${duration(Math.max(0, useNow() - Date.parse(since)))}…`;
}

function moveFocus(body: HTMLElement | null, by: 1 | -1): void {
  const links = [...(body?.querySelectorAll<HTMLElement>(".run-link") ?? [])];
  const at = links.indexOf(document.activeElement as HTMLElement);
  (links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by))] as HTMLElement | undefined)?.focus();
}

function NothingFits({ filter }: { filter: string }): ReactNode {
  return (
    <div className="empty">
      <p>
        No runs match <code>{filter}</code>.
      </p>
      <Link href="/">Show all runs</Link>
    </div>
  );
}

function NothingYet(): ReactNode {
  const { mode } = useConfig();
  const key = mode === "dev" ? "dev-key" : "$WAYBILL_TOKEN";
  const command = `curl -s -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\\n  -d '{"workflowId":"triage","inputs":{"mail":"I was charged twice for order 1234, please refund me."}}' ${hostURL}/v1/runs`;
  return (
    <div className="empty">
      <p>Runs appear here, newest first. Start one with:</p>
      <div className="command">
        <pre>{command}</pre>
        <CopyButton text={command} what="the command" />
      </div>
    </div>
  );
}
