package pack_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
)

const (
	triage = `{"name":"vendor.acme.desk","version":"1.0.0","engines":{"openwop":">=1.0"},
		"nodes":[{"typeId":"vendor.acme.desk.triage","version":"2.1.0","category":"chat","role":"side-effect",
			"configSchemaRef":"schemas/config.json","envelopeContractRef":"contracts/triage.json",
			"requiredModelCapabilities":["vision-input"],"fallbackModel":{"provider":"openai","model":"big"},
			"requiresSecrets":[{"id":"key","kind":"ai-provider","provider":"openai"}]}]}`
	triageOwn = `{"nodes":{"vendor.acme.desk.triage":{"base":"core.ai.structuredOutput","config":{"maxTokens":100},"configRefs":{"outputSchema":"schemas/ticket.json"}}}}`
)

// desk is a pack with a node that is made of one of the host's.
func desk(manifest, own string) []pack.Source {
	return []pack.Source{{Folder: "desk", FS: files(map[string]string{
		"pack.json": manifest, "waybill.json": own, "contracts/triage.json": `{"accepts":[]}`, "schemas/ticket.json": schemaDoc,
		"schemas/config.json": `{"type":"object","required":["tone"],"properties":{"tone":{"enum":["kind","terse"]}}}`,
	})}}
}

var deskHost = pack.Host{Types: []string{"core.ai.structuredOutput", "core.noop"}}

func TestLoad_ReadsTheBaseOfANode(t *testing.T) {
	t.Parallel()
	packs, said, err := pack.Load(desk(triage, triageOwn), deskHost)
	require.NoError(t, err)
	require.Empty(t, said)
	require.Len(t, packs[0].Nodes, 1)
	n := packs[0].Nodes[0]
	require.Equal(t, "vendor.acme.desk.triage 2.1.0 core.ai.structuredOutput", n.TypeID+" "+n.Version+" "+n.Base)
	require.Equal(t, map[string]json.RawMessage{"maxTokens": json.RawMessage(`100`), "outputSchema": json.RawMessage(schemaDoc)}, n.Defaults)
	require.Equal(t, modelgate.Needs{Required: []string{"vision-input"}, Fallback: &modelgate.Model{Provider: "openai", Model: "big"}}, n.Needs)
	require.Equal(t, []pack.Secret{{ID: "key", Kind: "ai-provider", Provider: "openai"}}, n.Secrets)
	require.NotNil(t, n.Contract)
	require.Empty(t, n.Config.Validate([]byte(`{"tone":"kind"}`)))
	require.NotEmpty(t, n.Config.Validate([]byte(`{"tone":"rude"}`)))
}

// OpenWOP host contract §5.7 and §10.3: what a node requires stands in the host's own
// file, for which ports are sensitive the manifest has a place.
func TestLoad_ReadsRequirementsAndSensitivePorts(t *testing.T) {
	t.Parallel()
	manifest := strings.Replace(triage, `"category":"chat"`, `"category":"chat","outputs":{"ssn":{"sensitive":true},"name":{"sensitive":false},"other":{}}`, 1)
	own := strings.Replace(triageOwn, `"config":`, `"requires":["vendor.acme.gpu"],"config":`, 1)
	packs, _, err := pack.Load(desk(manifest, own), deskHost)
	require.NoError(t, err)
	require.Equal(t, []string{"vendor.acme.gpu"}, packs[0].Nodes[0].Requires)
	require.Equal(t, map[string]bool{"ssn": true}, packs[0].Nodes[0].Sensitive)
	_, _, err = pack.Load(desk(triage, strings.Replace(own, "vendor.acme.gpu", "GPU!", 1)), deskHost)
	require.ErrorContains(t, err, "/nodes/vendor.acme.desk.triage/requires/0")
}

// OpenWOP envelope contract §16.2: the registry is open, so a made-up capability is no error. It is logged,
// because no model has it.
func TestLoad_NotesACapabilityThatNoModelHas(t *testing.T) {
	t.Parallel()
	manifest := strings.Replace(triage, `"vision-input"`, `"vision-input","telepathy","x-host-acme-own"`, 1)
	_, notes, err := pack.Load(desk(manifest, triageOwn), deskHost)
	require.NoError(t, err)
	var found []string
	for _, n := range notes {
		found = append(found, n.String())
	}
	require.Len(t, found, 1)
	require.Contains(t, found[0], `/nodes/0/requiredModelCapabilities/1`)
	require.Contains(t, found[0], `"telepathy" is not a capability of the protocol`)
}

