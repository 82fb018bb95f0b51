import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { fetchJson } from "../../api/client";
import { ApiError } from "../../api/errors";
import type { Json } from "../../api/json";
import { Icon } from "../../ui/Icon";
import { JsonView } from "../../ui/JsonView";

type Probe = { status: number; ms: number; body: Json | undefined };

async function probe(path: string, signal: AbortSignal): Promise<Probe> {
  const start = performance.now();
  try {
    const body = await fetchJson(path, { signal, cache: "no-store" });
    return { status: 200, ms: performance.now() - start, body };
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, ms: performance.now() - start, body: error.details };
    throw error;
  }
}

/** The answer of a health endpoint. */
export function Health({ path, name }: { path: string; name: string }): ReactNode {
  const { data, error, refetch, isFetching } = useQuery({ queryKey: ["probe", path], queryFn: ({ signal }) => probe(path, signal), retry: false, staleTime: 0 });
  const good = data?.status === 200;
  return (
    <div className="health">
      <span className={good ? "status good" : data || error ? "status bad" : "status idle"}>
        <Icon name={good ? "check" : data || error ? "cross" : "dot"} />
        {good ? "OK" : data ? `status ${data.status}` : error ? "no response" : "checking"}
      </span>
      <span>
        {name} <code className="dim">{path}</code>
      </span>
      <span className="dim small">{data && `${Math.round(data.ms)} ms`}</span>
      <button type="button" className="quiet" disabled={isFetching} onClick={() => void refetch()}>
        Check again<span className="unseen">: {name}</span>
      </button>
      {data?.body !== undefined && !good && <JsonView value={data.body} />}
    </div>
  );
}
