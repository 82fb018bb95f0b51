import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { fetchJson } from "../../api/client";
import { ApiError } from "../../api/errors";
import type { Json } from "../../api/json";
import { useTitle } from "../../ui/title";
import { Explanation } from "../../explain/Explanation";
import { questionOfToken, titleOf } from "../../inbox/question";
import { QuestionCard } from "../../inbox/QuestionCard";
import { When } from "../../inbox/When";
import { stringifyJson } from "../../api/json";
import { text } from "../../ladder/events";
import { ErrorNote } from "../../ui/ErrorNote";

// The token is in the URL fragment, which browsers do not send and servers do not log.
const tokenOf = (): string => decodeURIComponent(location.hash.slice(1));

/** A question for the holder of its token. Viewing it changes nothing; only a button answers. */
export default function AnswerPage(): ReactNode {
  const [token] = useState(tokenOf);
  const path = `/v1/interrupts/${encodeURIComponent(token)}`;
  const { data, error, refetch } = useQuery({
    queryKey: ["token", token],
    queryFn: ({ signal }) => fetchJson(path, { signal, credentials: "omit" }),
    enabled: token !== "",
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const question = data === undefined ? undefined : questionOfToken(data);
  const title = question ? titleOf(question) : "A question";
  useTitle(title);
  const elevated = text(question?.data.profile) === "openwop-interrupt-auth-required";
  return (
    <div className="answer-page">
      <h1>Waybill asks you</h1>
      {token === "" && <p>The link is incomplete: the part after # is missing. Ask the sender for the full link.</p>}
      {error && (error instanceof ApiError && error.status < 500 ? <Refused error={error} /> : <ErrorNote error={error} onRetry={() => void refetch()} />)}
      {question && (
        <QuestionCard
          question={question}
          send={(resumeValue, key) =>
            fetchJson<Json>(path, {
              method: "POST",
              credentials: "omit",
              headers: { "Content-Type": "application/json", "Idempotency-Key": key },
              body: stringifyJson({ resumeValue }),
            })
          }
          blocked={elevated ? "This question requires your own credential. Sign in to the console and answer it there." : undefined}
          provenance={{ written: false }}
          resolved={question.resolved ? {} : undefined}
          onDone={() => void refetch()}
          extra={
            question.expiresAt && (
              <span className="dim small">
                link expires <When at={question.expiresAt} />
              </span>
            )
          }
        />
      )}
    </div>
  );
}

function Refused({ error }: { error: ApiError }): ReactNode {
  return (
    <div className="note idle">
      <p>
        <strong>{error.code === "interrupt_not_found" ? "There is no such question." : "This link is no longer valid."}</strong>
      </p>
      <Explanation code={error.code} message={error.message} />
    </div>
  );
}
