package discovery

import dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"

// prompts is present if the host has prompt templates. They are composed into prompts and
// not served over REST (OpenWOP envelope contract §19.2, §21).
type prompts struct {
	Supported        bool     `json:"supported"`
	Endpoints        bool     `json:"endpointsSupported"`
	TemplateKinds    []string `json:"templateKinds"`
	VariableSources  []string `json:"variableSources"`
	MaxTemplateBytes int32    `json:"maxTemplateBytes"`
	Observability    string   `json:"observability"`
}

func promptsOf(p *dispatcherv1.PromptSupport) *prompts {
	if p == nil {
		return nil
	}
	return &prompts{
		Supported: true, TemplateKinds: p.GetTemplateKinds(), VariableSources: p.GetVariableSources(),
		MaxTemplateBytes: p.GetMaxTemplateBytes(), Observability: p.GetObservability(),
	}
}
