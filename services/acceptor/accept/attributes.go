package accept

import "waybill.dev/waybill/protocol/wire"

// Attributes describe one accept for spans and logs. They are redacted and contain
// nothing of the payload.
type Attributes struct {
	Kind          string
	EnvelopeID    string
	CorrelationID string
	NodeID        string
	Version       int64
	// AdvertisedVersion may be Unlisted.
	AdvertisedVersion int
	// Drift: Version is below AdvertisedVersion, and the host is not strict.
	Drift   bool
	Trust   wire.Trust
	Outcome Status
	// Traceparent is the envelope's own if well-formed, else the caller's.
	Traceparent string
}

// SpanName is the name of the span of one accept.
const SpanName = "openwop.envelope.accept"

// Span returns the span's attributes (OpenWOP envelope contract §10, Spans).
func (a Attributes) Span() map[string]any {
	m := map[string]any{
		"openwop.envelope_kind":   a.Kind,
		"openwop.envelope_id":     a.EnvelopeID,
		"envelope_schema_version": a.Version,
		"envelope_outcome":        string(a.Outcome),
		"envelope_correlation_id": a.CorrelationID,
		"envelope_content_trust":  string(a.Trust),
	}
	if a.AdvertisedVersion != Unlisted {
		m["envelope_schema_version_floor"] = int64(a.AdvertisedVersion)
	}
	if a.Drift {
		m["envelope_schema_version_drift"] = true
	}
	return m
}
