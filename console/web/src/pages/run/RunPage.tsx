import type { ReactNode } from "react";
import { useTitle } from "../../app/title";

export default function RunPage(): ReactNode {
  useTitle("Run");
  return <h1>Run</h1>;
}
