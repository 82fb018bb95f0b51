package a2ui_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/a2ui"
)

// OpenWOP envelope contract §18: the fields, then the resumeSchema.
func TestSubmit_AppliesTheSchemaAfterTheSurface(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["when"],"properties":{"why":{"type":"string","minLength":4},"how":{"enum":["post","pigeon"]},"when":{"type":"string"}}}`
	for name, tc := range map[string]struct {
		values, schema string
		paths          []string
	}{
		"no schema":                              {`{"why":"x","how":"post"}`, "", nil},
		"fits both":                              {`{"why":"broken","how":"post","when":"2026-01-31"}`, schema, nil},
		"fits the surface, not the schema":       {`{"why":"bad","how":"shop","when":"2026-01-31"}`, schema, []string{"/how", "/why"}},
		"the schema wants what is not required":  {`{"why":"broken","how":"post"}`, schema, []string{""}},
		"fits the schema, not the surface":       {`{"why":"broken","how":"pigeon","when":"2026-01-31"}`, schema, []string{"/how"}},
		"fits neither: reports the surface only": {`{"why":"bad","how":"raven"}`, schema, []string{"/how"}},
		"an unknown field":                       {`{"why":"broken","how":"post","when":"2026-01-31","more":1}`, schema, []string{"/more"}},
		"a schema that refuses all":              {`{"why":"x","how":"post"}`, `false`, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resume, wrong, err := surface(t, form).Submit([]byte(tc.values), []byte(tc.schema))
			require.NoError(t, err)
			var got []string
			for _, p := range wrong {
				got = append(got, p.Path)
				require.NotEmpty(t, p.Message)
			}
			require.ElementsMatch(t, tc.paths, got)
			if tc.paths == nil {
				require.Equal(t, tc.values, string(resume), "as it was submitted, including the digits")
				return
			}
			require.Nil(t, resume)
		})
	}
}

func TestSubmit_RejectsEverythingIfTheSchemaIsUnusable(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{`, `{"type":"nothing"}`, `{"$ref":"https://schemas.example/x"}`, `7`} {
		resume, _, err := surface(t, form).Submit([]byte(`{"why":"x","how":"post"}`), []byte(schema))
		require.Error(t, err, schema)
		require.Nil(t, resume)
	}
}

func TestSubmit_RepeatsNoValue(t *testing.T) {
	t.Parallel()
	_, wrong, err := surface(t, form).Submit([]byte(`{"why":"a-secret-word","how":"post"}`), []byte(`{"properties":{"why":{"maxLength":2},"how":{"const":"x"}}}`))
	require.NoError(t, err)
	require.NotEmpty(t, wrong)
	for _, p := range wrong {
		require.NotContains(t, p.Message, "a-secret-word")
	}
}

func FuzzSubmit(f *testing.F) {
	f.Add([]byte(`{"why":"broken","how":"post"}`), []byte(`{"type":"object"}`))
	f.Add([]byte(`{"why":null}`), []byte(`{"properties":{"why":{"type":"null"}}}`))
	f.Fuzz(func(t *testing.T, values, schema []byte) {
		s, err := a2ui.Parse([]byte(form))
		require.NoError(t, err)
		resume, wrong, err := s.Submit(values, schema)
		if resume != nil {
			require.Empty(t, wrong)
			require.NoError(t, err)
			require.Empty(t, s.CheckSubmit(resume), "every accepted value fits the surface")
		}
	})
}