func TestLoad_ReportsAllErrorsOfANode(t *testing.T) {
	t.Parallel()
	swap := func(doc string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(doc) }
	at := `waybill.json at "/nodes/vendor.acme.desk.triage`
	for name, tc := range map[string]struct {
		sources []pack.Source
		says    []string
	}{
		"a base that is not there": {desk(triage, swap(triageOwn, "core.ai.structuredOutput", "core.magic")), []string{at + `/base"`, "core.ai.structuredOutput"}},
		"a node that is not there": {desk(triage, swap(triageOwn, "desk.triage", "desk.other")), []string{`"/nodes/vendor.acme.desk.other"`, "pack.json"}},
		"no base":                  {desk(triage, swap(triageOwn, `"base":"core.ai.structuredOutput",`, "")), []string{at, "base"}},
		"a config that is none":    {desk(triage, swap(triageOwn, `{"maxTokens":100}`, `7`)), []string{at + `/config"`}},
		"a member twice":           {desk(triage, swap(triageOwn, `"maxTokens"`, `"outputSchema"`)), []string{at + `/configRefs/outputSchema"`, "keep one of the two"}},
		"a way out":                {desk(triage, swap(triageOwn, "schemas/ticket.json", "../ticket.json")), []string{at + `/configRefs/outputSchema"`, "no .. among them"}},
		"a file that is away":      {desk(triage, swap(triageOwn, "schemas/ticket.json", "schemas/gone.json")), []string{at + `/configRefs/outputSchema"`, "no such file"}},
		"a schema that is none":    {desk(swap(triage, "schemas/config.json", "waybill.json"), swap(triageOwn, `"nodes"`, `"type":7,"nodes"`)), []string{"waybill.json"}},
		"a capability twice":       {desk(swap(triage, `["vision-input"]`, `["reasoning","reasoning"]`), triageOwn), []string{`pack.json at "/nodes/0/requiredModelCapabilities`}},
		"a fallback of air":        {desk(swap(triage, `"model":"big"`, `"model":""`), triageOwn), []string{`pack.json at "/nodes/0/fallbackModel/model"`}},
		"credentials of a family that is not there": {
			desk(swap(triage, `"requiresSecrets"`, `"requiredCredentials":[{"key":"k"}],"requiresSecrets"`), triageOwn), []string{`pack.json at "/nodes/0"`, "requiredCredentials"},
		},
		"a type of the host's own": {desk(swap(triage, "vendor.acme.desk.triage", "core.noop"), swap(triageOwn, "vendor.acme.desk.triage", "core.noop")), []string{`pack.json at "/nodes/0/typeId"`, "declared by this host"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packs, _, err := pack.Load(tc.sources, deskHost)
			require.Empty(t, packs)
			require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", err)
			for _, want := range tc.says {
				require.Contains(t, err.Error(), want)
			}
		})
	}
}

func TestLoad_ReportsSeveralErrorsOfANode(t *testing.T) {
	t.Parallel()
	_, _, err := pack.Load(desk(triage, strings.NewReplacer("core.ai.structuredOutput", "core.magic", "schemas/ticket.json", "schemas/gone.json").Replace(triageOwn)), deskHost)
	require.Len(t, fault.All(err), 2)
}

// If the nodes of a manifest cannot be read, none of them is reported as missing.
func TestLoad_ReportsNoErrorsOfUnreadableNodes(t *testing.T) {
	t.Parallel()
	i := strings.Index(triage, `"nodes":`)
	for _, nodes := range []string{`"nodes":"x"}`, `"Nodes":[]}`, `"nodes":[{"version":"1.0.0"}]}`} {
		_, _, err := pack.Load(desk(triage[:i]+nodes, triageOwn), deskHost)
		require.ErrorContains(t, err, "pack.json")
		require.NotContains(t, err.Error(), "want the typeId of one of the nodes", nodes)
	}
}

// Two packs do not share a node type.
func TestLoad_NamesBothPacksThatClaimANode(t *testing.T) {
	t.Parallel()
	other := desk(strings.Replace(triage, "vendor.acme.desk\"", "vendor.acme.copy\"", 1), triageOwn)
	other[0].Folder = "copy"
	_, _, err := pack.Load(append(desk(triage, triageOwn), other...), deskHost)
	require.ErrorContains(t, err, "vendor.acme.desk.triage is also declared by pack vendor.acme.copy (folder copy)")
}
