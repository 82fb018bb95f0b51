import { useState } from "react";
import { idempotencyKey } from "./client";
import { ApiError } from "./errors";

/** Sends a request again with the same Idempotency-Key until a response says what became of it, so that it counts once. */
export type Repeat = <T>(request: string, send: (key: string) => Promise<T>) => Promise<T>;

export function repeating(): Repeat {
  let lost: { request: string; key: string } | undefined;
  return async (request, send) => {
    const key = lost?.request === request ? lost.key : idempotencyKey();
    lost = { request, key };
    try {
      const sent = await send(key);
      lost = undefined;
      return sent;
    } catch (error) {
      if (isRefused(error)) lost = undefined; // the host would repeat its refusal
      throw error;
    }
  };
}

const isRefused = (error: unknown): boolean => error instanceof ApiError && error.status < 500 && error.code !== "idempotency_in_flight";

export function useRepeat(): Repeat {
  return useState(repeating)[0];
}
