import { useEffect, useRef, useState, type ReactNode } from "react";
import styles from "swagger-ui-dist/swagger-ui.css?url";
import { hostURL } from "../../api/base";
import type { Plugin } from "swagger-ui-dist/swagger-ui-bundle.js";
import { useTheme } from "../../app/theme";
import { useTitle } from "../../ui/title";
import { CopyButton } from "../../ui/CopyButton";
import { ErrorNote } from "../../ui/ErrorNote";
import { record, text } from "../../ladder/events";
import { useCapabilities } from "../../ladder/ui/context";
import "./api.css";

// Shows only the operations: the page already has the title and the server, and the session is the credential.
// Descriptions are plain text, because rendered Markdown violates the content security policy.
const plainTextPlugin: Plugin = () => ({
  components: {
    Operations: ({ getComponent, getSystem }) => {
      const { createElement } = getSystem().React;
      return createElement("div", { className: "swagger-ui" }, createElement(getComponent("operations", true), {}));
    },
  },
  wrapComponents: {
    authorizeOperationBtn: () => () => null,
    Markdown: (_original, system) => (props) => system.React.createElement("span", { className: "markdown" }, props.source ?? ""),
  },
});

/** The REST API's description, with requests that use the session. */
export default function ApiPage(): ReactNode {
  useTitle("API");
  const [error, setError] = useState<Error>();
  const [shown, setShown] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const grpc = text(record(useCapabilities().grpc).endpoint);
  useEffect(() => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = styles;
    document.head.append(link);
    let gone = false;
    import("swagger-ui-dist/swagger-ui-bundle.js")
      .then(({ default: SwaggerUI }) => {
        if (gone || !place.current) return;
        SwaggerUI({
          domNode: place.current,
          url: `${hostURL}/v1/openapi.json`,
          validatorUrl: null, // no external validator
          docExpansion: "list",
          defaultModelsExpandDepth: -1,
          persistAuthorization: false,
          plugins: [plainTextPlugin],
          layout: "Operations",
          requestInterceptor: (request) => {
            request.credentials = "same-origin";
            // Writes with the session cookie need this header, which other sites cannot set.
            if (request.method && request.method.toUpperCase() !== "GET") request.headers["X-Waybill-Console"] = "1";
            return request;
          },
          onComplete: () => setShown(true),
        });
      })
      .catch((e: unknown) => setError(e instanceof Error ? e : new Error(String(e))));
    return () => {
      gone = true;
      link.remove();
    };
  }, []);
  const theme = useTheme();
  useEffect(() => {
    const prefers = matchMedia("(prefers-color-scheme: dark)");
    const root = document.documentElement;
    const follow = (): void => {
      root.classList.toggle("dark-mode", theme === "dark" || (theme === "system" && prefers.matches));
    };
    follow();
    prefers.addEventListener("change", follow);
    return () => {
      prefers.removeEventListener("change", follow);
      root.classList.remove("dark-mode");
    };
  }, [theme]);
  const grpcurl = grpc && `grpcurl ${grpc.startsWith("grpcs") ? "" : "-plaintext "}-H "authorization: Bearer $WAYBILL_TOKEN" ${grpc.replace(/^grpcs?:\/\//, "")} list`;
  return (
    <>
      <h1>API</h1>
      <dl className="api-facts">
        <div>
          <dt>REST</dt>
          <dd>
            <code>{hostURL}</code> <CopyButton text={hostURL} what="the address of the REST API" />{" "}
            <a href={`${hostURL}/v1/openapi.json`} target="_blank" rel="noreferrer">
              openapi.json
            </a>
          </dd>
        </div>
        {grpcurl && (
          <div>
            <dt>gRPC</dt>
            <dd>
              <code>{grpcurl}</code> <CopyButton text={grpcurl} what="the grpcurl command" />
            </dd>
          </div>
        )}
      </dl>
      {grpcurl && (
        <p className="dim">
          grpcurl uses server reflection. <code>waybill dev</code> enables it; a separate gateway must be started with{" "}
          <code>--grpc-reflection</code>.
        </p>
      )}
      <p className="dim">Requests sent from this page use your session and have real effects.</p>
      {error && <ErrorNote error={error} />}
      {!shown && !error && <p className="loading">Loading the description…</p>}
      <h2>Operations</h2>
      <div className="swagger" ref={place} />
    </>
  );
}
