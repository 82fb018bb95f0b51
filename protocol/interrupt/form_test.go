package interrupt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
)

const (
	surface = `{"catalogVersion":"0.9.1","surface":{"title":"Ship","components":[` +
		`{"component":"field.text","id":"why","label":"Why","required":true},` +
		`{"component":"field.select","id":"how","label":"How","options":[{"value":"air","label":"Air"},{"value":"sea","label":"Sea"}]},` +
		`{"component":"action.button","id":"go","label":"Go","action":{"target":"resume"}}]}}`
	form = `{"kind":"custom","data":{"customKind":"ui.a2ui-surface","payload":` + surface + `}`
)

// OpenWOP envelope contract §18, on submit: keys are the surface's field ids, required fields are
// present, a choice is one of the options. The resumeSchema is applied last.
func TestDecide_ValidatesFormFields(t *testing.T) {
	t.Parallel()
	p := open(t, interrupt.TypeInterrupt, form+`,"resumeSchema":{"properties":{"why":{"minLength":3}}}}`)
	d := decide(t, p, by(key, `{"why":"late","how":"sea"}`))
	require.JSONEq(t, `{"why":"late","how":"sea"}`, string(d.Resume))
	for value, want := range map[string][]string{
		`{"how":"air"}`:                   {"/resumeValue/why"},
		`{"why":"late","how":"rail"}`:     {"/resumeValue/how"},
		`{"why":"late","action":"go"}`:    {"/resumeValue/action"},
		`{"why":1,"how":"x","more":true}`: {"/resumeValue/how", "/resumeValue/more", "/resumeValue/why"},
		`"late"`:                          {"/resumeValue"},
		`{"why":"no"}`:                    {"/resumeValue/why"},
		`{"why":"late","go":"resume"}`:    {"/resumeValue/go"},
	} {
		_, err := interrupt.Decide(p, by(key, value))
		code, status, paths := refused(t, err)
		require.Equal(t, fault.ValidationError, code, value)
		require.Equal(t, 400, status, value)
		require.Equal(t, want, paths, value)
	}
}

// A surface that is not displayable is found, with its path, when the workflow is registered. A
// surface from a port is checked when the question is asked.
func TestFrom_ValidatesFormsAgainstTheCatalogue(t *testing.T) {
	t.Parallel()
	wrong := interrupt.Check(interrupt.TypeInterrupt, json.RawMessage(`{"kind":"custom","data":{"customKind":"ui.a2ui-surface","payload":{"catalogVersion":"9","surface":{"components":[]}}}}`))
	require.NotEmpty(t, wrong)
	require.Equal(t, "/data/payload/catalogVersion", wrong[0].Path)
	twice := strings.Replace(surface, `"id":"how"`, `"id":"why"`, 1)
	wrong = interrupt.Check(interrupt.TypeInterrupt, json.RawMessage(`{"kind":"custom","data":{"customKind":"ui.a2ui-surface","payload":`+twice+`}}`))
	require.Len(t, wrong, 1)
	require.Equal(t, "/data/payload/surface/components/1/id", wrong[0].Path)

	r, wrong := interrupt.From(interrupt.TypeInterrupt, at, json.RawMessage(`{"kind":"custom","data":{"customKind":"ui.a2ui-surface"}}`))
	require.Empty(t, wrong)
	require.Equal(t, "/data/payload", r.CheckData()[0].Path, "nothing came")
	require.NotEmpty(t, r.WithArtifact(json.RawMessage(`{"surface":1}`)).CheckData())
	require.Empty(t, r.WithArtifact(json.RawMessage(surface)).CheckData())
	require.JSONEq(t, `{"customKind":"ui.a2ui-surface","payload":`+surface+`}`, string(r.WithArtifact(json.RawMessage(surface)).Data))

	other, wrong := interrupt.From(interrupt.TypeInterrupt, at, json.RawMessage(`{"kind":"custom","data":{"customKind":"sign"}}`))
	require.Empty(t, wrong)
	require.Equal(t, other, other.WithArtifact(json.RawMessage(surface)), "another custom kind")
	require.Empty(t, other.CheckData())
}
