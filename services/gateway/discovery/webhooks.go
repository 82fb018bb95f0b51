package discovery

import "waybill.dev/waybill/services/gateway/webhook"

// webhooks is present if events are delivered (OpenWOP host contract §1.4).
type webhooks struct {
	Supported  bool     `json:"supported"`
	Algorithms []string `json:"signatureAlgorithms"`
	Durable    bool     `json:"durable"`
}

func webhooksOf(cfg Config) *webhooks {
	if !cfg.Webhooks {
		return nil
	}
	return &webhooks{Supported: true, Algorithms: []string{webhook.Algorithm}, Durable: true}
}
