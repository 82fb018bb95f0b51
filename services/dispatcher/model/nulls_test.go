package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// OpenWOP envelope contract §5, §20: a model without a strict schema may write absent members as
// null, too.
func TestValue_NullIsAbsence(t *testing.T) {
	t.Parallel()
	const config = `{"outputSchema":{"type":"object","additionalProperties":false,"required":["team"],"properties":{
		"team":{"type":"string"},"order":{"type":"integer"},"nick":{"type":["string","null"]},"reasoning":{"type":["string","null"]},
		"lines":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"}}}}}}}`
	r := execute(t, node.TypeStructuredOutput, config, acceptAll,
		mock.Entry{Content: `{"reasoning":null,"team":"a","order":null,"nick":null,"lines":[{"sku":null},{"sku":"x"}]}`})
	require.Nil(t, r.result.Err)
	require.Len(t, r.spy.reqs, 1)
	require.JSONEq(t, `{"team":"a","nick":null,"lines":[{},{"sku":"x"}]}`, string(r.result.Output.Ports["output"]))

	// The correction names the real mistake only.
	r = execute(t, node.TypeStructuredOutput, config, acceptAll,
		mock.Entry{Content: `{"team":7,"order":null}`}, mock.Entry{Content: `{"team":"a"}`})
	require.Nil(t, r.result.Err)
	require.Len(t, r.spy.reqs, 2)
	last := r.spy.reqs[1].Messages[len(r.spy.reqs[1].Messages)-1]
	require.Contains(t, string(last.Content), "/team")
	require.NotContains(t, string(last.Content), "/order")
}

// A model that writes the envelope's own optional members as null gets the host's values.
func TestEnvelope_NullMembersAreFilledIn(t *testing.T) {
	t.Parallel()
	var got struct {
		SchemaVersion int
		Partial       json.RawMessage
		Meta          map[string]any
	}
	r := envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
		require.NoError(t, json.Unmarshal(req.Envelope, &got))
		return acceptAll(req)
	}, mock.Entry{Content: `{"type":"vendor.x.ticket","schemaVersion":null,"envelopeId":null,"correlationId":null,"meta":null,"partial":null,"payload":{"a":1}}`})
	require.Nil(t, r.result.Err)
	require.Positive(t, got.SchemaVersion)
	require.Nil(t, got.Partial)
	require.Equal(t, "ai-generation", got.Meta["source"])
}
