package discovery

import "waybill.dev/waybill/internal/audit"

// authBlock is present if the host supports an auth profile of the protocol (OpenWOP host
// contract §8.4).
type authBlock struct {
	Profiles          []string           `json:"profiles"`
	AuditLogIntegrity *auditLogIntegrity `json:"auditLogIntegrity,omitempty"`
}

type auditLogIntegrity struct {
	HashChain       bool   `json:"hashChain"`
	Algorithm       string `json:"checkpointSignatureAlgorithm"`
	PublicKey       string `json:"checkpointPublicKey"`
	IntervalEntries int64  `json:"checkpointIntervalEntries"`
	IntervalSeconds int64  `json:"checkpointIntervalSeconds"`
}

func authOf(p *audit.Profile) *authBlock {
	if p == nil {
		return nil
	}
	return &authBlock{
		Profiles: []string{"openwop-audit-log-integrity"},
		AuditLogIntegrity: &auditLogIntegrity{
			HashChain:       true,
			Algorithm:       audit.Algorithm,
			PublicKey:       p.PublicKey,
			IntervalEntries: p.EveryEntries,
			IntervalSeconds: p.IntervalSeconds,
		},
	}
}
