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
