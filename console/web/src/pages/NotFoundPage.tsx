import type { ReactNode } from "react";
import { Link } from "wouter";
import { useTitle } from "../ui/title";

export function NotFoundPage(): ReactNode {
  useTitle("No such page");
  return (
    <>
      <h1>No such page</h1>
      <p>
        The console has nothing at this address. <Link href="/">All runs</Link>
      </p>
    </>
  );
}
