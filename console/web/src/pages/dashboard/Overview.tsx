import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { api, body } from "../../api/client";
import { isTerminal } from "../../api/model";
import type { components } from "../../api/schema";
import { lookOf } from "../../ui/Status";
import { Name } from "../../ui/Text";
import { duration } from "../../ui/time";
import { Chart, ms } from "./Chart";
import type { Runs, Statistics, Usage } from "./host";
import { compact, dollars, share, stepsOf } from "./series";
import { Figures, Table, type Column } from "./Table";
import { runsURL, viewURL, type View } from "./view";

const took = (n: unknown): string => (n === undefined ? "–" : duration(Number(n)));
const rate = (r: Runs): string => share(Number(r.completed), Number(r.completed) + Number(r.failed));

/** Runs, failures, durations, model calls, tokens and cost. */
export function Overview({ data, view }: { data: Statistics; view: View }): ReactNode {
  const { runs, usage } = data;
  return (
    <>
      <Figures
        label="Figures of the span"
        figures={[
          ["Runs started", compact(Number(runs.created))],
          ["Success rate", rate(runs)],
          ["Failed", compact(Number(runs.failed))],
          ["Median duration", took(runs.p50Ms)],
          ["p95 duration", took(runs.p95Ms)],
          ["Model calls", compact(Number(usage.calls))],
          ["Tokens in", compact(Number(usage.inputTokens))],
          ["Tokens out", compact(Number(usage.outputTokens))],
          ["Cost (estimate)", usage.priced > 0 ? dollars(Number(usage.costUsd)) : "–"],
        ]}
      />
      <div className="charts">
        <Chart
          title="Runs that ended"
          format={compact}
          steps={stepsOf(data, (p) => [Number(p?.runs.completed ?? 0), Number(p?.runs.failed ?? 0), Number(p?.runs.cancelled ?? 0)])}
          series={[
            { name: "completed", tone: "t-good" },
            { name: "failed", tone: "t-bad" },
            { name: "cancelled", tone: "t-idle" },
          ]}
        />
        <Chart
          title="Duration of completed runs"
          lines
          format={ms}
          steps={stepsOf(data, (p) => [Number(p?.runs.p50Ms ?? 0), Number(p?.runs.p95Ms ?? 0), Number(p?.runs.p99Ms ?? 0)])}
          series={[
            { name: "p50", tone: "t-1" },
            { name: "p95", tone: "t-2" },
            { name: "p99", tone: "t-3" },
          ]}
        />
        <Chart
          title="Tokens"
          format={compact}
          steps={stepsOf(data, (p) => [Number(p?.usage.inputTokens ?? 0), Number(p?.usage.outputTokens ?? 0)])}
          series={[
            { name: "in", tone: "t-1" },
            { name: "out", tone: "t-3" },
          ]}
        />
        <Chart title="Cost (estimate)" format={dollars} steps={stepsOf(data, (p) => [Number(p?.usage.costUsd ?? 0)])} series={[{ name: "US dollars", tone: "t-1" }]} />
      </div>
      <div className="dash-tables">
        <Table
          title="Failures by code"
          none="No run failed."
          rows={runs.failures}
          id={(f) => f.code}
          columns={failureColumns(view, runs)}
        />
        <Table
          title="Provider failures"
          none="No call failed because of a provider."
          rows={data.providerFailures}
          id={(f) => `${f.provider}\n${f.code}`}
          columns={providerColumns(view)}
        />
        <Now />
        <Kept />
      </div>
      <Table
        title="Workflows"
        none="No workflow ran."
        rows={data.workflows}
        id={(w) => w.workflowId}
        columns={workflowColumns(view, usage)}
      >
        {data.moreWorkflows > 0 && <p className="dim small">And {data.moreWorkflows.toLocaleString("en")} workflows with fewer runs.</p>}
      </Table>
      <Models data={data} view={view} />
    </>
  );
}

function Models({ data, view }: { data: Statistics; view: View }): ReactNode {
  return (
    <Table
      title="Models"
      none="No model was called."
      rows={data.models}
      id={(m) => `${m.provider}\n${m.model}`}
      columns={modelColumns(view)}
    />
  );
}

/** The runs that have not ended, as of now. */
function Now(): ReactNode {
  const { data } = useQuery({
    queryKey: ["run-counts", "", "now"],
    queryFn: ({ signal }) => body(api.GET("/v1/runs:count", { params: { query: {} }, signal })),
    staleTime: 0,
    refetchInterval: 30_000,
  });
  const rows = (data?.counts ?? []).filter((c) => !isTerminal(c.status));
  return (
    <Table
      title="Active now"
      none="No run is active."
      rows={rows}
      id={(c) => c.status}
      columns={activeColumns(data?.truncated ?? false)}
    />
  );
}

