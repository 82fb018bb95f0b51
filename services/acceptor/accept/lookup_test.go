package accept_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// lookup looks an envelope up after the end of the run.
func (f *fixture) lookup(doc string) (*accept.Result, error) {
	return f.pipeline().Lookup(f.t.Context(), f.request(doc))
}

// OpenWOP envelope contract §9: the recorded outcome is returned byte for byte, even after
// the end of the run, and whatever else differs in the document.
func TestLookup_ReturnsTheRecordedOutcomeOfAnEndedRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.accept(doc(note, goodNote))
	f.head = first.Head
	f.end()
	for _, payload := range []string{goodNote, `{"text":"otherwise"}`, `{"not":"of its schema"}`} {
		res, err := f.lookup(doc(note, payload))
		require.NoError(t, err)
		require.True(t, res.Recalled)
		require.Equal(t, first.Outcome, res.Outcome)
		require.Equal(t, first.Payload, res.Payload)
		require.Equal(t, first.Events, res.Events)
		require.Equal(t, first.Attributes.Kind, res.Attributes.Kind)
		require.Equal(t, nodeID, res.Attributes.NodeID)
	}
	require.EqualValues(t, 1, f.redactor.calls.Load(), "a lookup does not call the redactor")

	res, err := f.lookup(doc(accept.KindError, goodNote))
	require.NoError(t, err)
	refused(t, res, accept.Invalid, fault.EnvelopeCorrelationClash)
	require.Empty(t, res.Attributes.Kind, "taken from an unredacted document")
}

// OpenWOP envelope contract §26 case 5: an asset does not count against the document's limit.
func TestLookup_SkipsALargeAsset(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.assets = &shelf{}
	large := doc(accept.KindFile, fmt.Sprintf(`{"base64":%q,"bytes":%d}`, base64Of(2<<20), 2<<20))
	first := f.accept(large)
	require.Nil(t, first.Refusal)
	f.head = first.Head
	f.end()
	res, err := f.lookup(large)
	require.NoError(t, err)
	require.Equal(t, first.Outcome, res.Outcome)
}

func TestLookup_FailsForUnrecordedEnvelopes(t *testing.T) {
	t.Parallel()
	fresh := doc(note, goodNote, map[string]any{"correlationId": "corr-2"})
	for name, tc := range map[string]struct {
		doc   string
		spoil func(*fixture)
		code  fault.Code
	}{
		"another envelope": {fresh, func(*fixture) {}, fault.RunTerminal},
		"invalid JSON":     {`{"type":`, func(*fixture) {}, fault.RunTerminal},
		"no correlationId": {`{"type":"x"}`, func(*fixture) {}, fault.RunTerminal},
		"an asset above the limit": {
			doc(accept.KindFile, `{"base64":"`+strings.Repeat("A", accept.DefaultMaxMediaBytes+4)+`"}`),
			func(*fixture) {},
			fault.RunTerminal,
		},
		"a caller with an old head": {fresh, func(f *fixture) { f.head = f.log.Frames()[1].Head() }, fault.Conflict},
		"an unavailable log": {
			fresh,
			func(f *fixture) { f.log.FailReads(runlog.ErrUnavailable) },
			fault.ServiceUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.head = f.accept(doc(note, goodNote)).Head
			f.end()
			tc.spoil(f)
			_, err := f.lookup(tc.doc)
			require.Equal(t, tc.code, fault.CodeOf(err), "%v", err)
		})
	}
}
