package acceptor_test

import (
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/acceptor"
)

// memoPack has a kind, and a node whose contract names that kind and an unknown one.
func memoPack(t *testing.T) *pack.Pack {
	t.Helper()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	packs, _, err := pack.Load([]pack.Source{{Folder: "memo", FS: fstest.MapFS{
		pack.File: file(`{"name":"vendor.acme.memos","version":"1.0.0","engines":{"openwop":"*"},"runtime":{"language":"remote","entry":"https://acme.example"},
			"nodes":[{"typeId":"vendor.acme.write","version":"1","category":"data","role":"pure","envelopeContractRef":"write.json"}]}`),
		pack.OwnFile: file(`{"envelopeKinds":[{"kind":"vendor.acme.memo","version":4,"schemaRef":"memo.json"}]}`),
		"write.json": file(`{"accepts":["vendor.acme.memo","vendor.acme.gone","error"]}`),
		"memo.json":  file(`{"type":"object","additionalProperties":false,"required":["title"],"properties":{"title":{"type":"string"}}}`),
	}}}, pack.Host{})
	require.NoError(t, err)
	return packs[0]
}

// OpenWOP envelope contract §4: a kind of a pack is listed with its version, and its
// schema validates payloads.
func TestPacks_KindsAreListedAndValidatePayloads(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *acceptor.Config) { c.Packs = []*pack.Pack{memoPack(t)} })
	listed, err := h.ListKinds(t.Context(), &acceptorv1.ListKindsRequest{})
	require.NoError(t, err)
	versions := map[string]int32{}
	for _, k := range listed.GetKinds() {
		versions[k.GetName()] = k.GetVersion()
	}
	require.EqualValues(t, 4, versions["vendor.acme.memo"])
	require.Contains(t, versions, note, "kinds of the folder are there as well")

	h.open(t, externalRun, "")
	for payload, want := range map[string]string{
		`{"title":"x"}`:          "accepted",
		`{"title":7}`:            "envelope_invalid",
		`{"title":"x","more":1}`: "envelope_invalid",
	} {
		envelope := `{"type":"vendor.acme.memo","schemaVersion":4,"envelopeId":"e","correlationId":` + strconv.Quote(payload) + `,"payload":` + payload +
			`,"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`
		require.Contains(t, string(h.anywhere(t, []byte(envelope)).GetOutcome()), want, payload)
	}
}

func TestPacks_WarnsOfAContractWithAnUnknownKind(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *acceptor.Config) { c.Packs = []*pack.Pack{memoPack(t)} })
	require.Contains(t, h.lines.String(), "accepts a kind that this host does not have")
	require.Contains(t, h.lines.String(), "vendor.acme.gone")
	require.NotContains(t, h.lines.String(), "vendor.acme.memo\"")
}

func TestPacks_TwoWithTheSameKindFailTheStart(t *testing.T) {
	t.Parallel()
	other := *memoPack(t)
	other.Name = "vendor.other.memos"
	cfg := acceptor.DefaultConfig()
	cfg.Packs = []*pack.Pack{memoPack(t), &other}
	_, err := acceptor.New(cfg, acceptor.Deps{Log: memory.New(), Redactor: redactorv1.NewRedactorClient(nil)})
	require.ErrorContains(t, err, "pack vendor.other.memos")
	require.ErrorContains(t, err, "from pack vendor.acme.memos")
}
