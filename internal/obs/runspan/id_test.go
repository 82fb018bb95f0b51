package runspan_test

import (
	"testing"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/protocol/wire"
)

func TestTraceOf_IsTheTraceOfTheRequest(t *testing.T) {
	t.Parallel()
	trace, parent := runspan.TraceOf("r1", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if trace.String() != "4bf92f3577b34da6a3ce929d0e0e4736" || parent.String() != "00f067aa0ba902b7" {
		t.Errorf("trace %s, parent %s", trace, parent)
	}
	for _, bad := range []string{"", "00-", "00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01"} {
		own, none := runspan.TraceOf("r1", bad)
		again, _ := runspan.TraceOf("r1", "")
		if own != again || own == (runspan.TraceID{}) || none != (runspan.SpanID{}) {
			t.Errorf("%q: trace %s, parent %s", bad, own, none)
		}
	}
}

func TestSpans_AreStableAndDistinct(t *testing.T) {
	t.Parallel()
	seen := map[runspan.SpanID]string{}
	for name, id := range map[string]runspan.SpanID{
		"run": runspan.RunSpan("r"), "other run": runspan.RunSpan("r2"),
		"node": runspan.NodeSpan("r", "a"), "other node": runspan.NodeSpan("r", "b"), "shifted": runspan.NodeSpan("ra", ""),
		"attempt": runspan.AttemptSpan("r", "a", 0), "second attempt": runspan.AttemptSpan("r", "a", 1),
		"interrupt": runspan.InterruptSpan("r", "a"), "other interrupt": runspan.InterruptSpan("r", "b"),
		"call": runspan.CallSpan("r", "a", 0, 0), "second call": runspan.CallSpan("r", "a", 0, 1),
	} {
		if other, taken := seen[id]; taken {
			t.Errorf("%s and %s share the id %s", name, other, id)
		}
		seen[id] = name
	}
	if got := runspan.RunSpan("r").String(); got != "1f7f71c229e4be0f" {
		t.Errorf("the id of a span has changed: %s", got)
	}
}

func TestContext_UsesTheTraceOfTheRun(t *testing.T) {
	t.Parallel()
	rec := &wire.RunRecord{RunID: "r", Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}
	c := runspan.ContextOf(rec, true)
	for parent, got := range map[runspan.SpanID]string{
		runspan.RunSpan("r"):             c.Run(),
		runspan.AttemptSpan("r", "n", 1): c.Attempt("n", 1),
		runspan.CallSpan("r", "n", 1, 2): c.Call("n", 1, 2),
	} {
		if want := "00-4bf92f3577b34da6a3ce929d0e0e4736-" + parent.String() + "-01"; got != want || !wire.ValidTraceparent(got) || !runspan.Sampled(got) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if runspan.Sampled(runspan.ContextOf(rec, false).Run()) || runspan.Sampled("") || runspan.Sampled("00-x") {
		t.Error("sampled without the flag")
	}
	if got := (runspan.Context{}).Run(); got != "" {
		t.Errorf("the zero context gives %q", got)
	}
}
