package accept

import "waybill.dev/waybill/protocol/wire"

// Facts are what spans and logs may say about a passage. They have passed the
// redactor and hold no content of the payload.
type Facts struct {
	Kind          string
	EnvelopeID    string
	CorrelationID string
	NodeID        string
	Version       int64
	// Floor is the advertised version, or Unlisted.
	Floor int
	// Drift says that Version is below Floor and was let pass.
	Drift   bool
	Trust   wire.Trust
	Outcome Status
	// Traceparent is the envelope's own, if it has a well-formed one; else that of
	// whoever handed it in.
	Traceparent string
}

// SpanName names the span of one accept.
const SpanName = "openwop.envelope.accept"

// Attributes are the span's attributes (OpenWOP envelope contract §10, Spans).
func (f Facts) Attributes() map[string]any {
	a := map[string]any{
		"openwop.envelope_kind":   f.Kind,
		"openwop.envelope_id":     f.EnvelopeID,
		"envelope_schema_version": f.Version,
		"envelope_outcome":        string(f.Outcome),
		"envelope_correlation_id": f.CorrelationID,
		"envelope_content_trust":  string(f.Trust),
	}
	if f.Floor != Unlisted {
		a["envelope_schema_version_floor"] = int64(f.Floor)
	}
	if f.Drift {
		a["envelope_schema_version_drift"] = true
	}
	return a
}
