import { QueryCache, QueryClient } from "@tanstack/react-query";
import { isStatus, UnreachableError } from "./errors";
import { configKey, type ConsoleConfig } from "./session";

// Queries do not refetch on their own, because changes arrive by stream. Old data stays visible if a refetch fails.
export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError(error) {
      if (isStatus(error, 401)) signedOut();
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 2 && (error instanceof UnreachableError || isStatus(error, 429, 502, 503, 504)),
    },
    mutations: { retry: false },
  },
});

/** Marks the session as ended, so that the shell shows the sign-in page. */
export function signedOut(): void {
  queryClient.setQueryData<ConsoleConfig>(configKey, (config) => config && { ...config, signedIn: false });
}

// All tabs share one session: signing out in one tab clears the data of every tab.
const tabs = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel("waybill-session");
tabs?.addEventListener("message", () => leave());

function leave(): void {
  queryClient.removeQueries({ predicate: (query) => query.queryKey[0] !== configKey[0] });
  signedOut();
}

/** Clears the session in every tab. */
export function leaveAllTabs(): void {
  tabs?.postMessage("signed out");
  leave();
}
