import { useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { useMay } from "../../api/session";
import { useShortcuts } from "../../app/keys";
import { useTitle } from "../../ui/title";
import { Empty } from "../../ui/Empty";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { Live } from "../../live/Live";
import { clock, dateTime } from "../../ui/time";
import { ColumnChoice, standard, useColumns } from "./columns";
import { DateRange } from "./DateRange";
import { asFilter, formatFilter, jump, parseFilter } from "./filter";
import { FilterHelp } from "./FilterHelp";
import { firstOrder, isNewestFirst, readView, sorts, viewURL, type Sort, type View } from "./query";
import { RunTable } from "./RunTable";
import { SavedViews } from "./SavedViews";
import { useSelection } from "./selection";
import { SelectionBar } from "./SelectionBar";
import { StatusTabs, useCounts } from "./StatusTabs";
import { useRuns } from "./useRuns";
import { findView, nameOf, useViews } from "./views";
import "./runs.css";

export default function RunsPage(): ReactNode {
  useTitle("Runs");
  const [, navigate] = useLocation();
  const view = readView(useSearch());
  const mayStart = useMay("runs:create");
  const { filter } = view;
  const runs = useRuns(view);
  const counts = useCounts(filter, runs.changes);
  const views = useViews(!runs.loading);
  const current = findView(views, view.saved);
  const shown = useColumns(view.sort, current && { name: nameOf(current), columns: current.columns });
  const plain = filter === "" && isNewestFirst(view) && shown.ids.toSorted().join() === standard.toSorted().join();
  const list = useRef<HTMLTableSectionElement>(null);
  const search = useRef<HTMLInputElement>(null);
  useShortcuts([
    { keys: "/", does: "Search runs", run: () => search.current?.focus() },
    { keys: "j", does: "Next run", run: () => moveFocus(list.current, 1) },
    { keys: "k", does: "Previous run", run: () => moveFocus(list.current, -1) },
  ]);
  const setFilter = (text: string): void => navigate(viewURL({ ...view, filter: text }));
  const selection = useSelection(runs.rows);
  const status = parseFilter(filter).terms.find((t) => t.name === "status")?.value;
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
        {mayStart && (
          <Link href="/workflows" className="button primary">
            <Icon name="play" /> Start a run
          </Link>
        )}
      </div>
      <FilterBar key={filter} view={view} onChange={setFilter} input={search}>
        <SavedViews views={views} current={current} shown={view} columns={shown.ids} plain={plain} />
      </FilterBar>
      <StatusTabs view={view} counts={counts} />
      <div className="list-tools">
        <DateRange key={filter} filter={filter} onChange={setFilter} />
        <SortChoice view={view} onChange={(next) => navigate(viewURL(next))} />
        <ColumnChoice shown={shown} />
        {runs.rows.length > 0 && <SelectionBar selection={selection} rows={runs.rows} filter={filter} status={status} counts={counts} />}
      </div>
      {runs.error && (
        <>
          <ErrorNote error={runs.error} onRetry={runs.again} />
          {runs.rows.length > 0 && <p className="dim small">What follows is as of {clock(new Date(runs.asOf).toISOString()).slice(0, 8)}.</p>}
        </>
      )}
      {runs.rows.length > 0 && <RunTable rows={runs.rows} view={view} columns={shown.columns} body={list} selection={selection} />}
      {!runs.loading && !runs.error && runs.rows.length === 0 && (filter ? <NothingFits view={view} /> : <NothingYet />)}
      {runs.loading && <p className="loading">Loading runs…</p>}
      {runs.more && (
        <p className="more">
          <button type="button" onClick={runs.more} disabled={runs.loadingMore}>
            {runs.loadingMore ? "Loading…" : isNewestFirst(view) ? "Show older runs" : "Show more runs"}
          </button>
        </p>
      )}
    </div>
  );
}

type SortProps = { view: View; onChange: (view: View) => void };

/** Selects the order where the headings of the columns are not shown. */
function SortChoice({ view, onChange }: SortProps): ReactNode {
  const id = useId();
  return (
    <div className="sort-choice">
      <label htmlFor={id}>Sort by</label>
      <select id={id} value={view.sort} onChange={({ target }) => onChange({ ...view, sort: target.value as Sort, order: firstOrder(target.value as Sort) })}>
        {sorts.map((s) => (
          <option key={s.sort} value={s.sort}>
            {s.name}
          </option>
        ))}
      </select>
      <button type="button" onClick={() => onChange({ ...view, order: view.order === "asc" ? "desc" : "asc" })}>
        {view.order === "asc" ? "Ascending" : "Descending"}
      </button>
    </div>
  );
}

type BarProps = { view: View; onChange: (filter: string) => void; input: { current: HTMLInputElement | null }; children: ReactNode };

function FilterBar({ view, onChange, input, children }: BarProps): ReactNode {
  const { filter } = view;
  const url = (text: string): string => viewURL({ ...view, filter: text });
  const [, navigate] = useLocation();
  const [text, setText] = useState(filter);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const place = jump(text);
    if (place) navigate(place);
    else onChange(asFilter(text));
  };
  const { terms } = parseFilter(filter);
  return (
    <search className="filter">
      <form onSubmit={submit}>
        <input
          ref={input}
          type="search"
          aria-label="Filter runs, or go to an id"
          placeholder="status:failed since:2h, or an id"
          value={text}
          onChange={(event) => setText(event.target.value)}
          spellCheck={false}
          autoComplete="off"
        />
        <button type="submit">Filter</button>
      </form>
      {children}
      <FilterHelp
        filter={filter}
        url={url}
        onWord={(name) => {
          setText(`${text.trim()} ${name}:`.trimStart());
          input.current?.focus();
        }}
      />
      {terms.length > 0 && (
        <ul className="terms" aria-label="Conditions">
          {terms.map((t, i) => {
            const shown = `${t.name}: ${termWords(t.value)}`;
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

function moveFocus(body: HTMLElement | null, by: 1 | -1): void {
  const links = [...(body?.querySelectorAll<HTMLElement>(".run-link") ?? [])];
  const at = links.indexOf(document.activeElement as HTMLElement);
  (links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by))] as HTMLElement | undefined)?.focus();
}

function NothingFits({ view }: { view: View }): ReactNode {
  const { terms } = parseFilter(view.filter);
  const wider = terms.slice(0, -1);
  return (
    <Empty icon="list">
      <p>
        No runs match <code>{view.filter}</code>.
      </p>
      <p className="empty-ways">
        {wider.length > 0 && <Link href={viewURL({ ...view, filter: formatFilter(wider) })}>Remove the last condition</Link>}
        <Link href="/">Show all runs</Link>
      </p>
    </Empty>
  );
}

/** A time of a range is shown as a local one. */
const termWords = (value: string): string => (/^\d{4}-\d\d-\d\dT/.test(value) ? dateTime(value) : value);

function NothingYet(): ReactNode {
  const mayStart = useMay("runs:create");
  return (
    <Empty icon="play">
      <p>There are no runs yet. New runs appear here, newest first.</p>
      {mayStart && (
        <Link href="/workflows" className="button primary">
          Start a workflow
        </Link>
      )}
    </Empty>
  );
}
