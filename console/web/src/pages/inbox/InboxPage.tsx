import type { ReactNode } from "react";
import { useTitle } from "../../app/title";

export default function InboxPage(): ReactNode {
  useTitle("Inbox");
  return <h1>Inbox</h1>;
}
