import type { ReactNode } from "react";
import { useTitle } from "../../app/title";

export default function AnswerPage(): ReactNode {
  useTitle("Answer");
  return <h1>Answer</h1>;
}
