// @vitest-environment jsdom
import { render } from "@testing-library/react";
import { expect, test } from "vitest";
import { Explanation } from "./Explanation";

test("C11 a command in the next step is set as one", () => {
  const { container } = render(<Explanation code="run_not_found" message="none" />);
  expect([...container.querySelectorAll("dd code")].map((code) => code.textContent)).toEqual(["waybill run list"]);
  expect(container.textContent).not.toContain("`");
});
