import type { ReactNode } from "react";
import { Link } from "wouter";
import { Empty } from "../ui/Empty";
import { useTitle } from "../ui/title";

export function NotFoundPage(): ReactNode {
  useTitle("No such page");
  return (
    <Empty icon="question" title="No such page">
      <p>The console has nothing at this address.</p>
      <Link href="/" className="button primary">
        Show all runs
      </Link>
    </Empty>
  );
}
