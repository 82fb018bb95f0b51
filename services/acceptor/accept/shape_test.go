package accept_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/services/acceptor/accept"
)

func TestShape_RefusesDocumentsThatAreNotEnvelopes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 129)
	tests := map[string]struct{ doc, path, keyword string }{
		"empty":                 {``, "", "syntax"},
		"not JSON":              {`{"type":`, "/type", "syntax"},
		"two documents":         {`{}{}`, "", "syntax"},
		"array":                 {`[]`, "", "type"},
		"null":                  {`null`, "", "type"},
		"missing type":          {doc(note, goodNote, with("type", nil)), "", "required"},
		"missing envelopeId":    {doc(note, goodNote, with("envelopeId", nil)), "", "required"},
		"missing correlationId": {doc(note, goodNote, with("correlationId", nil)), "", "required"},
		"missing payload":       {doc(note, goodNote, with("payload", nil)), "", "required"},
		"missing meta (C4)":     {doc(note, goodNote, with("meta", nil)), "", "required"},
		"missing source": {
			doc(note, goodNote, with("meta", map[string]any{"ts": "2026-01-31T12:00:00Z"})),
			"/meta", "required",
		},
		"missing ts":     {doc(note, goodNote, with("meta", map[string]any{"source": "user"})), "/meta", "required"},
		"unknown member": {doc(note, goodNote, with("extra", 1)), "/extra", "additionalProperties"},
		"wrong case":     {doc(note, goodNote, with("type", nil), with("Type", note)), "", "required"},
		"vendor key in meta C2": {
			doc(note, goodNote, meta("acme.region", "eu")), "/meta/acme.region", "additionalProperties",
		},
		"unknown display": {
			doc(note, goodNote, meta("rendering", map[string]any{"display": "hologram"})),
			"/meta/rendering/display", "enum",
		},
		"empty type":          {doc("", goodNote), "/type", "minLength"},
		"long type":           {doc(strings.Repeat("x", 257), goodNote), "/type", "maxLength"},
		"empty correlationId": {doc(note, goodNote, with("correlationId", "")), "/correlationId", "minLength"},
		"long envelopeId":     {doc(note, goodNote, with("envelopeId", long)), "/envelopeId", "maxLength"},
		"long nodeId":         {doc(note, goodNote, with("nodeId", long)), "/nodeId", "maxLength"},
		"negative version":    {doc(note, goodNote, with("schemaVersion", -1)), "/schemaVersion", "minimum"},
		"fractional version":  {doc(note, goodNote, with("schemaVersion", 1.5)), "/schemaVersion", "type"},
		"text version":        {doc(note, goodNote, with("schemaVersion", "1")), "/schemaVersion", "type"},
		"enormous version": {
			doc(note, goodNote, with("schemaVersion", json.Number("1e999999"))), "/schemaVersion", "number",
		},
		"unknown source":        {doc(note, goodNote, meta("source", "oracle")), "/meta/source", "enum"},
		"unknown trust":         {doc(note, goodNote, meta("contentTrust", "maybe")), "/meta/contentTrust", "enum"},
		"long label":            {doc(note, goodNote, meta("label", strings.Repeat("x", 257))), "/meta/label", "maxLength"},
		"partial is no boolean": {doc(note, goodNote, with("partial", true)), "/partial", "type"},
		"partial not whole": {
			doc(note, goodNote, with("partial", map[string]any{"isPartial": true})),
			"/partial", "required",
		},
		"partial total": {
			doc(note, goodNote, with("partial", map[string]any{"isPartial": true, "index": 0, "total": -2})),
			"/partial/total", "minimum",
		},
		// OpenWOP envelope contract §26 case 5.
		"duplicate in payload": {
			strings.Replace(doc(note, `{"text":"x"}`), `"text":"x"`, `"text":"x","text":"y"`, 1),
			"/payload/text", "duplicate-member",
		},
		"duplicate at the top": {
			strings.Replace(doc(note, goodNote), `{`, `{"type":"error",`, 1), "/type", "duplicate-member",
		},
		"invalid UTF-8":  {strings.Replace(doc(note, goodNote), "hello", "\xff", 1), "/payload/text", "encoding"},
		"lone surrogate": {strings.Replace(doc(note, goodNote), "hello", `\ud800`, 1), "/payload/text", "encoding"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := refused(t, f.accept(tc.doc), accept.Invalid, fault.InvalidEnvelopeShape)
			var got []string
			for _, d := range r.Details {
				got = append(got, d.InstancePath+" "+d.Keyword)
			}
			require.Contains(t, got, tc.path+" "+tc.keyword)
			f.nothingRecorded()
		})
	}
}

