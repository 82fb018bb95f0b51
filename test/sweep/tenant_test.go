package sweep

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A tenant's own keys are secrets of the runs that name them, and of no other runs.

// tenantRef is the name of the tenant's keys.
const tenantRef = "team.a_1-x"

// refName is the format of such a name.
var refName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// tenantKeys are those keys, by provider.
var tenantKeys = map[string]string{
	"vendor":    `tk/Own+7c1e5a09"b3d8<f2>46&=`,
	"anthropic": `tk-ant-own~40d9\8b1f/e2c6'a5%73`,
	"gemini":    "AIzaOwn_5d2f8c0b9e714a63d8f1",
}

// tenantBatches returns the tenant's keys in each encoding, several per batch.
func tenantBatches() []batch {
	const together = 4
	var list []secret
	for _, name := range []string{"vendor", "anthropic", "gemini"} {
		list = append(list, secret{name + "." + tenantRef, tenantKeys[name]})
	}
	var out []batch
	for group := range slices.Chunk(knownBatches(list), together) {
		joined := batch{name: "tenant's keys, from " + group[0].name, sep: " "}
		for _, b := range group {
			joined.items = append(joined.items, b.items...)
		}
		out = append(out, joined)
	}
	return out
}

// credentials is the directory of the tenants' keys.
func credentials(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, key := range tenantKeys {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "acme", name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "acme", name, tenantRef), []byte(key+"\n"), 0o600))
	}
	return dir
}

// owned plants the tenant's keys wherever runs that name them can hold them. first is the template
// number of the first batch.
func (r *rig) owned(batches []batch, first int) {
	r.t.Helper()
	r.ref = tenantRef
	defer func() { r.ref = "" }()
	for i, b := range batches {
		shown := r.run(map[string]any{
			"workflowId": "echo", "inputs": map[string]any{"text": b.at("input"), "more": map[string]any{b.at("name of an input"): []any{b.at("input in a list")}}},
			"metadata": map[string]any{b.at("name in metadata"): b.at("metadata")}, "configurable": map[string]any{b.at("name in configurable"): b.at("configurable")},
		})
		r.prove(b, shown, "input", "name of an input", "input in a list", "name in metadata", "metadata", "name in configurable", "configurable")
		r.talks(b)
		r.relays(b)
		r.fails(b, i)
		r.composes(b, first+i)
		r.reasons(b)
		source := r.waits(b)
		r.forks(b, source)
		r.questions(b)
		r.families(b)
		r.plantOutsideLog(b, source)
		r.ownedWrong(b)
	}
}

// ownedWrong plants the tenant's keys in requests that are rejected. No run has the keys registered
// then, so the error must not repeat anything of the request.
func (r *rig) ownedWrong(b batch) {
	r.t.Helper()
	for _, it := range b.items {
		text := mustJSON(it.text)
		ref := fmt.Sprintf(`"ai.provider":"vendor","ai.credentialRef":%q`, tenantRef)
		bodies := []string{
			`{"workflowId":"echo","inputs":{"text":"x"},"configurable":{"ai.provider":` + text + `,"ai.credentialRef":"` + tenantRef + `"}}`,
			`{"workflowId":"echo","inputs":{"text":[` + text + `]},"configurable":{` + ref + `}}`,
			`{"workflowId":"echo","inputs":{"text":"x"},"configurable":{` + ref + `,"maxTokens":` + text + `}}`,
		}
		if !refName.MatchString(it.text) { // otherwise it is a valid name
			bodies = append(bodies, `{"workflowId":"echo","inputs":{"text":"x"},"configurable":{"ai.provider":"vendor","ai.credentialRef":`+text+`}}`)
		}
		for _, body := range bodies {
			r.refuse(http.MethodPost, "/v1/runs", body)
		}
	}
}
