package accept

import (
	"context"
	"fmt"

	"waybill.dev/waybill/protocol/fault"
)

// version compares schemaVersion with the advertised one, just before the
// payload check: a payload of an unknown higher version cannot be judged
// (OpenWOP envelope contract §4.1). Absent counts as 0.
func version(_ context.Context, p *passage) (*Refusal, error) {
	got, want := int64(p.env.SchemaVersion), int64(p.kind.Version)
	switch {
	case want == Unlisted || got == want:
		return nil, nil
	case got > want:
		return unknownVersion(fmt.Sprintf("schemaVersion is above the advertised %d", want)), nil
	case p.policy.Strict:
		return unknownVersion(fmt.Sprintf("schemaVersion is below the advertised %d, and this host is strict", want)), nil
	}
	p.facts.Drift = true
	return nil, nil
}

func unknownVersion(message string) *Refusal {
	return &Refusal{
		Status: Invalid, Code: fault.UnknownSchemaVersion, Message: message,
		Details: []Detail{{InstancePath: "/schemaVersion", SchemaPath: "/schemaVersions", Keyword: "schemaVersion", Message: message}},
	}
}
