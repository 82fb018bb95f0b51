import type { RunSnapshot } from "../../api/model";

type Link = { name: string; url: string };

const places = ["runId", "workflowId", "status", "startedAt", "completedAt"] as const;

/** Reports whether a link has run placeholders. */
export const ofRun = (link: Link): boolean => places.some((name) => link.url.includes(`{${name}}`));

/** Returns the operator's links for this run. Missing values stay empty. */
export function linksOf(links: readonly Link[], run: RunSnapshot): Link[] {
  return links.filter(ofRun).map(({ name, url }) => ({ name, url: places.reduce((to, place) => to.replaceAll(`{${place}}`, encodeURIComponent(run[place] ?? "")), url) }));
}