// OpenWOP envelope contract §26 case 5: bounded before decoding.
func TestShape_LimitsDepthAndSize(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	deep := func(n int) string {
		return doc(note, `{"text":"x","more":`+strings.Repeat(`{"a":`, n-2)+`{}`+strings.Repeat(`}`, n-2)+`}`)
	}
	f := newFixture(t)
	accepted(t, f.accept(deep(accept.MaxPayloadDepth)))
	f = newFixture(t)
	r := refused(t, f.accept(deep(accept.MaxPayloadDepth+1)), accept.Invalid, fault.InvalidEnvelopeShape)
	require.Equal(t, "depth", r.Details[0].Keyword)

	sized := func(n int) string { return doc(note, `{"text":"`+strings.Repeat("x", n-len(`{"text":""}`))+`"}`) }
	accepted(t, f.accept(sized(accept.MaxPayloadBytes)))
	f = newFixture(t)
	r = refused(t, f.accept(sized(accept.MaxPayloadBytes+1)), accept.Invalid, fault.InvalidEnvelopeShape)
	require.Equal(t, "size", r.Details[0].Keyword)
	require.Equal(t, "/payload", r.Details[0].InstancePath)
	r = refused(t, f.accept(sized(accept.MaxPayloadBytes*2)), accept.Invalid, fault.InvalidEnvelopeShape)
	require.Equal(t, "size", r.Details[0].Keyword)
}

// OpenWOP envelope contract §2 (meta.ts) and §26 case 8.
func TestShape_TimeMustExist(t *testing.T) {
	t.Parallel()
	good := []string{
		"2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00+02:00", "2026-01-31T12:00:00-11:30",
		"2028-02-29T00:00:00Z", "2016-12-31T23:59:60Z", "2017-01-01T00:59:60+01:00", "2026-01-31t12:00:00z",
	}
	bad := []string{
		"", "yesterday", "2026-02-30T00:00:00Z", "2027-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
		"2026-01-31", "2026-01-31T12:00:00",
		"2026-01-31 12:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31T12:00:61Z",
		"2026-01-31T12:00:60Z",
		"2026-01-31T12:00:00,5Z", "2026-1-31T12:00:00Z", "2026-01-31T1:00:00Z",
		"2026-01-31T12:00:00+24:00", "2026-01-31T12:00Z",
		"20260131T120000Z", " 2026-01-31T12:00:00Z", "1769860800", "2026-W05-6",
	}
	for _, ts := range good {
		f := newFixture(t)
		accepted(t, f.accept(doc(note, goodNote, meta("ts", ts))))
	}
	for _, ts := range bad {
		f := newFixture(t)
		r := refused(t, f.accept(doc(note, goodNote, meta("ts", ts))), accept.Invalid, fault.InvalidEnvelopeShape)
		require.Contains(t, r.Reason(), "ISO 8601", ts)
		require.Equal(t, "/meta/ts", r.Details[0].InstancePath, ts)
		require.Equal(t, "format", r.Details[0].Keyword, ts)
	}
}

func TestShape_AcceptsEveryOptionalMember(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc(note, goodNote, with("nodeId", "other"), with("partial", map[string]any{"isPartial": false, "index": 3, "total": 4}),
		meta("traceparent", "malformed is ignored", "label", strings.Repeat("ü", 256), "contentTrust", "trusted",
			"rendering", map[string]any{"display": "card", "title": "T", "lang": "go", "alt": "a", "mimeType": "x/y"})))
	accepted(t, res)
	require.Equal(t, nodeID, res.Events[0].NodeID, "the host's node overrides the envelope's")
	require.Contains(t, string(res.Events[0].Payload), `"rendering":{"`)
}

