package discovery

import "waybill.dev/waybill/services/gateway/engine"

// feedback is present if runs can be annotated (OpenWOP host contract §2.8).
type feedback struct {
	Supported bool                `json:"supported"`
	Targets   []string            `json:"targets"`
	Signals   []engine.SignalKind `json:"signals"`
}

func feedbackOf(enabled bool) *feedback {
	if !enabled {
		return nil
	}
	return &feedback{Supported: true, Targets: engine.AnnotationTargets(), Signals: engine.SignalKinds()}
}
