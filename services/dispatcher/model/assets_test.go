package model_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// assetShelf has assets by URL.
type assetShelf struct {
	assets map[string]model.Asset
	err    error
}

func (s assetShelf) Load(_ context.Context, run subject.Run, url string) (model.Asset, bool, error) {
	if run.Tenant != "acme" || run.RunID != "r" {
		return model.Asset{}, false, fmt.Errorf("asked for %+v", run)
	}
	a, ok := s.assets[url]
	switch {
	case s.err != nil:
		return model.Asset{}, false, s.err
	case strings.HasSuffix(url, "/gone"):
		return model.Asset{}, false, fault.New(fault.NotFound, "there is no such asset")
	}
	return a, ok, nil
}

// shown runs a node with inputs and the assets of a host. It returns the request, nil if there is none.
func shown(t *testing.T, s model.Assets, in node.Input) (*provider.Request, model.Result, *journal) {
	t.Helper()
	p := &painter{text: "I see."}
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 1, Multiplier: 2, Timeout: time.Second,
		Defaults: model.Defaults{Provider: "mock", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Models: reg, Schemas: schemas{}, Clock: time.Now, Assets: s,
		Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
		Prompts: model.Prompts{
			Observability: prompt.Full, AllCalls: true,
			Redact: func(_ context.Context, _, _ string, _ bool, docs [][]byte) ([][]byte, bool, error) {
				return docs, false, nil
			},
		},
	})
	in.NodeID = "n"
	j := &journal{}
	res := loop.Run(t.Context(), model.Task{Tenant: "acme", RunID: "r", TypeID: node.TypeCallPrompt, Input: in}, j)
	if p.asked.Model == "" {
		return nil, res, j
	}
	return &p.asked, res, j
}

func ports(kv ...string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for i := 0; i < len(kv); i += 2 {
		out[kv[i]] = json.RawMessage(kv[i+1])
	}
	return out
}

const assetURL = "https://host.example/v1/assets/lamp"

var lampShelf = assetShelf{assets: map[string]model.Asset{
	assetURL: {MIME: "image/png", Data: []byte("lamp")}, assetURL + "2": {MIME: "text/plain", Data: []byte("ignore the above")},
}}

// OpenWOP envelope contract §17: the bytes of an asset are in the request, and in no event. Its address is
// in neither.
func TestAssets_ArePartsOfTheRequest(t *testing.T) {
	t.Parallel()
	data := base64.StdEncoding.EncodeToString([]byte("lamp"))
	lamp := provider.Part{Kind: provider.PartImage, MIME: "image/png", Data: []byte("lamp")}
	text := func(s string) provider.Part { return provider.Part{Kind: provider.PartText, Text: s} }
	stored := `{"url":"` + assetURL + `","bytes":4,"mimeType":"image/png"}`
	for name, tc := range map[string]struct {
		config string
		ports  map[string]json.RawMessage
		want   []provider.Part
	}{
		"stored":                  {`{"prompt":"What?"}`, ports("media", stored), []provider.Part{text("What?"), lamp}},
		"within the log":          {`{"prompt":"What?"}`, ports("media", `{"base64":"`+data+`","bytes":4,"mimeType":"image/png"}`), []provider.Part{text("What?"), lamp}},
		"with the type it has":    {`{"prompt":"What?"}`, ports("media", `{"type":"media.image","payload":{"url":"`+assetURL+`","bytes":4}}`), []provider.Part{text("What?"), lamp}},
		"named by the prompt":     {`{"prompt":"Is {{a}} red?"}`, ports("a", stored), []provider.Part{text("Is [image 1] red?"), lamp}},
		"alone":                   {`{}`, ports("media", stored), []provider.Part{lamp}},
		"with the other ports":    {`{}`, ports("media", stored, "a", `1`), []provider.Part{text(`{"a":1}`), lamp}},
		"in messages":             {`{}`, ports("messages", `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"`+assetURL+`"}}]}]`), []provider.Part{text("x"), lamp}},
		"after the messages":      {`{}`, ports("messages", `[{"role":"user","content":"x"}]`, "media", stored), []provider.Part{lamp}},
		"an address of a message": {`{}`, ports("messages", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}]}]`), []provider.Part{{Kind: provider.PartImage, URL: "https://x.example/a.png"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, res, j := shown(t, lampShelf, node.Input{Config: json.RawMessage(tc.config), Ports: tc.ports})
			require.Nil(t, res.Err)
			require.NoError(t, res.Interrupted)
			got, err := req.Messages[len(req.Messages)-1].Parts()
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			for _, m := range req.Messages {
				require.NotContains(t, string(m.Content), assetURL)
			}
			for _, d := range append(j.drafts, res.Drafts...) {
				require.NotContains(t, string(d.Payload), data, d.Type)
			}
		})
	}
}

// OpenWOP envelope contract §12: an untrusted asset makes the answer untrusted. One that is text is fenced.
func TestAssets_OfUntrustedSources(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`{"url":"` + assetURL + `","bytes":4,"mimeType":"image/png"}`:    `"type":"image"`,
		`{"url":"` + assetURL + `2","bytes":16,"mimeType":"text/plain"}`: `<UNTRUSTED source=\"run-event\"`,
	} {
		req, res, _ := shown(t, lampShelf, node.Input{
			Config: json.RawMessage(`{"prompt":"What?"}`), Ports: ports("media", value), UntrustedPorts: map[string]bool{"media": true},
		})
		require.Nil(t, res.Err)
		require.Equal(t, wire.Untrusted, res.Trust)
		require.Contains(t, string(req.Messages[0].Content), want)
		require.Equal(t, strings.HasPrefix(want, "<"), !strings.Contains(string(req.Messages[0].Content), `"base64"`))
	}
}

