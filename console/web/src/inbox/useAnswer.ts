import { useEffect, useRef, useState } from "react";
import { ApiError } from "../api/errors";
import { stringifyJson, type Json } from "../api/json";
import { useRepeat } from "../api/repeat";
import { announce } from "../ui/announce";
import { number, record, text } from "../ladder/events";
import type { Votes } from "./question";

/** Sends an answer; with the same key, a repeated request counts once. */
export type Send = (resumeValue: unknown, key: string) => Promise<unknown>;

/** The answer of another person, if the run has it. */
export interface Elsewhere {
  by?: string | undefined;
  action?: string | undefined;
  at?: string | undefined;
  value?: Json | undefined;
}

export type Answering =
  | { state: "open" }
  | { state: "sending" }
  | { state: "counted"; votes: Votes | undefined; action: string | undefined }
  | { state: "answered"; action: string | undefined; status: string | undefined; value: Json }
  | { state: "elsewhere"; code: string; found?: Elsewhere | undefined }
  | { state: "refused"; error: unknown; places: Map<string, string> };

type Options = {
  send: Send;
  /** Finds the answer of another person. */
  find?: (() => Promise<Elsewhere | undefined>) | undefined;
  onDone?: (() => void) | undefined;
};

const over = new Set(["interrupt_already_resolved", "interrupt_gone", "interrupt_expired", "interrupt_not_found", "run_not_found"]);

/** Reports whether an answer came too late: the question was answered, asked again or closed. */
export const isOver = (error: ApiError): boolean => over.has(error.code);

/** Sends one answer to a question, only once regardless of repeated clicks, and tracks its outcome. */
export function useAnswer({ send, find, onDone }: Options): { answering: Answering; answer: (value: unknown) => void } {
  const [answering, set] = useState<Answering>({ state: "open" });
  const busy = useRef(false);
  const gone = useRef(false);
  useEffect(() => {
    gone.current = false;
    return () => {
      gone.current = true;
    };
  }, []);
  const repeat = useRepeat();
  const answer = (value: unknown): void => {
    if (busy.current) return;
    busy.current = true;
    set({ state: "sending" });
    const action = text(record(value).action) ?? (record(value).declined === true ? "declined" : undefined);
    repeat(stringifyJson(value), (key) => send(value, key))
      .then((sent) => {
        const r = record(sent);
        const i = record(r.interrupt);
        const status = text(r.status);
        const outcome = text(i.outcome);
        // The question stays open after a vote of a quorum or a counter-question.
        if (outcome === "counted" || outcome === "asked") {
          busy.current = false;
          const required = number(i.required);
          set({ state: "counted", action, votes: required === undefined ? undefined : { accepts: number(i.accepts) ?? 0, rejects: number(i.rejects) ?? 0, required } });
          announce(outcome === "asked" ? "Your question was sent" : `Your vote was counted: ${number(i.accepts) ?? 0} of ${required ?? 0}`);
        } else {
          set({ state: "answered", action, status, value: value as Json });
          announce("Your answer was taken");
        }
        onDone?.();
      })
      .catch(async (error: unknown) => {
        busy.current = false;
        if (error instanceof ApiError && isOver(error)) {
          const found = await find?.().catch(() => undefined);
          if (!gone.current) set({ state: "elsewhere", code: error.code, found });
          onDone?.();
          return;
        }
        set({ state: "refused", error, places: placesOf(error) });
      });
  };
  return { answering, answer };
}

/** Returns the host's validation errors by JSON Pointer into the answer. */
export function placesOf(error: unknown): Map<string, string> {
  const out = new Map<string, string>();
  if (!(error instanceof ApiError)) return out;
  const listed = [error.details?.problems, error.details?.errors, error.details?.violations, error.details].find(Array.isArray);
  for (const p of listed ?? []) {
    const at = text(record(p).path) ?? text(record(p).instancePath);
    const message = text(record(p).message);
    if (at !== undefined && message !== undefined) out.set(at.replace(/^\/resumeValue/, ""), message);
  }
  return out;
}
