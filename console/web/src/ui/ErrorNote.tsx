import type { ReactNode } from "react";
import { ApiError, UnreachableError } from "../api/errors";
import { Name } from "./Text";

type Props = { error: unknown; onRetry?: () => void };

/** Shows an error with the host's code and a retry button. */
export function ErrorNote({ error, onRetry }: Props): ReactNode {
  const code = error instanceof ApiError ? error.code : undefined;
  return (
    <div className="note bad" role="alert">
      <p>
        {code && (
          <>
            <code>{code}</code>{" "}
          </>
        )}
        <Name text={error instanceof Error ? error.message : String(error)} />
      </p>
      {error instanceof UnreachableError && <p className="dim">Check that it is running, then try again.</p>}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
