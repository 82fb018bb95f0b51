package completion_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
