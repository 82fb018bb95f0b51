package kinds_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/acceptor/kinds"
)

// packOf returns a pack with one kind per schema.
func packOf(t *testing.T, name string, schemas map[string]string) *pack.Pack {
	t.Helper()
	folder := fstest.MapFS{}
	var declared []string
	for kind, doc := range schemas {
		folder["schemas/"+kind+".json"] = file(doc)
		declared = append(declared, `{"kind":"`+kind+`","version":3,"schemaRef":"schemas/`+kind+`.json"}`)
	}
	folder[pack.File] = file(`{"name":"` + name + `","version":"1.0.0","engines":{"openwop":"*"}}`)
	folder[pack.OwnFile] = file(`{"envelopeKinds":[` + strings.Join(declared, ",") + `]}`)
	packs, _, err := pack.Load([]pack.Source{{Folder: "acme", FS: folder}}, pack.Host{})
	require.NoError(t, err)
	return packs[0]
}

func TestAddPack_RegistersItsKinds(t *testing.T) {
	t.Parallel()
	r := registry(t, kinds.LintWarn)
	warnings, err := r.AddPack(packOf(t, "vendor.acme.notes", map[string]string{name: tierOne}))
	require.NoError(t, err)
	require.Empty(t, warnings)
	k, ok := r.Find(name)
	require.True(t, ok)
	require.Equal(t, 3, k.Version)
	require.Empty(t, k.Payload.Validate([]byte(`{"text":"x"}`)))
	require.NotEmpty(t, k.Payload.Validate([]byte(`{}`)))
}

func TestAddPack_LintsAtTheLevelOfTheHost(t *testing.T) {
	t.Parallel()
	for level, want := range map[kinds.Lint]struct{ warned, refused bool }{
		kinds.LintStrict: {false, true}, kinds.LintWarn: {true, false}, kinds.LintOff: {false, false},
	} {
		r := registry(t, level)
		warnings, err := r.AddPack(packOf(t, "vendor.acme.notes", map[string]string{name: variants}))
		require.Equal(t, want.refused, err != nil, "%s: %v", level, err)
		require.Equal(t, want.warned, len(warnings) > 0, level)
		for _, said := range append(warnings, errorText(err)...) {
			require.Contains(t, said, "pack vendor.acme.notes: ")
			require.Contains(t, said, "schemas/vendor.acme.note.json")
			require.Contains(t, said, `"/properties/v/oneOf": forbidden-keyword`)
		}
	}
}

func errorText(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}

func TestAddPack_NamesTheOriginOfARegisteredKind(t *testing.T) {
	t.Parallel()
	r := registry(t, kinds.LintWarn)
	_, err := r.LoadDir(fstest.MapFS{name + ".schema.json": file(tierOne)})
	require.NoError(t, err)
	_, err = r.AddPack(packOf(t, "vendor.acme.notes", map[string]string{name: tierOne}))
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	for _, want := range []string{
		"pack vendor.acme.notes", `waybill.json at "/envelopeKinds/0"`,
		"from file vendor.acme.note.schema.json",
	} {
		require.ErrorContains(t, err, want)
	}

	r = registry(t, kinds.LintWarn)
	_, err = r.AddPack(packOf(t, "vendor.acme.notes", map[string]string{name: tierOne}))
	require.NoError(t, err)
	_, err = r.AddPack(packOf(t, "vendor.other.notes", map[string]string{name: tierOne}))
	require.ErrorContains(t, err, "pack vendor.other.notes")
	require.ErrorContains(t, err, "from pack vendor.acme.notes")
}

func TestAddPack_RegistersAllKindsOrNone(t *testing.T) {
	t.Parallel()
	r := registry(t, kinds.LintWarn)
	_, err := r.AddPack(packOf(t, "vendor.acme.notes", map[string]string{
		name:                 tierOne,
		"vendor.acme.broken": `{"type":"objekt"}`,
	}))
	require.ErrorContains(t, err, "schemas/vendor.acme.broken.json")
	require.Len(t, r.Names(), protocolKinds)
}
