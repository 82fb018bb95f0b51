package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
)

// Envelopes are the flags of the kinds of envelopes.
func Envelopes(f *pflag.FlagSet, o *host.Envelopes) {
	f.StringVar(&o.Kinds, "kinds", "", "directory of further envelope kinds, one KIND.schema.json a file")
	f.StringVar(&o.KindLint, "kind-lint", o.KindLint, "strict, warn or off: what becomes of a kind whose schema models cannot be held to")
	f.StringVar(&o.Strictness, "envelope-strictness", o.Strictness, "warn or strict: whether a schemaVersion below the advertised one is refused")
}
