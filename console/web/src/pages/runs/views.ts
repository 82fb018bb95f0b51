// Saved views of the list of runs, stored on the host.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body } from "../../api/client";
import type { components } from "../../api/schema";
import { type View, viewURL } from "./query";

export type SavedView = components["schemas"]["SavedView"];

const key = ["views"] as const;

/** The views that the key sees, by name. They are read after the list, which must not wait for them. */
export function useViews(on: boolean): SavedView[] {
  const { data } = useQuery({ queryKey: key, queryFn: ({ signal }) => body(api.GET("/v1/views", { signal })), enabled: on, retry: false });
  return data?.views ?? [];
}

export type Changes = { save: (view: Draft) => Promise<SavedView>; remove: (viewId: string) => Promise<void> };

/** A view to save; without an id it is a new one. */
export type Draft = { viewId?: string | undefined; name: string; shared: boolean; shown: View; columns: readonly string[] };

/** Saves and deletes views of the key. */
export function useViewChanges(): Changes {
  const client = useQueryClient();
  const again = (): Promise<void> => client.invalidateQueries({ queryKey: key });
  return {
    save: async ({ viewId, name, shared, shown, columns }) => {
      const { view } = await body(
        api.POST("/v1/views", {
          body: { viewId: viewId ?? newId(), name, shared, columns: [...columns], sort: shown.sort, order: shown.order, ...(shown.filter && { filter: shown.filter }) },
        }),
      ) as { view: SavedView };
      await again();
      return view;
    },
    remove: async (viewId) => {
      await api.DELETE("/v1/views/{viewId}", { params: { path: { viewId } } });
      await again();
    },
  };
}

const newId = (): string => Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");

/** Names a view in an address. Ids are unique for each owner only. */
export const nameOf = (view: SavedView): string => (view.mine ? view.viewId : `${view.owner}/${view.viewId}`);

/** Finds the view that an address names. */
export const findView = (views: readonly SavedView[], name: string | undefined): SavedView | undefined => views.find((v) => nameOf(v) === name);

/** What a view shows. */
export const shownOf = (view: SavedView): View => ({ filter: view.filter ?? "", sort: view.sort ?? "created", order: view.order ?? "desc", saved: nameOf(view) });

export const addressOf = (view: SavedView): string => viewURL(shownOf(view));

/** Reports whether the list shows something else than its view. */
export function differs(view: SavedView, shown: View, columns: readonly string[]): boolean {
  const saved = shownOf(view);
  return saved.filter !== shown.filter || saved.sort !== shown.sort || saved.order !== shown.order || (view.columns.length > 0 && view.columns.toSorted().join() !== columns.toSorted().join());
}
