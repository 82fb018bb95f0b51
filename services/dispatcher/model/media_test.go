package model_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// painter is a model that returns an image.
type painter struct {
	asked provider.Request
	media []provider.Media
	text  string
}

func (*painter) ID() string { return "mock" }

func (p *painter) Call(_ context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	p.asked = req
	c := provider.NewCollector("m", emit)
	if err := c.Add(provider.Delta{Text: p.text}); err != nil {
		return provider.Result{}, err
	}
	return c.Finish(provider.Result{Stop: provider.StopClean, Media: p.media}, "stop")
}

// mediaKinds is a host with the media kinds.
type mediaKinds struct{ schemas }

func (mediaKinds) Kind(_ context.Context, name string) (model.Kind, bool, error) {
	return model.Kind{Name: name, Version: 1, Schema: json.RawMessage(`{"type":"object"}`)}, true, nil
}

func paint(t *testing.T, p *painter, c *catalogue.Catalogue, config string) (result model.Result, envelopes []string) {
	t.Helper()
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 1,
		Multiplier:  2,
		Timeout:     time.Second,
		Defaults:    model.Defaults{Provider: "mock", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Models:    reg,
		Schemas:   mediaKinds{},
		Catalogue: c,
		Clock:     time.Now,
		Scrubber:  func(string, string, bool) model.Scrubber { return secretive{} },
	})
	var taken []string
	res := loop.Run(t.Context(), model.Task{
		Tenant: "acme",
		RunID:  "r",
		TypeID: node.TypeCallPrompt,
		Input:  node.Input{NodeID: "n", Config: json.RawMessage(config)},
	}, &journal{accept: func(req model.AcceptRequest) (model.Outcome, error) {
		taken = append(taken, string(req.Envelope))
		return acceptAll(req)
	}})
	return res, taken
}

// OpenWOP envelope contract §3.4: generated media is an envelope of the kind of its MIME type. It
// passes through the pipeline like any other.
func TestMedia_OfTheModelIsAnEnvelope(t *testing.T) {
	t.Parallel()
	image, sound := provider.Media{
		MIME: "image/png",
		Data: []byte{1, 2},
	}, provider.Media{MIME: "audio/wav", Data: []byte{3}}
	able := traits(t, `"capabilities":["`+modelgate.ImageOutput+`"]`)
	const quiet = `"prompt":"paint","expectsStreaming":false`

	p := &painter{media: []provider.Media{image}, text: "A red lamp."}
	res, taken := paint(t, p, able, `{`+quiet+`,"system":"Be brief.","envelopeType":"media.image"}`)
	require.Nil(t, res.Err)
	require.Len(t, taken, 1)
	require.JSONEq(t, `{"base64":"AQI=","bytes":2,"mimeType":"image/png","alt":"A red lamp."}`, string(res.Output.Ports["output"]))
	require.Empty(t, p.asked.Schema, "no schema applies to an image")
	require.Equal(t, "Be brief.", p.asked.System)

	res, taken = paint(t, &painter{media: []provider.Media{image, sound}}, able, `{`+quiet+`}`)
	require.Nil(t, res.Err)
	require.Len(t, taken, 2)
	require.Contains(t, taken[0], `"type":"media.image"`)
	require.Contains(t, taken[1], `"type":"media.audio"`)

	p = &painter{text: `{"bytes":0}`}
	_, taken = paint(t, p, traits(t, `"capabilities":[]`), `{`+quiet+`,"envelopeType":"media.image"}`)
	require.NotEmpty(t, p.asked.Schema, "a model without image output writes the payload")
	require.Len(t, taken, 1)

	res, _ = paint(t, &painter{text: "I would rather not."}, able, `{`+quiet+`,"envelopeType":"media.image"}`)
	require.NotNil(t, res.Err)
	require.Equal(t, "envelope_invalid", res.Err.Code, "the answer has no image")
}

// OpenWOP envelope contract §11: the text of an image is cut after redaction, because half a secret
// is not detected.
func TestMedia_IsDescribedByWordsWithoutHalfASecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	for _, before := range []int{1010, 1015, 1020} {
		p := &painter{
			media: []provider.Media{{MIME: "image/png", Data: []byte{1, 2}}},
			text:  strings.Repeat("é", before/2) + secret + strings.Repeat("x", 3000),
		}
		res, taken := paint(t, p, traits(t, `"capabilities":["`+modelgate.ImageOutput+`"]`), `{"prompt":"paint","expectsStreaming":false,"envelopeType":"media.image"}`)
		require.Nil(t, res.Err)
		require.NotContains(t, taken[0], "hunter2")
		var out struct{ Alt string }
		require.NoError(t, json.Unmarshal(res.Output.Ports["output"], &out))
		require.LessOrEqual(t, len(out.Alt), 1024)
		require.Greater(t, len(out.Alt), 1000)
		require.True(t, utf8.ValidString(out.Alt))
	}
}
