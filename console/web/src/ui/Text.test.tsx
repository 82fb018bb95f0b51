// @vitest-environment jsdom
import { render, screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { countRedactions, Name, Text } from "./Text";
import { escapeHidden } from "./escape";

describe("a text from outside", () => {
  it("stays text when it looks like markup", () => {
    const { container } = render(<Text text={'<img src=x onerror="alert(1)">'} />);
    expect(container.querySelector("img")).toBeNull();
    expect(container.textContent).toBe('<img src=x onerror="alert(1)">');
  });

  it("shows what would turn its order around, and keeps line ends", () => {
    const { container } = render(<Text text={"abc\u202ecba\nd\u200be\u0007"} />);
    expect(container.textContent).toBe("abcU+202Ecba\ndU+200BeU+0007");
  });

  it("names the rule of a redaction and hides its length", () => {
    const { container } = render(<Text text="key [REDACTED:stripe] and [REDACTED]" />);
    expect([...container.querySelectorAll(".redacted")].map((e) => e.textContent)).toEqual(["redacted: stripe", "redacted"]);
    expect(countRedactions("key [REDACTED:stripe] and [REDACTED]")).toBe(2);
  });

  it("hides nothing as a name, a label or a title, and is cut where it is long", () => {
    const odd = "exe\u202egnp\u2066\u0000";
    const { container } = render(<Name text={odd} />);
    expect(container.textContent).toBe("exeU+202EgnpU+2066U+0000");
    expect(container.querySelector("bdi")).not.toBeNull();
    expect(escapeHidden(odd)).toBe(container.textContent);
    expect(render(<Name text={"x".repeat(3000)} />).container.textContent).toHaveLength(2001);
  });

  it("shows a long text in part", () => {
    render(<Text text={"x".repeat(3000)} />);
    expect(screen.getByRole("button", { name: "1,000 more characters" })).toBeTruthy();
  });
});
