import { expect, it } from "vitest";
import { rawEvents } from "./export";

it("cuts the events out of an answer byte for byte", () => {
  const events = ['{"sequence":0,"payload":{"a":"\\u003c]}\\"","n":1.0}}', '{"sequence":1,"payload":{"list":[[1],{}]}}'];
  expect(rawEvents(`{"runId":"r","events":[${events.join(",")}],"isComplete":true}`)).toEqual(events);
});

it("finds none in an answer without", () => {
  expect(rawEvents('{"events":[]}')).toEqual([]);
});
