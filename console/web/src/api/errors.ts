import { isObject, type Json } from "./json";

/** An answer of the host that is no success: its code, its sentence, and what it says about it. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: { [name: string]: Json } | undefined;
  /** Seconds after which the host asks to be asked again. */
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

/** The host did not answer at all. */
export class UnreachableError extends Error {
  constructor(cause: unknown) {
    super("The host did not respond.", { cause });
    this.name = "UnreachableError";
  }
}

/** Makes an error of an answer; a body that is no error envelope comes from something in between. */
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
