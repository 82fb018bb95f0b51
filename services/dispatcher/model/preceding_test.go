package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

const (
	twoTickets = `[{"type":"vendor.x.ticket","payload":{"a":1}},{"type":"vendor.x.ticket","payload":{"a":2}}]`
	fencedOne  = "```json\n{\"a\":1}\n```"
)

// listening appends the preceding event types of each envelope to heard.
func listening(heard *[]string, accept func(model.AcceptRequest) (model.Outcome, error)) func(model.AcceptRequest) (model.Outcome, error) {
	return func(req model.AcceptRequest) (model.Outcome, error) {
		var types []string
		for _, d := range req.Preceding {
			types = append(types, string(d.Type))
		}
		*heard = append(*heard, strings.Join(types, " "))
		return accept(req)
	}
}

// The usage of a call is appended with the first envelope of its answer, in the same frame.
func TestPreceding_GoesWithTheFirstEnvelopeOfTheAnswer(t *testing.T) {
	t.Parallel()
	var heard []string
	r := envelope(t, listening(&heard, acceptAll), mock.Entry{Content: twoTickets})
	require.Equal(t, []string{"provider.usage", ""}, heard)
	require.Equal(t, "provider.usage accept accept", r.names())
	require.Equal(t, 2, r.frames, "one for each envelope")

	heard = nil
	r = envelope(t, listening(&heard, acceptAll), mock.Entry{Content: fencedOne})
	require.Equal(t, []string{"provider.usage envelope.recovery.applied"}, heard)
	require.Equal(t, 1, r.frames)
	require.Empty(t, r.result.Drafts, "no event is left for the end of the node")
}

// Each answered call has one usage event in its place, whatever the outcomes of its envelopes
// (OpenWOP envelope contract §19.1).
func TestPreceding_IsToldOnceWhateverBecomesOfTheEnvelope(t *testing.T) {
	t.Parallel()
	alone := func(req model.AcceptRequest) (model.Outcome, error) {
		out, err := acceptAll(req)
		out.Preceded = false
		return out, err
	}
	// by returns the outcomes in order, and then the last one for all further envelopes.
	by := func(list ...func(model.AcceptRequest) (model.Outcome, error)) func(model.AcceptRequest) (model.Outcome, error) {
		return func(req model.AcceptRequest) (model.Outcome, error) {
			next := list[0]
			if len(list) > 1 {
				list = list[1:]
			}
			return next(req)
		}
	}
	says := func(o model.Outcome) func(model.AcceptRequest) (model.Outcome, error) {
		return func(model.AcceptRequest) (model.Outcome, error) { return o, nil }
	}
	invalid := says(model.Outcome{Status: "invalid", Reason: "envelope_invalid: no"})
	discarded := says(model.Outcome{Status: "gated", Gate: &model.Gate{RefusalMode: "discard-and-warn"}})
	one, two := mock.Entry{Content: `{"a":1}`}, mock.Entry{Content: twoTickets}
	for name, tc := range map[string]struct {
		accept func(model.AcceptRequest) (model.Outcome, error)
		script []mock.Entry
		heard  string
		want   string
	}{
		"accepted": {acceptAll, []mock.Entry{one}, "[provider.usage]", "provider.usage accept"},
		"recalled, or by an acceptor of an older release": {alone, []mock.Entry{one}, "[provider.usage]", "accept provider.usage"},
		"the first is recalled": {
			by(alone, acceptAll), []mock.Entry{two}, "[provider.usage provider.usage]", "accept provider.usage accept",
		},
		"refused, and the next one accepted": {
			by(invalid, acceptAll),
			[]mock.Entry{one, one},
			"[provider.usage provider.usage]",
			"provider.usage envelope.retry.attempted provider.usage accept",
		},
		"accepted, and the next one refused": {
			by(acceptAll, invalid, alone, acceptAll),
			[]mock.Entry{two, two},
			"[provider.usage  provider.usage provider.usage]",
			"provider.usage accept envelope.retry.attempted accept provider.usage accept",
		},
		"discarded with a warning": {
			by(discarded, acceptAll),
			[]mock.Entry{two},
			"[provider.usage provider.usage log.appended]",
			"provider.usage log.appended accept",
		},
		"discarded, and then accepted": {
			by(discarded, acceptAll),
			[]mock.Entry{one, one},
			"[provider.usage provider.usage]",
			"provider.usage log.appended envelope.retry.attempted provider.usage accept",
		},
		"gated":                        {says(model.Outcome{Status: "gated"}), []mock.Entry{one}, "[provider.usage]", "provider.usage"},
		"breached":                     {says(model.Outcome{Status: "breached", CapKind: "envelopes"}), []mock.Entry{one}, "[provider.usage]", "provider.usage cap.breached"},
		"talk, recalled, and accepted": {by(alone, acceptAll), []mock.Entry{{Content: asksForSchema}, one}, "[provider.usage provider.usage]", "accept provider.usage provider.usage accept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var heard []string
			r := envelope(t, listening(&heard, tc.accept), tc.script...)
			require.NoError(t, r.result.Interrupted)
			require.Equal(t, tc.heard, fmt.Sprint(heard))
			require.Equal(t, tc.want, r.names())
			require.Equal(t, len(r.spy.reqs), strings.Count(r.names(), string(wire.EventProviderUsage)), "one for each call")
		})
	}
}
