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

// recall asks of the run's end for what was recorded of an envelope.
func (f *fixture) recall(doc string) (*accept.Result, error) {
	return f.pipeline().Recall(f.t.Context(), f.request(doc))
}

// OpenWOP envelope contract §9: what was recorded is answered with the same bytes,
// also when the run has ended since, and whatever the document says besides.
func TestRecall_GivesTheRecordedOutcomeOfAnEndedRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.accept(doc(note, goodNote))
	f.head = first.Head
	f.end()
	for _, payload := range []string{goodNote, `{"text":"otherwise"}`, `{"not":"of its schema"}`} {
		res, err := f.recall(doc(note, payload))
		require.NoError(t, err)
		require.True(t, res.Recalled)
		require.Equal(t, first.Outcome, res.Outcome)
		require.Equal(t, first.Payload, res.Payload)
		require.Equal(t, first.Events, res.Events)
		require.Equal(t, first.Facts.Kind, res.Facts.Kind)
		require.Equal(t, nodeID, res.Facts.NodeID)
	}
	require.EqualValues(t, 1, f.redactor.calls.Load(), "only the first was taken in")

	res, err := f.recall(doc(accept.KindError, goodNote))
	require.NoError(t, err)
	refused(t, res, accept.Invalid, fault.EnvelopeCorrelationClash)
	require.Empty(t, res.Facts.Kind, "the document's own word")
}

// OpenWOP envelope contract §26 case 5: an asset does not count in the document's size.
func TestRecall_ReadsPastALargeAsset(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.assets = &shelf{}
	large := doc(accept.KindFile, fmt.Sprintf(`{"base64":%q,"bytes":%d}`, base64Of(2<<20), 2<<20))
	first := f.accept(large)
	require.Nil(t, first.Refusal)
	f.head = first.Head
	f.end()
	res, err := f.recall(large)
	require.NoError(t, err)
	require.Equal(t, first.Outcome, res.Outcome)
}

func TestRecall_RefusesWhatWasNotRecorded(t *testing.T) {
	t.Parallel()
	fresh := doc(note, goodNote, map[string]any{"correlationId": "corr-2"})
	for name, tc := range map[string]struct {
		doc   string
		spoil func(*fixture)
		code  fault.Code
	}{
		"another envelope":              {fresh, func(*fixture) {}, fault.RunTerminal},
		"nothing sound":                 {`{"type":`, func(*fixture) {}, fault.RunTerminal},
		"no correlationId":              {`{"type":"x"}`, func(*fixture) {}, fault.RunTerminal},
		"an asset beyond all bounds":    {doc(accept.KindFile, `{"base64":"`+strings.Repeat("A", accept.DefaultMaxMediaBytes+4)+`"}`), func(*fixture) {}, fault.RunTerminal},
		"a caller who has to read more": {fresh, func(f *fixture) { f.head = f.log.Frames()[1].Head() }, fault.Conflict},
		"a log that is away":            {fresh, func(f *fixture) { f.log.FailReads(runlog.ErrUnavailable) }, fault.ServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.head = f.accept(doc(note, goodNote)).Head
			f.end()
			tc.spoil(f)
			_, err := f.recall(tc.doc)
			require.Equal(t, tc.code, fault.CodeOf(err), "%v", err)
		})
	}
}
