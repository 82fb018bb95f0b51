package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

func TestUnmatched_FindsPatternsOfNoModel(t *testing.T) {
	t.Parallel()
	p, err := model.ParsePolicies([]byte(`{"tenants":{"*":{
		"openai":{"mode":"restricted","allowedModels":["gpt-5*","gtp-5*","claude-*","*"]},
		"house":{"mode":"restricted","allowedModels":["anything"]},
		"*":{"mode":"restricted","allowedModels":["claude-*","none-such"]}}}}`), nil)
	require.NoError(t, err)
	near, err := model.ParsePolicies([]byte(`{"tenants":{"*":{"openai":{"mode":"restricted","allowedModels":["openai/gpt-5","gtp-5*"]}}}}`), nil)
	require.NoError(t, err)
	for _, f := range near.Unmatched(catalogue.Builtin()) {
		require.Contains(t, f.Message, "did you mean gpt-5?", f.Path)
	}
	var paths []string
	for _, f := range p.Unmatched(catalogue.Builtin()) {
		require.Contains(t, f.Message, "no known model matches")
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{"/tenants/*/*/allowedModels/1", "/tenants/*/openai/allowedModels/1", "/tenants/*/openai/allowedModels/2"}, paths)
}
