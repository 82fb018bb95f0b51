import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, body } from "../api/client";
import { setWaiting } from "../ui/title";
import { useRunFeed } from "./feed";

const key = ["interrupts", "count"] as const;

// A busy host changes many times a second; the number need not.
const countEvery = 3000;
const pollEvery = 30_000;

/** Counts the open questions that the user may answer, for the navigation and the title of the tab. It renders nothing. */
export default function WaitingCount(): null {
  const client = useQueryClient();
  // The row of a run that was answered does not say that it asked before, so every change counts.
  const fed = useRunFeed(true, countEvery, () => true, () => void client.invalidateQueries({ queryKey: key }));
  const { data } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => body(api.GET("/v1/interrupts:count", { signal })),
    refetchInterval: fed ? false : pollEvery,
  });
  useEffect(() => {
    setWaiting(data && { count: data.answerable, soon: data.dueSoon > 0, more: data.truncated });
    return () => setWaiting();
  }, [data]);
  return null;
}
