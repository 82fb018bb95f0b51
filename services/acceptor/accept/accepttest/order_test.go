package accepttest_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/services/acceptor/accept/accepttest"
)

func TestEnvelope_HasTwoKilobytesAndAPayloadOfItsKind(t *testing.T) {
	t.Parallel()
	doc := accepttest.Envelope("corr-0000")
	require.InDelta(t, 2048, len(doc), 32)
	var e struct {
		Type, CorrelationID string
		Payload             json.RawMessage
	}
	require.NoError(t, json.Unmarshal(doc, &e))
	require.Equal(t, accepttest.Kind, e.Type)
	require.Equal(t, "corr-0000", e.CorrelationID)
	s, err := schema.Compile(accepttest.Kind, []byte(accepttest.Schema))
	require.NoError(t, err)
	require.Nil(t, s.Validate(e.Payload))
	require.Empty(t, schema.Lint([]byte(accepttest.Schema), schema.LevelAlways))
}
