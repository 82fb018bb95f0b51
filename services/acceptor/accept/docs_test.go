package accept_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

const pipelineDoc = "../../../docs/pipeline.md"

// block is one JSON document of the page, with the label above it.
type block struct{ label, json string }

// worked returns the blocks of each worked example by its heading.
func worked(page string) map[string][]block {
	out := map[string][]block{}
	for _, section := range strings.Split(page, "\n### ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		parts := strings.Split(text, "\n```")
		for i := 0; i+1 < len(parts); i += 2 {
			above := strings.TrimSpace(parts[i])
			label := above[strings.LastIndex(above, "\n")+1:]
			out[heading] = append(out[heading], block{strings.TrimSuffix(label, ":"), strings.TrimPrefix(parts[i+1], "json\n")})
		}
	}
	return out
}

// asked are the further members of a request, as on the page.
type asked struct {
	Accepts          []string        `json:"accepts"`
	EnvelopesPerTurn *accept.Counter `json:"envelopesPerTurn"`
	ApprovalContext  bool            `json:"approvalContext"`
}

func (a asked) add(r *accept.Request) {
	if a.Accepts != nil {
		r.Contract = &accept.Contract{Accepts: a.Accepts}
	}
	r.Counters.EnvelopesPerTurn = a.EnvelopesPerTurn
	r.ApprovalContext = a.ApprovalContext
}

func TestPipelineDoc_ShowsTheOutcomesOfItsExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(pipelineDoc)
	require.NoError(t, err)
	examples := worked(string(page))
	statuses := map[accept.Status]bool{}
	for heading, blocks := range examples {
		t.Run(heading, func(t *testing.T) {
			f := newFixture(t)
			var res *accept.Result
			var with asked
			for _, b := range blocks {
				switch b.label {
				case "Asked with":
					require.NoError(t, json.Unmarshal([]byte(b.json), &with))
				case "Envelope":
					res, with = f.accept(b.json, with.add), asked{}
					f.head = res.Head
				case "Outcome":
					require.JSONEq(t, b.json, string(res.Outcome))
					statuses[accept.StatusOf(res.Outcome)] = true
				case "Recorded":
					require.JSONEq(t, b.json, recorded(t, res.Events))
				default:
					t.Fatalf("a block called %q; want Asked with, Envelope, Outcome or Recorded", b.label)
				}
			}
			require.True(t, strings.HasPrefix(heading, string(accept.StatusOf(res.Outcome))+": "), "%s: %s", heading, res.Outcome)
		})
	}
	require.Equal(t, map[accept.Status]bool{
		accept.Accepted: true,
		accept.Gated:    true,
		accept.Invalid:  true,
		accept.Breached: true,
	}, statuses)
}

// recorded renders events as the page does.
func recorded(t *testing.T, events []wire.Event) string {
	t.Helper()
	var out []map[string]any
	for _, e := range events {
		shown := map[string]any{"sequence": e.Sequence, "type": e.Type, "nodeId": e.NodeID, "payload": e.Payload}
		if e.ContentTrust != "" {
			shown["contentTrust"] = e.ContentTrust
		}
		out = append(out, shown)
	}
	b, err := json.Marshal(out)
	require.NoError(t, err)
	return string(b)
}

// The page names every step, in the order of the pipeline, and its code.
func TestPipelineDoc_ListsTheSteps(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(pipelineDoc)
	require.NoError(t, err)
	table, _, _ := strings.Cut(string(page), "\n## ")
	rest := table
	for _, code := range []fault.Code{
		fault.CapabilityRequired, fault.InvalidEnvelopeShape, fault.UnknownEnvelopeKind,
		fault.UnknownSchemaVersion, fault.EnvelopeInvalid,
		fault.EnvelopeContractViolation, fault.CapBreached, fault.UntrustedBlocksApproval,
		fault.EnvelopeCorrelationClash,
	} {
		_, after, found := strings.Cut(rest, "`"+string(code)+"`")
		require.True(t, found, "%s is not in the table after the codes before it", code)
		rest = after
	}
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 6 {
			continue
		}
		for _, name := range strings.Split(cells[5], ",") {
			name = strings.Trim(strings.TrimSpace(name), "`")
			if strings.HasSuffix(name, ".go") {
				require.FileExists(t, name)
			}
		}
	}
}
