package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
)

// Envelopes are the flags of the kinds of envelopes.
func Envelopes(f *pflag.FlagSet, o *host.Envelopes) {
	AIEnvelope(f, &o.AIEnvelope)
	f.StringVar(&o.Kinds, "kinds", "", "directory of additional envelope kinds, one KIND.schema.json per kind")
	f.StringVar(&o.KindLint, "kind-lint", o.KindLint, "strict, warn or off: whether to reject, or warn about, a kind whose schema providers cannot enforce")
	f.StringVar(&o.Strictness, "envelope-strictness", o.Strictness, "warn or strict: whether an envelope with a schemaVersion below the advertised one is rejected")
	f.IntVar(&o.Limits.EnvelopesPerTurn, "limit-envelopes-per-turn", o.Limits.EnvelopesPerTurn, "maximum envelopes in one turn")
	f.IntVar(&o.Limits.SchemaRounds, "limit-schema-rounds", o.Limits.SchemaRounds, "maximum schema rounds of one emission")
	f.IntVar(&o.Limits.ClarificationRounds, "limit-clarification-rounds", o.Limits.ClarificationRounds, "maximum clarification requests of one node")
}

// AIEnvelope is the flag of the capability host.aiEnvelope.
func AIEnvelope(f *pflag.FlagSet, on *bool) {
	f.BoolVar(on, "ai-envelope", *on, "offer host.aiEnvelope: accept envelopes and execute nodes that call models; false rejects both with capability_required")
}