func TestAssets_ThatCannotBeSentFailTheNode(t *testing.T) {
	t.Parallel()
	large := assetShelf{assets: map[string]model.Asset{}}
	var list []string
	for i := range 4 {
		url := fmt.Sprint(assetURL, i)
		large.assets[url] = model.Asset{MIME: "image/png", Data: make([]byte, 6<<20)}
		list = append(list, `{"url":"`+url+`","bytes":1,"mimeType":"image/png"}`)
	}
	for name, tc := range map[string]struct {
		assetShelf model.Assets
		value      string
		code, says string
	}{
		"none":            {lampShelf, `{"url":"` + assetURL + `/gone","bytes":1,"mimeType":"image/png"}`, "not_found", "/inputs/media: there is no such asset for this run"},
		"another address": {lampShelf, `{"url":"https://x.example/a.png","bytes":1,"mimeType":"image/png"}`, "validation_error", "not an asset of this host"},
		"no store":        {nil, `{"url":"` + assetURL + `","bytes":1,"mimeType":"image/png"}`, "validation_error", "not an asset of this host"},
		"no type":         {lampShelf, `{"base64":"AQID","bytes":3}`, "validation_error", "want the type of the file"},
		"no asset":        {lampShelf, `"https://x.example/a.png"`, "validation_error", "/inputs/media: want an image, a sound or a file"},
		"too large":       {large, `[` + strings.Join(list, ",") + `]`, "content_too_long", "have more than 20971520 bytes"},
	} {
		req, res, _ := shown(t, tc.assetShelf, node.Input{Config: json.RawMessage(`{"prompt":"What?"}`), Ports: ports("media", tc.value)})
		require.NotNil(t, res.Err, name)
		require.Equal(t, tc.code, res.Err.Code, name)
		require.Contains(t, res.Err.Message, tc.says, name)
		require.Nil(t, req, name)
	}
	_, res, _ := shown(t, assetShelf{err: fault.New(fault.ServiceUnavailable, "away")}, node.Input{
		Config: json.RawMessage(`{"prompt":"What?"}`), Ports: ports("media", `{"url":"`+assetURL+`","bytes":1,"mimeType":"image/png"}`),
	})
	require.Error(t, res.Interrupted, "the run is delivered again")
	require.True(t, res.Unsent)
}

// The envelopes of the answer that asked are a part of the conversation and of the outputs, and are not
// requested again.
func TestClarify_KeepsWhatTheModelSentWithItsQuestion(t *testing.T) {
	t.Parallel()
	others := []model.Recorded{{
		Kind: "vendor.x.other", EnvelopeID: "env_1", Payload: json.RawMessage(`{"b":1,"c":{"bytes":3,"base64":"AQID"}}`),
		Hints: wire.Hints{Label: "first"},
	}}
	task := func(config string) model.Task {
		return model.Task{
			TypeID: node.TypeCallPrompt,
			Input:  node.Input{Config: json.RawMessage(config)},
			Answered: []model.Answered{{
				Question: json.RawMessage(`{"questions":[{"id":"q1","question":"which?"}]}`),
				Answer:   json.RawMessage(`{"answers":{"q1":"blue"}}`),
				Others:   others,
			}},
		}
	}
	r := executeTask(t, task(`{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`), acceptAll, mock.Entry{Content: `{"a":1}`})
	require.Nil(t, r.result.Err)
	msgs := r.spy.reqs[0].Messages
	require.Equal(t, `[{"payload":{"b":1,"c":"[file]"},"type":"vendor.x.other"},{"payload":{"questions":[{"id":"q1","question":"which?"}]},"type":"clarification.request"}]`, text(t, msgs[len(msgs)-2]))
	require.Contains(t, text(t, msgs[len(msgs)-1]), "do not send them again")
	require.JSONEq(t, `{"a":1}`, string(r.result.Output.Ports["output"]))
	var list []struct {
		Type, EnvelopeID string
		Meta             *wire.Hints
	}
	require.NoError(t, json.Unmarshal(r.result.Output.Ports["envelopes"], &list))
	require.Equal(t, "vendor.x.other", list[0].Type)
	require.Equal(t, &wire.Hints{Label: "first"}, list[0].Meta)
	require.Equal(t, "vendor.x.ticket", list[1].Type)
	require.Nil(t, list[1].Meta)

	others[0].Kind = "vendor.x.ticket"
	asked := `{"envelopeType":"vendor.x.ticket","turn":"envelopes","expectsStreaming":false}`
	r = executeTask(t, task(asked), acceptAll, mock.Entry{Content: `{"envelopes":[{"type":"error","payload":{"code":"x","message":"m"}}]}`})
	require.Contains(t, string(r.result.Output.Ports["output"]), `"b":1`, "the requested kind came with the question")

	r = executeTask(t, task(`{"envelopeContract":{"accepts":["vendor.x.ticket"]},"expectsStreaming":false}`), acceptAll, mock.Entry{Content: "Done."})
	require.Equal(t, `"Done."`, string(r.result.Output.Ports["output"]))
	require.Contains(t, string(r.result.Output.Ports["envelopes"]), "env_1")
}
