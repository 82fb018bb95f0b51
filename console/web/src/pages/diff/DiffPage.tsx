import type { ReactNode } from "react";
import { useTitle } from "../../app/title";

export default function DiffPage(): ReactNode {
  useTitle("Compare runs");
  return <h1>Compare runs</h1>;
}
