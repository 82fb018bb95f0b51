package media_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/node/media"
)

const (
	lamp   = `{"bytes":3,"mimeType":"image/png","alt":"a lamp","base64":"AQID"}`
	stored = `{"url":"https://host.example/v1/assets/t","bytes":900000,"mimeType":"IMAGE/JPEG"}`
	voice  = `{"bytes":3,"mimeType":"audio/wav","durationSeconds":1.5,"base64":"AQID"}`
	paper  = `{"bytes":3,"mimeType":"application/pdf","name":"a.pdf","base64":"AQID"}`
)

func inputs(config string, ports, variables map[string]string) node.Input {
	in := node.Input{Config: json.RawMessage(config), Ports: map[string]json.RawMessage{}, Variables: map[string]json.RawMessage{}}
	for name, v := range ports {
		in.Ports[name] = json.RawMessage(v)
	}
	for name, v := range variables {
		in.Variables[name] = json.RawMessage(v)
	}
	return in
}

func kinds(p media.Prompt) (out []string) {
	for _, i := range p.Items {
		out = append(out, string(i.Kind)+" "+i.From)
	}
	return out
}

// The parts of a prompt are the assets of the port media and of the inputs that the prompt contains.
func TestOf_FindsWhatThePromptContains(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config           string
		ports, variables map[string]string
		items            []string
		needs            []string
		at, want         string // a port after the replacement
	}{
		"no asset":            {`{"prompt":"{{a}}"}`, map[string]string{"a": `{"bytes":3}`}, nil, nil, nil, "a", `{"bytes":3}`},
		"the port media":      {`{"prompt":"What?"}`, map[string]string{"media": lamp}, nil, []string{"image /inputs/media"}, []string{"vision-input"}, "media", `"[image 1: a lamp]"`},
		"several":             {`{"prompt":"What?"}`, map[string]string{"media": `[` + lamp + `,` + stored + `,` + voice + `,` + paper + `]`}, nil, []string{"image /inputs/media", "image /inputs/media", "audio /inputs/media", "file /inputs/media"}, []string{"vision-input", "audio-input"}, "media", `["[image 1: a lamp]","[image 2]","[audio 1]","[file 1]"]`},
		"envelopes":           {`{"prompt":"What?"}`, map[string]string{"media": `[{"type":"media.image","envelopeId":"e","payload":{"bytes":3,"base64":"AQID"}},{"type":"vendor.x.y","envelopeId":"f","payload":{"a":1}}]`}, nil, []string{"image /inputs/media"}, []string{"vision-input"}, "media", `[{"type":"media.image","envelopeId":"e","payload":"[image 1]"},{"type":"vendor.x.y","envelopeId":"f","payload":{"a":1}}]`},
		"named by the prompt": {`{"prompt":"Is {{ a }} like {{b}}?"}`, map[string]string{"a": lamp, "c": lamp}, map[string]string{"b": stored, "d": stored}, []string{"image /inputs/a", "image /variables/b"}, []string{"vision-input"}, "c", `"[image: a lamp]"`},
		"a port hides a variable": {
			`{"prompt":"{{a}}"}`, map[string]string{"a": `"text"`}, map[string]string{"a": lamp}, nil, nil, "a", `"text"`,
		},
		"within a value":        {`{"prompt":"{{a}}"}`, map[string]string{"a": `{"x":[{"y":` + lamp + `}],"n":12345678901234567890}`}, nil, []string{"image /inputs/a"}, []string{"vision-input"}, "a", `{"x":[{"y":"[image 1: a lamp]"}],"n":12345678901234567890}`},
		"all ports as the text": {`{}`, map[string]string{"a": lamp, "b": `1`}, map[string]string{"v": lamp}, []string{"image /inputs/a"}, []string{"vision-input"}, "b", `1`},
		"with templates":        {`{"userPromptRef":"prompt:x"}`, map[string]string{"a": lamp}, nil, []string{"image /inputs/a"}, []string{"vision-input"}, "a", `"[image 1: a lamp]"`},
		"messages":              {`{}`, map[string]string{"a": lamp, "messages": `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}}]}]`}, nil, nil, []string{"vision-input"}, "a", `"[image: a lamp]"`},
		"sound in messages":     {`{}`, map[string]string{"messages": `[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AQID","format":"wav"}}]}]`}, nil, nil, []string{"audio-input"}, "messages", `[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AQID","format":"wav"}}]}]`},
		"messages of text":      {`{}`, map[string]string{"messages": `[{"role":"user","content":"x"}]`}, nil, nil, nil, "messages", `[{"role":"user","content":"x"}]`},
		"another object":        {`{"prompt":"{{a}}"}`, map[string]string{"a": `{"bytes":3,"url":"https://x.example/","more":1}`}, nil, nil, nil, "a", `{"bytes":3,"url":"https://x.example/","more":1}`},
		"a data URL":            {`{"prompt":"{{a}}"}`, map[string]string{"a": `{"bytes":3,"url":"data:image/png;base64,AQID"}`}, nil, []string{"image /inputs/a"}, []string{"vision-input"}, "a", `"[image 1]"`},
		"escaped names":         {`{"prompt":"{{a}}"}`, map[string]string{"a": `{"\u0062ytes":3,"mimeType":"image/png","\u0062ase64":"AQID"}`}, nil, []string{"image /inputs/a"}, []string{"vision-input"}, "a", `"[image 1]"`},
		"null":                  {`{"prompt":"x"}`, map[string]string{"media": `null`}, nil, nil, nil, "media", `null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := inputs(tc.config, tc.ports, tc.variables)
			p := media.Of(in)
			require.Equal(t, tc.items, kinds(p))
			require.Equal(t, tc.needs, p.Capabilities())
			require.Equal(t, tc.want, string(p.Ports[tc.at]))
			require.False(t, p.Unfit)
			for name, v := range tc.ports {
				require.Equal(t, v, string(in.Ports[name]), "the inputs stay")
			}
		})
	}
}

func TestOf_ReportsAnUnfitMediaPort(t *testing.T) {
	t.Parallel()
	for _, v := range []string{`"https://x.example/a.png"`, `7`, `{"bytes":3}`, `[` + lamp + `,"x"]`, `{"url":"https://x.example/"}`} {
		require.True(t, media.Of(inputs(`{"prompt":"x"}`, map[string]string{"media": v}, nil)).Unfit, v)
	}
}

func TestOf_MarksUntrustedItems(t *testing.T) {
	t.Parallel()
	in := inputs(`{"prompt":"{{v}}"}`, map[string]string{"media": lamp}, map[string]string{"v": lamp})
	in.UntrustedPorts, in.UntrustedVariables = map[string]bool{"media": true}, map[string]bool{}
	p := media.Of(in)
	require.True(t, p.Items[0].Untrusted)
	require.False(t, p.Items[1].Untrusted)
}

func FuzzDescribe(f *testing.F) {
	for _, seed := range []string{lamp, `[` + stored + `]`, `{"type":"media.image","payload":` + voice + `}`, `{"\u0062ytes":1,"url":"x"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		out := media.Describe(raw)
		require.True(t, json.Valid(out), "%s", out)
		require.Equal(t, string(out), string(media.Describe(out)), "nothing is left to describe")
	})
}
