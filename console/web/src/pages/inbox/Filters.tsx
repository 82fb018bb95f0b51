import { useId, useState, type ReactNode } from "react";
import { choices, conditions, dues, forMe, forOthers, mine, sorts, unassigned, type Filter } from "../../inbox/filter";
import type { Item } from "../../inbox/host";
import { escapeHidden } from "../../ui/escape";

type Props = { items: Item[]; filter: Filter; change: (filter: Filter) => void };

/** The filter of the inbox. On a phone, all but the search is behind a button. */
export function Filters({ items, filter, change }: Props): ReactNode {
  const id = useId();
  const [shown, show] = useState(false);
  const all = choices(items);
  const set = (name: keyof Filter) => (value: string) => change({ ...filter, [name]: value });
  const count = conditions({ ...filter, text: "" });
  return (
    <div className="inbox-filters" role="search" aria-label="Questions">
      <input type="search" aria-label="Search questions" placeholder="Search questions" value={filter.text} onChange={(e) => set("text")(e.target.value)} />
      <button type="button" className="filters-toggle" aria-expanded={shown} aria-controls={id} onClick={() => show(!shown)}>
        Filters{count > 0 && ` (${count})`}
      </button>
      <div id={id} className={shown ? "filter-choices shown" : "filter-choices"}>
        <Choice name="Workflow" value={filter.workflow} options={[["", "All workflows"], ...all.workflows.map(same)]} onChange={set("workflow")} />
        <Choice name="Kind" value={filter.kind} options={[["", "All kinds"], ...all.kinds.map(same)]} onChange={set("kind")} />
        <Choice name="Assignee" value={filter.assignee} options={[["", "Any assignee"], [mine, "Assigned to me"], [unassigned, "Unassigned"], ...all.assignees.map((a): Option => [a, `Assigned to ${a}`])]} onChange={set("assignee")} />
        <Choice name="Who may answer" value={filter.who} options={[["", "For anyone"], [forMe, "For me"], [forOthers, "For others"], ...all.approvers.map((a): Option => [a, `For ${a}`])]} onChange={set("who")} />
        <Choice name="Due" value={filter.due} options={Object.entries(dues)} onChange={set("due")} />
        <Choice name="Order" value={filter.sort} options={Object.entries(sorts)} onChange={set("sort")} />
      </div>
      {count + (filter.text ? 1 : 0) > 0 && (
        <button type="button" className="quiet" onClick={() => change({ text: "", workflow: "", kind: "", who: "", assignee: "", due: "", sort: filter.sort })}>
          Clear filters
        </button>
      )}
    </div>
  );
}

type Option = [value: string, label: string];

const same = (value: string): Option => [value, value];

function Choice({ name, value, options, onChange }: { name: string; value: string; options: Option[]; onChange: (value: string) => void }): ReactNode {
  // A value of the address may have no question any more.
  const known = options.some(([v]) => v === value);
  return (
    <select aria-label={name} value={value} onChange={(e) => onChange(e.target.value)}>
      {(known ? options : [...options, same(value)]).map(([v, label]) => (
        <option key={v} value={v}>
          {escapeHidden(label)}
        </option>
      ))}
    </select>
  );
}
