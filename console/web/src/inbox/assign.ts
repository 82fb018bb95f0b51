// Assignees of questions: who takes care of an open one. An assignee has no more rights than others.
import { useQueryClient } from "@tanstack/react-query";
import { api, body } from "../api/client";
import type { components } from "../api/schema";
import { useConfig } from "../api/session";
import { notifyTabs } from "./tabs";

export type Assignment = components["schemas"]["InterruptAssignment"];

type Asked = { runId: string; question: { nodeId: string; interruptId: string } };

/** The user of the key, or the id of the key: its name as an assignee. */
export function useSubject(): string | undefined {
  const { session } = useConfig();
  return session && (session.user ?? session.keyId);
}

export type Assign = {
  /** Assigns a question, to the key itself if no assignee is given. Another assignee is an error unless it is replaced. */
  assign: (asked: Asked, assignee?: string, replace?: boolean) => Promise<void>;
  release: (asked: Asked) => Promise<void>;
};

const path = ({ runId, question: { nodeId } }: Asked) => ({ path: { runId, nodeId } });

/** Changes the assignee of a question, and shows the change in all tabs. */
export function useAssign(): Assign {
  const client = useQueryClient();
  const changed = async (): Promise<void> => {
    notifyTabs();
    await client.invalidateQueries({ queryKey: ["interrupts"] });
  };
  return {
    assign: async (asked, assignee, replace = false) => {
      try {
        await body(
          api.POST("/v1/runs/{runId}/interrupts/{nodeId}/assignee", {
            params: path(asked),
            body: { interruptId: asked.question.interruptId, replace, ...(assignee === undefined ? {} : { assignee }) },
          }),
        );
      } finally {
        await changed(); // a conflict has another assignee
      }
    },
    release: async (asked) => {
      await api.DELETE("/v1/runs/{runId}/interrupts/{nodeId}/assignee", { params: path(asked) });
      await changed();
    },
  };
}
