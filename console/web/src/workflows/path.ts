/** The address of a workflow's page, or of a part of it. */
export function workflowPath(workflowId: string, part = "", query: { [name: string]: string | undefined } = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, value);
  const search = params.toString();
  return `/workflows/${encodeURIComponent(workflowId)}${part && `/${part}`}${search && `?${search}`}`;
}