/** How long ended runs are kept, by workflow. Hidden from keys that may not read it. */
function Kept(): ReactNode {
  const { data } = useQuery({ queryKey: ["retention"], queryFn: ({ signal }) => body(api.GET("/v1/retention", { signal })), retry: false });
  if (!data) return null;
  return (
    <Table
      title="Ended runs that are kept"
      none="No run has ended."
      rows={data.workflows}
      id={(w) => w.workflowId}
      columns={keptColumns()}
    />
  );
}

function failureColumns(view: View, runs: Runs): Column<Runs["failures"][number]>[] {
  return [
    { name: "Code", of: (f) => <Link href={runsURL(view, "code", f.code)}>{f.code}</Link> },
    { name: "Runs", num: true, of: (f) => compact(Number(f.count)) },
    { name: "Share", num: true, of: (f) => share(Number(f.count), Number(runs.failed)) },
  ];
}

function providerColumns(view: View): Column<Statistics["providerFailures"][number]>[] {
  return [
    { name: "Provider", of: (f) => <Link href={runsURL(view, "provider", f.provider)}>{f.provider}</Link> },
    { name: "Code", of: (f) => <code>{f.code}</code> },
    { name: "Attempts", num: true, of: (f) => compact(Number(f.count)) },
  ];
}

function workflowColumns(view: View, usage: Usage): Column<Statistics["workflows"][number]>[] {
  return [
    {
      name: "Workflow",
      of: (w) => (
        <Link href={viewURL({ ...view, workflow: w.workflowId })}>
          <Name text={w.workflowId} />
        </Link>
      ),
    },
    { name: "Started", num: true, of: (w) => compact(Number(w.runs.created)) },
    { name: "Failed", num: true, of: (w) => compact(Number(w.runs.failed)) },
    { name: "Success", num: true, of: (w) => rate(w.runs) },
    { name: "p50", num: true, of: (w) => took(w.runs.p50Ms) },
    { name: "p95", num: true, of: (w) => took(w.runs.p95Ms) },
    { name: "Calls", num: true, of: (w) => compact(Number(w.usage.calls)) },
    { name: "Tokens", num: true, of: (w) => compact(Number(w.usage.inputTokens) + Number(w.usage.outputTokens)) },
    { name: "Cost", num: true, of: (w) => (w.usage.priced > 0 ? dollars(Number(w.usage.costUsd)) : "–") },
    { name: "Share of cost", num: true, of: (w) => share(Number(w.usage.costUsd), Number(usage.costUsd)) },
  ];
}

function modelColumns(view: View): Column<Statistics["models"][number]>[] {
  return [
    {
      name: "Model",
      of: (m) => (
        <Link href={runsURL(view, "model", m.model)}>
          <Name text={`${m.provider}·${m.model}`} />
        </Link>
      ),
    },
    { name: "Calls", num: true, of: (m) => compact(Number(m.usage.calls)) },
    { name: "Tokens in", num: true, of: (m) => compact(Number(m.usage.inputTokens)) },
    { name: "Of them cached", num: true, of: (m) => share(Number(m.usage.cachedTokens), Number(m.usage.inputTokens)) },
    { name: "Tokens out", num: true, of: (m) => compact(Number(m.usage.outputTokens)) },
    { name: "p50", num: true, of: (m) => took(m.usage.p50Ms) },
    { name: "p95", num: true, of: (m) => took(m.usage.p95Ms) },
    { name: "Cost", num: true, of: (m) => (m.usage.priced > 0 ? dollars(Number(m.usage.costUsd)) : "–") },
    { name: "Cost of retries", num: true, of: (m) => (m.usage.priced > 0 ? dollars(Number(m.usage.retryCostUsd)) : "–") },
  ];
}

function activeColumns(truncated: boolean): Column<{ status: string; count: number }>[] {
  return [
    { name: "Status", of: (c) => <Link href={`/?filter=${encodeURIComponent(`status:${c.status}`)}`}>{lookOf(c.status).word}</Link> },
    { name: "Runs", num: true, of: (c) => `${compact(Number(c.count))}${truncated ? "+" : ""}` },
  ];
}

function keptColumns(): Column<components["schemas"]["WorkflowRetention"]>[] {
  return [
    { name: "Workflow", of: (w) => <Name text={w.workflowId} /> },
    { name: "Runs", num: true, of: (w) => compact(Number(w.runs)) },
    { name: "Kept for", of: (w) => w.retention },
    { name: "Due in a day", num: true, of: (w) => compact(Number(w.due) + Number(w.dueNextDay)) },
  ];
}
