import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useLocation } from "wouter";
import { configKey, loadConfig, signIn, takeCode } from "../api/session";
import { ErrorNote } from "../ui/ErrorNote";
import { SignInPage } from "../pages/signin/SignInPage";
import { openPaths } from "./routes";

// Read at script start, before a page or the history can expose it.
const code = takeCode();
let traded: Promise<string | undefined> | undefined;

// A code works once, so it is exchanged once even if React renders twice.
function trade(): Promise<string | undefined> {
  traded ??= code
    ? signIn({ code }).then(
        () => undefined,
        (error: Error) => error.message,
      )
    : Promise.resolve(undefined);
  return traded;
}

/** Shows its children with a session, otherwise the sign-in page. */
export function Session({ children }: { children: ReactNode }): ReactNode {
  const client = useQueryClient();
  const [path] = useLocation();
  const { data, error, refetch } = useQuery({
    queryKey: configKey,
    queryFn: async ({ signal }) => {
      const refused = await trade();
      return { ...(await loadConfig(signal)), refused };
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error && !data) {
    return (
      <main className="alone">
        <h1>Waybill</h1>
        <ErrorNote error={error} onRetry={() => void refetch()} />
      </main>
    );
  }
  if (!data) return null;
  if (data.signedIn || openPaths.some((open) => path.startsWith(open))) return children;
  const refused = (data as { refused?: string }).refused;
  return <SignInPage mode={data.mode} {...(refused ? { refused } : {})} onSignedIn={() => void client.invalidateQueries()} />;
}
