// @vitest-environment jsdom
import { expect, test } from "vitest";
import { readView } from "./query";
import { addressOf, differs, findView, nameOf, type SavedView } from "./views";

const mine: SavedView = { viewId: "v1", name: "Costly", filter: "tag:a b", sort: "cost", order: "desc", columns: ["cost", "model"], shared: false, owner: "ada", mine: true, updatedAt: "2026-11-27T09:43:59.414Z" };
const theirs: SavedView = { ...mine, owner: "ben", mine: false, shared: true, columns: [] };

test("the address of a view shows the view, and names it", () => {
  const shown = readView(addressOf(mine).slice(1));
  expect(shown).toEqual({ filter: "tag:a b", sort: "cost", order: "desc", saved: "v1" });
  expect(findView([theirs, mine], shown.saved)).toBe(mine);
  expect(differs(mine, shown, ["model", "cost"])).toBe(false);
});

test("views of two owners with one id are two", () => {
  expect(nameOf(theirs)).toBe("ben/v1");
  expect(findView([mine, theirs], readView(addressOf(theirs).slice(1)).saved)).toBe(theirs);
});

test("another filter, order or set of columns is a change; a view without columns has those of the reader", () => {
  const shown = readView(addressOf(mine).slice(1));
  expect(differs(mine, { ...shown, filter: "" }, mine.columns)).toBe(true);
  expect(differs(mine, { ...shown, order: "asc" }, mine.columns)).toBe(true);
  expect(differs(mine, shown, ["cost"])).toBe(true);
  expect(differs(theirs, shown, ["cost"])).toBe(false);
});
