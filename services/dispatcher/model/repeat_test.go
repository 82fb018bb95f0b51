package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// errLost is the error of a lost executor.
var errLost = errors.New("the executor is lost")

// ledger records the first envelope with each correlationId, as the log does.
type ledger struct {
	recorded map[string]model.Recorded
	// left is how many are recorded before the executor is lost; negative means all.
	left int
}

func (l *ledger) accept(req model.AcceptRequest) (model.Outcome, error) {
	var e struct {
		Type, EnvelopeID, CorrelationID string
		Payload                         json.RawMessage
	}
	if err := json.Unmarshal(req.Envelope, &e); err != nil {
		return model.Outcome{}, err
	}
	r, ok := l.recorded[e.CorrelationID]
	switch {
	case strings.Contains(string(e.Payload), "bad"):
		return model.Outcome{Status: "invalid", Reason: "envelope_invalid: x"}, nil
	case !ok && l.left == 0:
		return model.Outcome{}, errLost
	case !ok:
		l.left--
		r = model.Recorded{
			Kind:       e.Type,
			EnvelopeID: e.EnvelopeID,
			Payload:    e.Payload,
			Sequence:   10 + 2*len(l.recorded),
			Answer:     req.Answer,
		}
		l.recorded[e.CorrelationID] = r
	}
	return model.Outcome{
		Status:     "accepted",
		EnvelopeID: r.EnvelopeID,
		Payload:    r.Payload,
		Sequence:   r.Sequence,
		Preceded:   !ok,
	}, nil
}

// executor is a lost executor of the node: the model's answers, and how many envelopes it recorded;
// negative means all, but not the end of the node.
type executor struct {
	answers []string
	records int
}

// carryOut runs the node with one executor after the other, and returns the last one's result.
func carryOut(t *testing.T, l *ledger, all ...executor) (last rig) {
	t.Helper()
	var announced []model.Retry
	for _, x := range all {
		l.left = x.records
		var script []mock.Entry
		for _, a := range x.answers {
			script = append(script, mock.Entry{Content: a})
		}
		last = executeTask(t, model.Task{
			TypeID: node.TypeCallPrompt, Retries: announced, Recorded: l.recorded,
			Input: node.Input{Config: json.RawMessage(`{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`)},
		}, l.accept, script...)
		for attempt := len(announced) + 2; attempt <= len(last.spy.reqs); attempt++ {
			announced = append(announced, model.Retry{Attempt: attempt, Reason: "schema-violation", Detail: "x"})
		}
	}
	return last
}

// OpenWOP envelope contract §9: if the log has all of an answer, that answer is used, always the
// same one, whatever other envelopes of the emission are recorded. Otherwise the model is called,
// and envelopes that it repeats are the recorded ones.
func TestResume_TakesTheLastAnswerThatWasRecorded(t *testing.T) {
	t.Parallel()
	const (
		failed = `{"type":"error","payload":{"code":"x","message":"y"}}`
		thanks = `{"type":"schema.response","payload":{"envelopeType":"vendor.x.ticket","ack":true}}`
		bad    = `{"type":"vendor.x.ticket","payload":{"a":"bad"}}`
	)
	ticket := func(n int) string { return fmt.Sprintf(`{"type":"vendor.x.ticket","payload":{"a":%d}}`, n) }
	all := func(envelopes ...string) string { return "[" + strings.Join(envelopes, ",") + "]" }
	for name, tc := range map[string]struct {
		lost []executor
		// outputs are the payloads of the node's tickets, asked the number of calls.
		outputs []string
		asked   int
	}{
		"an answer of one": {[]executor{{[]string{ticket(2)}, -1}}, []string{`{"a":2}`}, 0},
		"an answer of two": {[]executor{{[]string{all(ticket(2), ticket(3))}, -1}}, []string{`{"a":2}`, `{"a":3}`}, 0},
		"a second answer that repeats an envelope of the first": {
			[]executor{{[]string{all(failed, bad), all(failed, ticket(2))}, -1}}, []string{`{"a":2}`}, 0,
		},
		"a second answer that repeats a ticket": {
			[]executor{{[]string{all(ticket(1), bad), all(ticket(7), ticket(2))}, -1}}, []string{`{"a":1}`, `{"a":2}`}, 0,
		},
		"a second answer of other kinds":       {[]executor{{[]string{all(failed, bad), all(ticket(2), ticket(3))}, -1}}, []string{`{"a":2}`, `{"a":3}`}, 0},
		"a second answer of one":               {[]executor{{[]string{all(failed, bad), ticket(2)}, -1}}, []string{`{"a":2}`}, 0},
		"a second answer that is all repeated": {[]executor{{[]string{all(ticket(1), bad), ticket(5)}, -1}}, []string{`{"a":1}`}, 1},
		"half of an answer":                    {[]executor{{[]string{all(ticket(2), ticket(3))}, 1}}, []string{`{"a":2}`}, 1},
		"half of a second answer":              {[]executor{{[]string{all(failed, failed, bad), all(ticket(2), ticket(3))}, 3}}, []string{`{"a":2}`}, 1},
		"another executor repeated the call and got less": {
			[]executor{{[]string{all(failed, ticket(3))}, 1}, {[]string{ticket(4)}, -1}}, []string{`{"a":4}`}, 0,
		},
		"another executor repeated the call and got another answer": {
			[]executor{{[]string{all(failed, ticket(3))}, 1}, {[]string{all(ticket(4), ticket(5))}, -1}}, []string{`{"a":4}`, `{"a":5}`}, 0,
		},
		"a second answer that is talk": {[]executor{{[]string{all(asksForSchema, bad), thanks}, 1}}, []string{`{"a":9}`}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &ledger{recorded: map[string]model.Recorded{}}
			live := carryOut(t, l, tc.lost...)
			for range 30 { // the iteration order of maps is random
				kept := &ledger{recorded: map[string]model.Recorded{}}
				again := append(append([]executor{}, tc.lost...), executor{[]string{`{"a":9}`, `{"a":9}`}, -1})
				r := carryOut(t, kept, again...)
				require.Nil(t, r.result.Err)
				require.NoError(t, r.result.Interrupted)
				require.Len(t, r.spy.reqs, tc.asked)
				require.JSONEq(t, tc.outputs[len(tc.outputs)-1], string(r.result.Output.Ports["output"]))
				var envelopes []struct {
					Type    string
					Payload json.RawMessage
				}
				require.NoError(t, json.Unmarshal(r.result.Output.Ports["envelopes"], &envelopes))
				var tickets []string
				for _, e := range envelopes {
					if e.Type == "vendor.x.ticket" {
						tickets = append(tickets, string(e.Payload))
					}
				}
				require.Equal(t, tc.outputs, tickets)
				if tc.asked == 0 {
					require.Equal(t, live.result.Output, r.result.Output, "the same result as without a loss")
					require.Len(t, kept.recorded, len(l.recorded), "no envelope is recorded twice")
				}
			}
		})
	}
}
