// @vitest-environment jsdom
import { expect, test } from "vitest";
import { answerRequest, asCurl, asGrpcurl, asWaybill, diffRequest, forkRequest, quoted } from "./requests";

test("a credential is the name of a variable, and a shell reads the words as they are", () => {
  expect(asCurl(answerRequest("run_1", "ask me", { action: "accept", feedback: "it's $HOME" }), "http://h:1/a")).toBe(
    `curl -sS -X POST -H "Authorization: Bearer $WAYBILL_TOKEN" -H 'Content-Type: application/json' -d '{"resumeValue":{"action":"accept","feedback":"it'\\''s $HOME"}}' http://h:1/a/v1/runs/run_1/interrupts/ask%20me`,
  );
  expect(quoted("a b")).toBe("'a b'");
});

test("the same request for each way in", () => {
  const r = diffRequest("run_1", "run_2");
  expect(asCurl(r, "http://h")).toContain("'http://h/v1/runs/run_1:diff?against=run_2'");
  expect(asWaybill(r)).toBe("waybill run diff run_1 run_2");
  expect(asGrpcurl(r, "grpc://127.0.0.1:9090")).toBe(`grpcurl -plaintext -H "authorization: Bearer $WAYBILL_TOKEN" -d '{"run_id":"run_1","against":"run_2"}' 127.0.0.1:9090 waybill.host.v1.Host/DiffRuns`);
  expect(asGrpcurl(r, "grpcs://h:443")).not.toContain("-plaintext");
  expect(asGrpcurl(forkRequest("run_1", { mode: "replay", fromSeq: 2 }), "grpc://h")).toBeUndefined();
});

test("what is open without a credential names none", () => {
  expect(asCurl({ method: "GET", path: "/v1/interrupts/t", open: true }, "http://h")).toBe("curl -sS http://h/v1/interrupts/t");
});
