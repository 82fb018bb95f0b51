import type { ReactNode } from "react";
import { useTitle } from "../../app/title";

export default function RunsPage(): ReactNode {
  useTitle("Runs");
  return <h1>Runs</h1>;
}
