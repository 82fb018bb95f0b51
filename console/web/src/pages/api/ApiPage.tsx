import type { ReactNode } from "react";
import { useTitle } from "../../app/title";

export default function ApiPage(): ReactNode {
  useTitle("API");
  return <h1>API</h1>;
}
