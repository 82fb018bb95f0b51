// @vitest-environment jsdom
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { Media } from "./Media";

afterEach(cleanup);

const payload = { url: "/v1/assets/t0ken", bytes: 2000, mimeType: "image/png" };

test("an image has its title and its description as its caption", () => {
  render(<Media form="image" payload={{ ...payload, alt: "A red lamp on a desk." }} rendering={{ title: "Lamp" }} />);
  const caption = screen.getByRole("figure").querySelector("figcaption");
  expect(caption?.querySelector("strong")?.textContent).toBe("Lamp");
  expect(caption?.textContent).toContain("A red lamp on a desk.");
  expect(caption?.textContent).toContain("2.0 kB");
  expect(screen.getByRole("img").getAttribute("alt")).toBe("A red lamp on a desk.");
});

test("a sound has its title, and a file that has a name of its own", () => {
  render(<Media form="audio" payload={{ ...payload, mimeType: "audio/wav" }} rendering={{ title: "Greeting" }} />);
  expect(screen.getByRole("figure").textContent).toContain("Greeting");
  cleanup();
  render(<Media form="file" payload={{ ...payload, mimeType: "application/pdf", name: "a.pdf" }} rendering={{ title: "The report" }} />);
  expect(screen.getByText("a.pdf").tagName).toBe("A");
  expect(screen.getByText("The report")).toBeTruthy();
});

test("an image without a title has no empty caption", () => {
  render(<Media form="image" payload={payload} />);
  expect(screen.getByRole("figure").querySelector("strong")).toBeNull();
});
