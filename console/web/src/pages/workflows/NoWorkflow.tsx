import type { ReactNode } from "react";
import { Link } from "wouter";
import { Empty } from "../../ui/Empty";
import { useTitle } from "../../ui/title";
import { Name } from "../../ui/Text";

export function NoWorkflow({ workflowId }: { workflowId: string }): ReactNode {
  useTitle("No such workflow");
  return (
    <Empty icon="flow" title="No such workflow">
      <p>
        No workflow has the id <code><Name text={workflowId} /></code>, or you do not have access to it. Its runs, if any, are still in the list of runs.
      </p>
      <Link href="/workflows" className="button primary">
        Show all workflows
      </Link>
    </Empty>
  );
}
