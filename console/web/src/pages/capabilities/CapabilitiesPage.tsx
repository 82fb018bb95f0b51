import type { ReactNode } from "react";
import { useTitle } from "../../app/title";

export default function CapabilitiesPage(): ReactNode {
  useTitle("Capabilities");
  return <h1>Capabilities</h1>;
}
