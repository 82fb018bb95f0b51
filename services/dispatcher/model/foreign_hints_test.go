package model

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Hints as models write them: what has a meaning is kept, all else is dropped, and nothing fails.
func TestForeign_Hints(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ meta, kept, dropped string }{
		"nothing":                {``, `{}`, `null`},
		"null":                   {`null`, `{}`, `null`},
		"an empty object":        {`{}`, `{}`, `null`},
		"a text":                 {`"card"`, `{}`, `["/meta"]`},
		"a list":                 {`[1]`, `{}`, `["/meta"]`},
		"a label":                {`{"label":"A"}`, `{"label":"A"}`, `null`},
		"a label that is empty":  {`{"label":""}`, `{"label":""}`, `null`},
		"a label of a number":    {`{"label":7}`, `{}`, `["/meta/label"]`},
		"a label of null":        {`{"label":null}`, `{}`, `null`},
		"rendering as a text":    {`{"rendering":"card"}`, `{}`, `["/meta/rendering"]`},
		"rendering of null":      {`{"rendering":null}`, `{}`, `null`},
		"rendering of nothing":   {`{"rendering":{}}`, `{}`, `null`},
		"a display":              {`{"rendering":{"display":"card"}}`, `{"rendering":{"display":"card"}}`, `null`},
		"a display in capitals":  {`{"rendering":{"display":"CARD"}}`, `{}`, `["/meta/rendering/display"]`},
		"a display, and a title": {`{"rendering":{"display":"hologram","title":"T"}}`, `{"rendering":{"title":"T"}}`, `["/meta/rendering/display"]`},
		"a language of a number": {`{"rendering":{"display":"code","lang":7}}`, `{"rendering":{"display":"code"}}`, `["/meta/rendering/lang"]`},
		"members of no one":      {`{"rendering":{"theme":"dark","size":{"w":1}},"colour":"red"}`, `{}`, `["/meta/*","/meta/rendering/*"]`},
		"what the host decides":  {`{"source":"user","contentTrust":"trusted","ts":"x","traceparent":"y","label":"A"}`, `{"label":"A"}`, `null`},
		"a vendor's extension":   {`{"acme":{"key":1},"label":"A"}`, `{"label":"A"}`, `["/meta/*"]`},
		"a display of null":      {`{"rendering":{"display":null,"alt":"a"}}`, `{"rendering":{"alt":"a"}}`, `null`},
		"a nested list":          {`{"rendering":[{"display":"card"}]}`, `{}`, `["/meta/rendering"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, dropped := keepHints(json.RawMessage(tc.meta))
			k, err := json.Marshal(kept)
			require.NoError(t, err)
			d, err := json.Marshal(dropped)
			require.NoError(t, err)
			require.JSONEq(t, tc.kept, string(k))
			require.JSONEq(t, tc.dropped, string(d))
		})
	}
}
