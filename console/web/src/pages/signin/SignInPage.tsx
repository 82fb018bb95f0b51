import { useMutation } from "@tanstack/react-query";
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { ApiError } from "../../api/errors";
import { signIn } from "../../api/session";
import { useTitle } from "../../ui/title";
import { Mark } from "../../ui/Mark";

type Props = { mode: "dev" | "production"; refused?: string; onSignedIn: () => void };

/** Sign-in with an API key. The key is not stored: the host sets a cookie that scripts cannot read. */
export function SignInPage({ mode, refused, onSignedIn }: Props): ReactNode {
  useTitle("Sign in");
  const [key, setKey] = useState("");
  const id = useId();
  const attempt = useMutation({ mutationFn: () => signIn({ key }), onSuccess: onSignedIn, onSettled: () => setKey("") });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (key && !attempt.isPending) attempt.mutate();
  };
  return (
    <main className="alone">
      <Mark />
      <h1>Sign in to Waybill</h1>
      {refused && !attempt.error && (
        <p className="note ask" role="alert">
          The sign-in link failed: {refused}. A link works once and expires soon.
        </p>
      )}
      <form onSubmit={submit}>
        <label htmlFor={id}>API key</label>
        <input
          id={id}
          type="password"
          autoComplete="off"
          spellCheck={false}
          required
          value={key}
          onChange={(event) => setKey(event.target.value)}
          aria-describedby={`${id}-help`}
        />
        <p id={`${id}-help`} className="dim">
          The key is sent to this host once. The browser stores a sealed cookie that scripts cannot read.
        </p>
        {attempt.error && (
          <p className="note bad" role="alert">
            {attempt.error instanceof ApiError && attempt.error.status === 401 ? "This key is not valid." : attempt.error.message}
          </p>
        )}
        <button type="submit" className="primary" disabled={attempt.isPending}>
          {attempt.isPending ? "Signing in…" : "Sign in"}
        </button>
      </form>
      {mode === "dev" && (
        <p className="dim">
          <code>waybill dev</code> prints a link that signs you in.
        </p>
      )}
    </main>
  );
}
