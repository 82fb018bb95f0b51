package model_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

func TestConfig_ReadsMembersThatAreSpelledExactlySo(t *testing.T) {
	t.Parallel()
	r := execute(t, node.TypeCallPrompt, `{"Model":"other","MAXTOKENS":7,"temperature":0.5,"Temperature":1.5}`, acceptAll, mock.Entry{Content: "hello"})
	require.Nil(t, r.result.Err)
	req := r.spy.reqs[0]
	require.Equal(t, "m", req.Model)
	require.Equal(t, 100, req.MaxTokens)
	require.InDelta(t, 0.5, *req.Temperature, 0)
}

// An envelope with a duplicate member reaches the pipeline unchanged, so that the shape step
// rejects it (OpenWOP envelope contract §26 case 5).
func TestEnvelope_ThatNamesAMemberTwiceReachesThePipelineAsItIs(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"payload":       `{"type":"vendor.x.ticket","payload":{"a":1},"payload":{"a":2}}`,
		"type":          `{"type":"other","type":"vendor.x.ticket","payload":{"a":1}}`,
		"meta":          `{"type":"vendor.x.ticket","payload":{"a":1},"meta":{"label":"x","label":"y"}}`,
		"in a payload":  `{"type":"vendor.x.ticket","payload":{"a":1,"a":2}}`,
		"in an array":   `[{"type":"vendor.x.ticket","payload":{"a":1},"payload":{"a":2}}]`,
		"a bare object": `{"a":1,"a":2}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen error
			envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
				seen = strictjson.Check(req.Envelope, strictjson.Default)
				return model.Outcome{Status: "accepted"}, nil
			}, mock.Entry{Content: doc})
			e, ok := errors.AsType[*strictjson.Error](seen)
			require.True(t, ok, "%v", seen)
			require.Equal(t, strictjson.RuleDuplicate, e.Rule)
		})
	}
}

func TestValue_IsNamedByMembersThatAreSpelledExactlySo(t *testing.T) {
	t.Parallel()
	r := execute(t, node.TypeStructuredOutput, `{"outputSchema":{"title":"mine","Title":"other","$ID":"https://x/other.schema.json","required":["x"]}}`,
		acceptAll, mock.Entry{Content: `{"x":1}`})
	require.Nil(t, r.result.Err)
	require.Equal(t, "mine", r.spy.reqs[0].SchemaName)
}
