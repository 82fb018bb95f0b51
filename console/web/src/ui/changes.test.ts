// @vitest-environment node
import { expect, test } from "vitest";
import { parseJson, type Json } from "../api/json";
import { changes } from "./changes";

test.each<[Json, Json, object[]]>([
  [{ a: 1 }, { a: 1 }, []],
  [{ a: 1 }, { a: 2 }, [{ pointer: "/a", a: 1, b: 2 }]],
  [{ a: { b: [1, 2] } }, { a: { b: [1, 3, 4] } }, [{ pointer: "/a/b/1", a: 2, b: 3 }, { pointer: "/a/b/2", b: 4 }]],
  [{ "a/b": 1 }, {}, [{ pointer: "/a~1b", a: 1 }]],
  [{ a: [] }, { a: {} }, [{ pointer: "/a", a: [], b: {} }]],
  [parseJson("9007199254740993"), parseJson("9007199254740992"), [{ pointer: "" }]],
])("%j and %j differ at", (a, b, want) => expect(changes(a, b)).toMatchObject(want));

test("a value that is everywhere else ends the list in time", () => {
  const wide = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, i]));
  expect(changes(wide, {})).toHaveLength(200);
});
