import type { ReactNode } from "react";
import { useMay } from "../../api/session";
import type { components } from "../../api/schema";
import { ErrorNote } from "../../ui/ErrorNote";
import { Name } from "../../ui/Text";
import { useTenants } from "./host";
import { compact, dollars, share } from "./series";
import { Table, type Column } from "./Table";
import type { View } from "./view";

type Totals = components["schemas"]["TenantTotals"];

/** Runs, tokens and cost of every tenant. Only operators' keys, with the scope tenants:read, see it. */
export function Tenants({ view }: { view: View }): ReactNode {
  const shown = useMay("tenants:read") && view.workflow === "";
  const { data, error, refetch } = useTenants(view, shown);
  if (!shown) return null;
  if (error) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!data) return null;
  const cost = data.tenants.reduce((sum, t) => sum + Number(t.usage.costUsd), 0);
  return (
    <Table title="Tenants" none="No tenant ran a workflow." rows={data.tenants} id={(t) => t.tenant} columns={columns(cost)}>
      {data.moreTenants > 0 && <p className="dim small">And {data.moreTenants.toLocaleString("en")} tenants with a lower cost.</p>}
    </Table>
  );
}

function columns(cost: number): Column<Totals>[] {
  return [
    { name: "Tenant", of: (t) => <Name text={t.tenant} /> },
    { name: "Runs", num: true, of: (t) => compact(Number(t.runs.created)) },
    { name: "Failed", num: true, of: (t) => compact(Number(t.runs.failed)) },
    { name: "Calls", num: true, of: (t) => compact(Number(t.usage.calls)) },
    { name: "Tokens in", num: true, of: (t) => compact(Number(t.usage.inputTokens)) },
    { name: "Tokens out", num: true, of: (t) => compact(Number(t.usage.outputTokens)) },
    { name: "Cost", num: true, of: (t) => (t.usage.priced > 0 ? dollars(Number(t.usage.costUsd)) : "–") },
    { name: "Share of cost", num: true, of: (t) => share(Number(t.usage.costUsd), cost) },
  ];
}
