package a2ui_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/a2ui"
)

const form = `{"catalogVersion":"0.9.1","surface":{"title":"Return","components":[
	{"component":"heading","text":"A return"},
	{"component":"field.text","id":"why","label":"Why?","required":true},
	{"component":"field.date","id":"when","label":"When?"},
	{"component":"field.select","id":"how","label":"How?","required":true,"options":[{"value":"post","label":"Post"},{"value":"shop","label":"Shop"}]},
	{"component":"field.checkbox","id":"a/b","label":"Box?"},
	{"component":"action.button","id":"send","label":"Send","action":{"target":"resume"}},
	{"component":"action.button","id":"talk","label":"Talk","action":{"target":"exchange"}}]}}`

func surface(t testing.TB, payload string) *a2ui.Surface {
	t.Helper()
	s, err := a2ui.Parse([]byte(payload))
	require.NoError(t, err)
	return s
}

// OpenWOP envelope contract §18, on submit.
func TestCheckSubmit_ValidatesFields(t *testing.T) {
	t.Parallel()
	for values, paths := range map[string][]string{
		`{"why":"broken","how":"post"}`:                                 nil,
		`{"why":"broken","how":"shop","when":"2026-01-31","a/b":false}`: nil,
		`{"why":"broken","how":"shop","when":null,"a/b":null}`:          nil,
		`{}`:                         {"/how", "/why"},
		`{"why":"","how":null}`:      {"/how", "/why"},
		`{"why":1,"how":"post"}`:     {"/why"},
		`{"why":"x","how":"pigeon"}`: {"/how"},
		`{"why":"x","how":["post"]}`: {"/how"},
		`{"why":"x","how":"post","when":"2026-02-30"}`: {"/when"},
		`{"why":"x","how":"post","when":"31.1.2026"}`:  {"/when"},
		`{"why":"x","how":"post","a/b":"yes"}`:         {"/a~1b"},
		`{"why":"x","how":"post","send":true}`:         {"/send"},
		`{"why":"x","how":"post","other":1,"more~":2}`: {"/more~0", "/other"},
		`{"Why":"x","how":"post"}`:                     {"/Why", "/why"},
		`[]`:                                           {""},
		`null`:                                         {""},
		`"x"`:                                          {""},
		`{"why":"a","why":"b","how":"post"}`:           {""},
	} {
		var got []string
		for _, p := range surface(t, form).CheckSubmit([]byte(values)) {
			got = append(got, p.Path)
			require.NotEmpty(t, p.Message)
		}
		require.Equal(t, paths, got, values)
	}
}

func TestCheckSubmit_RepeatsNoValue(t *testing.T) {
	t.Parallel()
	for _, p := range surface(t, form).CheckSubmit([]byte(`{"why":7,"how":"hunter2","when":"hunter2","a/b":"hunter2"}`)) {
		require.NotContains(t, p.Message, "hunter2")
	}
}

func TestAmbiguous_NamesASecondUseOfAnID(t *testing.T) {
	t.Parallel()
	require.Empty(t, surface(t, form).Ambiguous())
	s := surface(t, `{"surface":{"components":[{"component":"text","text":"a"},{"component":"text","text":"a"},{"component":"field.text","id":"x","label":"a"},{"component":"action.button","id":"x","label":"b","action":{"target":"resume"}}]}}`)
	problems := s.Ambiguous()
	require.Len(t, problems, 1)
	require.Equal(t, "/surface/components/3/id", problems[0].Path)
}

func TestActions_OfAFragmentAreEmpty(t *testing.T) {
	t.Parallel()
	s := surface(t, form)
	require.Equal(t, []a2ui.Target{a2ui.Resume, a2ui.Exchange}, s.Actions(false))
	require.Empty(t, s.Actions(true))
}

func FuzzCheckSubmit(f *testing.F) {
	f.Add([]byte(form), []byte(`{"why":"x","how":"post"}`))
	f.Add([]byte(`{"surface":{"components":[{"component":"field.date","id":"","required":true}]}}`), []byte(`{"":null}`))
	f.Fuzz(func(t *testing.T, payload, values []byte) {
		s, err := a2ui.Parse(payload)
		if err != nil {
			return
		}
		s.Ambiguous()
		if len(s.CheckSubmit(values)) == 0 {
			var given map[string]json.RawMessage
			if json.Unmarshal(values, &given) != nil {
				t.Fatalf("took %q", values)
			}
		}
	})
}