// drawEnvelope makes documents that are almost envelopes.
func drawEnvelope(t *rapid.T) []byte {
	anything := []string{
		`null`, `0`, `1.0`, `-1`, `1.5`, `"x"`, `""`, `true`, `[]`, `{}`, `"trusted"`, `"user"`,
		`"2026-01-31T12:00:00Z"`, `"card"`, fmt.Sprintf("%q", strings.Repeat("x", 129)),
		fmt.Sprintf("%q", strings.Repeat("é", 256)), fmt.Sprintf("%q", strings.Repeat("é", 257)),
	}
	value := func(name string, good ...string) string {
		if rapid.IntRange(0, 9).Draw(t, name+" good") > 0 {
			return rapid.SampledFrom(good).Draw(t, name)
		}
		return rapid.SampledFrom(anything).Draw(t, name)
	}
	object := func(names map[string]string, need ...string) string {
		var parts []string
		for n, v := range names {
			keep := 1
			for _, k := range need {
				if k == n {
					keep = 8
				}
			}
			if rapid.IntRange(0, keep).Draw(t, "keep "+n) > 0 {
				parts = append(parts, fmt.Sprintf("%q:%s", n, v))
			}
		}
		if rapid.IntRange(0, 11).Draw(t, "extra") == 0 {
			parts = append(parts, `"extra":1`)
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	rendering := object(map[string]string{
		"display":  value("display", `"card"`, `"file"`),
		"mimeType": value("mime", `"x"`),
		"lang":     value("lang", `"go"`),
		"alt":      value("alt", `""`),
		"title":    value("title", `"t"`),
	})
	metaDoc := object(map[string]string{
		"source":       value("source", `"user"`, `"system"`, `"ai-generation"`),
		"ts":           value("ts", `"2026-01-31T12:00:00Z"`),
		"contentTrust": value("trust", `"trusted"`, `"untrusted"`),
		"traceparent":  value("tp", `"x"`),
		"label":        value("label", `"x"`),
		"rendering":    value("rendering", rendering),
	}, "source", "ts")
	partialDoc := object(map[string]string{
		"isPartial": value("ip", "true", "false"),
		"index":     value("index", "0", "2.0"),
		"total":     value("total", "-1", "5"),
	}, "isPartial", "index", "total")
	return []byte(object(map[string]string{
		"type":          value("type", `"x"`),
		"schemaVersion": value("sv", "0", "7", "3.0"),
		"envelopeId":    value("eid", `"e"`),
		"correlationId": value("cid", `"c"`),
		"nodeId":        value("nid", `"n"`),
		"payload":       value("payload", anything...),
		"meta":          value("meta", metaDoc),
		"partial":       value("partial", partialDoc),
	}, "type", "envelopeId", "correlationId", "payload", "meta"))
}

// The shape step agrees with the published schema.
func TestShape_AgreesWithThePublishedSchema(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", "ai-envelope.schema.json"))
	require.NoError(t, err)
	published, err := schema.Compile("ai-envelope", b)
	require.NoError(t, err)
	f := newFixture(t)
	p, valid := f.pipeline(), 0
	agree := func(t *rapid.T) {
		d := drawEnvelope(t)
		want := published.Validate(d)
		res, err := p.Run(context.Background(), f.request(string(d)))
		require.NoError(t, err)
		ours := res.Refusal == nil || res.Refusal.Code != fault.InvalidEnvelopeShape
		require.Equal(t, len(want) == 0, ours, "%s\npublished: %v\nours: %s", d, want, res.Outcome)
		if ours {
			valid++
		}
	}
	// Most rounds have a valid envelope. Agreement on invalid documents alone would prove
	// little.
	for range 20 {
		rapid.Check(t, agree)
		if valid > 0 {
			return
		}
	}
	t.Fatal("the generator never makes a valid envelope")
}
