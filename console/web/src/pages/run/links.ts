import type { RunSnapshot } from "../../api/model";

type Link = { name: string; url: string };

const places = ["runId", "workflowId", "status", "startedAt", "completedAt"] as const;

/** Whether a link is about a run. */
export const ofRun = (link: Link): boolean => places.some((name) => link.url.includes(`{${name}}`));

/** The links of the host's operator that are about a run, for this one. What a run does not have yet stays empty. */
export function linksOf(links: readonly Link[], run: RunSnapshot): Link[] {
  return links.filter(ofRun).map(({ name, url }) => ({ name, url: places.reduce((to, place) => to.replaceAll(`{${place}}`, encodeURIComponent(run[place] ?? "")), url) }));
}
