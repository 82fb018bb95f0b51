package accept_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

func TestPayload_DetailsNamePathAndKeywordButNoValue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc(note, `{"text":{"deep":"the-offending-value"},"n":"another-value"}`))
	r := refused(t, res, accept.Invalid, fault.EnvelopeInvalid)
	var paths []string
	for _, d := range r.Details {
		paths = append(paths, d.InstancePath)
		require.NotEmpty(t, d.Keyword)
		require.NotEmpty(t, d.SchemaPath)
	}
	require.ElementsMatch(t, []string{"/payload/text", "/payload/n"}, paths)
	// OpenWOP envelope contract §26 case 15.
	require.NotContains(t, string(res.Outcome), "value")
}

// OpenWOP envelope contract §5: null reads as absent.
func TestPayload_NullReasoningIsAbsentReasoning(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc(note, `{"n":1.50,"reasoning":null,"text":"hello"}`))
	accepted(t, res)
	require.Equal(t, `{"n":1.50,"text":"hello"}`, string(res.Payload))

	g := newFixture(t)
	res = g.accept(doc(note, `{"reasoning":null,"text":7}`))
	refused(t, res, accept.Invalid, fault.EnvelopeInvalid)
}

// A null that the schema does not allow counts as absent, at any depth.
func TestPayload_NullIsAbsence(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ kind, in, want string }{
		"details of an error": {
			accept.KindError, `{"code":"x","message":"m","details":null}`, `{"code":"x","message":"m"}`,
		},
		"members of a question": {
			accept.KindClarificationRequest,
			`{"questions":[{"id":"a","question":"q","schema":null,"context":null}],"contextType":null}`,
			`{"questions":[{"id":"a","question":"q"}]}`,
		},
		"a value inside a schema": {
			accept.KindClarificationRequest,
			`{"questions":[{"id":"a","question":"q","schema":{"const":null}}]}`,
			`{"questions":[{"id":"a","question":"q","schema":{"const":null}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			res := f.accept(doc(tc.kind, tc.in))
			accepted(t, res)
			require.JSONEq(t, tc.want, string(res.Payload))
		})
	}
	for name, in := range map[string]string{
		"a required member": `{"code":null,"message":"m"}`,
		"an item":           `{"code":"x","message":"m","details":[null]}`,
	} {
		f := newFixture(t)
		res := f.accept(doc(accept.KindError, in))
		require.NotNil(t, res.Refusal, name)
		require.Equal(t, fault.EnvelopeInvalid, res.Refusal.Code, name)
	}
}

// OpenWOP envelope contract §26 case 6.
func TestPayload_NumbersAreRecordedUnchanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc(note, `{"text":"x","n":9007199254740993123456789,"more":{"a":1.10,"b":-0.0,"c":1E+2}}`))
	accepted(t, res)
	require.Equal(t, `{"text":"x","n":9007199254740993123456789,"more":{"a":1.10,"b":-0.0,"c":1E+2}}`, string(res.Payload))
	require.Contains(t, string(f.events()[2].Payload), `"n":9007199254740993123456789`)
}

// OpenWOP envelope contract §3.3 and §24 C6.
func TestPayload_SchemaRequestMustAskForAnAdvertisedKind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc("schema.request", `{"envelopeType":"vendor.acme.other"}`))
	r := refused(t, res, accept.Gated, fault.UnknownEnvelopeKind)
	require.Equal(t, "vendor.acme.other", r.RefusedType)
	accepted(t, f.accept(doc("schema.request", `{"envelopeType":"`+note+`"}`)))

	g := newFixture(t)
	g.policy.AnyRequestedKind = true
	accepted(t, g.accept(doc("schema.request", `{"envelopeType":"vendor.acme.other"}`)))
}

// OpenWOP envelope contract §4.1, §18: an unknown catalogue version counts as an unknown
// schema version.
func TestPayload_ASurfaceOfAnotherCatalogueIsOfAnUnknownVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{`"0.9.2"`, `"1"`, `""`} {
		f := newFixture(t)
		res := f.accept(doc(accept.KindSurface, `{"catalogVersion":`+version+`,"surface":{"components":[{"component":"chart"}]}}`))
		r := refused(t, res, accept.Invalid, fault.UnknownSchemaVersion)
		require.Equal(t, "/payload/catalogVersion", r.Details[0].InstancePath)
	}
	for _, broken := range []string{
		`{"surface":{"components":[]}}`, `{"catalogVersion":9,"surface":{"components":[]}}`,
		`{"catalogVersion":"0.9.1","surface":{"components":[{"component":"chart"}]}}`,
	} {
		f := newFixture(t)
		refused(t, f.accept(doc(accept.KindSurface, broken)), accept.Invalid, fault.EnvelopeInvalid)
	}
	f := newFixture(t)
	res := f.accept(doc(accept.KindSurface, `{"catalogVersion":"0.9.1","surface":{"components":[{"component":"text","text":"hello"}]}}`))
	require.Nil(t, res.Refusal)
}

func TestPayload_ComponentsOfASurfaceHaveUniqueIDs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc(accept.KindSurface, `{"catalogVersion":"0.9.1","surface":{"components":[`+
		`{"component":"field.text","id":"a","label":"A"},{"component":"field.date","id":"a","label":"B"}]}}`))
	r := refused(t, res, accept.Invalid, fault.EnvelopeInvalid)
	require.Equal(t, "/payload/surface/components/1/id", r.Details[0].InstancePath)
}
