import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import { fetchJson } from "../../api/client";
import { Name } from "../../ui/Text";
import { suggestions, withTerm, words } from "./filter";

type Props = { filter: string; url: (filter: string) => string; onWord: (word: string) => void };

/** Explains the filter terms, with values of this host. */
export function FilterHelp({ filter, url, onWord }: Props): ReactNode {
  const [open, setOpen] = useState(false);
  const { data } = useQuery({
    queryKey: ["capabilities"],
    queryFn: ({ signal }) => fetchJson("/.well-known/openwop", { signal }),
    staleTime: 300_000,
    enabled: open,
  });
  return (
    <details className="filter-help" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Filter syntax</summary>
      <p className="dim small">A run must match every term. Choose a term to enter its value, or a value to filter by it.</p>
      <dl>
        {words.map((word) => (
          <div key={word.name}>
            <dt>
              <button type="button" className="quiet" onClick={() => onWord(word.name)}>
                <code>{word.name}:</code>
              </button>
            </dt>
            <dd>
              {word.keeps}, such as <code>{word.example}</code>
              <Values name={word.name} values={suggestions(word.name, data)} filter={filter} url={url} />
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function Values({ name, values, filter, url }: { name: string; values: readonly string[]; filter: string; url: (filter: string) => string }): ReactNode {
  if (values.length === 0) return null;
  return (
    <ul aria-label={`Values of ${name}`}>
      {values.map((value) => (
        <li key={value}>
          <Link href={url(withTerm(filter, name, [value]))} className="tag">
            <Name text={value} />
          </Link>
        </li>
      ))}
    </ul>
  );
}
