// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { SurfaceForm } from "./SurfaceForm";

afterEach(cleanup);

const surface = (...components: object[]): object => ({ catalogVersion: "0.9.1", surface: { components } });
const why = { component: "field.text", id: "why", label: "Why?", required: true };
const go = { component: "action.button", id: "go", label: "Send", action: { target: "resume" } };

test("C7d a surface that is still written offers no action; what was typed and the focus outlive its end", () => {
  const sent = vi.fn();
  const { rerender } = render(<SurfaceForm payload={surface(why, go)} partial onResume={sent} />);
  const field = screen.getByLabelText("Why?");
  field.focus();
  fireEvent.change(field, { target: { value: "too small" } });
  expect((screen.getByRole("button") as HTMLButtonElement).disabled).toBe(true);
  expect(screen.getByText("The form is still being written.")).toBeTruthy();
  rerender(<SurfaceForm payload={surface(why, { component: "field.checkbox", id: "box", label: "Box" }, go)} onResume={sent} />);
  expect(document.activeElement).toBe(screen.getByLabelText("Why?"));
  fireEvent.click(screen.getByRole("button"));
  expect(sent).toHaveBeenCalledExactlyOnceWith({ why: "too small", box: false });
});

test("C7b nothing of a surface outside the catalogue is rendered", () => {
  for (const payload of [
    surface({ component: "image", url: "https://x" }),
    surface({ ...why, extra: 1 }),
    surface(why, why),
    surface({ ...why, id: "action" }),
    surface(...Array.from({ length: 201 }, () => ({ component: "text", text: "x" }))),
    { catalogVersion: "1.0", surface: { components: [] } },
  ]) {
    render(<SurfaceForm payload={payload} onResume={() => undefined} />);
    expect(screen.getByText("This form is not shown.")).toBeTruthy();
    expect(screen.queryAllByRole("textbox")).toEqual([]);
    expect(document.querySelector(".surface, input, select, button:not(.quiet)")).toBeNull();
    cleanup();
  }
});

test("a button that leads to a conversation is off where there is none", () => {
  render(<SurfaceForm payload={surface({ ...go, action: { target: "exchange" } })} onResume={() => undefined} />);
  expect((screen.getByRole("button") as HTMLButtonElement).disabled).toBe(true);
});

test("headings stand below the frame's and never jump", () => {
  const { container } = render(<SurfaceForm payload={surface({ component: "heading", text: "a", level: 1 }, { component: "heading", text: "b", level: 6 }, { component: "heading", text: "c", level: 1 })} />);
  expect([...container.querySelectorAll("h3,h4,h5,h6")].map((h) => h.tagName)).toEqual(["H3", "H4", "H3"]);
});

test("C5b a label, an option or a placeholder that a model wrote hides nothing and turns nothing around", () => {
  const odd = "Pay\u202eyaP";
  const { container } = render(
    <SurfaceForm
      payload={surface(
        { component: "field.text", id: "a", label: odd, placeholder: odd },
        { component: "field.select", id: "b", label: odd, options: [{ value: "x", label: odd }] },
        { component: "field.checkbox", id: "c", label: odd },
        { ...go, label: odd },
      )}
      onResume={() => undefined}
    />,
  );
  expect(container.innerHTML).not.toContain("\u202e");
  expect(screen.getAllByText(/U\+202E/)).toHaveLength(5);
  expect(screen.getByRole("button", { name: "PayU+202EyaP" })).toBeTruthy();
  expect(screen.getByPlaceholderText("PayU+202EyaP")).toBeTruthy();
});
