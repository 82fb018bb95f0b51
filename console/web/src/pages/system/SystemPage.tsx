import type { ReactNode } from "react";
import { useTitle } from "../../app/title";

export default function SystemPage(): ReactNode {
  useTitle("System");
  return <h1>System</h1>;
}
