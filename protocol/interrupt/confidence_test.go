package interrupt_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/interrupt"
)

func unsure(data string) (interrupt.Request, []string) {
	r, wrong := interrupt.From(interrupt.TypeInterrupt, at, json.RawMessage(`{"kind":"low-confidence","data":`+data+`}`))
	return r, places(wrong)
}

// OpenWOP host contract §6.1: a confidence below the threshold requires an answer, one at the
// threshold does not. The default threshold is 0.7.
func TestConfident_ComparesWithTheThreshold(t *testing.T) {
	t.Parallel()
	for data, sure := range map[string]string{
		`{"agentId":"abc","observed":0.69}`:                               ``,
		`{"agentId":"abc","observed":0.7}`:                                `{"observed":0.7,"threshold":0.7}`,
		`{"agentId":"abc","observed":7e-1,"decision":{"to":"a"}}`:         `{"observed":0.7,"threshold":0.7,"decision":{"to":"a"}}`,
		`{"agentId":"abc","observed":0.7,"threshold":0.71}`:               ``,
		`{"agentId":"abc","observed":0,"threshold":0,"decision":null}`:    `{"observed":0,"threshold":0,"decision":null}`,
		`{"agentId":"abc","observed":0.2,"threshold":0.2}`:                `{"observed":0.2,"threshold":0.2}`,
		`{"agentId":"abc","observed":0.9999999999999999,"threshold":1.0}`: ``,
	} {
		r, wrong := unsure(data)
		require.Empty(t, wrong, data)
		require.Empty(t, r.CheckData(), data)
		ports, ok := r.Confident()
		require.Equal(t, sure != "", ok, data)
		if ok {
			b, err := json.Marshal(ports)
			require.NoError(t, err)
			require.JSONEq(t, sure, string(b), data)
		}
	}
	r, _ := unsure(`{"agentId":"abc","observed":0.2,"decision":[1]}`)
	require.JSONEq(t, `{"agentId":"abc","threshold":0.7,"observed":0.2,"decision":[1]}`, string(r.Data), "the displayed data holds the threshold")
	_, ok := gate(t, everyAction).Confident()
	require.False(t, ok, "an approval has no confidence")
}

// An invalid confidence is rejected with its path.
func TestCheck_AConfidenceIsANumberFrom0To1(t *testing.T) {
	t.Parallel()
	for data, want := range map[string][]string{
		`{"observed":0.5}`:                                  {"/data required"},
		`{"agentId":"ab","observed":0.5}`:                   {"/data/agentId minLength"},
		`{"agentId":"abc","observed":"0.5"}`:                {"/data/observed type"},
		`{"agentId":"abc","observed":null}`:                 {"/data/observed type"},
		`{"agentId":"abc","observed":-0.1}`:                 {"/data/observed minimum"},
		`{"agentId":"abc","observed":1.1}`:                  {"/data/observed maximum"},
		`{"agentId":"abc","observed":0.5,"threshold":2}`:    {"/data/threshold maximum"},
		`{"agentId":"abc","observed":0.5,"threshold":true}`: {"/data/threshold type"},
		`{"agentId":"abc","observed":0.5,"why":1}`:          {"/data/why additionalProperties"},
	} {
		_, wrong := unsure(data)
		require.Equal(t, want, wrong, data)
	}
}

// An upstream node may supply the confidence and the decision.
func TestWithObserved_FillsMissingDataFromThePort(t *testing.T) {
	t.Parallel()
	r, wrong := unsure(`{"agentId":"abc"}`)
	require.Empty(t, wrong)
	for _, none := range []string{``, `null`, `"0.5"`, `{}`, `-0.1`, `1.01`} {
		bad := r.WithObserved(json.RawMessage(none)).CheckData()
		require.Equal(t, []string{"/data/observed required"}, places(bad), none)
	}
	shown := r.WithArtifact(json.RawMessage(`{"to":"a"}`)).WithObserved(json.RawMessage(`0.25`))
	require.Empty(t, shown.CheckData())
	require.JSONEq(t, `{"agentId":"abc","threshold":0.7,"observed":0.25,"decision":{"to":"a"}}`, string(shown.Data))
	require.Equal(t, shown, shown.WithObserved(json.RawMessage(`1`)).WithArtifact(json.RawMessage(`2`)), "the request's own data takes precedence")
	other := gate(t, everyAction).Request
	require.Equal(t, other, other.WithObserved(json.RawMessage(`1`)))
}
