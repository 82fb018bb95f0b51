import { QueryCache, QueryClient } from "@tanstack/react-query";
import { isStatus, UnreachableError } from "./errors";
import { configKey, type ConsoleConfig } from "./session";

// Nothing is asked for again by itself: what changes comes by the stream. Old data stays on screen when asking fails.
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

/** What to do when the host no longer knows the session: the shell shows the sign-in page. */
export function signedOut(): void {
  queryClient.setQueryData<ConsoleConfig>(configKey, (config) => config && { ...config, signedIn: false });
}

// All tabs of a browser have one session: who signs out in one leaves nothing to be read in another.
const tabs = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel("waybill-session");
tabs?.addEventListener("message", () => leave());

function leave(): void {
  queryClient.removeQueries({ predicate: (query) => query.queryKey[0] !== configKey[0] });
  signedOut();
}

/** What to do when somebody has signed out. */
export function leaveAllTabs(): void {
  tabs?.postMessage("signed out");
  leave();
}
