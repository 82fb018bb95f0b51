package accept

import (
	"context"
	"fmt"

	"waybill.dev/waybill/protocol/fault"
)

// version compares schemaVersion with the advertised version. It runs before the
// payload step, since a payload of a higher, unknown version cannot be validated
// (OpenWOP envelope contract §4.1). An absent schemaVersion counts as 0.
func version(_ context.Context, e *execution) (*Refusal, error) {
	got, want := int64(e.env.SchemaVersion), int64(e.kind.Version)
	switch {
	case want == Unlisted || got == want:
		return nil, nil
	case got > want:
		return unknownVersion(fmt.Sprintf("schemaVersion is above the advertised %d", want)), nil
	case e.policy.Strict:
		return unknownVersion(fmt.Sprintf("schemaVersion is below the advertised %d, and this host is strict", want)), nil
	}
	e.attrs.Drift = true
	return nil, nil
}

func unknownVersion(message string) *Refusal {
	return &Refusal{
		Status: Invalid, Code: fault.UnknownSchemaVersion, Message: message,
		Details: []Detail{{
			InstancePath: "/schemaVersion",
			SchemaPath:   "/schemaVersions",
			Keyword:      "schemaVersion",
			Message:      message,
		}},
	}
}
