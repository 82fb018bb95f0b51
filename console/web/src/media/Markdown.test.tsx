// @vitest-environment jsdom
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import Markdown from "./Markdown";

afterEach(cleanup);
const html = (text: string): HTMLElement => render(<Markdown text={text} />).container;

test("prose is set: lists, emphasis, code", () => {
  const shown = html("# Title\n\nSome *words*\n\n- one\n- two\n\n```js\nlet a;\n```");
  expect(shown.querySelectorAll("li")).toHaveLength(2);
  expect(shown.querySelector("em")?.textContent).toBe("words");
  expect(shown.querySelector("pre code")?.textContent).toBe("let a;\n");
  expect(shown.querySelector("h1, h2, h3, h4, h5, h6")).toBeNull();
});

test.each([
  ["<img src=x onerror=alert(1)> <script>alert(1)</script>", "<img src=x onerror=alert(1)>"],
  ["<a href='https://evil.example'>go</a>", "<a href='https://evil.example'>"],
  ["[go](https://evil.example/?q=1)", "https://evil.example/?q=1"],
  ["[go](javascript:alert(1))", "javascript:alert(1)"],
  ["![a dot](https://evil.example/pixel.png)", "https://evil.example/pixel.png"],
  ["<https://evil.example>", "https://evil.example"],
  ["<svg onload=alert(1)>\n<iframe src=//evil.example></iframe>", "<svg onload=alert(1)>"],
  ["a\u202eb", "U+202E"],
])("nothing in it is markup, a link or a request: %s", (text, shown) => {
  const found = html(text);
  expect(found.querySelector("a, img, script, iframe, svg, object, form, style, link, [onerror], [onload], [href], [src]")).toBeNull();
  expect(found.textContent).toContain(shown);
});
