import { isObject, type Json } from "./json";

/** An error response of the host: status, code, message and details. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: { [name: string]: Json } | undefined;
  /** Seconds to wait before a retry. */
  readonly retryAfter: number | undefined;

  constructor(status: number, code: string, message: string, details?: { [name: string]: Json }, retryAfter?: number) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.details = details;
    this.retryAfter = retryAfter;
  }
}

/** The request got no response. */
export class UnreachableError extends Error {
  constructor(cause: unknown) {
    super("The host did not respond.", { cause });
    this.name = "UnreachableError";
  }
}

/** Converts an error response. A body without an error envelope comes from a proxy. */
export function errorOf(response: Response, body: unknown): ApiError {
  const after = Number(response.headers.get("Retry-After")) || undefined;
  if (isObject(body) && typeof body.error === "string") {
    const details = isObject(body.details) ? body.details : undefined;
    return new ApiError(response.status, body.error, String(body.message ?? ""), details, after);
  }
  return new ApiError(response.status, `http_${response.status}`, `A proxy in front of the host answered ${response.status}.`, undefined, after);
}

export function isStatus(error: unknown, ...status: number[]): boolean {
  return error instanceof ApiError && status.includes(error.status);
}
