import createClient, { type Middleware } from "openapi-fetch";
import { hostURL } from "./base";
import { errorOf, UnreachableError } from "./errors";
import { parseJson, stringifyJson, type Json } from "./json";
import type { paths } from "./schema";

/** Returns an Idempotency-Key, so that a repeated write takes effect once. */
export function idempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("")}`;
}

// The browser sends the session cookie. A write also needs this header, which other sites cannot set.
const writes: Middleware = {
  onRequest({ request }) {
    if (request.method !== "GET") request.headers.set("X-Waybill-Console", "1");
    return request;
  },
};

const client = createClient<paths>({
  baseUrl: hostURL,
  bodySerializer: (value) => stringifyJson(value),
  fetch: async (request) => {
    try {
      return await fetch(request);
    } catch (cause) {
      if (request.signal.aborted) throw cause;
      throw new UnreachableError(cause);
    }
  },
});
client.use(writes);

// Responses are read as text and parsed here, to keep numbers exact.
function exact<M>(method: M): M {
  const call = method as (path: unknown, init?: object) => Promise<{ data?: unknown; error?: unknown; response: Response }>;
  return (async (path: unknown, init?: object) => {
    const answer = await call(path, { ...init, parseAs: "text" });
    if (!answer.response.ok) throw errorOf(answer.response, answer.error);
    return { ...answer, data: answer.data ? parseJson(answer.data as string) : undefined };
  }) as M;
}

/** The public API, typed by its description. A failed call throws ApiError or UnreachableError. */
export const api = { GET: exact(client.GET), POST: exact(client.POST), DELETE: exact(client.DELETE) };

/** Returns the body of a successful response. */
export async function body<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}

/** Returns the body with a type that the API description does not define. */
export async function bodyAs<T>(answer: Promise<{ data?: unknown }>): Promise<T> {
  return (await answer).data as T;
}

/** Fetches a document outside the API description, such as the console's configuration. */
export async function fetchJson<T = Json>(path: string, init: RequestInit = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(hostURL + path, init);
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new UnreachableError(cause);
  }
  const text = await response.text();
  let document: Json | undefined;
  try {
    document = text ? parseJson(text) : undefined;
  } catch {
    document = undefined;
  }
  if (!response.ok) throw errorOf(response, document);
  return document as T;
}
