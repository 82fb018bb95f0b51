package waterfall_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/waterfall"
	"waybill.dev/waybill/protocol/wire"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// chart returns the chart of events with times in seconds, such as "1 node.started a".
func chart(lines ...string) *waterfall.Chart {
	c := waterfall.New("run_1")
	for i, line := range lines {
		f := append(strings.Fields(line), "")
		s, err := time.ParseDuration(f[0] + "s")
		if err != nil {
			panic(err)
		}
		c.Add(wire.Event{
			Sequence:  i,
			Type:      wire.EventType(f[1]),
			NodeID:    f[2],
			Payload:   json.RawMessage(`{}`),
			Timestamp: wire.FormatTime(began.Add(s)),
		})
	}
	return c
}

func TestLines_DrawsEachAttemptWhereItWas(t *testing.T) {
	t.Parallel()
	c := chart("0 run.started", "0 node.started a", "2 node.retried a", "4 node.started a", "6 node.completed a", "6 node.started b",
		"7 node.suspended b", "7 interrupt.requested b", "9 node.resumed b", "10 node.failed b", "10 run.failed")
	got := c.Lines(began.Add(10*time.Second), 41, 0, false)
	require.Equal(t, []string{
		"✓ a " + "████    ████        " + "     4.0s ↻",
		"✕ b " + "            ██░░░░██" + "     4.0s ?",
	}, got[:2])
	require.Equal(t, "✕ failed  run_1  11 events  10s", got[2])
	require.Contains(t, got[3], "10 run.failed")
}

func TestLines_GrowWhileARunGoesOn(t *testing.T) {
	t.Parallel()
	c := chart("0 run.started", "0 node.started a", "5 node.completed a", "5 node.started b")
	require.Contains(t, c.Lines(began.Add(10*time.Second), 41, 0, false)[1], "▶ b           ██████████")
	require.Contains(t, c.Lines(began.Add(20*time.Second), 41, 0, false)[1], "▶ b      ███████████████")
}

// C3: a run that waits for an answer is not shown as running.
func TestLines_ShowWhatTheRunWaitsFor(t *testing.T) {
	t.Parallel()
	asked := func(c *waterfall.Chart, node, payload string) {
		c.Add(wire.Event{
			Sequence:  9,
			Type:      "interrupt.requested",
			NodeID:    node,
			Payload:   json.RawMessage(payload),
			Timestamp: wire.FormatTime(began.Add(time.Second)),
		})
	}
	c := chart("0 run.started", "0 node.started gate", "1 node.suspended gate")
	asked(c, "gate", `{"kind":"approval","data":{"title":"Pay?","actions":["accept"]}}`)
	require.Equal(t, []string{
		"? waiting-approval  run_1  4 events  5.0s",
		"  waits for an answer at gate (approval): Pay? (accept)",
		"  how to answer: waybill interrupt show run_1 gate",
	}, c.Lines(began.Add(5*time.Second), 79, 0, false)[1:])
	require.Len(t, c.Lines(began.Add(5*time.Second), 79, 4, false), 4)

	c.Add(wire.Event{
		Type:      "node.started",
		NodeID:    "other",
		Timestamp: wire.FormatTime(began),
		Payload:   json.RawMessage(`{}`),
	})
	require.Empty(t, c.Waiting(), "another node is running")
	c.Add(wire.Event{
		Type:      "node.completed",
		NodeID:    "other",
		Timestamp: wire.FormatTime(began),
		Payload:   json.RawMessage(`{}`),
	})
	require.NotEmpty(t, c.Waiting())
	c.Add(wire.Event{
		Type:      "interrupt.resolved",
		NodeID:    "gate",
		Timestamp: wire.FormatTime(began),
		Payload:   json.RawMessage(`{}`),
	})
	require.Empty(t, c.Waiting(), "it was answered")
	asked(c, "gate", `[]`)
	require.Len(t, c.Waiting(), 2, "an invalid question still needs an answer")
	c.Add(wire.Event{Type: "run.cancelled", Timestamp: wire.FormatTime(began), Payload: json.RawMessage(`{}`)})
	require.Empty(t, c.Waiting(), "the run has ended")
}

func TestLines_FitTheScreen(t *testing.T) {
	t.Parallel()
	lines := []string{"0 run.started"}
	for i := range 50 {
		lines = append(lines, fmt.Sprintf("%d node.started a-node-with-a-long-name-%d", i, i))
	}
	c := chart(lines...)
	got := c.Lines(began.Add(time.Minute), 79, 20, false)
	require.LessOrEqual(t, len(got), 20)
	require.Contains(t, got[0], "33 nodes before")
	for _, line := range got {
		require.LessOrEqual(t, len([]rune(line)), 79, line)
		require.NotContains(t, line, "\x1b")
	}
	require.Contains(t, strings.Join(c.Lines(began.Add(time.Minute), 79, 20, true), ""), "\x1b[34m")
}

// Missing and decreasing times must not break the drawing.
func TestLines_AcceptInvalidTimes(t *testing.T) {
	t.Parallel()
	c := waterfall.New("r")
	require.NotEmpty(t, c.Lines(began, 20, 5, false))
	for _, at := range []string{"", "yesterday", wire.FormatTime(began), wire.FormatTime(began.Add(-time.Hour))} {
		c.Add(wire.Event{Type: "node.started", NodeID: "n\x1b", Timestamp: at, Payload: json.RawMessage(`null`)})
	}
	for _, line := range c.Lines(began, 10, 2, false) {
		require.NotContains(t, line, "\x1b")
	}
}
