import { useId, useState, type ReactNode } from "react";
import { rangeOf, ranges, withDays, withSince } from "./query";

const custom = "custom";

/** Selects when the runs were created: a preset, or days. */
export function DateRange({ filter, onChange }: { filter: string; onChange: (filter: string) => void }): ReactNode {
  const id = useId();
  const range = rangeOf(filter);
  const days = range && "from" in range ? range : undefined;
  const [open, setOpen] = useState(days !== undefined);
  const value = open || !range || days ? custom : "since" in range ? range.since : custom;
  return (
    <div className="date-range">
      <label htmlFor={id}>Created</label>
      <select
        id={id}
        value={value}
        onChange={({ target }) => {
          setOpen(target.value === custom);
          if (target.value !== custom) onChange(withSince(filter, target.value));
        }}
      >
        {ranges.map((r) => (
          <option key={r.since} value={r.since}>
            {r.name}
          </option>
        ))}
        <option value={custom}>Dates…</option>
      </select>
      {value === custom && (
        <>
          <input type="date" aria-label="From" value={days?.from ?? ""} max={days?.to || undefined} onChange={({ target }) => onChange(withDays(filter, { from: target.value, to: days?.to ?? "" }))} />
          <input type="date" aria-label="To" value={days?.to ?? ""} min={days?.from || undefined} onChange={({ target }) => onChange(withDays(filter, { from: days?.from ?? "", to: target.value }))} />
        </>
      )}
    </div>
  );
}
